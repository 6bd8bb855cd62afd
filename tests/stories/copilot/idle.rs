//! Copilot while it is idle: its extension wakes it, and the mail comes with that prompt. What must
//! never happen then: a dialog answered, a draft lost, a turn for nothing.

use super::{WHO, stage};
use crate::moments;
use crate::sandbox::{LIMIT, StorySandbox, press_until, rounds, screen_of};
use crate::sync_points::{Barrier, UNTIL_TOLD, end_tools};
use baton_agents::Screen;
use baton_testkit::agents::Session;
use baton_testkit::copilot::Copilot;
use baton_testkit::model::{Kind, Request};
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// The line that wakes a session.
const WAKE: &str = "[baton] Mail is waiting for you.";
/// The end of every such line.
const WAKE_END: &str = " waiting for you.";

/// A stage on which Copilot loads its extensions.
pub fn pushing(script: Script) -> StorySandbox {
    let stage = stage(script);
    Copilot::new(&stage.sandbox, &stage.model).turn_extensions_on();
    stage
}

fn talk() -> Script {
    Script::by(|_| Step::say("finished"))
}

#[test]
fn an_idle_copilot_gets_its_mail_at_once() {
    isolated(|| {
        for _ in 0..rounds() {
            let stage = moments::while_idle(WHO, pushing);
            assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
            let last = stage.model.requests_of(Kind::Main).pop().expect("a request");
            assert_eq!(last.count(WAKE_END), 4, "a wake for each message: {:?}", last.said());
        }
    });
}

#[test]
fn copilot_messages_of_one_instant_come_once_each() {
    isolated(|| {
        let stage = pushing(talk());
        let _terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        moments::of_one_instant(&stage, &name);
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
        assert!(last.count(WAKE_END) <= 10, "{} wakes", last.count(WAKE_END));
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
        stage.is_in_state("blocked");
        let question = || terminal.screen().split_once("\n╭").map(|(_, dialog)| dialog.to_owned());
        let dialog = question();
        let asked = stage.model.requests().len();
        for round in 0..rounds().max(5) {
            let sent = stage.json(&["send", &name, &format!("MAIL-PENDING-{round}.")]);
            assert_eq!(sent["wake"], "skipped_dialog");
        }
        // Longer than the link's sweep for rings that it missed: whatever would come comes in this
        // time.
        std::thread::sleep(Duration::from_secs(6));
        assert_eq!(question(), dialog, "nothing was typed");
        assert!(!stage.sandbox.project().join("ran.txt").exists(), "nothing was approved");
        assert_eq!(stage.model.requests().len(), asked, "nothing was asked");
        assert_eq!(stage.state_of("MAIL-PENDING-0."), "queued");
        terminal.press(&["Enter"]);
        for round in 0..rounds().max(5) {
            stage.arrives(&format!("MAIL-PENDING-{round}."));
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
            stage.arrives(&body);
            stage.is_in_state("idle");
            assert!(terminal.screen().contains(&format!("❯ {draft}")), "it stays: {}", terminal.screen());
            assert_eq!(stage.model.sightings(&draft).requests, 0, "and was not sent");
            terminal.press(&["Enter"]);
            stage.request(|request| request.shows(&draft));
            stage.is_in_state("idle");
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
        stage.is_in_state("idle");
        let asked = stage.model.requests().len();
        // As the extension would hand it over.
        terminal.submit(WAKE);
        terminal
            .wait_for("the mail has been taken meanwhile", LIMIT)
            .unwrap_or_else(|error| panic!("{error}"));
        stage.is_in_state("idle");
        terminal.submit("go on");
        let next = stage.request(|request| request.shows("go on"));
        assert_eq!((next.index, next.count(WAKE_END)), (asked, 0), "{:?}", next.said());
    });
}

#[test]
fn copilot_takes_mail_after_a_compaction_and_knows_its_asks() {
    isolated(|| {
        let sent = Barrier::default();
        let before_it = sent.clone();
        let stage = pushing(Script::by(move |request| {
            if request.shows("create a detailed summary") {
                before_it.wait(1);
            }
            Step::say("finished")
        }));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        stage.send(&name, "MAIL-BEFORE");
        stage.arrives("MAIL-BEFORE");
        stage.is_in_state("idle");
        let mut ask = stage.sandbox.start(stage.sandbox.command("baton").args(["ask", &name, "QUESTION-1"]));
        stage.arrives("QUESTION-1");
        stage.is_in_state("idle");
        let before = stage.model.requests().len();
        terminal.submit("/compact");
        assert!(wait::until(LIMIT, || stage.model.requests().len() > before), "{}", terminal.screen());
        let compaction = stage.model.requests()[before].clone();
        assert!(compaction.shows("create a detailed summary"), "{:?}", compaction.said());
        stage.send(&name, "MAIL-MEANWHILE");
        assert!(!terminal.screen().contains("Compaction completed"), "it takes a while");
        sent.open();
        let after = stage.request(|request| request.index > before && request.shows("MAIL-MEANWHILE"));
        assert!(!compaction.shows("MAIL-MEANWHILE"), "the compaction is no turn");
        assert!(after.index > compaction.index);
        stage.seen_once("MAIL-MEANWHILE");
        stage.is_in_state("idle");
        terminal.submit("go on");
        let next = stage.request(|request| request.shows("go on"));
        // By the wake, or, where Copilot had not written it down by then, by the prompt.
        assert_eq!(next.count("<baton-asks>"), 1, "{:?}", next.said());
        assert_eq!(next.count("asked you in"), 1, "{:?}", next.said());
        stage.is_in_state("idle");
        ask.kill();
        terminal.submit("and on");
        let last = stage.request(|request| request.shows("and on"));
        assert_eq!(last.count("<baton-asks>"), 1, "it is said once: {:?}", last.said());
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
            stage.is_in_state("idle");
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
            stage.is_in_state("idle");
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
        moments::one_by_one(&stage, &name, 3);
        let last = stage.model.requests_of(Kind::Main).pop().expect("a request");
        assert_eq!(last.count(WAKE_END), 3, "one wake for each: {:?}", last.said());
    });
}

/// The process of this sandbox's link, which has its home among its arguments.
fn link_process(stage: &StorySandbox) -> Option<String> {
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
        stage.would_be("no_route");
        stage.send(&name, "MAIL-WITHOUT-A-LINK");
        stage.arrives("MAIL-WITHOUT-A-LINK");
        assert_ne!(link_process(&stage).expect("another one"), link);
        assert_eq!(stage.json(&["who", "--all"]).as_array().map(Vec::len), Some(1), "one participant");
    });
}

