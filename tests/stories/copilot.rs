//! GitHub Copilot CLI: mail at a prompt, between tools, at a stop and on resume; its tools, its subagents, its clear, and its files.

use crate::stage::{LIMIT, Stage, rounds};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::copilot::Copilot;
use baton_testkit::model::{Api, Kind, Part, Request};
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const WHO: Agent = Agent::Copilot;

fn stage(script: Script) -> Stage {
    Stage::with(&[WHO], script)
}

/// Checks that a body came to the model once, and that this was proven.
fn seen_once(stage: &Stage, body: &str) {
    stage.shown_once(body);
    assert_eq!(stage.end_of(body), "seen", "{body}: {}", stage.trouble());
}

/// Tools for as long as a count of results says, then the end.
fn tools(count: usize, seconds: f32) -> Script {
    Script::by(move |request| {
        if request.results().len() < count {
            Step::shell(format!("sleep {seconds}; echo from-the-tool"))
        } else {
            Step::say("finished")
        }
    })
}

#[test]
fn mail_sent_while_a_tool_runs_comes_with_its_result() {
    isolated(|| {
        for round in 0..rounds() {
            let stage = stage(tools(1, 1.0));
            let agent = stage.start(WHO, Session::New, "please begin");
            stage.request(|_| true);
            let body = format!("MAIL-MID-{round}");
            stage.send(&stage.name_of(WHO), &body);
            agent.finish(LIMIT).expect_ok();
            seen_once(&stage, &body);
            let requests = stage.model.requests_of(Kind::Main);
            assert!(requests[1].shows(&body), "it came later: {}", stage.trouble());
        }
    });
}

#[test]
fn parallel_tools_bring_it_once() {
    isolated(|| {
        for round in 0..rounds() {
            let script = Script::by(|request| match request.results().len() {
                0 => Step::parts((0..4).map(|n| Part::shell(format!("sleep 0.{n}; sleep 0.5; echo {n}")))),
                _ => Step::say("finished"),
            });
            let stage = stage(script);
            let agent = stage.start(WHO, Session::New, "please begin");
            stage.request(|_| true);
            let name = stage.name_of(WHO);
            let bodies: Vec<_> = (0..3).map(|n| format!("MAIL-PARALLEL-{round}-{n}")).collect();
            for body in &bodies {
                stage.send(&name, body);
            }
            agent.finish(LIMIT).expect_ok();
            for body in &bodies {
                seen_once(&stage, body);
            }
        }
    });
}

#[test]
fn mail_sent_before_the_turn_ends_keeps_it_going() {
    isolated(|| {
        for round in 0..rounds() {
            let script = Script::by(|request| {
                if request.shows("MAIL-STOP") {
                    Step::say("finished")
                } else {
                    Step::say("thinking").after(Duration::from_secs(1))
                }
            });
            let stage = stage(script);
            let agent = stage.start(WHO, Session::New, "please begin");
            stage.request(|_| true);
            let body = format!("MAIL-STOP-{round}");
            stage.send(&stage.name_of(WHO), &body);
            agent.finish(LIMIT).expect_ok();
            seen_once(&stage, &body);
        }
    });
}

#[test]
fn mail_for_a_session_that_is_not_running_waits_for_its_resume() {
    isolated(|| {
        let stage = stage(Script::by(|_| Step::say("finished")));
        let run = stage.run(WHO, Session::New, "please begin");
        let session = stage.session_id(WHO, &run);
        stage.send(&session, "MAIL-WAITING-1");
        stage.send(&session, "MAIL-WAITING-2");
        stage.run(WHO, Session::Resume(&session), "go on");
        seen_once(&stage, "MAIL-WAITING-1");
        seen_once(&stage, "MAIL-WAITING-2");
        assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
    });
}

