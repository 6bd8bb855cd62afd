//! OpenCode: mail by its plugin, mid-turn, with a prompt, and into idle sessions.

use crate::moments;
use crate::sandbox::{LIMIT, StorySandbox, rounds};
use crate::sync_points::{Barrier, UNTIL_TOLD, end_tools};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Kind, Part};
use baton_testkit::opencode::Server;
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const WHO: Agent = Agent::OpenCode;

#[test]
fn opencode_has_it_once_from_parallel_tools() {
    isolated(|| moments::parallel_tools(WHO));
}

#[test]
fn opencode_mail_sent_while_a_tool_runs_comes_with_the_next_request() {
    isolated(|| moments::while_a_tool_runs(WHO));
}

#[test]
fn opencode_mail_for_a_session_that_is_not_running_waits_for_its_resume() {
    isolated(|| moments::waits_for_the_resume(WHO));
}

#[test]
fn e10_opencode_that_is_resumed_is_there_again() {
    isolated(|| moments::is_back_when_resumed(WHO));
}

/// A server with one session that has had its first turn, and is idle.
fn idle_session(stage: &StorySandbox) -> (Server, String) {
    let server = Server::start(&stage.opencode());
    let session = server.session();
    server.prompt(&session, "please begin");
    (server, session)
}

#[test]
fn opencode_takes_mail_while_it_is_idle() {
    isolated(|| {
        let stage = StorySandbox::with(&[WHO], Script::by(|_| Step::say("finished")));
        let (server, session) = idle_session(&stage);
        moments::one_by_one(&stage, &session, rounds().max(3));
        let messages = server.call("GET", &format!("/session/{session}/message"), &json!(null));
        assert_eq!(
            messages.as_array().unwrap().len(),
            2 * (1 + rounds().max(3)),
            "one prompt and one answer each"
        );
    });
}

#[test]
fn e4_opencode_takes_mail_while_it_is_idle_after_its_link_was_killed() {
    isolated(|| {
        let stage = StorySandbox::with(&[WHO], Script::by(|_| Step::say("finished")));
        let (_server, session) = idle_session(&stage);
        moments::the_link_is_killed(&stage, &session);
    });
}

#[test]
fn opencode_messages_of_one_instant_come_once_each() {
    isolated(|| {
        let stage = StorySandbox::with(&[WHO], Script::by(|_| Step::say("finished")));
        let (_server, session) = idle_session(&stage);
        moments::of_one_instant(&stage, &session);
    });
}

#[test]
fn opencode_keeps_agent_and_model_when_it_is_woken() {
    isolated(|| {
        let stage = StorySandbox::with(&[WHO], Script::by(|_| Step::say("finished")));
        let server = Server::start(&stage.opencode());
        let session = server.session();
        let prompt = json!({
            "parts": [{"type": "text", "text": "only plan"}], "agent": "plan",
            "model": {"providerID": "scripted", "modelID": "other"},
        });
        server.call("POST", &format!("/session/{session}/message"), &prompt);
        stage.send(&session, "MAIL-PLAN");
        let woken = stage.request(|request| request.shows("MAIL-PLAN"));
        assert_eq!(woken.body["model"], "other");
        let messages = server.call("GET", &format!("/session/{session}/message"), &json!(null));
        let users = messages.as_array().unwrap().iter().filter(|message| message["info"]["role"] == "user");
        let voices: Vec<_> = users.map(|message| message["info"]["agent"].as_str().unwrap()).collect();
        assert_eq!(voices, ["plan", "plan"]);
    });
}

#[test]
fn opencode_is_not_woken_while_it_asks_for_a_permission() {
    isolated(|| {
        let script = Script::by(|request| match request.results().len() {
            0 if request.shows("please ask") => Step::shell("echo allowed"),
            _ => Step::say("finished"),
        });
        let stage = StorySandbox::with(&[WHO], script);
        let server = Server::start(&stage.opencode());
        let rules = json!({"title": "scripted", "permission": [{"permission": "bash", "pattern": "*", "action": "ask"}]});
        let session = server.call("POST", "/session", &rules)["id"].as_str().unwrap().to_owned();
        let prompt = json!({"parts": [{"type": "text", "text": "please ask"}]});
        server.call("POST", &format!("/session/{session}/prompt_async"), &prompt);
        let asked = wait::poll(LIMIT, || {
            let pending = server.call("GET", "/permission", &json!(null));
            pending[0]["id"].as_str().map(ToOwned::to_owned)
        });
        let asked = asked.expect("it asks");
        stage.is_in_state("blocked");
        stage.send(&session, "MAIL-PENDING");
        // Long enough for a push that should not come: it takes a few milliseconds.
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(stage.state_of("MAIL-PENDING"), "queued");
        server.call("POST", &format!("/permission/{asked}/reply"), &json!({"reply": "once"}));
        stage.request(|request| request.shows("MAIL-PENDING") && request.shows("allowed"));
        stage.shown_once("MAIL-PENDING");
        assert_eq!(stage.end_of("MAIL-PENDING"), "seen", "{}", stage.trouble());
    });
}

