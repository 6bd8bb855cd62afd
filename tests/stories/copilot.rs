//! GitHub Copilot CLI: mail at a prompt, between tools, at a stop and on resume; its tools, its subagents, its clear, and its files.

use crate::moments;
use crate::stage::{LIMIT, Stage, rounds};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::copilot::Copilot;
use baton_testkit::model::{Kind, Request};
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const WHO: Agent = Agent::Copilot;
/// The line that wakes a session.
const WAKE: &str = "[baton] Mail is waiting for you.";

fn stage(script: Script) -> Stage {
    Stage::with(&[WHO], script)
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
            stage.seen_once(body);
        }
        assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
    });
}

/// A stage on which Copilot loads its extensions.
fn pushing(script: Script) -> Stage {
    let stage = stage(script);
    Copilot::new(&stage.sandbox, &stage.model).turn_extensions_on();
    stage
}

fn talk() -> Script {
    Script::by(|_| Step::say("finished"))
}

fn idle(stage: &Stage) {
    let idle = wait::until(LIMIT, || stage.json(&["who"])[0]["state"] == "idle");
    assert!(idle, "it is never idle: {}{}", stage.json(&["who"]), stage.trouble());
}

/// It came to the model, once, and its sender can see that.
#[track_caller]
fn arrived(stage: &Stage, body: &str) {
    stage.request(|request| request.shows(body));
    stage.seen_once(body);
}

#[test]
fn an_idle_copilot_gets_its_mail_at_once() {
    isolated(|| {
        for _ in 0..rounds() {
            let stage = pushing(talk());
            let terminal = stage.open(WHO, Session::New);
            // Before anything was ever asked.
            let name = stage.name_of(WHO);
            assert_eq!(stage.json(&["send", &name, "MAIL-IDLE-1"])["wake"], "pushed", "{}", stage.trouble());
            arrived(&stage, "MAIL-IDLE-1");
            idle(&stage);
            terminal.submit("PROMPT-OF-THE-PERSON");
            stage.request(|request| request.shows("PROMPT-OF-THE-PERSON"));
            idle(&stage);
            for body in ["MAIL-IDLE-2", "MAIL-IDLE-3", "MAIL-IDLE-4"] {
                assert_eq!(stage.json(&["who"]).as_array().map(Vec::len), Some(1), "one participant");
                stage.send(&name, body);
                arrived(&stage, body);
                idle(&stage);
            }
            let last = stage.model.requests_of(Kind::Main).pop().expect("a request");
            assert_eq!(last.count(WAKE), 4, "a wake for each message: {:?}", last.said());
        }
    });
}

/// Two to five at the same instant, while the session is idle, or just becoming so.
#[test]
fn copilot_messages_of_one_instant_come_once_each() {
    isolated(|| {
        let stage = pushing(talk());
        let _terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        for round in 0..rounds().max(4) {
            let bodies: Vec<_> = (0..2 + round % 4).map(|n| format!("MAIL-WAKE-{round}-{n}.")).collect();
            std::thread::scope(|scope| {
                for body in &bodies {
                    scope.spawn(|| stage.send(&name, body));
                }
            });
            for body in &bodies {
                stage.request(|request| request.shows(body));
                stage.shown_once(body);
            }
            // Every second round begins while the turn of the last is still ending.
            if round % 2 == 0 {
                for body in &bodies {
                    assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
                }
            }
        }
        let last = stage.model.requests_of(Kind::Main).pop().unwrap();
        for round in 0..rounds().max(4) {
            for n in 0..2 + round % 4 {
                assert_eq!(last.count(&format!("MAIL-WAKE-{round}-{n}.")), 1, "round {round}, {n}");
            }
        }
    });
}

