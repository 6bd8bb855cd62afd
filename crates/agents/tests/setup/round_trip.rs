//! Installing and removing restores every byte: here by value, without a backup.

use baton_agents::claude::install::{Claude, hook_rows};
use baton_agents::install::{GuardHooks, Records, Scope, Target};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

use crate::documents::{JSON, JSON_WITH_COMMENTS, TOML};
use crate::world::{
    BATON, Files, HOME, claude, codex, copilot, cursor, gemini, install, moved_claude, moved_codex,
    moved_copilot, moved_cursor, moved_gemini,
};

/// Whether the hooks that the target wants are at the end of each event, and `before`'s are in
/// front.
fn assert_hooks_appended(before: &Value, after: &Value, expected: usize) {
    let mut ours = 0;
    for (event, groups) in after["hooks"].as_object().unwrap() {
        let Some(groups) = groups.as_array() else { continue };
        let old = before["hooks"][event].as_array().cloned().unwrap_or_default();
        assert_eq!(groups[..old.len()], old[..], "{event}");
        ours += groups.len() - old.len();
    }
    assert_eq!(ours, expected);
}

fn assert_round_trip(target: &dyn Target, files: &Files) -> Files {
    let (after, records) = files.installed(target).unwrap();
    let mut shown = files.clone();
    shown.0.retain(|_, bytes| bytes.is_some());
    assert_eq!(after.removed(target, &records).unwrap(), shown, "installed: {after:?}");
    let (again, _) = after.installed(target).unwrap();
    assert_eq!(again, after, "twice is the same as once");
    after
}

#[test]
fn claude_settings_come_back_byte_for_byte() {
    let target = claude();
    for document in JSON {
        let files = Files::with(target.settings_path(), document.as_bytes());
        let after = assert_round_trip(&target, &files);
        let readable = document.trim_start_matches('\u{feff}').replace("\\ud800", "").replace("1e400", "0");
        let before: Value = serde_json::from_str(&readable).unwrap_or(json!({}));
        assert_hooks_appended(
            &before,
            &after.json(target.settings_path()),
            hook_rows(&Scope::User, GuardHooks::On).len(),
        );
    }
}

/// Copilot reads a project's hooks too, and ignores a file with a hook of a form that it does not
/// know.
#[test]
fn claude_hooks_of_a_project_are_commands() {
    let scope = Scope::Project("/home/dev/proj".into());
    let target = Claude::new(install(scope), Path::new("/home/dev"), None).unwrap();
    let (after, records) = Files::default().installed(&target).unwrap();
    let settings = after.text(target.settings_path());
    assert!(!settings.contains("mcp_tool") && settings.contains("PostToolBatch"), "{settings}");
    assert_eq!(after.removed(&target, &records).unwrap(), Files::default());
}

#[test]
fn claude_servers_come_back_byte_for_byte() {
    let target = claude();
    for document in JSON {
        let files = Files::with(target.servers_path(), document.as_bytes());
        let after = assert_round_trip(&target, &files);
        let entry = &after.json(target.servers_path())["mcpServers"]["baton"];
        assert_eq!(entry["command"], crate::world::BATON);
        assert_eq!(entry["args"], json!(["mcp", "--agent", "claude", "--home", crate::world::HOME]));
    }
}

#[test]
fn codex_hooks_come_back_byte_for_byte() {
    let target = codex();
    for document in JSON.iter().filter(|d| !d.starts_with('\u{feff}')) {
        assert_round_trip(&target, &Files::with(target.hooks_path(), document.as_bytes()));
    }
}

#[test]
fn codex_config_comes_back_byte_for_byte() {
    let target = codex();
    for document in TOML {
        let files = Files::with(target.trust_path(), document.as_bytes());
        // Trust for a hook that does not exist is replaced by ours, which gets its position.
        if !document.contains(":stop:0:0") {
            let after = assert_round_trip(&target, &files);
            assert!(after.text(target.trust_path()).starts_with(document));
        }
        // With the hooks of another tool, whose trust is in some of the documents.
        let hooks = br#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"other"}]}]}}"#;
        assert_round_trip(&target, &files.and(target.hooks_path(), hooks));
    }
}

