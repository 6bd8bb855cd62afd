//! One question goes through all six agents, and its answer comes all the way back.

use crate::sandbox::{StorySandbox, rounds};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Kind, Request, Source};
use baton_testkit::opencode::Server;
use baton_testkit::process::Running;
use baton_testkit::{Script, Step, isolated};
use serde_json::json;
use std::time::Duration;

/// Each asks the one behind it. Pi, which has no MCP, is in the middle, so that it both asks and
/// answers in its shell.
const LINE: [Agent; 6] =
    [Agent::Claude, Agent::Codex, Agent::OpenCode, Agent::Gemini, Agent::Pi, Agent::Copilot];

/// From the first question to the last end of a program.
const LIMIT: Duration = Duration::from_secs(200);

/// So often an agent without mail runs a short tool, before it gives up.
const PATIENCE: usize = 400;

/// Whom an agent asks.
fn next(who: Agent) -> Option<Agent> {
    LINE.iter().copied().skip_while(|agent| *agent != who).nth(1)
}

fn question(to: Agent) -> String {
    format!("QUESTION-FOR-{}", to.name())
}

/// The names of all that the answer has passed when it leaves `from`.
fn answer(from: Agent) -> String {
    let passed: Vec<_> = LINE.iter().rev().map(|agent| agent.name()).collect();
    let last = LINE.len() - LINE.iter().position(|agent| *agent == from).expect("one of the line");
    format!("CHAIN-{}.", passed[..last].join("-"))
}

/// The id of the question that `who` was asked. What Pi's `baton ask` prints names another one,
/// that of the answer.
fn question_id(request: &Request, who: Agent) -> Option<String> {
    let shown = request.showing(&question(who));
    let (_, behind) = shown.first()?.text.split_once(&question(who))?;
    let (_, id) = behind.split_once("`baton reply ")?;
    Some(id.chars().take_while(|c| c.is_alphanumeric()).collect())
}

/// Whether the model has called a tool with that text.
fn called_with(request: &Request, text: &str) -> bool {
    let mut said = request.said().iter();
    said.any(|said| matches!(said.source, Source::ToolCall { .. }) && said.text.contains(text))
}

fn ask(who: Agent, to: Agent) -> Step {
    let (peer, body) = (format!("agent:{}", to.name()), question(to));
    match who {
        Agent::Pi => Step::shell(format!("baton ask {peer} {body} --timeout 100s")),
        _ => Step::mcp("baton", "ask_peer", json!({"to": peer, "body": body, "timeout": "100s"})),
    }
}

fn reply(who: Agent, message: &str, body: &str) -> Step {
    match who {
        Agent::Pi => Step::shell(format!("baton reply {message} {body}")),
        _ => Step::mcp("baton", "reply_to_message", json!({"message_id": message, "body": body})),
    }
}

/// Each call is another one: Gemini CLI ends a turn with five equal calls in a row.
fn busy(calls: usize) -> Step {
    if calls < PATIENCE { Step::shell(format!("sleep 0.5; : {calls}")) } else { Step::say("nobody asked") }
}

/// What the model of each agent does: waits for the question, asks the next, adds its name to what
/// that one says.
fn act(request: &Request) -> Step {
    let who = request.agent;
    if request.shows("please begin") && who == Agent::OpenCode && !request.shows("QUESTION-FOR-") {
        // A server has its turn and is idle; its question is pushed.
        return Step::say("ready");
    }
    let asked = question_id(request, who);
    let heard = request.word_after("CHAIN-").map(|chain| format!("{chain}-"));
    let heard = if next(who).is_none() { Some(String::new()) } else { heard };
    match (next(who), heard, asked) {
        _ if called_with(request, "CHAIN-") => Step::say("finished"),
        (_, Some(_), _) if who == LINE[0] => Step::say("finished"),
        (_, Some(chain), Some(id)) => reply(who, &id, &format!("CHAIN-{chain}{}.", who.name())),
        (Some(to), None, asked)
            if (asked.is_some() || who == LINE[0]) && !called_with(request, "QUESTION-FOR-") =>
        {
            ask(who, to)
        }
        _ => busy(request.results().len()),
    }
}

/// Starts all but the first, and waits until each is there.
fn start(stage: &StorySandbox) -> (Vec<Running>, Server) {
    let headless = LINE[1..].iter().filter(|agent| **agent != Agent::OpenCode);
    let running: Vec<_> = headless.map(|who| stage.start(*who, Session::New, "please begin")).collect();
    let server = Server::start(&stage.opencode());
    server.prompt(&server.session(), "please begin");
    for who in &LINE[1..] {
        stage.name_of(*who);
    }
    (running, server)
}

#[test]
fn a_question_goes_through_all_six_agents_and_its_answer_comes_back() {
    isolated(|| {
        for _ in 0..rounds() {
            let stage = StorySandbox::with(&LINE, Script::by(act));
            let (running, mut server) = start(&stage);
            let first = stage.start(LINE[0], Session::New, "please begin");
            let whole = answer(LINE[1]);
            let told = |request: &Request| request.agent == LINE[0] && request.shows(&whole);
            let told = stage.model.wait_for(LIMIT, told);
            assert!(told.is_some(), "{whole} did not come back: {}{}", standing(&stage), stage.trouble());
            first.finish(LIMIT).expect_ok();
            for agent in running {
                agent.finish(LIMIT).expect_ok();
            }
            for pair in LINE.windows(2) {
                exchanged_once(&stage, pair[0], pair[1]);
            }
            server.running().kill();
        }
    });
}

/// How far each agent came: its requests, and what its model was told and did last.
fn standing(stage: &StorySandbox) -> String {
    let requests = stage.model.requests_of(Kind::Main);
    let of = |who: Agent| {
        let own: Vec<_> = requests.iter().filter(|request| request.agent == who).collect();
        let last = own.last().map(|request| &request.said()[request.said().len().saturating_sub(3)..]);
        format!("\n{}: {} requests, last {last:?}", who.name(), own.len())
    };
    LINE.map(of).concat()
}

/// The one that was asked saw the question once, the asker saw the answer once, and both are
/// proven.
fn exchanged_once(stage: &StorySandbox, asker: Agent, asked: Agent) {
    let shown_to = |who: Agent, text: &str| {
        stage.model.sightings_where(text, |request| request.kind == Kind::Main && request.agent == who).most
    };
    assert_eq!(shown_to(asked, &question(asked)), 1, "{asker:?} asked {asked:?}: {}", stage.trouble());
    assert_eq!(shown_to(asker, &answer(asked)), 1, "{asked:?} answered {asker:?}: {}", stage.trouble());
    assert_eq!(shown_to(asker, "CHAIN-"), 1, "{asker:?} was shown one answer: {}", stage.trouble());
    for body in [question(asked), answer(asked)] {
        assert_eq!(stage.end_of(&body), "seen", "{body}: {}", stage.trouble());
    }
}
