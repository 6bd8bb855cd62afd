//! What `doctor` says about the real programs.

use crate::stage::{LIMIT, Stage};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::Value;

/// The verdict and the words of a check about an agent.
fn found<'c>(checks: &'c Value, who: Agent, name: &str) -> (&'c str, &'c str) {
    let wanted = format!("{} {name}", who.name());
    let found = checks.as_array().into_iter().flatten().find(|check| check["check"] == wanted);
    let found = found.unwrap_or_else(|| panic!("no {wanted} in {checks}"));
    assert_eq!(found["agent"], Value::from(who.name()));
    (found["verdict"].as_str().unwrap_or_default(), found["detail"].as_str().unwrap_or_default())
}

#[test]
fn doctor_knows_each_real_agent_and_has_heard_of_it_after_its_first_prompt() {
    isolated(|| {
        for who in Agent::ALL {
            let stage = Stage::with(&[who], Script::by(|_| Step::say("finished")));
            // On a busy machine some take longer than doctor gives them.
            let mut before = Value::Null;
            let known = wait::until(LIMIT, || {
                before = stage.json(&["doctor"]);
                let (verdict, told) = found(&before, who, "program");
                verdict == "pass" && told.ends_with(", as verified")
            });
            assert!(known, "{who:?}: {before}");
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