/// Hooks and server in one file.
#[test]
fn gemini_settings_come_back_byte_for_byte() {
    let target = gemini();
    let rows = baton_agents::gemini::install::hook_rows(GuardHooks::On).len();
    for document in JSON.iter().filter(|d| !d.starts_with('\u{feff}')) {
        let after = assert_round_trip(&target, &Files::with(target.settings_path(), document.as_bytes()));
        let before: Value =
            serde_json::from_str(&document.replace("\\ud800", "").replace("1e400", "0")).unwrap_or(json!({}));
        let after = after.json(target.settings_path());
        assert_hooks_appended(&before, &after, rows);
        let entry = &after["mcpServers"]["baton"];
        assert_eq!(entry["args"], json!(["mcp", "--agent", "gemini", "--home", crate::world::HOME]));
        assert_eq!(
            after["hooks"]["AfterTool"].as_array().unwrap().last().unwrap()["hooks"][0]["timeout"],
            10_000
        );
    }
    for document in JSON_WITH_COMMENTS {
        let after = assert_round_trip(&target, &Files::with(target.settings_path(), document.as_bytes()));
        for comment in
            ["// mine", "/* mine */", "// the good one", "// none yet", "/* none */", "/* b */", "// end"]
        {
            let text = after.text(target.settings_path());
            assert_eq!(text.contains(comment), document.contains(comment), "{comment} in {text}");
        }
    }
}

/// Only the user may allow tools to run unasked. Once allowed, it stays, and needs no note.
#[test]
fn only_the_user_makes_gemini_trust_our_tools() {
    let target = gemini();
    let (after, _) = Files::default().installed(&target).unwrap();
    let text = after.text(target.settings_path()).to_owned();
    assert!(!text.contains("trust"), "{text}");
    assert_eq!(target.notes(&after.current()).len(), 1);
    let trusted = text.replacen("\"type\": \"stdio\"", "\"trust\": true,\n      \"type\": \"stdio\"", 1);
    let trusted = Files::with(target.settings_path(), trusted.as_bytes());
    assert_eq!(target.notes(&trusted.current()), [""; 0]);
    assert_eq!(trusted.installed(&target).unwrap().0, trusted);
}

#[test]
fn copilot_servers_come_back_byte_for_byte_beside_a_hooks_file_of_ours() {
    let target = copilot(Scope::User);
    for document in JSON.iter().filter(|d| !d.starts_with('\u{feff}')) {
        let files = Files::with(target.servers_path(), document.as_bytes());
        let after = assert_round_trip(&target, &files);
        let entry = &after.json(target.servers_path())["mcpServers"]["baton"];
        assert_eq!(entry["args"], json!(["mcp", "--agent", "copilot", "--home", HOME]));
        let hooks = after.json(target.hooks_path());
        assert_eq!(hooks["version"], 1);
        for (event, hooks) in hooks["hooks"].as_object().unwrap() {
            let judges = if event == "preToolUse" { " --guard --hold" } else { "" };
            let baton = BATON.replace('\'', r"'\''");
            let command = format!("'{baton}' hook copilot {event}{judges} --home '{HOME}'");
            assert_eq!(hooks[0]["bash"], command);
        }
    }
}

/// Other agents read the project's `.mcp.json` too, and a server of our name may be theirs.
#[test]
fn copilot_leaves_the_server_of_another_baton_in_a_project() {
    let target = copilot(Scope::Project("/home/dev/proj".into()));
    let servers = json!({"mcpServers": {"baton": {"args": ["mcp", "--home", "/another/home"]}}});
    let files = Files::with(target.servers_path(), servers.to_string().as_bytes());
    let after = assert_round_trip(&target, &files);
    assert_eq!(after.json(target.servers_path()), servers);
    let noted = |files: &Files| target.notes(&files.current()).join("\n");
    assert!(noted(&files).contains("belongs to another baton") && noted(&files).contains("trust"));
    assert!(!noted(&Files::default()).contains("belongs to another baton"));
    assert_eq!(
        copilot(Scope::User)
            .add(&Files::with(copilot(Scope::User).servers_path(), servers.to_string().as_bytes()).current())
            .unwrap_err()
            .code(),
        "setup-name-taken"
    );
}

