//! What `doctor` says about the real programs.

use crate::sandbox::{LIMIT, StorySandbox};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::{Script, Step, isolated};
use serde_json::Value;

/// The verdict and the words of a check about an agent.
fn found<'c>(checks: &'c Value, who: Agent, name: &str) -> (&'c str, &'c str) {
    let wanted = format!("{} {name}", who.name());
    let found = checks.as_array().into_iter().flatten().find(|check| check["check"] == wanted);
    let found = found.unwrap_or_else(|| panic!("no {wanted} in {checks}"));
    assert_eq!(found["agent"], Value::from(who.name()));
    (found["verdict"].as_str().unwrap_or_default(), found["detail"].as_str().unwrap_or_default())
}

/// All that is in the home.
fn files(stage: &StorySandbox) -> Vec<String> {
    let found = stage.sandbox.run(stage.sandbox.command("find").arg(stage.sandbox.home()), LIMIT).expect_ok();
    let mut files: Vec<String> = found.stdout.lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn doctor_knows_each_real_agent_and_has_heard_of_it_after_its_first_prompt() {
    isolated(|| {
        for who in Agent::ALL {
            let stage = StorySandbox::with(&[who], Script::by(|_| Step::say("finished")));
            let home = files(&stage);
            let before = stage.json(&["doctor"]);
            let (verdict, told) = found(&before, who, "program");
            assert!(verdict == "pass" && told.ends_with(", as verified"), "{who:?}: {before}");
            if matches!(who, Agent::Gemini | Agent::OpenCode) {
                assert_eq!(files(&stage), home, "{who:?}: who asks leaves nothing behind");
            }
            assert_eq!(found(&before, who, "setup").0, "pass", "{who:?}");
            assert_eq!(found(&before, who, "seen").0, "note", "{who:?}");
            stage.run(who, Session::New, "please begin");
            let after = stage.json(&["doctor"]);
            assert_eq!(found(&after, who, "seen").0, "pass", "{who:?}");
            if matches!(who, Agent::OpenCode | Agent::Pi) {
                assert_eq!(found(&after, who, "loaded").0, "pass", "{who:?}");
            }
        }
    });
}
