//! What the guard wants asked, in OpenCode: the plugin holds the call, and the person at the inbox
//! decides.

use super::{WHO, by_prompt, links, prompt, submit};
use crate::inbox_user::{InboxUser, id};
use crate::sandbox::{LIMIT, StorySandbox, press_until, rounds};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_testkit::agents::{Program as _, Session};
use baton_testkit::opencode::Server;
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// A rule by which each file that is made is asked about.
const RULE: &str = "[[guard.rule]]\nid = \"count-files\"\ndecision = \"ask\"\ncommand = \"touch **\"\nreason = \"Files are counted.\"\n";
/// By so much an abort comes later each time than an answer is begun, which takes some tens of
/// milliseconds.
const APART: Duration = Duration::from_millis(8);
/// What the model reads if no person has decided.
const UNDECIDED: &str = "A person has to decide this";

/// Settings with which the guard, and only the guard, asks about making files.
fn stage(more: &str, script: Script) -> StorySandbox {
    let stage = StorySandbox::with(&[WHO], script);
    stage.configure(&format!("wake = \"off\"\n{more}\n{RULE}"));
    stage
}

fn session(stage: &StorySandbox) -> (Server, String) {
    let server = Server::start(&stage.opencode());
    let session = server.session();
    (server, session)
}

/// The question about this, once it waits, with the rule as its reason.
#[track_caller]
fn held(user: &InboxUser<'_>, what: &str) -> Value {
    let row = user.long_question(what, "waiting");
    assert!(row["why"].as_str().is_some_and(|why| why.starts_with("Files are counted.")), "{row}");
    assert_eq!((&row["kind"], &row["always"]), (&"permission".into(), &Value::Null), "{row}");
    row
}

#[test]
fn opencode_serving_waits_with_what_the_guard_wants_asked() {
    isolated(|| {
        let times = rounds();
        let script = Script::by(move |request| match request.results().len() + 1 {
            number if number <= 2 * times => Step::shell(format!("touch made-{number}")),
            _ => Step::say("finished"),
        });
        let stage = stage("", script);
        let Some(user) = InboxUser::new(&stage) else { return };
        let (server, session) = session(&stage);
        prompt(&server, &session, "please begin");
        user.answers_in_turns("opencode", |file| held(&user, &format!("bash: touch {file}")));
        stage.is_in_state("idle");
        assert!(user.inbox().is_empty(), "{:?}", user.inbox());
        stage.nothing_unknown();
    });
}