/// Without a terminal no process waits for a pushed prompt: hooks bring the mail.
#[test]
fn copilot_without_a_terminal_is_not_woken() {
    isolated(|| {
        let stage = pushing(Script::by(|request| match request.results().len() {
            0 if request.shows("go on") => Step::shell(UNTIL_TOLD),
            _ => Step::say("finished"),
        }));
        let run = stage.run(WHO, Session::New, "please begin");
        let session = stage.session_id(WHO, &run);
        stage.send(&session, "MAIL-HEADLESS-1");
        let agent = stage.start(WHO, Session::Resume(&session), "go on");
        stage.request(|request| request.shows("MAIL-HEADLESS-1"));
        stage.send(&session, "MAIL-HEADLESS-2");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        for body in ["MAIL-HEADLESS-1", "MAIL-HEADLESS-2"] {
            stage.seen_once(body);
        }
        assert_eq!(stage.model.sightings(WAKE_END).requests, 0);
    });
}

/// Nothing tells a hook that a turn was interrupted; the extension does.
#[test]
fn an_interrupted_copilot_is_idle_and_gets_its_mail() {
    isolated(|| {
        let stage = pushing(Script::by(|request| match request.results().len() {
            0 if request.last_user_text().contains("be slow") => Step::shell("sleep 600"),
            _ => Step::say("finished"),
        }));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        terminal.submit("be slow");
        stage.request(|request| request.shows("be slow"));
        stage.is_in_state("busy");
        terminal.wait_for("sleep 600", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        press_until(&terminal, &["Escape", "Escape"], |_| stage.json(&["who"])[0]["state"] == "idle");
        stage.send(&name, "MAIL-AFTER-ESC");
        stage.arrives("MAIL-AFTER-ESC");
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
                (true, _, 0) => Step::shell(format!("{UNTIL_TOLD}; echo nested")),
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
        end_tools(&stage);
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
        stage.is_in_state("idle");
        stage.send(&name, "MAIL-AFTER-THEM");
        stage.arrives("MAIL-AFTER-THEM");
    });
}

/// Who takes a wake back wants to go on first: the mail comes with what they do next, not at once.
#[test]
fn mail_that_was_taken_back_with_a_wake_comes_again_with_the_next_turn() {
    isolated(|| {
        let stage = pushing(Script::by(
            |request| {
                if request.index == 1 { Step::Hang } else { Step::say("finished") }
            },
        ));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        terminal.submit("please begin");
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        stage.is_in_state("idle");
        stage.send(&name, "MAIL-TAKEN-BACK");
        stage.request(|request| request.index == 1 && request.shows("MAIL-TAKEN-BACK"));
        // A line that was not typed may come into the input line, or not.
        press_until(&terminal, &["Escape", "Escape"], |screen| {
            screen.contains("Operation cancelled")
                || screen_of(&terminal, WHO)
                    == Screen::Draft("[baton] Mail from script is waiting for you.".to_owned())
        });
        stage.is_in_state("idle");
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

/// The extension tells of the new session before its first prompt does.
#[test]
fn after_clear_an_idle_copilot_is_woken_in_its_new_session() {
    isolated(|| {
        let stage = pushing(talk());
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        terminal.submit("please begin");
        stage.request(|request| request.shows("please begin"));
        stage.is_in_state("idle");
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
