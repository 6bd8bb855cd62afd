//! Setup and remove on a real home: the agents run with it, and afterwards every byte is back.

use crate::sandbox::{LIMIT, StorySandbox, both, wait_for_screen};
use baton_agents::Screen;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn files(stage: &StorySandbox) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    [".claude/settings.json", ".claude.json", ".codex/hooks.json", ".codex/config.toml"]
        .into_iter()
        .map(|file| (PathBuf::from(file), fs::read(stage.sandbox.home().join(file)).ok()))
        .collect()
}

#[test]
fn setup_and_remove_give_every_byte_back() {
    isolated(|| {
        let stage = StorySandbox::bare(Script::by(|_| Step::say("finished")));
        stage.claude().edit_settings(|settings| settings["model"] = "opus".into());
        stage.codex();
        let before = files(&stage);
        stage.baton(&["setup", "claude", "codex", "--dry-run"]).expect_ok();
        assert_eq!(files(&stage), before, "a dry run changes nothing");
        stage.baton(&["setup", "claude", "codex"]).expect_ok();
        let once = files(&stage);
        assert_ne!(once, before);
        stage.baton(&["setup", "claude", "codex"]).expect_ok();
        assert_eq!(files(&stage), once, "twice is the same as once");
        stage.baton(&["setup", "claude", "codex", "--remove"]).expect_ok();
        assert_eq!(files(&stage), before);
    });
}

#[test]
fn after_the_agents_have_run_only_ours_goes() {
    isolated(|| {
        let stage = StorySandbox::new(Script::by(|_| Step::say("finished")));
        for who in both() {
            stage.run(who, Session::New, "please begin");
        }
        stage.baton(&["setup", "claude", "codex", "--remove"]).expect_ok();
        for (file, bytes) in files(&stage) {
            let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
            assert!(!text.contains("hook_event") && !text.contains(" hook c"), "{}: {text}", file.display());
        }
        // They still start, and no session is registered any more.
        let sessions = stage.json(&["who", "--all"]).as_array().map_or(0, Vec::len);
        stage.run(Agent::Claude, Session::New, "once more");
        stage.run(Agent::Codex, Session::New, "once more");
        assert_eq!(stage.json(&["who", "--all"]).as_array().map_or(0, Vec::len), sessions);
    });
}

/// What Claude Code's own file says.
fn claude_state(stage: &StorySandbox) -> Value {
    let bytes = fs::read(stage.sandbox.home().join(".claude.json")).expect("Claude Code's file");
    serde_json::from_slice(&bytes).expect("it is JSON")
}

/// Each session of Claude Code writes that file again and again. Our entry goes in and out by its
/// own commands meanwhile, and nothing is lost.
#[test]
fn setup_while_claude_runs_loses_nothing_of_either() {
    isolated(|| {
        let stage = StorySandbox::bare(Script::by(|_| Step::say("finished")));
        let terminal = stage.open(Agent::Claude, Session::New);
        terminal.submit("please begin");
        stage.request(|request| request.shows("please begin"));
        wait_for_screen(&terminal, Agent::Claude, &Screen::Ready);
        let planned = stage.baton(&["setup", "claude", "--dry-run"]).expect_ok();
        assert!(
            planned.stderr.contains("`claude mcp add-json --scope user baton` would"),
            "{}",
            planned.stderr
        );
        let added = stage.baton(&["setup", "claude"]).expect_ok();
        assert!(!added.stderr.contains("note:"), "by its own command: {}", added.stderr);
        terminal.submit("and on");
        stage.request(|request| request.shows("and on"));
        wait_for_screen(&terminal, Agent::Claude, &Screen::Ready);
        terminal.submit("/exit");
        // What a session writes when it ends.
        let ended = |state: &Value| {
            let mut projects = state["projects"].as_object().into_iter().flatten();
            projects.any(|(_, project)| project["lastSessionId"].is_string())
        };
        assert!(wait::until(LIMIT, || ended(&claude_state(&stage))), "{:#}", claude_state(&stage));
        let entry = &claude_state(&stage)["mcpServers"]["baton"];
        assert_eq!(entry["args"][0], "mcp", "its write keeps our entry: {entry}");
        drop(terminal);
        let terminal = stage.open(Agent::Claude, Session::New);
        terminal.submit("once more");
        stage.request(|request| request.shows("once more"));
        let removed = stage.baton(&["setup", "claude", "--remove"]).expect_ok();
        assert!(!removed.stderr.contains("note:"), "by its own command: {}", removed.stderr);
        let written = claude_state(&stage)["machineID"].clone();
        assert!(written.is_string(), "ours keeps its writes");
        wait_for_screen(&terminal, Agent::Claude, &Screen::Ready);
        terminal.submit("/exit");
        assert!(wait::until(LIMIT, || ended(&claude_state(&stage))), "{:#}", claude_state(&stage));
        let state = claude_state(&stage);
        assert!(state["mcpServers"].get("baton").is_none(), "{state:#}");
        assert_eq!(state["machineID"], written);
    });
}