/// More than one event may carry: the rest comes at the stops of the same turn, or by another wake.
#[test]
fn fifty_messages_of_a_moment_wake_copilot_a_few_times_and_come_once_each() {
    isolated(|| {
        let stage = pushing(talk());
        let _terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        let bodies: Vec<_> = (0..50).map(|n| format!("MAIL-OF-FIFTY-{n}.")).collect();
        std::thread::scope(|scope| {
            for some in bodies.chunks(10) {
                scope.spawn(|| some.iter().for_each(|body| stage.send(&name, body)));
            }
        });
        for body in &bodies {
            stage.request(|request| request.shows(body));
        }
        let all_seen = || {
            let mail = stage.json(&["mail", "--limit", "100"]);
            let seen = |row: &&Value| row["deliveries"][0]["state"] == "seen";
            mail.as_array().is_some_and(|rows| rows.iter().filter(seen).count() == bodies.len())
        };
        assert!(wait::until(LIMIT, all_seen), "{}", stage.trouble());
        let last = stage.model.requests_of(Kind::Main).pop().expect("a request");
        for body in &bodies {
            assert_eq!(last.count(body), 1, "{body}");
        }
        assert!(last.count(WAKE) <= 10, "{} wakes", last.count(WAKE));
    });
}

#[test]
fn copilot_is_not_woken_while_it_asks_for_a_permission() {
    isolated(|| {
        let script = Script::by(|request| match request.results().len() {
            0 if request.shows("please ask") => Step::shell("echo ran >> ran.txt; echo allowed"),
            _ => Step::say("finished"),
        });
        let stage = pushing(script);
        let terminal = Copilot::new(&stage.sandbox, &stage.model).asking().open("copilot", Session::New);
        let name = stage.name_of(WHO);
        terminal.submit("please ask");
        terminal
            .wait_for("Do you want to run this command?", LIMIT)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(wait::until(LIMIT, || stage.json(&["who"])[0]["state"] == "blocked"), "{}", stage.trouble());
        let question = || terminal.screen().split_once("\n╭").map(|(_, dialog)| dialog.to_owned());
        let dialog = question();
        let asked = stage.model.requests().len();
        for round in 0..rounds().max(5) {
            let sent = stage.json(&["send", &name, &format!("MAIL-PENDING-{round}.")]);
            assert_eq!(sent["wake"], "skipped_dialog");
        }
        // Longer than the link's sweep for rings that it missed: whatever would come comes in this time.
        std::thread::sleep(Duration::from_secs(6));
        assert_eq!(question(), dialog, "nothing was typed");
        assert!(!stage.sandbox.project().join("ran.txt").exists(), "nothing was approved");
        assert_eq!(stage.model.requests().len(), asked, "nothing was asked");
        assert_eq!(stage.state_of("MAIL-PENDING-0."), "queued");
        terminal.press(&["Enter"]);
        for round in 0..rounds().max(5) {
            arrived(&stage, &format!("MAIL-PENDING-{round}."));
        }
        let ran = fs::read_to_string(stage.sandbox.project().join("ran.txt")).unwrap_or_default();
        assert_eq!(ran.lines().count(), 1, "the tool ran once");
    });
}

#[test]
fn a_draft_in_copilots_input_line_survives_a_push() {
    isolated(|| {
        let stage = pushing(talk());
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        for round in 0..2 {
            let draft = format!("a draft {round}");
            terminal.type_text(&draft);
            terminal.wait_for(&format!("❯ {draft}"), LIMIT).unwrap_or_else(|error| panic!("{error}"));
            let body = format!("MAIL-BESIDE-A-DRAFT-{round}");
            stage.send(&name, &body);
            arrived(&stage, &body);
            idle(&stage);
            assert!(terminal.screen().contains(&format!("❯ {draft}")), "it stays: {}", terminal.screen());
            assert_eq!(stage.model.sightings(&draft).requests, 0, "and was not sent");
            terminal.press(&["Enter"]);
            stage.request(|request| request.shows(&draft));
            idle(&stage);
        }
    });
}

/// A line that comes too late, because the mail has been taken meanwhile, asks the model nothing.
#[test]
fn a_wake_that_finds_no_mail_is_blocked() {
    isolated(|| {
        let stage = pushing(talk());
        let terminal = stage.open(WHO, Session::New);
        terminal.submit("please begin");
        stage.request(|request| request.shows("please begin"));
        idle(&stage);
        let asked = stage.model.requests().len();
        // As the extension would hand it over.
        terminal.submit(WAKE);
        terminal
            .wait_for("the mail has been taken meanwhile", LIMIT)
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(stage.json(&["who"])[0]["state"], "idle");
        terminal.submit("go on");
        let next = stage.request(|request| request.shows("go on"));
        assert_eq!((next.index, next.count(WAKE)), (asked, 0), "{:?}", next.said());
    });
}

