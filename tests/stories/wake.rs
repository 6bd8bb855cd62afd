//! An idle session notices its mail: by its agent's own inbox, by a hook that waits in its background, by the agent's queue.

use crate::stage::{LIMIT, Stage, rounds};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::faults::{self, KillPoint};
use baton_testkit::tmux::Tmux;
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::{Value, json};

/// What a session is woken with.
const LINE: &str = "[baton] Mail is waiting for you.";

/// An agent in a terminal that has answered once and is idle now.
fn idle<'a>(stage: &'a Stage, agent: Agent, open: impl FnOnce() -> Tmux<'a>) -> (Tmux<'a>, String) {
    let terminal = open();
    terminal.submit("first words");
    stage.request(|request| request.shows("first words"));
    let name = stage.name_of(agent);
    is_in_state(stage, &name, "idle");
    (terminal, name)
}

fn is_in_state(stage: &Stage, name: &str, state: &str) {
    let is = wait::poll(LIMIT, || (of(stage, name)["state"] == state).then_some(()));
    assert!(is.is_some(), "{name} is {} and not {state}: {}", of(stage, name), stage.trouble());
}

fn of(stage: &Stage, name: &str) -> Value {
    let who = stage.json(&["who", "--all"]);
    let found = who.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == name).cloned());
    found.unwrap_or(Value::Null)
}

/// Sends to an idle session and sees it woken by that route, the mail in its model's request, and the draft of its person untouched.
fn woken(stage: &Stage, terminal: &Tmux<'_>, name: &str, route: &str) {
    assert_eq!(of(stage, name)["wake_routes"][0], route, "{}", of(stage, name));
    for round in 0..rounds().max(2) {
        // Typed once, it stays.
        let draft = if round == 0 { "" } else { "half a sentence" };
        if round == 1 {
            terminal.type_text(draft);
        }
        let body = format!("WAKE-{route}-{round}");
        let sent = stage.json(&["send", name, &body]);
        // Right after another wake it is left to the server of the session, which looks a moment later.
        let expected = ["pushed", "skipped_debounced"];
        assert!(expected.contains(&sent["wake"].as_str().unwrap_or_default()), "{sent} {}", stage.trouble());
        stage.request(|request| request.shows(&body));
        assert_eq!(stage.end_of(&body), "seen", "{}", stage.trouble());
        stage.shown_once(&body);
        is_in_state(stage, name, "idle");
        let last = &of(stage, name)["last_wake"];
        assert_eq!(
            (&last["route"], &last["outcome"]),
            (&route.into(), &"confirmed".into()),
            "{}",
            stage.trouble()
        );
        assert!(terminal.screen().contains(draft), "the draft is gone: {}", terminal.screen());
    }
}

#[test]
fn an_idle_claude_session_is_woken_through_its_inbox() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (terminal, name) =
            idle(&stage, Agent::Claude, || stage.claude().asking().open("claude", Session::New));
        woken(&stage, &terminal, &name, "socket");
    });
}

#[test]
fn a_claude_session_that_bypasses_permissions_is_woken_by_a_hook_in_its_background() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Claude, || stage.claude().open("claude", Session::New));
        woken(&stage, &terminal, &name, "waiter");
    });
}

#[test]
fn an_idle_codex_thread_is_woken_through_its_queue() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Codex], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Codex, || stage.open(Agent::Codex, Session::New));
        woken(&stage, &terminal, &name, "queue");
    });
}

#[test]
fn an_idle_gemini_session_is_woken_in_its_terminal() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Gemini], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Gemini, || stage.open(Agent::Gemini, Session::New));
        for round in 0..rounds().max(2) {
            let body = format!("TYPED-{round}.");
            let sent = stage.json(&["send", &name, &body]);
            // While its last hooks still run its screen is not what it will be; then it is tried again.
            let expected = ["typed", "skipped_debounced", "skipped_busy", "skipped_draft", "no_route"];
            assert!(
                expected.contains(&sent["wake"].as_str().unwrap_or_default()),
                "{sent} {}",
                terminal.screen()
            );
            stage.request(|request| request.shows(&body));
            assert_eq!(stage.end_of(&body), "seen", "{}", stage.trouble());
            stage.shown_once(&body);
            is_in_state(&stage, &name, "idle");
        }
        // What its person is typing is left alone, and sent by nobody.
        terminal.type_text("half a sentence");
        let sent = stage.json(&["send", &name, "WHILE-TYPING"]);
        assert!(
            ["skipped_draft", "skipped_debounced"].contains(&sent["wake"].as_str().unwrap_or_default()),
            "{sent}"
        );
        assert!(terminal.screen().contains("half a sentence"), "{}", terminal.screen());
        terminal.press(&["Enter"]);
        stage.request(|request| request.shows("half a sentence") && request.shows("WHILE-TYPING"));
        stage.shown_once("WHILE-TYPING");
    });
}

