//! Files that other programs edited between our installation and our removal: only our entries go.

use baton_agents::codex::install::{Codex, hook_rows};
use baton_agents::install::{Form, GuardHooks, HookRow, Records, Scope};
use serde_json::{Value, json};

use crate::world::{BATON, Files, HOME, claude, codex};

fn pretty(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap();
    bytes.push(b'\n');
    bytes
}

#[test]
fn a_file_that_the_agent_reformatted_loses_only_our_entries() {
    let target = claude();
    let path = target.settings_path();
    let others = json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "say" }] }] }, "model": "x" });
    let files = Files::with(path, others.to_string().as_bytes());
    let (after, records) = files.installed(&target).unwrap();
    let rewritten = Files::with(path, &pretty(&after.json(path)));
    let out = rewritten.removed(&target, &records).unwrap();
    assert_eq!(out.text(path), String::from_utf8(pretty(&others)).unwrap());
    let out = rewritten.removed(&target, &Records::default()).unwrap();
    assert_eq!(out.text(path), String::from_utf8(pretty(&others)).unwrap(), "also without a manifest");
}

#[test]
fn entries_before_and_after_ours_stay_as_they_are() {
    let target = claude();
    let path = target.settings_path();
    let document = "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [ 1 ] }\n    ]\n  }\n}\n";
    let (after, records) = Files::with(path, document.as_bytes()).installed(&target).unwrap();
    let text = after.text(path);
    let at = text.find("\"Stop\": [").unwrap() + "\"Stop\": [".len();
    let edited = format!("{}\n      {{\"first\":  true}},{}", &text[..at], &text[at..]);
    let edited = edited.replacen("\n    ]", ",\n      {\"last\":\ttrue}\n    ]", 1);
    let edited = edited.replacen("{\n", "{\n  \"new\" : [ ],\n", 1);
    let out = Files::with(path, edited.as_bytes()).removed(&target, &records).unwrap();
    assert_eq!(
        out.text(path),
        "{\n  \"new\" : [ ],\n  \"hooks\": {\n    \"Stop\": [\n      {\"first\":  true},\n      { \"hooks\": [ 1 ] },\n      {\"last\":\ttrue}\n    ]\n  }\n}\n"
    );
}

#[test]
fn a_handler_that_someone_added_to_our_group_stays() {
    let target = claude();
    let path = target.settings_path();
    let (after, records) = Files::default().installed(&target).unwrap();
    let mut value = after.json(path);
    let theirs = json!({ "type": "command", "command": "say" });
    value["hooks"]["Stop"][0]["hooks"].as_array_mut().unwrap().push(theirs.clone());
    let files = Files::with(path, &pretty(&value));
    let (again, _) = files.installed(&target).unwrap();
    assert_eq!(again.text(path), files.text(path), "nothing to update");
    let out = files.removed(&target, &records).unwrap();
    assert_eq!(out.json(path), json!({ "hooks": { "Stop": [{ "hooks": [theirs] }] } }));
}

#[test]
fn what_a_person_added_to_our_server_stays_until_removal() {
    let target = claude();
    let path = target.servers_path();
    let (after, records) = Files::default().installed(&target).unwrap();
    let mut value = after.json(path);
    value["mcpServers"]["baton"]["env"] = json!({ "A": "1" });
    value["mcpServers"]["baton"]["command"] = json!("/old/baton");
    value["mcpServers"]["baton"].as_object_mut().unwrap().remove("type");
    let files = Files::with(path, &pretty(&value));
    let (again, _) = files.installed(&target).unwrap();
    let entry = &again.json(path)["mcpServers"]["baton"];
    assert_eq!(
        (&entry["command"], &entry["env"], &entry["type"]),
        (&json!(BATON), &json!({ "A": "1" }), &json!("stdio"))
    );
    assert_eq!(again.removed(&target, &records).unwrap().0.get(path), None, "we made the file");
}

#[test]
fn two_homes_do_not_touch_each_other() {
    let target = claude();
    let other = json!({ "hooks": [{ "type": "command", "command": format!("'{BATON}' hook claude --home '/other'") }] });
    let tool = json!({ "hooks": [{ "type": "mcp_tool", "server": "baton", "tool": "hook_event" }] });
    let settings = json!({ "hooks": { "Stop": [other, tool] } });
    let server = json!({ "command": BATON, "args": ["mcp", "--agent", "claude", "--home", "/other"] });
    let servers = json!({ "mcpServers": { "baton": server } });
    let files = Files::with(target.settings_path(), settings.to_string().as_bytes())
        .and(target.servers_path(), servers.to_string().as_bytes());
    assert_eq!(files.removed(&target, &Records::default()).unwrap(), files);
    assert_eq!(files.installed(&target).unwrap_err().code(), "setup-other-home");
}