#[test]
fn mail_sent_while_copilot_compacts_comes_once_afterwards() {
    isolated(|| {
        let stage = pushing(Script::by(|request| {
            let compacts = request.shows("create a detailed summary") || request.kind != Kind::Main;
            Step::say("finished").after(Duration::from_secs(if compacts { 3 } else { 0 }))
        }));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        stage.send(&name, "MAIL-BEFORE");
        arrived(&stage, "MAIL-BEFORE");
        idle(&stage);
        let before = stage.model.requests().len();
        terminal.submit("/compact");
        assert!(wait::until(LIMIT, || stage.model.requests().len() > before), "{}", terminal.screen());
        let compaction = stage.model.requests()[before].clone();
        assert!(compaction.shows("create a detailed summary"), "{:?}", compaction.said());
        stage.send(&name, "MAIL-MEANWHILE");
        assert!(!terminal.screen().contains("Compaction completed"), "it takes a while");
        let after = stage.request(|request| request.index > before && request.shows("MAIL-MEANWHILE"));
        assert!(!compaction.shows("MAIL-MEANWHILE"), "the compaction is no turn");
        assert!(after.index > compaction.index);
        stage.seen_once("MAIL-MEANWHILE");
        terminal.submit("go on");
        let last = stage.request(|request| request.shows("go on"));
        assert!(last.count("MAIL-BEFORE") <= 1 && last.count("MAIL-MEANWHILE") == 1, "{:?}", last.said());
    });
}

/// Killed while the mail is on its way into an idle session, at different moments, and resumed.
#[test]
fn an_idle_copilot_that_is_killed_has_it_once_after_its_resume() {
    isolated(|| {
        for round in 0..rounds().max(2) {
            let stage = pushing(Script::by(|request| match request.results().len() {
                0 if request.shows("MAIL-KILL") => Step::shell("sleep 0.3"),
                _ => Step::say("finished"),
            }));
            let terminal = stage.open(WHO, Session::New);
            terminal.submit("please begin");
            stage.request(|request| request.shows("please begin"));
            idle(&stage);
            let copilot = Copilot::new(&stage.sandbox, &stage.model);
            // Before that there is nothing to resume.
            assert!(wait::until(LIMIT, || !copilot.transcripts().is_empty()), "{}", stage.trouble());
            let session = stage.json(&["who"])[0]["session_id"].as_str().expect("an id").to_owned();
            let body = format!("MAIL-KILL-{round}");
            stage.send(&session, &body);
            // From before the wake to after the last answer.
            std::thread::sleep(Duration::from_millis(u64::try_from(50 + round * 331 % 1500).unwrap()));
            terminal.kill();
            let before = stage.model.requests().len();
            let again = copilot.open("again", Session::Resume(&session));
            idle(&stage);
            again.submit("go on again");
            let shows = |request: &Request| request.shows("go on again") && request.shows(&body);
            stage.request(|request| request.index >= before && shows(request));
            let last = stage.model.requests_of(Kind::Main).pop().expect("a request after the resume");
            assert_eq!(last.count(&body), 1, "round {round}: {}", stage.trouble());
            assert_eq!(stage.end_of(&body), "seen", "round {round}: {}", stage.trouble());
        }
    });
}

/// Set up for the user and for the project: Copilot loads one extension of the name.
#[test]
fn copilot_with_two_extensions_acts_once() {
    isolated(|| {
        let stage = pushing(talk());
        stage.baton(&["setup", "copilot", "--project"]).expect_ok();
        let _terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        for round in 0..3 {
            let body = format!("MAIL-TWICE-{round}");
            stage.send(&name, &body);
            arrived(&stage, &body);
            idle(&stage);
        }
        let last = stage.model.requests_of(Kind::Main).pop().expect("a request");
        assert_eq!(last.count(WAKE), 3, "one wake for each: {:?}", last.said());
    });
}

/// The process of this sandbox's link, which has its home among its arguments.
fn link_process(stage: &Stage) -> Option<String> {
    let home = stage.sandbox.home().to_string_lossy().into_owned();
    fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).find(
        |pid| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            arguments.contains(" link copilot ") && arguments.contains(&home)
        },
    )
}