#[test]
fn opencode_subagents_do_not_eat_their_parents_mail() {
    isolated(|| {
        let script = Script::by(|request| {
            let child = request.shows("IN-THE-CHILD");
            match request.results().len() {
                0 if child => Step::shell(format!("{UNTIL_TOLD}; echo child")),
                0 => Step::tool(
                    "task",
                    json!({"description": "look", "prompt": "IN-THE-CHILD", "subagent_type": "general"}),
                ),
                1 if !child => Step::shell("echo parent"),
                _ => Step::say("finished"),
            }
        });
        let stage = StorySandbox::with(&[WHO], script);
        let agent = stage.start(WHO, Session::New, "please delegate");
        stage.request(|request| request.shows("IN-THE-CHILD"));
        let who = stage.json(&["who"]);
        assert_eq!(who.as_array().unwrap().len(), 1, "a child is no participant: {who}");
        stage.send(who[0]["name"].as_str().unwrap(), "MAIL-FOR-THE-PARENT");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        stage.shown_once("MAIL-FOR-THE-PARENT");
        let by_child = stage.model.sightings_where("MAIL-FOR-THE-PARENT", |request| {
            request.last_user_text().contains("IN-THE-CHILD")
        });
        assert_eq!(by_child.requests, 0);
        assert_eq!(stage.end_of("MAIL-FOR-THE-PARENT"), "seen", "{}", stage.trouble());
    });
}

#[test]
fn opencode_answers_by_its_tools() {
    isolated(|| {
        let script = Script::by(|request| match request.word_after("MAIL-ASK ") {
            Some(_) if request.results().is_empty() => {
                let id = request.word_after("id=\"").unwrap_or_default();
                Step::mcp("baton", "reply_to_message", json!({"message_id": id, "body": "THE-ANSWER"}))
            }
            _ => Step::say("finished"),
        });
        let stage = StorySandbox::with(&[WHO], script);
        let (_server, session) = idle_session(&stage);
        let answer = stage.json(&["ask", &session, "MAIL-ASK please", "--timeout", "100s"]);
        assert_eq!(answer["body"], "THE-ANSWER", "{}", stage.trouble());
    });
}

#[test]
fn opencode_has_it_once_after_a_kill_and_a_resume() {
    isolated(|| {
        for round in 0..rounds().max(2) {
            let script = Script::by(|request| {
                if request.results().len() < 3 { Step::shell("sleep 0.2") } else { Step::say("finished") }
            });
            let stage = StorySandbox::with(&[WHO], script);
            let (mut server, session) = idle_session(&stage);
            let body = format!("MAIL-KILL-{round}");
            stage.send(&session, &body);
            // From before it is stored to after it was answered.
            std::thread::sleep(Duration::from_millis(u64::try_from(round * 137 % 900).unwrap()));
            server.running().kill();
            stage.run(WHO, Session::Resume(&session), "go on again");
            let last = stage.model.requests_of(Kind::Main).pop().unwrap();
            assert_eq!(last.count(&body), 1, "round {round}: {}", stage.trouble());
            assert_eq!(stage.end_of(&body), "seen", "round {round}: {}", stage.trouble());
        }
    });
}

/// Set up for the user and for the project: two plugins in one process, and one link.
#[test]
fn opencode_with_two_plugins_acts_once() {
    isolated(|| {
        let stage = StorySandbox::with(&[WHO], Script::by(|_| Step::say("finished")));
        stage.baton(&["setup", "opencode", "--project"]).expect_ok();
        let (_server, session) = idle_session(&stage);
        moments::one_by_one(&stage, &session, 3);
    });
}

/// Two servers of one home that know the same session: one of them answers.
#[test]
fn opencode_on_two_servers_answers_once() {
    isolated(|| {
        let stage = StorySandbox::with(&[WHO], Script::by(|_| Step::say("finished")));
        let (first, session) = idle_session(&stage);
        let second = Server::start(&stage.opencode());
        second.prompt(&session, "and here");
        first.prompt(&session, "and there");
        let before = stage.model.requests_of(Kind::Main).len();
        moments::one_by_one(&stage, &session, 3);
        assert_eq!(stage.model.requests_of(Kind::Main).len(), before + 3, "one request each");
    });
}