/// A command that runs for long is said to run, a yes is none for what OpenCode asks itself, and a
/// no needs no words.
#[test]
fn opencode_goes_on_with_a_held_call_as_if_the_rule_had_said_nothing() {
    isolated(|| {
        let stage = stage("", Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let server = Server::start(&stage.opencode().asking());
        let session = server.session();
        prompt(&server, &session, "something LONG");
        let what = format!("bash: touch long; {UNTIL_TOLD}");
        let first = held(&user, &what);
        user.approve(&first).took_effect();
        let own = wait::poll(LIMIT, || {
            user.inbox().into_iter().find(|row| row["state"] == "waiting" && row["always"].is_string())
        });
        let own =
            own.unwrap_or_else(|| panic!("it did not ask itself: {:?}{}", user.inbox(), stage.trouble()));
        assert_ne!(own["id"], first["id"]);
        assert!(!stage.sandbox.project().join("long").exists(), "it ran before it was allowed");
        user.approve_until(id(&own), "long");
        user.is_empty();
        stage.is_in_state("busy");
        end_tools(&stage);
        stage.is_in_state("idle");

        prompt(&server, &session, "please");
        user.person(&["deny", id(&held(&user, "bash: touch one"))]).took_effect();
        stage.request(|request| request.shows("the person said no"));
        stage.is_in_state("idle");
        assert!(!stage.sandbox.project().join("one").exists(), "denied, and made");
    });
}

/// A tool that shows nothing until it ends is known to run by its state, and a file is not written
/// before the yes.
#[test]
fn opencode_holds_any_tool_and_a_silent_one_is_said_to_run() {
    isolated(|| {
        let script =
            Script::by(|request| match (request.results().len(), request.word_after("your peer is ")) {
                (0, Some(peer)) => Step::mcp(
                    "baton",
                    "ask_peer",
                    json!({"to": peer, "body": "which port?", "timeout": "100s"}),
                ),
                (0, None) => Step::write("made.txt", "made"),
                _ => Step::say("finished"),
            });
        let stage = stage("", script);
        stage.configure(&format!(
            "wake = \"off\"\n{}",
            RULE.replace("command = \"touch **\"", "tool = [\"baton_ask_peer\", \"write\"]")
        ));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (server, session) = session(&stage);
        let held = |tool: &str| {
            let row = wait::poll(LIMIT, || {
                user.inbox().into_iter().find(|row| row["state"] == "waiting" && row["tool"] == tool)
            });
            row.unwrap_or_else(|| panic!("{tool} is not held: {:?}{}", user.inbox(), stage.trouble()))
        };
        prompt(&server, &session, "please write");
        let row = held("write");
        assert!(row["detail"].as_str().is_some_and(|all| all.contains("content: made")), "{row}");
        assert!(row["paths"][0].as_str().is_some_and(|path| path.ends_with("made.txt")), "{row}");
        user.approve_until(id(&row), "made.txt");
        stage.is_in_state("idle");

        let peer = server.session();
        prompt(&server, &session, &format!("your peer is {peer}"));
        user.approve(&held("baton_ask_peer")).took_effect();
        assert!(user.inbox().is_empty(), "{:?}", user.inbox());
        let asked = || stage.json(&["mail"]).to_string().contains("which port?");
        assert!(wait::until(LIMIT, asked), "it did not run{}", stage.trouble());
        server.call("POST", &format!("/session/{session}/abort"), &json!({}));
        stage.is_in_state("idle");
    });
}

#[test]
fn opencode_is_refused_what_gets_no_answer_in_time() {
    isolated(|| {
        let stage = stage("[approvals]\nhold = \"2s\"", Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (server, session) = session(&stage);
        prompt(&server, &session, "please");
        let row = held(&user, "bash: touch one");
        let told = stage.request(|request| request.shows(UNDECIDED));
        assert!(told.shows("Files are counted."), "{}", stage.trouble());
        user.is_empty();
        user.person(&["approve", id(&row)]).was_refused("already-answered");
        stage.is_in_state("idle");
        assert!(!stage.sandbox.project().join("one").exists(), "nobody was asked, and it ran");
    });
}

#[test]
fn opencode_aborted_while_a_call_is_held_takes_no_answer() {
    isolated(|| {
        let stage = stage("", Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (mut server, session) = session(&stage);
        let made = |name: &str| stage.sandbox.project().join(name).exists();
        for (text, file) in [("please", "one"), ("DELEGATE it", "by-the-child")] {
            prompt(&server, &session, text);
            let row = held(&user, &format!("bash: touch {file}"));
            server.call("POST", &format!("/session/{session}/abort"), &json!({}));
            user.is_empty();
            user.person(&["approve", id(&row)]).was_refused("already-answered");
            stage.is_in_state("idle");
            assert!(!made(file), "aborted, and made");
        }
        // Around the moment of an abort: what is said not to have been heard has not run.
        for round in 0..3 * rounds() {
            fs::remove_file(stage.sandbox.project().join("one")).ok();
            prompt(&server, &session, "please");
            let row = held(&user, "bash: touch one");
            let answer = std::thread::scope(|scope| {
                let answer = scope.spawn(|| user.approve(&row));
                std::thread::sleep(APART * u32::try_from(round % 12).unwrap_or_default());
                server.call("POST", &format!("/session/{session}/abort"), &json!({}));
                answer.join().expect("an answer")
            });
            user.is_empty();
            stage.is_in_state("idle");
            assert!(answer.code == Some(0) || !made("one"), "round {round}: {answer:?}");
        }
        fs::remove_file(stage.sandbox.project().join("one")).ok();
        prompt(&server, &session, "please");
        let row = held(&user, "bash: touch one");
        server.running().kill();
        user.person(&["approve", id(&row)]).was_refused("asker-gone");
        user.is_empty();
        assert!(!made("one"));
    });
}

#[test]
fn opencode_holds_a_call_though_its_link_is_killed() {
    isolated(|| {
        let stage = stage("", Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (server, session) = session(&stage);
        prompt(&server, &session, "please");
        let first = held(&user, "bash: touch one");
        let [link] = links(&stage)[..] else { panic!("one link: {:?}", links(&stage)) };
        stage.sandbox.run(stage.sandbox.command("kill").args(["-9", &link.to_string()]), LIMIT).expect_ok();
        let row = wait::poll(LIMIT, || {
            user.inbox().into_iter().find(|row| row["state"] == "waiting" && row["id"] != first["id"])
        });
        let row = row.unwrap_or_else(|| panic!("nobody holds it: {:?}{}", user.inbox(), stage.trouble()));
        assert_eq!(row["why"], first["why"]);
        user.person(&["approve", id(&first)]).was_refused("already-answered");
        user.approve_until(id(&row), "one");
        stage.is_in_state("idle");
    });
}

#[test]
fn opencode_holds_two_calls_at_once_and_each_has_its_own_answer() {
    isolated(|| {
        let stage = stage("", Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (server, session) = session(&stage);
        for (yes, no) in [("first", "second"), ("second", "first")] {
            fs::remove_file(stage.sandbox.project().join("first")).ok();
            fs::remove_file(stage.sandbox.project().join("second")).ok();
            prompt(&server, &session, &format!("TWO of them, {yes} is fine"));
            let rows = [yes, no].map(|name| held(&user, &format!("bash: touch {name}")));
            let why = format!("not the {no} one");
            user.person(&["deny", id(&rows[1]), "--reason", &why]).took_effect();
            user.approve_until(id(&rows[0]), yes);
            stage.request(|request| request.shows(&why));
            stage.is_in_state("idle");
            assert!(!stage.sandbox.project().join(no).exists(), "denied, and made");
        }
        user.is_empty();
    });
}

#[test]
fn opencode_in_a_terminal_holds_a_call_only_while_a_person_watches() {
    isolated(|| {
        let stage = stage("", Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let terminal = stage.opencode().open(Session::New);
        let made = || stage.sandbox.project().join("one").exists();
        submit(&stage, &terminal, "please");
        stage.request(|request| request.shows(UNDECIDED));
        let trail = stage.baton(&["log"]).stdout;
        assert!(!trail.contains("approval-asked"), "nobody is there to be asked: {trail}");
        stage.is_in_state("idle");

        let _watcher = user.start(&["approvals", "--watch"]);
        // The watch begins with what waits; until then it has no effect.
        let watched = || stage.sandbox.path("home/.local/share/baton/bell/approvals.watched").exists();
        assert!(wait::until(LIMIT, watched), "nobody watches");
        submit(&stage, &terminal, "again please");
        let row = held(&user, "bash: touch one");
        assert!(!made());
        user.approve_until(id(&row), "one");
        stage.is_in_state("idle");

        // The person takes the turn back.
        fs::remove_file(stage.sandbox.project().join("one")).ok();
        submit(&stage, &terminal, "once more please");
        let row = held(&user, "bash: touch one");
        press_until(&terminal, &["Escape", "Escape"], |_| user.inbox().is_empty());
        user.person(&["approve", id(&row)]).was_refused("already-answered");
        stage.is_in_state("idle");
        assert!(!made(), "taken back, and made");
    });
}