/// Trust by position, as the file has it.
fn trust(files: &Files, target: &Codex) -> Vec<(String, String)> {
    let text = files.text(target.trust_path());
    let keys = text.lines().filter_map(|l| l.strip_prefix("[hooks.state.\"")?.strip_suffix("\"]"));
    let hashes = text.lines().filter_map(|l| l.strip_prefix("trusted_hash = \"")?.strip_suffix('"'));
    let short = |key: &str| key.split_once("hooks.json:").map(|(_, k)| k.to_owned()).unwrap();
    keys.map(short).zip(hashes.map(str::to_owned)).collect()
}

fn group(command: &str) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command }] })
}

#[test]
fn codex_trust_of_later_groups_moves_with_them() {
    let target = codex();
    let first = json!({ "hooks": { "Stop": [group("a")] } });
    let config = "[hooks.state.\"/home/dev/.codex/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:a\"\n";
    let files = Files::with(target.hooks_path(), &pretty(&first)).and(target.trust_path(), config.as_bytes());
    let (after, records) = files.installed(&target).unwrap();
    // Another tool comes after us and is trusted.
    let mut hooks = after.json(target.hooks_path());
    hooks["hooks"]["Stop"].as_array_mut().unwrap().push(group("b"));
    let place = 1 + hook_rows(GuardHooks::On).iter().filter(|row| row.event == "Stop").count();
    let config = format!(
        "{}\n# mine\n[hooks.state.\"/home/dev/.codex/hooks.json:stop:{place}:0\"] # b\ntrusted_hash = \"sha256:b\"\nenabled = false\n",
        after.text(target.trust_path())
    );
    let files = Files::with(target.hooks_path(), &pretty(&hooks)).and(target.trust_path(), config.as_bytes());
    for records in [&records, &Records::default()] {
        let out = files.removed(&target, records).unwrap();
        assert_eq!(out.json(target.hooks_path()), json!({ "hooks": { "Stop": [group("a"), group("b")] } }));
        assert_eq!(
            out.text(target.trust_path()),
            "[hooks.state.\"/home/dev/.codex/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:a\"\n\n# mine\n[hooks.state.\"/home/dev/.codex/hooks.json:stop:1:0\"] # b\ntrusted_hash = \"sha256:b\"\nenabled = false\n"
        );
    }
}

#[test]
fn codex_trust_follows_our_groups_when_others_push_in_before() {
    let target = codex();
    let (after, _) = Files::default().installed(&target).unwrap();
    let mut hooks = after.json(target.hooks_path());
    hooks["hooks"]["SessionStart"].as_array_mut().unwrap().insert(0, group("a"));
    let files = after.clone().and(target.hooks_path(), &pretty(&hooks));
    let (again, _) = files.installed(&target).unwrap();
    assert_eq!(again.text(target.hooks_path()), files.text(target.hooks_path()), "in its place");
    let before = trust(&after, &target);
    let mut expected: Vec<(String, String)> =
        before.into_iter().filter(|(k, _)| k != "session_start:0:0").collect();
    let hash = trust(&after, &target).into_iter().find(|(k, _)| k == "session_start:0:0").unwrap().1;
    expected.push(("session_start:1:0".to_owned(), hash));
    assert_eq!(trust(&again, &target), expected);
}

#[test]
fn codex_trust_that_lost_its_hooks_is_removed_by_its_hash() {
    let target = codex();
    let config = "model = \"gpt-5\"\n";
    let (after, _) = Files::with(target.trust_path(), config.as_bytes()).installed(&target).unwrap();
    let files = Files::with(target.trust_path(), after.text(target.trust_path()).as_bytes());
    assert_eq!(files.removed(&target, &Records::default()).unwrap().text(target.trust_path()), config);
}

#[test]
fn codex_tables_below_our_server_go_with_it_and_its_neighbours_stay() {
    let target = codex();
    let (after, _) = Files::with(target.trust_path(), b"# top\n").installed(&target).unwrap();
    let text = after.text(target.trust_path());
    let edited = text.replacen("\n[hooks.state", "startup_timeout_sec = 5 # mine\n\n[mcp_servers.baton.tools.send]\napproval_mode = \"approve\"\n\n# theirs\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n\n[hooks.state", 1);
    let edited = format!("{edited}\n[tui]\ntheme = \"x\"");
    let files = after.clone().and(target.trust_path(), edited.as_bytes());
    let out = files.removed(&target, &Records::default()).unwrap();
    assert_eq!(
        out.text(target.trust_path()),
        "# top\n\n# theirs\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n\n[tui]\ntheme = \"x\""
    );
}