/// A dialog that waits for the person's yes. Wakes must not answer it, and the mail comes once it is closed.
fn a_dialog_is_left_alone<'a>(
    stage: &'a Stage,
    agent: Agent,
    question: &str,
    open: impl FnOnce() -> Tmux<'a>,
) {
    let terminal = open();
    terminal.submit("please run it");
    terminal.wait_for(question, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let name = stage.name_of(agent);
    is_in_state(stage, &name, "blocked");
    let bodies: Vec<String> = (0..20).map(|n| format!("MAIL-AT-THE-DIALOG-{n}.")).collect();
    for body in &bodies {
        assert_eq!(stage.json(&["send", &name, body])["wake"], "skipped_dialog", "{}", stage.trouble());
    }
    assert_eq!(stage.json(&["wake", &name])["outcome"], "skipped_dialog");
    assert!(terminal.screen().contains(question), "{}", terminal.screen());
    assert!(!stage.sandbox.path("project/approved.txt").exists(), "a wake approved it");
    // The dialog ignores keys that come right with it.
    let closed = wait::until(LIMIT, || {
        terminal.press(&["Escape"]);
        std::thread::sleep(std::time::Duration::from_millis(300));
        !terminal.screen().contains(question)
    });
    assert!(closed, "{}", terminal.screen());
    // Nobody types anything now: the server of the session notices that it is idle, and that mail waits.
    for body in &bodies {
        stage.request(|request| request.shows(body));
        stage.shown_once(body);
    }
    assert!(!stage.sandbox.path("project/approved.txt").exists());
}

fn asks_first() -> Script {
    Script::by(|request| {
        if request.shows("MAIL-AT-THE-DIALOG") || !request.results().is_empty() {
            Step::say("fine")
        } else {
            match request.agent {
                // Outside its sandbox, which is what it asks about.
                Agent::Codex => Step::tool(
                    "exec_command",
                    json!({"cmd": "touch approved.txt", "sandbox_permissions": "require_escalated", "justification": "It is needed."}),
                ),
                _ => Step::shell("touch approved.txt"),
            }
        }
    })
}

#[test]
fn a_dialog_of_claude_is_left_alone_and_the_mail_comes_once_it_is_closed() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Claude], asks_first());
        a_dialog_is_left_alone(&stage, Agent::Claude, "Do you want", || {
            stage.claude().asking().open("claude", Session::New)
        });
    });
}

#[test]
fn a_dialog_of_codex_is_left_alone_and_the_mail_comes_once_it_is_closed() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Codex], asks_first());
        a_dialog_is_left_alone(&stage, Agent::Codex, "Would you like to", || {
            stage.codex().asking().open("codex", Session::New)
        });
    });
}

#[test]
fn fifty_messages_of_one_second_are_one_wake_and_come_once_each() {
    isolated(|| {
        let slow = std::time::Duration::from_secs(3);
        let stage = Stage::with(&[Agent::Claude], Script::by(move |_| Step::say("fine").after(slow)));
        let (_terminal, name) = idle(&stage, Agent::Claude, || stage.claude().open("claude", Session::New));
        let bodies: Vec<String> = (0..50).map(|n| format!("ONE-OF-FIFTY-{n}.")).collect();
        for body in &bodies {
            stage.send(&name, body);
        }
        for body in &bodies {
            stage.request(|request| request.shows(body));
            assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
            stage.shown_once(body);
        }
        let requests = stage.model.requests();
        let wakes = requests.last().map_or(0, |last| last.count(LINE));
        assert_eq!(wakes, 1, "{}", stage.trouble());
    });
}

#[test]
fn a_wake_whose_sender_was_killed_is_made_up_for() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (_terminal, name) =
            idle(&stage, Agent::Claude, || stage.claude().asking().open("claude", Session::New));
        let mut send = stage.sandbox.command(stage.sandbox.path("bin/baton"));
        send.args(["send", &name, "ITS-SENDER-WAS-KILLED"]);
        // The first connection is that to the inbox: the mail is accepted, the wake claimed, and not performed.
        let point = KillPoint { syscall: "connect".to_owned(), nth: 1 };
        assert!(faults::run_killed_at(&send, b"", &point).killed);
        assert_eq!(stage.state_of("ITS-SENDER-WAS-KILLED"), "queued");
        let request = stage.request(|request| request.shows("ITS-SENDER-WAS-KILLED"));
        assert_eq!(stage.end_of("ITS-SENDER-WAS-KILLED"), "seen", "{}", stage.trouble());
        assert_eq!(request.count("ITS-SENDER-WAS-KILLED"), 1);
    });
}

#[test]
fn whoever_does_not_want_to_be_disturbed_gets_urgent_mail_only() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Claude, || stage.claude().open("claude", Session::New));
        let refused = stage.baton(&["wake", &name, "--off"]);
        assert!(refused.stderr.contains("only the person"), "a script is not the person: {refused:?}");
        terminal.submit("! baton dnd on");
        let quiet = wait::poll(LIMIT, || (of(&stage, &name)["wake"] == "skipped_dnd").then_some(()));
        assert!(quiet.is_some(), "{} {}", of(&stage, &name), terminal.screen());
        assert_eq!(stage.json(&["send", &name, "CAN-WAIT"])["wake"], "skipped_dnd");
        terminal.submit("second words");
        stage.request(|request| request.shows("second words"));
        is_in_state(&stage, &name, "idle");
        assert_eq!(stage.state_of("CAN-WAIT"), "queued", "not with a prompt either");
        terminal.submit("! baton dnd off");
        stage.request(|request| request.shows("CAN-WAIT"));
        stage.shown_once("CAN-WAIT");
    });
}
