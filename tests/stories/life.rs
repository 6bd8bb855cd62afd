//! What happens to mail when sessions are killed, cleared, compacted, interrupted, or have
//! subagents.

use crate::moments;
use crate::sandbox::{LIMIT, StorySandbox, both, press_until, screen_of, wait_for_screen};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_agents::Screen;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Kind, Request, Source};
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::json;

#[test]
fn killed_agents_have_it_once_after_their_resume() {
    isolated(|| both().into_iter().for_each(moments::killed_and_resumed));
}

#[test]
fn e10_codex_that_is_resumed_is_there_again() {
    isolated(|| moments::is_back_when_resumed(Agent::Codex));
}

#[test]
fn a_subagent_does_not_eat_its_parents_mail() {
    isolated(|| {
        let script = Script::by(|request| match (request.shows("agent launched"), request.results().len()) {
            (false, _) => Step::tool("Agent", json!({"description": "look", "prompt": "SUBAGENT-PROMPT", "subagent_type": "general-purpose"})),
            (true, 1) => Step::shell(UNTIL_TOLD),
            _ => Step::say("finished"),
        })
        .subagents(|request| match request.results().len() {
            0 => Step::shell(format!("{UNTIL_TOLD}; echo in-the-subagent")),
            1 => Step::mcp("baton", "read_messages", json!({})),
            _ => Step::say("subagent finished"),
        });
        let stage = StorySandbox::new(script);
        let agent = stage.start(Agent::Claude, Session::New, "use a subagent");
        let began = stage.model.wait_for(LIMIT, |request| request.kind == Kind::Subagent);
        assert!(began.is_some(), "no subagent began: {}", stage.trouble());
        stage.send(&stage.name_of(Agent::Claude), "MAIL-FOR-THE-PARENT");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        let eaten =
            stage.model.sightings_where("MAIL-FOR-THE-PARENT", |request| request.kind == Kind::Subagent);
        assert_eq!(eaten.first, None, "the subagent saw it: {}", stage.trouble());
        stage.shown_once("MAIL-FOR-THE-PARENT");
        assert_eq!(stage.end_of("MAIL-FOR-THE-PARENT"), "seen", "{}", stage.trouble());
        stage.nothing_unknown();
    });
}

/// All tool results of the conversation: what Codex says about a subagent begins a turn of its own.
fn results(request: &Request) -> usize {
    request.said().iter().filter(|said| matches!(said.source, Source::ToolResult { .. })).count()
}

#[test]
fn a_subagent_of_codex_does_not_eat_its_parents_mail() {
    isolated(|| {
        let script = Script::by(|request| match results(request) {
            0 => Step::tool("multi_agent_v1.spawn_agent", json!({"message": "SUBAGENT-PROMPT"})),
            1 => {
                let subagent = request.word_after("\"agent_id\":\"").unwrap_or_default();
                let wait = json!({"targets": [subagent], "timeout_ms": 30_000});
                Step::tool("multi_agent_v1.wait_agent", wait)
            }
            2 => Step::shell("echo in-the-parent"),
            _ => Step::say("finished"),
        })
        .subagents(|request| match results(request) {
            0 => Step::shell(format!("{UNTIL_TOLD}; echo in-the-subagent")),
            1 => Step::mcp("baton", "read_messages", json!({})),
            2 => Step::shell("baton inbox"),
            _ => Step::say("subagent finished"),
        });
        let stage = StorySandbox::with(&[Agent::Codex], script);
        let agent = stage.start(Agent::Codex, Session::New, "use a subagent");
        let began = stage.model.wait_for(LIMIT, |request| request.kind == Kind::Subagent);
        assert!(began.is_some(), "no subagent began: {}", stage.trouble());
        stage.send(&stage.name_of(Agent::Codex), "MAIL-FOR-THE-PARENT");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        let below = stage.model.requests_of(Kind::Subagent);
        let last = below.last().map_or(0, |request| results(request));
        assert_eq!(last, 3, "all tools of the subagent ran while the mail waited: {}", stage.trouble());
        let eaten =
            stage.model.sightings_where("MAIL-FOR-THE-PARENT", |request| request.kind == Kind::Subagent);
        assert_eq!(eaten.first, None, "the subagent saw it: {}", stage.trouble());
        stage.shown_once("MAIL-FOR-THE-PARENT");
        stage.request(|request| request.shows("MAIL-FOR-THE-PARENT"));
        assert_eq!(stage.end_of("MAIL-FOR-THE-PARENT"), "seen", "{}", stage.trouble());
        stage.nothing_unknown();
    });
}