/// Gives OpenCode another plugin beside ours.
pub fn add_plugin(stage: &StorySandbox, name: &str, text: &str) {
    let file = stage.sandbox.home().join(name);
    std::fs::write(&file, text).expect("a plugin");
    let config = stage.sandbox.path("home/.config/opencode/opencode.json");
    let mut settings: Value =
        serde_json::from_slice(&std::fs::read(&config).expect("its settings")).expect("it is JSON");
    settings["plugin"].as_array_mut().expect("ours").push(json!(format!("file://{}", file.display())));
    std::fs::write(&config, settings.to_string()).expect("its settings");
}

/// Another plugin throws at our prompt: OpenCode says 204, and stores nothing.
#[test]
fn opencode_mail_that_its_prompt_did_not_bring_stays_queued() {
    isolated(|| {
        let stage = StorySandbox::with(&[WHO], Script::by(|_| Step::say("finished")));
        let off = stage.sandbox.path("home/off");
        let throws = format!(
            "import {{ existsSync }} from 'node:fs'\nexport const Other = async () => ({{ 'chat.message': async (_, {{ parts }}) => {{ \
             if (!existsSync('{}') && parts.some((part) => part.text?.includes('MAIL-THROWN'))) throw new Error('no') }} }})\n",
            off.display()
        );
        add_plugin(&stage, "other.js", &throws);
        let (server, session) = idle_session(&stage);
        stage.send(&session, "MAIL-THROWN");
        let trail = || stage.baton(&["log"]).expect_ok().stdout;
        assert!(wait::until(LIMIT, || trail().contains("returned")), "{}", stage.trouble());
        assert_eq!(stage.model.sightings("MAIL-THROWN").requests, 0);
        stage.is_in_state("idle");
        // It tries again by itself, and the session goes on working.
        std::fs::write(&off, "").unwrap();
        stage.request(|request| request.shows("MAIL-THROWN"));
        assert_eq!(stage.end_of("MAIL-THROWN"), "seen", "{}", stage.trouble());
        server.prompt(&session, "are you well?");
        stage.shown_once("MAIL-THROWN");
    });
}

/// Compacts a session, as `/compact` does; waits for the end of it.
fn compact(server: &Server, session: &str) {
    let model = json!({"providerID": "scripted", "modelID": "main"});
    server.call("POST", &format!("/session/{session}/summarize"), &model);
}

#[test]
fn opencode_mail_sent_during_a_compaction_comes_once_after_it() {
    isolated(|| {
        let sent = Barrier::default();
        let before = sent.clone();
        let script = Script::by(|_| Step::say("finished")).compactions(move |_| {
            before.wait(1);
            Step::say("A summary.")
        });
        let stage = StorySandbox::with(&[WHO], script);
        let (server, session) = idle_session(&stage);
        stage.send(&session, "MAIL-BEFORE");
        assert_eq!(stage.end_of("MAIL-BEFORE"), "seen", "{}", stage.trouble());
        stage.is_in_state("idle");
        std::thread::scope(|scope| {
            let compaction = scope.spawn(|| compact(&server, &session));
            let asked = stage.model.wait_for(LIMIT, |request| request.kind == Kind::Compaction);
            assert!(asked.expect("a summary is asked for").shows("MAIL-BEFORE"), "it is in the history");
            stage.send(&session, "MAIL-DURING");
            sent.open();
            compaction.join().expect("the compaction ends");
        });
        let after = stage.request(|request| request.shows("MAIL-DURING"));
        assert!(after.said().iter().any(|said| said.text.contains("A summary.")), "{:?}", after.said());
        stage.seen_once("MAIL-DURING");
        stage.is_in_state("idle");
        server.prompt(&session, "are you well?");
        let last = stage.model.requests_of(Kind::Main).pop().unwrap();
        assert_eq!(last.count("MAIL-DURING"), 1, "{:?}", last.said());
        assert_eq!(last.count("MAIL-BEFORE"), 0, "it was summarized, and does not come again");
        let summaries = stage.model.requests_of(Kind::Compaction);
        assert!(!summaries[0].shows("MAIL-DURING"), "a summary takes no mail");
    });
}

/// The context is full when a tool has ended: what came with its result is summarized before the
/// model has seen it.
#[test]
fn opencode_mail_that_only_a_summary_was_made_of_comes_again() {
    isolated(|| {
        let script = Script::by(|request| {
            if request.last_user_text().contains("please begin") && request.results().is_empty() {
                Step::parts([Part::shell(UNTIL_TOLD), Part::Tokens(199_000)])
            } else if request.results().is_empty() {
                Step::shell("echo next")
            } else {
                Step::say("finished")
            }
        });
        let stage = StorySandbox::with(&[WHO], script);
        let agent = stage.start(WHO, Session::New, "please begin");
        stage.request(|_| true);
        stage.send(&stage.name_of(WHO), "MAIL-FULL");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        let summaries = stage.model.requests_of(Kind::Compaction);
        assert_eq!(summaries.len(), 1);
        assert!(summaries[0].shows("MAIL-FULL"), "it came with the tool's result: {}", stage.trouble());
        stage.seen_once("MAIL-FULL");
        let first = stage.model.sightings("MAIL-FULL").first;
        assert!(first > Some(summaries[0].index), "{}", stage.trouble());
    });
}

