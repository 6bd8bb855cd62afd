//! GitHub Copilot CLI: mail at a prompt, between tools, at a stop and on resume; its tools, its
//! subagents, its clear, and its files.

pub mod idle;

use crate::moments;
use crate::sandbox::{LIMIT, StorySandbox, press_until, screen_of};
use crate::sync_points::{Barrier, UNTIL_TOLD, end_tools};
use baton_agents::Screen;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::copilot::Copilot;
use baton_testkit::model::{Kind, Request};
use baton_testkit::{Script, Step, Tmux, isolated, wait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const WHO: Agent = Agent::Copilot;

fn stage(script: Script) -> StorySandbox {
    StorySandbox::with(&[WHO], script)
}

#[test]
fn copilot_has_mail_sent_while_a_tool_runs_in_the_next_request() {
    isolated(|| moments::while_a_tool_runs(WHO));
}

#[test]
fn copilot_has_it_once_from_parallel_tools() {
    isolated(|| moments::parallel_tools(WHO));
}

#[test]
fn copilot_goes_on_with_mail_that_came_before_the_turn_ended() {
    isolated(|| moments::before_the_turn_ends(WHO));
}

#[test]
fn copilot_has_waiting_mail_after_its_resume() {
    isolated(|| moments::waits_for_the_resume(WHO));
}

#[test]
fn copilot_has_it_once_after_being_killed() {
    isolated(|| moments::killed_and_resumed(WHO));
}

#[test]
fn copilot_asks_claude_and_gets_its_answer() {
    isolated(|| moments::asks(WHO, Agent::Claude));
}

#[test]
fn claude_asks_copilot_and_gets_its_answer() {
    isolated(|| moments::asks(Agent::Claude, WHO));
}

#[test]
fn copilot_a_model_reads_by_tool_and_by_command_and_nothing_is_shown_twice() {
    isolated(|| {
        let sent = Barrier::default();
        let before = sent.clone();
        let script = Script::by(move |request| {
            let results = request.results().len();
            before.wait(results.min(2) + 1);
            match results {
                0 => Step::shell("echo in-the-tool"),
                1 => Step::mcp("baton", "read_messages", json!({})),
                2 => Step::shell("baton inbox"),
                _ => Step::say("finished"),
            }
        });
        let stage = stage(script);
        let agent = stage.start(WHO, Session::New, "read your mail");
        stage.request(|_| true);
        let name = stage.name_of(WHO);
        for (results, body) in ["MAIL-READ-0", "MAIL-READ-1", "MAIL-READ-2"].into_iter().enumerate() {
            stage.request(|request| request.results().len() == results);
            stage.send(&name, body);
            sent.open();
        }
        agent.finish(LIMIT).expect_ok();
        for body in ["MAIL-READ-0", "MAIL-READ-1", "MAIL-READ-2"] {
            stage.seen_once(body);
        }
        assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
    });
}

/// Whether a request is the subagent's.
fn is_subagent(request: &Request) -> bool {
    request.shows("SUBAGENT-PROMPT") && !request.shows("use a subagent")
}

#[test]
fn copilot_a_subagent_does_not_eat_its_parents_mail() {
    isolated(|| {
        let script = Script::by(|request| match (is_subagent(request), request.results().len()) {
            (true, 0) => Step::shell(format!("{UNTIL_TOLD}; echo in-the-subagent")),
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
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        let eaten = stage.model.sightings_where("MAIL-FOR-THE-PARENT", is_subagent);
        assert_eq!(eaten.first, None, "the subagent saw it: {}", stage.trouble());
        stage.seen_once("MAIL-FOR-THE-PARENT");
        let copilots = stage.json(&["who", "--all"]);
        let copilots = copilots.as_array().unwrap().iter().filter(|row| row["agent"] == "copilot").count();
        assert_eq!(copilots, 1, "a subagent is not a participant: {}", stage.trouble());
    });
}

#[test]
fn what_was_typed_ahead_goes_first_and_the_mail_still_comes_once() {
    isolated(|| {
        let typed = Barrier::default();
        let before = typed.clone();
        let script = Script::by(move |request| {
            before.wait(1);
            Step::say(if request.last_user_text().contains("be slow") { "slow" } else { "quick" })
        });
        let stage = stage(script);
        let terminal = stage.open(WHO, Session::New);
        terminal.submit("be slow");
        stage.request(|_| true);
        stage.send(&stage.name_of(WHO), "MAIL-AFTER-THE-PERSON");
        terminal.submit("typed ahead");
        terminal.wait_for("Queued", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        typed.open();
        let mail = stage.request(|request| request.shows("MAIL-AFTER-THE-PERSON"));
        assert!(mail.shows("typed ahead"), "{}", stage.trouble());
        assert_eq!(stage.end_of("MAIL-AFTER-THE-PERSON"), "seen", "{}", stage.trouble());
        let requests = stage.model.requests_of(Kind::Main).len();
        terminal.submit("anything else");
        stage.request(|request| request.index >= requests && request.shows("anything else"));
        stage.seen_once("MAIL-AFTER-THE-PERSON");
    });
}

/// Interrupts a turn before its first word: its prompt is in the input line again.
fn take_back(terminal: &Tmux<'_>, prompt: &str) {
    let back = Screen::Draft(prompt.to_owned());
    press_until(terminal, &["Escape", "Escape"], |_| screen_of(terminal, WHO) == back);
}

/// Copilot cuts what was taken back out of its transcript.
#[test]
fn mail_that_was_taken_back_with_its_prompt_comes_again() {
    isolated(|| {
        let script = Script::by(|request| {
            if request.last_user_text().contains("be slow") { Step::Hang } else { Step::say("finished") }
        });
        let stage = stage(script);
        let terminal = stage.open(WHO, Session::New);
        terminal.submit("please begin");
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        stage.is_in_state("idle");
        stage.send(&stage.name_of(WHO), "MAIL-TAKEN-BACK");
        terminal.submit("be slow");
        stage.request(|request| request.shows("MAIL-TAKEN-BACK"));
        take_back(&terminal, "be slow");
        terminal.press(&["C-u"]);
        terminal.submit("something else");
        let again = |request: &Request| request.shows("something else") && request.shows("MAIL-TAKEN-BACK");
        stage.request(again);
        stage.seen_once("MAIL-TAKEN-BACK");
    });
}

#[test]
fn after_clear_the_participant_goes_on_in_the_new_session() {
    isolated(|| {
        let stage = stage(Script::by(|_| Step::say("finished")));
        let terminal = stage.open(WHO, Session::New);
        terminal.submit("please begin");
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        stage.is_in_state("idle");
        let before = stage.json(&["who"])[0].clone();
        terminal.submit("/clear");
        let gone = wait::until(LIMIT, || stage.json(&["who"]).as_array().is_some_and(Vec::is_empty));
        assert!(gone, "the old session has ended: {}", stage.trouble());
        stage.send(before["name"].as_str().unwrap(), "MAIL-OVER-CLEAR");
        terminal.submit("after the clear");
        stage.request(|request| request.shows("MAIL-OVER-CLEAR"));
        stage.seen_once("MAIL-OVER-CLEAR");
        let after = stage.json(&["who"])[0].clone();
        assert_eq!(after["name"], before["name"]);
        assert_ne!(after["session_id"], before["session_id"]);
    });
}

fn files(stage: &StorySandbox) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    [
        ".copilot/hooks/baton.json",
        ".copilot/extensions/baton/extension.mjs",
        ".copilot/mcp-config.json",
        ".copilot/settings.json",
    ]
    .into_iter()
    .map(|file| (PathBuf::from(file), fs::read(stage.sandbox.home().join(file)).ok()))
    .collect()
}

#[test]
fn copilot_setup_and_remove_give_every_byte_back() {
    isolated(|| {
        let stage = StorySandbox::bare(Script::by(|_| Step::say("finished")));
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
        for folder in [".copilot/hooks", ".copilot/extensions"] {
            assert!(!stage.sandbox.home().join(folder).exists(), "a folder that we made goes too: {folder}");
        }
        let sessions = stage.json(&["who", "--all"]);
        stage.run(WHO, Session::New, "once more");
        assert_eq!(stage.json(&["who", "--all"]), sessions, "nobody is registered any more");
    });
}

/// Both read the project's `.mcp.json`, and the one server in it serves each as itself.
#[test]
fn one_server_of_a_project_serves_claude_and_copilot() {
    isolated(|| {
        let stage = StorySandbox::bare(Script::by(|request| match request.results().len() {
            0 => Step::mcp("baton", "read_messages", json!({})),
            1 => Step::mcp(
                "baton",
                "send_message",
                json!({"to": "user", "body": format!("FROM-{:?}", request.agent)}),
            ),
            _ => Step::say("finished"),
        }));
        let (claude, copilot) = (stage.claude(), Copilot::new(&stage.sandbox, &stage.model));
        claude.edit_settings(|settings| settings["enableAllProjectMcpServers"] = true.into());
        let untouched = project_files(&stage);
        stage.baton(&["setup", "claude", "copilot", "--project"]).expect_ok();
        stage.sandbox.run(&mut claude.headless(Session::New, "please begin"), LIMIT).expect_ok();
        let mut command = copilot.headless(Session::New, "please begin");
        stage.sandbox.run(command.arg("--trust-folder"), LIMIT).expect_ok();
        for (agent, body) in [("claude", "FROM-Claude"), ("copilot", "FROM-Copilot")] {
            let mail = stage.json(&["mail", "--search", body]);
            let everybody = stage.json(&["who", "--all"]);
            let sender = everybody.as_array().into_iter().flatten().find(|row| row["agent"] == agent);
            assert_eq!(mail[0]["sender"], agent, "{mail}");
            assert_eq!(mail[0]["from"], sender.expect("it is registered")["session_id"], "{mail}");
        }
        stage.baton(&["setup", "claude", "--project", "--remove"]).expect_ok();
        let before = stage.model.requests().len();
        let mut command = copilot.headless(Session::New, "once more");
        stage.sandbox.run(command.arg("--trust-folder"), LIMIT).expect_ok();
        let asked = |request: &Request| request.index > before && request.results().len() == 1;
        let answered = stage.request(asked).results()[0].text.clone();
        assert!(answered.contains("messages"), "it still has its tools: {answered}");
        stage.baton(&["setup", "copilot", "--project", "--remove"]).expect_ok();
        assert_eq!(project_files(&stage), untouched);
    });
}

/// What is in the project's folder.
fn project_files(stage: &StorySandbox) -> Vec<String> {
    let entries = fs::read_dir(stage.sandbox.project()).expect("the project's folder");
    let names = entries.map(|entry| entry.expect("an entry of it").file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn hooks_of_claude_in_the_project_stay_silent_under_copilot() {
    isolated(|| {
        let stage = StorySandbox::bare(moments::tools(1, 0.1));
        Copilot::new(&stage.sandbox, &stage.model);
        stage.baton(&["setup", "claude", "copilot", "--project"]).expect_ok();
        let log = stage.sandbox.path("ran");
        let settings = stage.sandbox.project().join(".claude/settings.json");
        let mut json: Value = serde_json::from_slice(&fs::read(&settings).unwrap()).unwrap();
        // With hooks that call an MCP tool in it, Copilot 1.0.102 ignores the whole file; another
        // version may not.
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
