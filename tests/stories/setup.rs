//! Setup and remove on a real home: the agents run with it, and afterwards every byte is back.

use crate::stage::{Stage, both};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::{Script, Step, isolated};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn files(stage: &Stage) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    [".claude/settings.json", ".claude.json", ".codex/hooks.json", ".codex/config.toml"]
        .into_iter()
        .map(|file| (PathBuf::from(file), fs::read(stage.sandbox.home().join(file)).ok()))
        .collect()
}

#[test]
fn setup_and_remove_give_every_byte_back() {
    isolated(|| {
        let stage = Stage::bare(Script::by(|_| Step::say("finished")));
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
        let stage = Stage::new(Script::by(|_| Step::say("finished")));
        for who in both() {
            stage.run(who, Session::New, "please begin");
        }
        stage.baton(&["setup", "claude", "codex", "--remove"]).expect_ok();
        for (file, bytes) in files(&stage) {
            let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
            assert!(!text.contains("hook_event") && !text.contains(" hook c"), "{}: {text}", file.display());
        }
        // They still start, and nobody is registered any more.
        let sessions = stage.json(&["who", "--all"]).as_array().map_or(0, Vec::len);
        stage.run(Agent::Claude, Session::New, "once more");
        stage.run(Agent::Codex, Session::New, "once more");
        assert_eq!(stage.json(&["who", "--all"]).as_array().map_or(0, Vec::len), sessions);
    });
}