#[test]
fn opencode_is_told_its_open_asks_again_after_a_compaction() {
    isolated(|| {
        let stage = StorySandbox::with(&[WHO], Script::by(|_| Step::say("finished")));
        let (server, session) = idle_session(&stage);
        let mut ask =
            stage.sandbox.start(stage.sandbox.command("baton").args(["ask", &session, "QUESTION-1"]));
        stage.request(|request| request.shows("QUESTION-1"));
        assert_eq!(stage.end_of("QUESTION-1"), "seen", "{}", stage.trouble());
        stage.is_in_state("idle");
        compact(&server, &session);
        stage.is_in_state("idle");
        server.prompt(&session, "PROMPT-AFTER-IT");
        let after = stage.request(|request| request.shows("PROMPT-AFTER-IT"));
        assert_eq!(after.count("<baton-asks>"), 1, "{:?}", after.said());
        assert_eq!(after.count("asked you in"), 1, "{:?}", after.said());
        ask.kill();
        server.prompt(&session, "AND-ANOTHER");
        let last = stage.request(|request| request.shows("AND-ANOTHER"));
        assert_eq!(last.count("<baton-asks>"), 1, "it is said once: {:?}", last.said());
    });
}

/// As the person compacts it: by the command in its terminal.
#[test]
fn opencode_that_is_compacted_in_its_terminal_takes_mail_and_knows_its_asks() {
    isolated(|| {
        let sent = Barrier::default();
        let before = sent.clone();
        let script = Script::by(|_| Step::say("finished")).compactions(move |_| {
            before.wait(1);
            Step::say("A summary.")
        });
        let stage = StorySandbox::with(&[WHO], script);
        let terminal = stage.open(WHO, Session::New);
        terminal.submit("please begin");
        stage.request(|request| request.shows("please begin"));
        let name = stage.name_of(WHO);
        stage.is_in_state("idle");
        let mut ask = stage.sandbox.start(stage.sandbox.command("baton").args(["ask", &name, "QUESTION-1"]));
        stage.arrives("QUESTION-1");
        stage.is_in_state("idle");
        terminal.submit("/compact");
        let asked = stage.model.wait_for(LIMIT, |request| request.kind == Kind::Compaction);
        let asked = asked.unwrap_or_else(|| panic!("no summary is asked for:\n{}", terminal.screen()));
        stage.send(&name, "MAIL-DURING");
        assert!(asked.shows("QUESTION-1") && !asked.shows("MAIL-DURING"), "a summary takes no mail");
        sent.open();
        let after = stage.request(|request| request.shows("MAIL-DURING"));
        assert!(after.index > asked.index, "{:?}", after.said());
        stage.seen_once("MAIL-DURING");
        stage.is_in_state("idle");
        terminal.submit("PROMPT-AFTER-IT");
        let last = stage.request(|request| request.shows("PROMPT-AFTER-IT"));
        for text in ["MAIL-DURING", "<baton-asks>", "asked you in"] {
            assert_eq!(last.count(text), 1, "{text}: {:?}", last.said());
        }
        ask.kill();
    });
}

/// OpenCode makes up for a summary that failed with the next prompt.
#[test]
fn opencode_goes_on_after_a_compaction_that_failed() {
    isolated(|| {
        let failed = AtomicBool::new(false);
        let script = Script::by(|_| Step::say("finished")).compactions(move |_| {
            if failed.swap(true, Ordering::SeqCst) {
                Step::say("A summary.")
            } else {
                Step::error(400, "no summary today")
            }
        });
        let stage = StorySandbox::with(&[WHO], script);
        let (server, session) = idle_session(&stage);
        compact(&server, &session);
        stage.is_in_state("idle");
        stage.send(&session, "MAIL-AFTER-A-FAILURE");
        let summaries = || stage.model.requests_of(Kind::Compaction).len();
        assert!(wait::until(LIMIT, || summaries() == 2), "{}", stage.trouble());
        // The session begins again with the summary, and is idle behind it.
        let begun = || stage.baton(&["log"]).expect_ok().stdout.matches("session-start").count();
        assert!(wait::until(LIMIT, || begun() == 2), "{}", stage.trouble());
        stage.is_in_state("idle");
        // It is in the conversation behind the summary, and OpenCode leaves it there until it is
        // asked something.
        server.prompt(&session, "are you well?");
        stage.arrives("MAIL-AFTER-A-FAILURE");
    });
}
