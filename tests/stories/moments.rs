//! What every agent has to hold, told once: the moments at which mail comes, a kill, a question and
//! its answer.

use crate::sandbox::{LIMIT, StorySandbox, rounds, submit};
use crate::sync_points::{Barrier, UNTIL_TOLD, end_tools};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Kind, Part, Request};
use baton_testkit::{Script, Step, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::Duration;

/// Tools for as long as a count of results says, then the end.
pub fn tools(count: usize, seconds: f32) -> Script {
    Script::by(move |request| {
        if request.results().len() < count {
            Step::shell(format!("sleep {seconds}; echo from-the-tool-{}", request.results().len()))
        } else {
            Step::say("finished")
        }
    })
}

/// The same, but they run until the story has done something meanwhile.
pub fn tools_until_told(count: usize) -> Script {
    Script::by(move |request| match request.results().len() {
        ran if ran < count => Step::shell(format!("{UNTIL_TOLD}; echo from-the-tool-{ran}")),
        _ => Step::say("finished"),
    })
}

/// Mail that is sent while a tool runs is in the very next request, once.
pub fn while_a_tool_runs(who: Agent) {
    for round in 0..rounds() {
        let stage = StorySandbox::with(&[who], tools_until_told(1));
        let agent = stage.start(who, Session::New, "please begin");
        stage.request(|_| true);
        let body = format!("MAIL-MID-{round}");
        stage.send(&stage.name_of(who), &body);
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        stage.seen_once(&body);
        let requests = stage.model.requests_of(Kind::Main);
        assert!(
            requests[1].shows(&body),
            "{who:?}: it came later than with the tool's result: {}",
            stage.trouble()
        );
    }
}

/// Of tools that run side by side, one brings it.
pub fn parallel_tools(who: Agent) {
    for round in 0..rounds() {
        let script = Script::by(|request| match request.results().len() {
            0 => Step::parts((0..4).map(|n| Part::shell(format!("{UNTIL_TOLD}; sleep 0.{n}; echo {n}")))),
            _ => Step::say("finished"),
        });
        let stage = StorySandbox::with(&[who], script);
        let agent = stage.start(who, Session::New, "please begin");
        stage.request(|_| true);
        let name = stage.name_of(who);
        let bodies: Vec<_> = (0..3).map(|n| format!("MAIL-PARALLEL-{round}-{n}")).collect();
        for body in &bodies {
            stage.send(&name, body);
        }
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        for body in &bodies {
            stage.seen_once(body);
        }
    }
}

/// Mail that comes before the turn ends keeps it going.
pub fn before_the_turn_ends(who: Agent) {
    for round in 0..rounds() {
        let sent = Barrier::default();
        let before = sent.clone();
        let script = Script::by(move |request| {
            if request.shows("MAIL-STOP") {
                return Step::say("finished");
            }
            before.wait(1);
            Step::say("thinking")
        });
        let stage = StorySandbox::with(&[who], script);
        let agent = stage.start(who, Session::New, "please begin");
        stage.request(|_| true);
        let body = format!("MAIL-STOP-{round}");
        stage.send(&stage.name_of(who), &body);
        sent.open();
        agent.finish(LIMIT).expect_ok();
        stage.seen_once(&body);
    }
}

/// Mail for a session that is not running waits for its resume, and comes in order.
pub fn waits_for_the_resume(who: Agent) {
    let stage = StorySandbox::with(&[who], Script::by(|_| Step::say("finished")));
    let run = stage.run(who, Session::New, "please begin");
    let session = stage.session_id(who, &run);
    stage.send(&session, "MAIL-WAITING-1");
    stage.send(&session, "MAIL-WAITING-2");
    stage.run(who, Session::Resume(&session), "go on");
    stage.seen_once("MAIL-WAITING-1");
    stage.seen_once("MAIL-WAITING-2");
    let last = stage.model.requests_of(Kind::Main).pop().expect("a request after the resume");
    let text: String = last.said().iter().map(|said| said.text.clone()).collect();
    assert!(text.find("MAIL-WAITING-1") < text.find("MAIL-WAITING-2"), "{who:?}: in order");
    assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
}

/// Whoever is killed at any moment and goes on has it once.
pub fn killed_and_resumed(who: Agent) {
    for round in 0..rounds().max(2) {
        let stage = StorySandbox::with(&[who], tools(4, 0.2));
        let run = stage.run(who, Session::New, "please begin");
        let session = stage.session_id(who, &run);
        let body = format!("MAIL-KILL-{round}");
        stage.send(&session, &body);
        let before = stage.model.requests_of(Kind::Main).len();
        let mut agent = stage.start(who, Session::Resume(&session), "go on");
        // A moment that differs from round to round, from before the mail is taken to after it is
        // proven.
        stage.request(|request| request.index >= before.saturating_sub(round % 2));
        std::thread::sleep(Duration::from_millis(u64::try_from(round * 173 % 900).expect("small")));
        agent.kill();
        stage.run(who, Session::Resume(&session), "go on again");
        let last = stage.model.requests_of(Kind::Main).pop().expect("a request after the resume");
        assert_eq!(last.count(&body), 1, "{who:?}, round {round}: {}", stage.trouble());
        assert_eq!(stage.end_of(&body), "seen", "{who:?}, round {round}: {}", stage.trouble());
    }
}

/// A session that ended is there again as soon as its agent runs it, without a terminal and in one:
/// `who` shows it, and mail comes.
pub fn is_back_when_resumed(who: Agent) {
    let script = Script::by(|request| match request.results().len() {
        0 if request.shows("run a tool") && !request.shows("IN-THE-TERMINAL") => {
            Step::shell(format!("{UNTIL_TOLD}; echo told"))
        }
        _ => Step::say("finished"),
    });
    let stage = StorySandbox::with(&[who], script);
    let run = stage.run(who, Session::New, "please begin");
    let session = stage.session_id(who, &run);
    let state = || {
        let everybody = stage.json(&["who", "--all"]);
        let found =
            everybody.as_array().and_then(|all| all.iter().find(|row| row["session_id"] == session.as_str()));
        found.map_or_else(String::new, |row| row["state"].as_str().unwrap_or_default().to_owned())
    };
    let is = |expected: &str| {
        let is = wait::until(LIMIT, || state() == expected);
        assert!(is, "{who:?} is {} and not {expected}: {}", state(), stage.trouble());
    };
    is("gone");
    let before = stage.model.requests_of(Kind::Main).len();
    let agent = stage.start(who, Session::Resume(&session), "run a tool");
    stage.request(|request| request.index >= before && request.shows("run a tool"));
    is("busy");
    stage.send(&session, "MAIL-WITHOUT-A-TERMINAL.");
    end_tools(&stage);
    agent.finish(LIMIT).expect_ok();
    stage.seen_once("MAIL-WITHOUT-A-TERMINAL.");
    is("gone");
    let terminal = stage.open(who, Session::Resume(&session));
    submit(&terminal, who, "now IN-THE-TERMINAL");
    stage.request(|request| request.shows("IN-THE-TERMINAL"));
    is("idle");
    stage.send(&session, "MAIL-IN-THE-TERMINAL.");
    stage.arrives("MAIL-IN-THE-TERMINAL.");
}

/// A prompt of the person's, to which [`while_idle`] lets the model answer.
const PROMPT: &str = "PROMPT-OF-THE-PERSON";

/// Mail for an idle session that a plugin of ours pushes: before anything was ever asked, and after
/// a turn.
pub fn while_idle(who: Agent, stage: impl FnOnce(Script) -> StorySandbox) -> StorySandbox {
    let gate = Barrier::default();
    let answers = gate.clone();
    let stage = stage(Script::by(move |request| {
        if request.shows(PROMPT) {
            answers.wait(1);
        }
        Step::say("finished")
    }));
    let terminal = stage.open(who, Session::New);
    let name = stage.name_of(who);
    one_by_one(&stage, &name, 1);
    terminal.submit(PROMPT);
    stage.request(|request| request.shows(PROMPT));
    // An agent may ask its model before it tells that it is busy; only after that, idle means the
    // turn's end.
    stage.is_in_state("busy");
    gate.open();
    one_by_one(&stage, &name, 3);
    drop(terminal);
    stage
}

/// So many messages to the only session, which is idle, each when it has taken up the one before.
pub fn one_by_one(stage: &StorySandbox, to: &str, count: usize) {
    let requests = stage.model.requests_of(Kind::Main).len();
    for n in 0..count {
        // It is registered a moment before it is attended to, and answers a moment before it is
        // idle.
        stage.would_be("pushed");
        let body = format!("MAIL-{requests}-{n}.");
        assert_eq!(stage.json(&["send", to, &body])["wake"], "pushed", "{}", stage.trouble());
        stage.arrives(&body);
        stage.is_in_state("idle");
    }
}

/// Two to five messages at the same instant, while the session is idle, or just becoming so.
pub fn of_one_instant(stage: &StorySandbox, to: &str) {
    let bodies = |round: usize| (0..2 + round % 4).map(move |n| format!("MAIL-WAKE-{round}-{n}."));
    for round in 0..rounds().max(4) {
        std::thread::scope(|scope| {
            for body in bodies(round) {
                scope.spawn(move || stage.send(to, &body));
            }
        });
        for body in bodies(round) {
            stage.request(|request| request.shows(&body));
            stage.shown_once(&body);
        }
        // Every second round begins while the turn of the last is still ending.
        if round % 2 == 0 {
            for body in bodies(round) {
                assert_eq!(stage.end_of(&body), "seen", "{}", stage.trouble());
            }
        }
    }
    let last = stage.model.requests_of(Kind::Main).pop().expect("a request");
    for body in (0..rounds().max(4)).flat_map(bodies) {
        assert_eq!(last.count(&body), 1, "{body}");
    }
}

/// Busy until the question is in the context, answers it, and ends.
fn answering(request: &Request) -> Step {
    let results = request.results();
    let Some(message) = request.word_after("with message_id ") else {
        return if results.len() < 200 { Step::shell("sleep 0.3") } else { Step::say("nobody asked") };
    };
    if results.iter().any(|result| result.text.contains("\"wake\"")) {
        return Step::say("finished");
    }
    Step::mcp("baton", "reply_to_message", json!({"message_id": message, "body": "ANSWER-42"}))
}

/// Asks at once, and ends with the answer.
fn asking(request: &Request, to: &str) -> Step {
    let question = json!({"to": to, "body": "QUESTION-1: how many?", "timeout": "100s"});
    match request.results().len() {
        0 => Step::mcp("baton", "ask_peer", question),
        _ => Step::say("finished"),
    }
}

/// One asks by MCP, the other answers by MCP.
pub fn asks(asker: Agent, asked: Agent) {
    for _ in 0..rounds() {
        let to = format!("agent:{}", asked.name());
        let script =
            Script::by(
                move |request| {
                    if request.agent == asker { asking(request, &to) } else { answering(request) }
                },
            );
        let stage = StorySandbox::with(&[asker, asked], script);
        let peer = stage.start(asked, Session::New, "work on something");
        stage.name_of(asked);
        stage.start(asker, Session::New, "ask your peer").finish(LIMIT).expect_ok();
        peer.finish(LIMIT).expect_ok();
        let last = stage.model.requests().into_iter().rfind(|request| request.agent == asker);
        assert_eq!(last.expect("a request of the asker").count("ANSWER-42"), 1, "{}", stage.trouble());
        let question = stage.model.sightings_where("QUESTION-1", |request| request.agent == asked);
        assert_eq!(question.most, 1, "{}", stage.trouble());
        for body in ["QUESTION-1", "ANSWER-42"] {
            assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
        }
    }
}

/// The link of the only session, which is idle, is killed. The plugin starts another by itself,
/// which brings what was sent meanwhile.
pub fn the_link_is_killed(stage: &StorySandbox, to: &str) {
    for round in 0..rounds().max(2) {
        stage.would_be("pushed");
        kill_link(stage);
        let body = format!("MAIL-AFTER-THE-LINK-{round}.");
        stage.send(to, &body);
        stage.arrives(&body);
        stage.is_in_state("idle");
    }
}

/// Kills the link of the only session. An agent can't: the guard refuses.
pub fn kill_link(stage: &StorySandbox) {
    let link = wait::poll(LIMIT, || link_of(stage)).expect("a link");
    kill_process(link, Signal::KILL).expect("it is ours");
}

/// The process of the link that serves this stage, by its arguments, which name the home.
fn link_of(stage: &StorySandbox) -> Option<Pid> {
    let home = stage.sandbox.path("").to_string_lossy().into_owned();
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = String::from_utf8(std::fs::read(entry.path().join("cmdline")).ok()?).ok()?;
        let mut words = line.split('\0');
        let is_link = words.nth(1) == Some("link") && words.any(|word| word.starts_with(&home));
        is_link.then(|| Pid::from_raw(pid)).flatten()
    })
}