#[test]
fn cursor_hooks_come_back_byte_for_byte() {
    let target = cursor();
    let own = [
        "{\"version\":1,\"hooks\":{\"stop\":[{\"command\":\"other\"}]}}",
        "{\n  \"version\": 1,\n  \"hooks\": {}\n}\n",
        "{\n  \"version\": 1\n}",
    ];
    for document in JSON.iter().copied().chain(own).filter(|d| !d.starts_with('\u{feff}')) {
        assert_round_trip(&target, &Files::with(target.hooks_path(), document.as_bytes()));
        assert_round_trip(&target, &Files::with(target.servers_path(), document.as_bytes()));
    }
    let (after, _) = Files::with(target.hooks_path(), own[0].as_bytes()).installed(&target).unwrap();
    let hooks = after.json(target.hooks_path());
    assert_eq!(hooks["hooks"]["stop"][0]["command"], "other");
    let command = format!("'{}' hook cursor --home '{HOME}'", BATON.replace('\'', r"'\''"));
    assert_eq!(hooks["hooks"]["stop"][1], json!({"command": command, "timeout": 10}));
    let (after, _) = Files::default().installed(&target).unwrap();
    assert_eq!(after.json(target.hooks_path())["version"], 1);
}

#[test]
fn copilot_and_cursor_are_brought_up_to_date_in_place() {
    let pairs = [
        (&copilot(Scope::User) as &dyn Target, &moved_copilot() as &dyn Target),
        (&cursor(), &moved_cursor()),
    ];
    for (old, new) in pairs {
        let (first, records) = Files::default().installed(old).unwrap();
        let (second, _) = first.installed(new).unwrap();
        assert_eq!(second, Files::default().installed(new).unwrap().0, "as if it had been the first time");
        assert_eq!(
            second.removed(old, &records).unwrap(),
            Files::default(),
            "ours whatever the program's path"
        );
    }
}

#[test]
fn nothing_is_left_of_files_that_were_not_there() {
    for target in [&claude() as &dyn Target, &codex(), &gemini(), &copilot(Scope::User), &cursor()] {
        assert_round_trip(target, &Files::default());
    }
}

#[test]
fn an_installation_is_brought_up_to_date_in_place() {
    for (old, new) in [
        (&claude() as &dyn Target, &moved_claude() as &dyn Target),
        (&codex(), &moved_codex()),
        (&gemini(), &moved_gemini()),
    ] {
        for document in [
            "{}",
            "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": []\n      }\n    ]\n  }\n}\n",
        ] {
            let path = &old.files()[0];
            let files = Files::with(path, document.as_bytes());
            let (first, records) = files.installed(old).unwrap();
            let (second, _) = first.installed(new).unwrap();
            let (direct, _) = files.installed(new).unwrap();
            assert_eq!(second, direct, "the same as if it had been the first time");
            assert_eq!(second.removed(new, &records).unwrap(), files);
            assert_eq!(second.removed(old, &records).unwrap(), files, "ours whatever the program's path");
        }
    }
}

#[test]
fn new_entries_look_like_those_around_them() {
    let target = claude();
    let document = "{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{\"hooks\": []}\r\n\t\t]\r\n\t}\r\n}\r\n";
    let (after, _) = Files::with(target.settings_path(), document.as_bytes()).installed(&target).unwrap();
    let text = after.text(target.settings_path());
    assert!(text.contains("\r\n\t\t\t{\"hooks\": []},\r\n\t\t\t{\r\n\t\t\t\t\"hooks\": [\r\n"), "{text}");
    assert!(!text.replace("\r\n", "").contains('\n'));

    let document = r#"{"hooks":{"Stop":[{"hooks":[]}]}}"#;
    let (after, _) = Files::with(target.settings_path(), document.as_bytes()).installed(&target).unwrap();
    let text = after.text(target.settings_path());
    assert!(
        text.starts_with(r#"{"hooks":{"Stop":[{"hooks":[]},{"hooks":[{"type":"command","command":"#),
        "{text}"
    );
    assert!(!text.contains('\n'));
}

/// JSON text with white space from `spaces` between all tokens.
fn spaced(value: &Value, spaces: &mut dyn Iterator<Item = &'static str>) -> String {
    let space = |spaces: &mut dyn Iterator<Item = &'static str>| spaces.next().unwrap_or("");
    match value {
        Value::Array(values) if values.is_empty() => format!("[{}]", space(spaces)),
        Value::Object(map) if map.is_empty() => format!("{{{}}}", space(spaces)),
        Value::Array(values) => {
            let parts: Vec<String> = values
                .iter()
                .map(|v| format!("{}{}{}", space(spaces), spaced(v, spaces), space(spaces)))
                .collect();
            format!("[{}]", parts.join(","))
        }
        Value::Object(map) => {
            let parts: Vec<String> = map
                .iter()
                .map(|(k, v)| {
                    let key = Value::from(k.as_str());
                    let (a, b, c) = (space(spaces), space(spaces), space(spaces));
                    format!("{a}{key}{b}:{c}{}{}", spaced(v, spaces), space(spaces))
                })
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// Any small value.
pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-zé\"\\\\]{0,4}", inner, 0..4).prop_map(|m| json!(m)),
        ]
    })
}

