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

/// E8: both ask the other at the same instant. One of them is told to answer first.
#[test]
fn e8_two_that_ask_each_other_do_not_wait_for_their_time_outs() {
    isolated(|| {
        let both_are_there = Barrier::default();
        let before = both_are_there.clone();
        let script = Script::by(move |request| {
            let results = request.results();
            let other = if request.agent == Agent::Claude { Agent::Codex } else { Agent::Claude };
            let question = json!({"to": format!("agent:{}", other.name()), "body": "QUESTION: first?", "timeout": "100s"});
            match (results.len(), request.word_after("answer it first (baton reply ")) {
                (0, _) => {
                    before.wait(1);
                    Step::mcp("baton", "ask_peer", question)
                }
                (1, Some(message)) => Step::mcp(
                    "baton",
                    "reply_to_message",
                    json!({"message_id": message, "body": "YOU-FIRST"}),
                ),
                _ => Step::say("finished"),
            }
        });
        let stage = StorySandbox::new(script);
        let agents: Vec<_> =
            [Agent::Claude, Agent::Codex].map(|who| stage.start(who, Session::New, "ask the other")).into();
        for who in [Agent::Claude, Agent::Codex] {
            stage.name_of(who);
        }
        both_are_there.open();
        for agent in agents {
            agent.finish(LIMIT).expect_ok();
        }
        let last = |who: Agent| stage.model.requests().into_iter().rfind(|request| request.agent == who);
        let told = |text: &str| {
            let requests = [Agent::Claude, Agent::Codex].map(|who| last(who).expect("a request"));
            requests
                .iter()
                .filter(|request| request.results().iter().any(|one| one.text.contains(text)))
                .count()
        };
        assert_eq!((told("would-deadlock"), told("YOU-FIRST")), (1, 1), "{}", stage.trouble());
    });
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