#[test]
fn a_killed_agent_has_it_once_after_its_resume() {
    isolated(|| {
        for round in 0..rounds() * 2 {
            let stage = stage(tools(4, 0.2));
            let run = stage.run(WHO, Session::New, "please begin");
            let session = stage.session_id(WHO, &run);
            let body = format!("MAIL-KILL-{round}");
            stage.send(&session, &body);
            let mut agent = stage.start(WHO, Session::Resume(&session), "go on");
            let before = stage.model.requests_of(Kind::Main).len();
            stage.request(|request| request.index >= before);
            // A moment that differs from round to round.
            std::thread::sleep(Duration::from_millis(u64::try_from(round * 173 % 900).unwrap()));
            agent.kill();
            stage.run(WHO, Session::Resume(&session), "go on again");
            let last = stage.model.requests_of(Kind::Main).pop().expect("a request after the resume");
            assert_eq!(last.count(&body), 1, "round {round}: {}", stage.trouble());
            assert_eq!(stage.end_of(&body), "seen", "round {round}: {}", stage.trouble());
        }
    });
}

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
    let api = |agent| if agent == Agent::Claude { Api::Anthropic } else { Api::Completions };
    let (asker_api, to) = (api(asker), format!("agent:{}", asked.name()));
    let script = Script::by(
        move |request| {
            if request.api == asker_api { asking(request, &to) } else { answering(request) }
        },
    );
    let stage = Stage::with(&[Agent::Claude, WHO], script);
    let peer = stage.start(asked, Session::New, "work on something");
    stage.name_of(asked);
    stage.start(asker, Session::New, "ask your peer").finish(LIMIT).expect_ok();
    peer.finish(LIMIT).expect_ok();
    let last = stage.model.requests().into_iter().rfind(|request| request.api == asker_api);
    assert_eq!(last.expect("a request of the asker").count("ANSWER-42"), 1, "{}", stage.trouble());
    let question = stage.model.sightings_where("QUESTION-1", |request| request.api != asker_api);
    assert_eq!(question.most, 1, "{}", stage.trouble());
    for body in ["QUESTION-1", "ANSWER-42"] {
        assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
    }
}

#[test]
fn copilot_asks_claude_and_gets_its_answer() {
    isolated(|| asks(WHO, Agent::Claude));
}

#[test]
fn claude_asks_copilot_and_gets_its_answer() {
    isolated(|| asks(Agent::Claude, WHO));
}

#[test]
fn a_model_reads_by_tool_and_by_command_and_nothing_is_shown_twice() {
    isolated(|| {
        let script = Script::by(|request| match request.results().len() {
            0 => Step::shell("sleep 1"),
            1 => Step::mcp("baton", "read_messages", json!({})).after(Duration::from_secs(1)),
            2 => Step::shell("baton inbox").after(Duration::from_secs(1)),
            _ => Step::say("finished"),
        });
        let stage = stage(script);
        let agent = stage.start(WHO, Session::New, "read your mail");
        stage.request(|_| true);
        let name = stage.name_of(WHO);
        for (results, body) in ["MAIL-READ-0", "MAIL-READ-1", "MAIL-READ-2"].into_iter().enumerate() {
            stage.request(|request| request.results().len() == results);
            stage.send(&name, body);
        }
        agent.finish(LIMIT).expect_ok();
        for body in ["MAIL-READ-0", "MAIL-READ-1", "MAIL-READ-2"] {
            seen_once(&stage, body);
        }
        assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
    });
}

/// Whether a request is the subagent's.
fn is_subagent(request: &Request) -> bool {
    request.shows("SUBAGENT-PROMPT") && !request.shows("use a subagent")
}