#[test]
fn a_link_of_copilots_that_dies_is_started_again() {
    isolated(|| {
        let stage = pushing(talk());
        let _terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        let link = link_process(&stage).expect("its process");
        stage.sandbox.run(stage.sandbox.command("kill").args(["-9", &link]), LIMIT).expect_ok();
        let outcome = || stage.json(&["who"])[0]["wake"].clone();
        assert!(wait::until(LIMIT, || outcome() == "no_route"), "nobody attends: {}", stage.trouble());
        stage.send(&name, "MAIL-WITHOUT-A-LINK");
        arrived(&stage, "MAIL-WITHOUT-A-LINK");
        assert_ne!(link_process(&stage).expect("another one"), link);
        assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
    });
}

/// Without a terminal nobody waits for a pushed prompt: hooks bring the mail.
#[test]
fn copilot_without_a_terminal_is_not_woken() {
    isolated(|| {
        let stage = pushing(moments::tools(1, 0.5));
        let run = stage.run(WHO, Session::New, "please begin");
        let session = stage.session_id(WHO, &run);
        stage.send(&session, "MAIL-HEADLESS-1");
        let agent = stage.start(WHO, Session::Resume(&session), "go on");
        stage.request(|request| request.shows("MAIL-HEADLESS-1"));
        stage.send(&session, "MAIL-HEADLESS-2");
        agent.finish(LIMIT).expect_ok();
        for body in ["MAIL-HEADLESS-1", "MAIL-HEADLESS-2"] {
            stage.seen_once(body);
        }
        assert_eq!(stage.model.sightings(WAKE).requests, 0);
    });
}