#[test]
fn after_clear_the_participant_goes_on_in_the_new_session() {
    isolated(|| {
        let stage = StorySandbox::new(Script::by(|_| Step::say("finished"))).without_waking();
        let terminal = stage.open(Agent::Claude, Session::New);
        terminal.submit("please begin");
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        stage.is_in_state("idle");
        let before = stage.json(&["who"])[0].clone();
        terminal.submit("/clear");
        let cleared = wait::poll(LIMIT, || {
            let now = stage.json(&["who"])[0].clone();
            (now["session_id"].is_string() && now["session_id"] != before["session_id"]).then_some(now)
        })
        .unwrap_or_else(|| panic!("no new session: {}", stage.trouble()));
        assert_eq!(cleared["name"], before["name"], "the same participant");
        stage.send(cleared["name"].as_str().unwrap(), "MAIL-AFTER-CLEAR");
        terminal.submit("and now");
        stage.request(|request| request.shows("MAIL-AFTER-CLEAR"));
        stage.shown_once("MAIL-AFTER-CLEAR");
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(stage.end_of("MAIL-AFTER-CLEAR"), "seen", "{}", stage.trouble());
    });
}

#[test]
fn a_prompt_taken_back_gives_its_mail_back() {
    isolated(|| {
        // The model is slow to begin, so that the person can interrupt before its first word.
        let script =
            Script::by(
                |request| {
                    if request.shows("SECOND-PROMPT") { Step::say("finished") } else { Step::Hang }
                },
            );
        // The mail must come with the person's prompt, not with a wake before it.
        let stage = StorySandbox::new(script).without_waking();
        let terminal = stage.open(Agent::Claude, Session::New);
        let name = stage.name_of(Agent::Claude);
        stage.send(&name, "MAIL-TAKEN-BACK");
        terminal.submit("FIRST-PROMPT");
        stage.request(|request| request.shows("MAIL-TAKEN-BACK"));
        // The prompt is back in the input line; clear it and type another.
        let back = Screen::Draft("FIRST-PROMPT".to_owned());
        press_until(&terminal, &["Escape"], |_| screen_of(&terminal, Agent::Claude) == back);
        terminal.press(&["C-u"]);
        wait_for_screen(&terminal, Agent::Claude, &Screen::Ready);
        terminal.submit("SECOND-PROMPT");
        let second = stage.request(|request| request.shows("SECOND-PROMPT"));
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(stage.end_of("MAIL-TAKEN-BACK"), "seen", "{}", stage.trouble());
        let last = stage.model.requests_of(Kind::Main).pop().unwrap();
        assert!(second.count("MAIL-TAKEN-BACK") <= 1, "{}", stage.trouble());
        assert_eq!(last.count("MAIL-TAKEN-BACK"), 1, "it is in the conversation once: {}", stage.trouble());
    });
}

#[test]
fn escape_at_a_permission_dialog_loses_nothing() {
    isolated(|| {
        let script = Script::by(|request| {
            if request.shows("MAIL-AT-THE-DIALOG") {
                Step::say("finished")
            } else {
                Step::shell("touch forbidden.txt")
            }
        });
        let stage = StorySandbox::new(script);
        let claude = stage.claude().asking();
        let terminal = claude.open("claude", Session::New);
        let name = stage.name_of(Agent::Claude);
        terminal.submit("FIRST-PROMPT");
        terminal.wait_for("Do you want", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        stage.is_in_state("blocked");
        stage.send(&name, "MAIL-AT-THE-DIALOG");
        press_until(&terminal, &["Escape"], |screen| !screen.contains("Do you want"));
        // The registry knows that the dialog is gone, and the session is woken.
        stage.request(|request| request.shows("MAIL-AT-THE-DIALOG"));
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        stage.shown_once("MAIL-AT-THE-DIALOG");
        assert_eq!(stage.end_of("MAIL-AT-THE-DIALOG"), "seen", "{}", stage.trouble());
    });
}

#[test]
fn both_agents_take_mail_in_a_terminal() {
    isolated(|| {
        for who in both() {
            let stage = StorySandbox::new(moments::tools(2, 0.2));
            let terminal = stage.open(who, Session::New);
            terminal.submit("please begin");
            stage.request(|_| true);
            stage.send(&stage.name_of(who), "MAIL-IN-A-TERMINAL");
            terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
            stage.request(|request| request.shows("MAIL-IN-A-TERMINAL"));
            stage.shown_once("MAIL-IN-A-TERMINAL");
            assert_eq!(stage.end_of("MAIL-IN-A-TERMINAL"), "seen", "{who:?}: {}", stage.trouble());
        }
    });
}