#[test]
fn a_subagent_does_not_eat_its_parents_mail() {
    isolated(|| {
        let script = Script::by(|request| match (is_subagent(request), request.results().len()) {
            (true, 0) => Step::shell("sleep 1; echo in-the-subagent"),
            (true, 1) => Step::mcp("baton", "read_messages", json!({})),
            (true, 2) => Step::shell("baton inbox; baton send --json script SENT-BY-SUBAGENT; true"),
            (true, _) => Step::say("subagent finished"),
            (false, 0) => Step::tool(
                "task",
                json!({"agent_type": "general-purpose", "name": "kid", "description": "look", "prompt": "SUBAGENT-PROMPT", "mode": "sync"}),
            ),
            (false, 1) => Step::shell("sleep 1"),
            _ => Step::say("finished"),
        });
        let stage = stage(script);
        let agent = stage.start(WHO, Session::New, "use a subagent");
        stage.request(is_subagent);
        stage.send(&stage.name_of(WHO), "MAIL-FOR-THE-PARENT");
        agent.finish(LIMIT).expect_ok();
        let eaten = stage.model.sightings_where("MAIL-FOR-THE-PARENT", is_subagent);
        assert_eq!(eaten.first, None, "the subagent saw it: {}", stage.trouble());
        seen_once(&stage, "MAIL-FOR-THE-PARENT");
        let copilots = stage.json(&["who", "--all"]);
        let copilots = copilots.as_array().unwrap().iter().filter(|row| row["agent"] == "copilot").count();
        assert_eq!(copilots, 1, "a subagent is not a participant: {}", stage.trouble());
    });
}

#[test]
fn what_was_typed_ahead_goes_first_and_the_mail_still_comes_once() {
    isolated(|| {
        let script = Script::by(|request| {
            let slow = request.last_user_text().contains("be slow");
            let step = Step::say(if slow { "slow" } else { "quick" });
            step.after(Duration::from_secs(if slow { 3 } else { 0 }))
        });
        let stage = stage(script);
        let terminal = stage.open(WHO, Session::New);
        terminal.submit("be slow");
        stage.request(|_| true);
        stage.send(&stage.name_of(WHO), "MAIL-AFTER-THE-PERSON");
        terminal.submit("typed ahead");
        let mail = stage.request(|request| request.shows("MAIL-AFTER-THE-PERSON"));
        assert!(mail.shows("typed ahead"), "{}", stage.trouble());
        assert_eq!(stage.end_of("MAIL-AFTER-THE-PERSON"), "seen", "{}", stage.trouble());
        let requests = stage.model.requests_of(Kind::Main).len();
        terminal.submit("anything else");
        stage.request(|request| request.index >= requests && request.shows("anything else"));
        seen_once(&stage, "MAIL-AFTER-THE-PERSON");
    });
}

/// Copilot cuts what was taken back out of its transcript.
#[test]
fn mail_that_was_taken_back_with_its_prompt_comes_again() {
    isolated(|| {
        let script = Script::by(|request| {
            let slow = request.last_user_text().contains("be slow");
            Step::say("finished").after(Duration::from_secs(if slow { 30 } else { 0 }))
        });
        let stage = stage(script);
        let terminal = stage.open(WHO, Session::New);
        terminal.submit("please begin");
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        stage.send(&stage.name_of(WHO), "MAIL-TAKEN-BACK");
        terminal.submit("be slow");
        stage.request(|request| request.shows("MAIL-TAKEN-BACK"));
        terminal.press(&["Escape"]);
        std::thread::sleep(Duration::from_millis(200));
        terminal.press(&["Escape"]);
        let back = |screen: &str| screen.contains("❯ be slow") && !screen.contains("Working");
        terminal
            .wait_until("the prompt in the input line", LIMIT, back)
            .unwrap_or_else(|error| panic!("{error}"));
        terminal.press(&["C-u"]);
        terminal.submit("something else");
        let again = |request: &Request| request.shows("something else") && request.shows("MAIL-TAKEN-BACK");
        stage.request(again);
        seen_once(&stage, "MAIL-TAKEN-BACK");
    });
}

