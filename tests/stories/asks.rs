//! Ask and reply end to end by MCP, in both directions between the two agents.

use crate::moments;
use crate::sandbox::{LIMIT, StorySandbox};
use crate::sync_points::Barrier;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::{Script, Step, isolated};
use serde_json::json;

#[test]
fn claude_asks_codex_and_gets_its_answer() {
    isolated(|| moments::asks(Agent::Claude, Agent::Codex));
}

#[test]
fn codex_asks_claude_and_gets_its_answer() {
    isolated(|| moments::asks(Agent::Codex, Agent::Claude));
}

#[test]
fn a_model_reads_and_sends_by_tool_and_nothing_is_shown_twice() {
    isolated(|| {
        for who in crate::sandbox::both() {
            let sent = Barrier::default();
            let before = sent.clone();
            let script = Script::by(move |request| {
                let results = request.results().len();
                before.wait(results.min(1) + 1);
                match results {
                    0 => Step::shell("echo in-the-tool"),
                    1 => Step::mcp("baton", "read_messages", json!({})),
                    _ => Step::say("finished"),
                }
            });
            let stage = StorySandbox::new(script);
            let agent = stage.start(who, Session::New, "read your mail");
            stage.request(|_| true);
            stage.send(&stage.name_of(who), "MAIL-READ-1");
            sent.open();
            stage.request(|request| request.results().len() == 1);
            stage.send(&stage.name_of(who), "MAIL-READ-2");
            sent.open();
            agent.finish(LIMIT).expect_ok();
            for body in ["MAIL-READ-1", "MAIL-READ-2"] {
                stage.shown_once(body);
                assert_eq!(stage.end_of(body), "seen", "{who:?}: {}", stage.trouble());
            }
        }
    });
}
