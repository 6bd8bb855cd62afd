//! Ask and reply end to end by MCP, in both directions between the two agents.

use crate::stage::{LIMIT, Stage, rounds};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Api, Request};
use baton_testkit::{Script, Step, isolated};
use serde_json::json;

/// Busy until the question is in the context, answers it, and ends.
fn answering(request: &Request) -> Step {
    let results = request.results();
    let Some(message) = request.word_after("with message_id ") else {
        return if results.len() < 60 { Step::shell("sleep 0.3") } else { Step::say("nobody asked") };
    };
    if results.iter().any(|result| result.text.contains("\"wake\"")) {
        return Step::say("finished");
    }
    Step::mcp("baton", "reply_to_message", json!({"message_id": message, "body": "ANSWER-42"}))
}

/// Asks at once, and ends with the answer.
fn asking(request: &Request, to: &str) -> Step {
    match request.results().len() {
        0 => Step::mcp(
            "baton",
            "ask_peer",
            json!({"to": to, "body": "QUESTION-1: how many?", "timeout": "40s"}),
        ),
        _ => Step::say("finished"),
    }
}

fn asks(asker: Agent, asked: Agent) {
    let asker_api = if asker == Agent::Claude { Api::Anthropic } else { Api::Responses };
    let to = format!("agent:{}", asked.name());
    let stage = Stage::new(Script::by(move |request| {
        if request.api == asker_api { asking(request, &to) } else { answering(request) }
    }));
    let peer = stage.start(asked, Session::New, "work on something");
    stage.name_of(asked);
    let run = stage.start(asker, Session::New, "ask your peer");
    run.finish(LIMIT).expect_ok();
    peer.finish(LIMIT).expect_ok();

    let answer = stage
        .model
        .requests()
        .into_iter()
        .rfind(|request| request.api == asker_api)
        .expect("the asker's last request");
    assert_eq!(answer.count("ANSWER-42"), 1, "{asker:?} asked {asked:?}: {}", stage.trouble());
    let question = stage.model.sightings_where("QUESTION-1", |request| request.api != asker_api);
    assert_eq!(question.most, 1, "{}", stage.trouble());
    assert_eq!(stage.end_of("QUESTION-1"), "seen", "{}", stage.trouble());
    assert_eq!(stage.end_of("ANSWER-42"), "seen", "{}", stage.trouble());
}

#[test]
fn claude_asks_codex_and_gets_its_answer() {
    isolated(|| {
        for _ in 0..rounds() {
            asks(Agent::Claude, Agent::Codex);
        }
    });
}

#[test]
fn codex_asks_claude_and_gets_its_answer() {
    isolated(|| {
        for _ in 0..rounds() {
            asks(Agent::Codex, Agent::Claude);
        }
    });
}

#[test]
fn a_model_reads_and_sends_by_tool_and_nothing_is_shown_twice() {
    isolated(|| {
        for who in crate::stage::both() {
            let script = Script::by(|request| match request.results().len() {
                0 => Step::shell("sleep 1"),
                1 => Step::mcp("baton", "read_messages", json!({})),
                _ => Step::say("finished"),
            });
            let stage = Stage::new(script);
            let agent = stage.start(who, Session::New, "read your mail");
            stage.request(|_| true);
            stage.send(&stage.name_of(who), "MAIL-READ-1");
            stage.request(|request| request.results().len() == 1);
            stage.send(&stage.name_of(who), "MAIL-READ-2");
            agent.finish(LIMIT).expect_ok();
            for body in ["MAIL-READ-1", "MAIL-READ-2"] {
                stage.shown_once(body);
                assert_eq!(stage.end_of(body), "seen", "{who:?}: {}", stage.trouble());
            }
        }
    });
}