#[test]
fn after_clear_the_participant_goes_on_in_the_new_session() {
    isolated(|| {
        let stage = stage(Script::by(|_| Step::say("finished")));
        let terminal = stage.open(WHO, Session::New);
        terminal.submit("please begin");
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        let before = stage.json(&["who"])[0].clone();
        terminal.submit("/clear");
        let gone = wait::until(LIMIT, || stage.json(&["who"]).as_array().is_some_and(Vec::is_empty));
        assert!(gone, "the old session has ended: {}", stage.trouble());
        stage.send(before["name"].as_str().unwrap(), "MAIL-OVER-CLEAR");
        terminal.submit("after the clear");
        stage.request(|request| request.shows("MAIL-OVER-CLEAR"));
        seen_once(&stage, "MAIL-OVER-CLEAR");
        let after = stage.json(&["who"])[0].clone();
        assert_eq!(after["name"], before["name"]);
        assert_ne!(after["session_id"], before["session_id"]);
    });
}

fn files(stage: &Stage) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    [".copilot/hooks/baton.json", ".copilot/mcp-config.json", ".copilot/settings.json"]
        .into_iter()
        .map(|file| (PathBuf::from(file), fs::read(stage.sandbox.home().join(file)).ok()))
        .collect()
}

#[test]
fn setup_and_remove_give_every_byte_back() {
    isolated(|| {
        let stage = Stage::bare(Script::by(|_| Step::say("finished")));
        Copilot::new(&stage.sandbox, &stage.model);
        let servers = stage.sandbox.home().join(".copilot/mcp-config.json");
        fs::write(
            &servers,
            "{\"mcpServers\": {\"other\": {\"type\":\"stdio\", \"command\": \"true\", \"args\": []}}}",
        )
        .unwrap();
        let before = files(&stage);
        stage.baton(&["setup", "copilot"]).expect_ok();
        let once = files(&stage);
        assert_ne!(once, before);
        stage.baton(&["setup", "copilot"]).expect_ok();
        assert_eq!(files(&stage), once, "twice is the same as once");
        stage.run(WHO, Session::New, "please begin");
        stage.baton(&["setup", "copilot", "--remove"]).expect_ok();
        assert_eq!(files(&stage), before);
        assert!(!stage.sandbox.home().join(".copilot/hooks").exists(), "a folder that we made goes too");
        let sessions = stage.json(&["who", "--all"]);
        stage.run(WHO, Session::New, "once more");
        assert_eq!(stage.json(&["who", "--all"]), sessions, "nobody is registered any more");
    });
}

#[test]
fn hooks_of_claude_in_the_project_stay_silent_under_copilot() {
    isolated(|| {
        let stage = Stage::bare(tools(1, 0.1));
        Copilot::new(&stage.sandbox, &stage.model);
        stage.baton(&["setup", "claude", "copilot", "--project"]).expect_ok();
        let log = stage.sandbox.path("ran");
        let settings = stage.sandbox.project().join(".claude/settings.json");
        let mut json: Value = serde_json::from_slice(&fs::read(&settings).unwrap()).unwrap();
        // With hooks that call an MCP tool in it, Copilot 1.0.102 ignores the whole file; another version may not.
        let hooks = json["hooks"].as_object_mut().unwrap();
        hooks.retain(|_, groups| groups[0]["hooks"][0]["type"] == "command");
        assert!(hooks.contains_key("Stop"), "{hooks:?}");
        let proof =
            json!({"hooks": [{"type": "command", "command": format!("echo ran >> '{}'", log.display())}]});
        json["hooks"]["UserPromptSubmit"].as_array_mut().unwrap().push(proof);
        fs::write(&settings, json.to_string()).unwrap();
        let mut command = Copilot::new(&stage.sandbox, &stage.model).headless(Session::New, "please begin");
        stage.sandbox.run(command.env("GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS", "true"), LIMIT).expect_ok();
        assert!(log.exists(), "Copilot runs the project's hooks for Claude Code");
        let agents: Vec<Value> = stage
            .json(&["who", "--all"])
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["agent"].clone())
            .collect();
        assert_eq!(agents, ["copilot"], "{}", stage.trouble());
    });
}