#[test]
fn codex_server_written_in_other_ways_is_still_ours() {
    let target = codex();
    let args = format!("[\"mcp\", \"--agent\", \"codex\", \"--home\", \"{HOME}\"]");
    let forms = [
        (
            format!(
                "[mcp_servers]\nbaton = {{ command = \"/old\", args = {args} }} # ours\nx.command = \"y\"\n"
            ),
            "[mcp_servers]\nx.command = \"y\"\n",
        ),
        (
            format!("[mcp_servers]\nbaton.command = \"/old\"\nbaton.args = {args}\nx.command = \"y\"\n"),
            "[mcp_servers]\nx.command = \"y\"\n",
        ),
        (
            format!("mcp_servers.baton.command = \"/old\"\nmcp_servers.baton.args = {args}\nmodel = \"x\"\n"),
            "model = \"x\"\n",
        ),
    ];
    for (text, rest) in &forms {
        let files = Files::with(target.trust_path(), text.as_bytes());
        let (after, _) = files.installed(&target).unwrap();
        assert!(after.text(target.trust_path()).contains(&format!("{BATON:?}")), "updated: {after:?}");
        assert_eq!(after.removed(&target, &Records::default()).unwrap().text(target.trust_path()), *rest);
    }
}

/// The name of an event in the keys of Codex's trust.
fn snake(event: &str) -> String {
    let words = event
        .chars()
        .map(|c| if c.is_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.to_string() });
    words.collect::<String>().trim_start_matches('_').to_owned()
}

#[test]
fn a_row_that_is_no_longer_wanted_goes_and_trust_stays_right() {
    let with_rows = |rows| {
        Codex::with_rows(crate::world::install(Scope::User), "/home/dev".as_ref(), None, rows).unwrap()
    };
    // A version that has a call of the server beside each command, and one that has only the calls.
    let tool =
        hook_rows(GuardHooks::Off).into_iter().find(|row| matches!(row.form, Form::McpTool { .. })).unwrap();
    let (mut both, mut calls) = (Vec::new(), Vec::new());
    for row in hook_rows(GuardHooks::Off) {
        let call = HookRow { event: row.event, matcher: row.matcher, ..tool.clone() };
        both.extend(matches!(row.form, Form::Command { .. }).then_some(row));
        both.push(call.clone());
        calls.push(call);
    }
    let (target, smaller) = (with_rows(both), with_rows(calls.clone()));
    let (after, _) = Files::default().installed(&target).unwrap();
    let mut hooks = after.json(target.hooks_path());
    hooks["hooks"]["Stop"].as_array_mut().unwrap().insert(1, group("b"));
    let files = after.clone().and(target.hooks_path(), &pretty(&hooks));
    let (again, _) = files.installed(&smaller).unwrap();
    let stop = again.json(target.hooks_path())["hooks"]["Stop"].as_array().unwrap().clone();
    assert_eq!((stop.len(), &stop[0], &stop[1]["hooks"][0]["type"]), (2, &group("b"), &json!("mcp_tool")));
    let mut keys: Vec<String> = trust(&again, &target).into_iter().map(|(key, _)| key).collect();
    keys.sort();
    let place = |event| if event == "Stop" { 1 } else { 0 };
    let mut expected: Vec<String> =
        calls.iter().map(|row| format!("{}:{}:0", snake(row.event), place(row.event))).collect();
    expected.sort();
    assert_eq!(keys, expected);
    assert_eq!(again.installed(&smaller).unwrap().0, again);
}

/// Questions are held for longer than an earlier version allowed its hooks.
#[test]
fn a_hook_that_may_take_longer_now_is_brought_up_to_date_and_stays_trusted() {
    let shorter = hook_rows(GuardHooks::On).into_iter().map(|row| match row.form {
        Form::Command { timeout } if row.event == "PermissionRequest" => {
            assert!(timeout > 600, "the longest hold that can be set is ten minutes");
            HookRow { form: Form::Command { timeout: 10 }, ..row }
        }
        _ => row,
    });
    let install = crate::world::install(Scope::User);
    let old = Codex::with_rows(install, "/home/dev".as_ref(), None, shorter.collect()).unwrap();
    let (before, _) = Files::default().installed(&old).unwrap();
    let (fresh, _) = Files::default().installed(&codex()).unwrap();
    let (after, _) = before.installed(&codex()).unwrap();
    assert_ne!(before.text(old.hooks_path()), fresh.text(old.hooks_path()));
    assert_eq!(after.text(old.hooks_path()), fresh.text(old.hooks_path()));
    let sorted = |files: &Files| {
        let mut trust = trust(files, &old);
        trust.sort();
        trust
    };
    assert_ne!(sorted(&before), sorted(&fresh));
    assert_eq!(sorted(&after), sorted(&fresh));
    let settings = claude().settings_path().to_owned();
    let (fresh, _) = Files::default().installed(&claude()).unwrap();
    let mut hooks = fresh.json(&settings);
    hooks["hooks"]["PermissionRequest"][0]["hooks"][0]["timeout"] = json!(10);
    let (after, _) = fresh.clone().and(&settings, &pretty(&hooks)).installed(&claude()).unwrap();
    assert_eq!(after.json(&settings), fresh.json(&settings));
}