/// Nothing tells a hook that a turn was interrupted; the extension does.
#[test]
fn an_interrupted_copilot_is_idle_and_gets_its_mail() {
    isolated(|| {
        let stage = pushing(Script::by(|request| match request.results().len() {
            0 if request.last_user_text().contains("be slow") => Step::shell("sleep 30"),
            _ => Step::say("finished"),
        }));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        terminal.submit("be slow");
        stage.request(|request| request.shows("be slow"));
        assert!(wait::until(LIMIT, || stage.json(&["who"])[0]["state"] == "busy"), "{}", stage.trouble());
        terminal.wait_for("sleep 30", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        terminal.press(&["Escape"]);
        idle(&stage);
        stage.send(&name, "MAIL-AFTER-ESC");
        arrived(&stage, "MAIL-AFTER-ESC");
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
        stage.seen_once("MAIL-FOR-THE-PARENT");
        let copilots = stage.json(&["who", "--all"]);
        let copilots = copilots.as_array().unwrap().iter().filter(|row| row["agent"] == "copilot").count();
        assert_eq!(copilots, 1, "a subagent is not a participant: {}", stage.trouble());
    });
}

fn is_nested(request: &Request) -> bool {
    request.shows("NESTED-PROMPT") && !request.shows("OUTER-PROMPT")
}

/// With the extension at work, which hears of subagents too.
#[test]
fn copilot_nested_subagents_do_not_eat_their_roots_mail() {
    isolated(|| {
        let task = |name: &str, prompt: &str| {
            let input = json!({"agent_type": "general-purpose", "name": name, "description": "look", "prompt": prompt, "mode": "sync"});
            Step::tool("task", input)
        };
        let script = Script::by(move |request| {
            let outer = request.shows("OUTER-PROMPT") && !request.shows("use subagents");
            match (is_nested(request), outer, request.results().len()) {
                (true, _, 0) => Step::shell("sleep 1; echo nested"),
                (true, _, 1) => Step::mcp("baton", "read_messages", json!({})),
                (true, _, 2) => Step::shell("baton inbox; true"),
                (true, ..) => Step::say("nested finished"),
                (_, true, 0) => task("inner", "NESTED-PROMPT"),
                (_, true, 1) => Step::shell("sleep 0.5; echo outer"),
                (_, true, _) => Step::say("outer finished"),
                (.., 0) if request.shows("use subagents") => task("outer", "OUTER-PROMPT"),
                (.., 1) => Step::shell("sleep 0.5"),
                _ => Step::say("finished"),
            }
        });
        let stage = pushing(script);
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        terminal.submit("use subagents");
        assert!(stage.model.wait_for(LIMIT, is_nested).is_some(), "no nested subagent: {}", stage.trouble());
        stage.send(&name, "MAIL-FOR-THE-ROOT");
        stage.request(|request| request.shows("use subagents") && request.shows("MAIL-FOR-THE-ROOT"));
        let below = |request: &Request| !request.shows("use subagents");
        assert_eq!(
            stage.model.sightings_where("MAIL-FOR-THE-ROOT", below).first,
            None,
            "{}",
            stage.trouble()
        );
        assert!(stage.model.sightings_where("nested", is_nested).first.is_some(), "it had its turns");
        stage.seen_once("MAIL-FOR-THE-ROOT");
        assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
        idle(&stage);
        stage.send(&name, "MAIL-AFTER-THEM");
        arrived(&stage, "MAIL-AFTER-THEM");
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
        stage.seen_once("MAIL-AFTER-THE-PERSON");
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
        stage.seen_once("MAIL-TAKEN-BACK");
    });
}

/// Who takes a wake back wants to go on first: the mail comes with what they do next, not at once.
#[test]
fn mail_that_was_taken_back_with_a_wake_comes_again_with_the_next_turn() {
    isolated(|| {
        let stage = pushing(Script::by(|request| {
            let first = request.index == 1;
            Step::say("finished").after(Duration::from_secs(if first { 30 } else { 0 }))
        }));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        terminal.submit("please begin");
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        idle(&stage);
        stage.send(&name, "MAIL-TAKEN-BACK");
        stage.request(|request| request.index == 1 && request.shows("MAIL-TAKEN-BACK"));
        terminal.press(&["Escape"]);
        std::thread::sleep(Duration::from_millis(200));
        terminal.press(&["Escape"]);
        let back = |screen: &str| screen.contains(&format!("❯ {WAKE}")) && !screen.contains("Working");
        terminal
            .wait_until("the line in the input line", LIMIT, back)
            .unwrap_or_else(|error| panic!("{error}"));
        idle(&stage);
        // Longer than the first pause before a wake is repeated.
        std::thread::sleep(Duration::from_secs(3));
        terminal.press(&["C-u"]);
        terminal.submit("something else");
        let next = stage.request(|request| request.index > 1);
        assert!(next.shows("something else"), "nobody was woken meanwhile: {:?}", next.said());
        stage.request(|request| request.index > 1 && request.shows("MAIL-TAKEN-BACK"));
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

/// The extension tells of the new session before its first prompt does.
#[test]
fn after_clear_an_idle_copilot_is_woken_in_its_new_session() {
    isolated(|| {
        let stage = pushing(talk());
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        terminal.submit("please begin");
        stage.request(|request| request.shows("please begin"));
        idle(&stage);
        let before = stage.json(&["who"])[0].clone();
        terminal.submit("/clear");
        let anew = |row: &Value| row["session_id"].is_string() && row["session_id"] != before["session_id"];
        let cleared =
            wait::until(LIMIT, || stage.json(&["who"]).as_array().is_some_and(|who| who.iter().any(anew)));
        assert!(cleared, "{}", stage.trouble());
        stage.send(&name, "MAIL-OVER-CLEAR");
        let woken = stage.request(|request| request.shows("MAIL-OVER-CLEAR"));
        assert!(!woken.shows("please begin"), "in the new conversation: {:?}", woken.said());
        stage.seen_once("MAIL-OVER-CLEAR");
        let after = stage.json(&["who", "--all"]);
        assert_eq!(after.as_array().map(Vec::len), Some(1), "the same participant: {after}");
    });
}

fn files(stage: &Stage) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
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
        let stage = Stage::bare(Script::by(|request| match request.results().len() {
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

/// What lies in the project's folder.
fn project_files(stage: &Stage) -> Vec<String> {
    let entries = fs::read_dir(stage.sandbox.project()).expect("the project's folder");
    let names = entries.map(|entry| entry.expect("an entry of it").file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn hooks_of_claude_in_the_project_stay_silent_under_copilot() {
    isolated(|| {
        let stage = Stage::bare(moments::tools(1, 0.1));
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