/// A document that may have hooks of other tools and other servers in it, in any order of keys.
fn any_document() -> impl Strategy<Value = Value> {
    let event = prop_oneof![Just("Stop"), Just("PreToolUse"), Just("SessionEnd"), Just("Other")];
    let command = "[a-z ]{0,8}".prop_map(|c| json!({ "type": "command", "command": c }));
    let handler = prop_oneof![command, any_json()];
    let group = prop::collection::vec(handler, 0..3).prop_map(|hooks| json!({ "hooks": hooks }));
    let groups = prop::collection::vec(prop_oneof![3 => group, 1 => any_json()], 0..3);
    let hooks = prop::collection::btree_map(event, groups, 0..4).prop_map(|m| json!(m));
    let servers = prop::collection::btree_map("[a-z]{1,3}", any_json(), 0..3).prop_map(|m| json!(m));
    let known = (prop::option::of(hooks), prop::option::of(servers));
    let rest = prop::collection::vec(("[a-z]{1,4}", any_json()), 0..4);
    (known, rest).prop_flat_map(|((hooks, servers), rest)| {
        let mut keys: Vec<(String, Value)> = rest;
        keys.retain(|(key, _)| key != "hooks");
        keys.extend(hooks.map(|hooks| ("hooks".to_owned(), hooks)));
        keys.extend(servers.map(|servers| ("mcpServers".to_owned(), servers)));
        Just(keys).prop_shuffle().prop_map(|keys| Value::Object(keys.into_iter().collect()))
    })
}

fn any_text() -> impl Strategy<Value = String> {
    any_text_with(&["", "", "", " ", "\n", "\r\n", "\t", "  ", "\n    ", " \n\t"])
}

/// With any of these between its tokens.
fn any_text_with(spaces: &[&'static str]) -> impl Strategy<Value = String> {
    let space = prop::sample::select(spaces.to_vec());
    (any_document(), prop::collection::vec(space, 0..200), "(\u{feff})?[ \n]{0,2}").prop_map(
        |(value, spaces, front)| {
            let mut spaces = spaces.into_iter();
            let body = spaced(&value, &mut spaces);
            format!("{front}{body}{}", spaces.next().unwrap_or(""))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_comes_back(text in any_text()) {
        let target = claude();
        for path in [target.settings_path(), target.servers_path()] {
            assert_round_trip(&target, &Files::with(path, text.as_bytes()));
        }
        if !text.starts_with('\u{feff}') {
            let target = codex();
            assert_round_trip(&target, &Files::with(target.hooks_path(), text.as_bytes()));
            let target = gemini();
            assert_round_trip(&target, &Files::with(target.settings_path(), text.as_bytes()));
        }
    }

    #[test]
    fn any_document_with_comments_comes_back(text in any_text_with(&["", " ", "\n  ", "/**/", "/* \"a\": [ */", " // {\n", "//\r\n\t"])) {
        let target = gemini();
        if !text.starts_with('\u{feff}') {
            assert_round_trip(&target, &Files::with(target.settings_path(), text.as_bytes()));
        }
    }

    #[test]
    fn any_document_keeps_what_is_not_ours_without_a_manifest(text in any_text()) {
        let target = claude();
        let files = Files::with(target.settings_path(), text.as_bytes());
        let (after, _) = files.installed(&target).unwrap();
        let out = after.removed(&target, &Records::default()).unwrap();
        prop_assert_eq!(meaning(&out, target.settings_path()), meaning(&files, target.settings_path()));
    }
}

/// The document without empty containers, which may come or go when a manifest is lost.
fn meaning(files: &Files, path: &Path) -> Value {
    let mut value = files.json(path);
    if let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.retain(|_, groups| groups != &json!([]));
    }
    if value.get("hooks") == Some(&json!({})) {
        value.as_object_mut().unwrap().remove("hooks");
    }
    value
}
