//! Waking (M14): once for any number of senders, never where it is not wanted, tried again where it
//! failed, and told to the sender where it can't be done.
//!
//! Another process represents an idle Claude Code: it is in the registry, and listens at the socket
//! that is named there.

use crate::processes::Shepherd;
use crate::puppet::{Puppet, Style};
use crate::world::{Done, World, run};
use baton_testkit::wait;
use serde_json::json;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SESSION: &str = "5e55104a-0000-4000-8000-000000000001";
/// The line of older versions, which is recognised too.
const LINE: &str = "[baton] Mail is waiting for you.";
const LIMIT: Duration = wait::HANG;

/// Names the socket for [`stands_for_the_agent`].
const INBOX: &str = "BATON_TEST_INBOX";

/// Not a test: another process of this program, which represents the agent, and records what comes
/// to its inbox.
#[test]
fn stands_for_the_agent() {
    let Some(inbox) = std::env::var_os(INBOX) else { return };
    let listener = UnixListener::bind(&inbox).unwrap();
    // Its hooks run below it.
    std::thread::spawn(|| {
        for order in std::io::stdin().lines() {
            Command::new("sh").arg(order.unwrap()).status().unwrap();
        }
    });
    let written = Path::new(&inbox).with_extension("lines");
    for stream in listener.incoming() {
        let mut text = String::new();
        stream.unwrap().read_to_string(&mut text).unwrap();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&written).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

struct Idle {
    world: World,
    agent: Shepherd,
    read: std::cell::Cell<usize>,
}

impl Idle {
    fn new() -> Idle {
        let world = World::talkative();
        let inbox = world.path("inbox.sock");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "wake::stands_for_the_agent", "--nocapture"])
            .env(INBOX, &inbox)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let agent = Shepherd::of(&world, &mut command);
        assert!(wait::until(LIMIT, || inbox.exists()), "it listens");
        let idle = Idle { world, agent, read: 0.into() };
        let config = idle.world.path("user/.claude");
        fs::create_dir_all(config.join("sessions")).unwrap();
        fs::create_dir_all(config.join("projects/p")).unwrap();
        fs::write(idle.transcript(), "").unwrap();
        idle.register("idle");
        idle.hook(json!({"hook_event_name": "SessionStart", "source": "startup"}));
        idle.hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello", "prompt_id": "p1"}));
        idle.hook(json!({"hook_event_name": "Stop", "prompt_id": "p1"}));
        idle
    }

    fn transcript(&self) -> PathBuf {
        self.world.path(format!("user/.claude/projects/p/{SESSION}.jsonl"))
    }

    fn register(&self, status: &str) {
        self.register_as(SESSION, &self.world.path("inbox.sock"), status);
    }

    fn register_as(&self, session: &str, inbox: &Path, status: &str) {
        let entry = json!({"pid": self.agent.pid(), "sessionId": session, "messagingSocketPath": inbox, "status": status});
        fs::write(
            self.world.path(format!("user/.claude/sessions/{}.json", self.agent.pid())),
            entry.to_string(),
        )
        .unwrap();
    }

    fn hook(&self, mut payload: serde_json::Value) -> String {
        payload["session_id"] = json!(SESSION);
        payload["transcript_path"] = json!(self.transcript());
        payload["cwd"] = json!(self.world.project());
        let mut command = self.world.baton(&["hook", "claude"]);
        command.env("CLAUDE_PID", self.agent.pid().to_string());
        self.agent.run(&command, payload.to_string().as_bytes()).expect(0).stdout
    }

    /// The lines that have come since the last look. A sender has written before it ends, so the
    /// moment that the other process needs is all there is to wait for.
    fn woken(&self) -> Vec<String> {
        std::thread::sleep(Duration::from_millis(300));
        let text = fs::read_to_string(self.world.path("inbox.lines")).unwrap_or_default();
        let lines: Vec<String> = text.lines().skip(self.read.get()).map(str::to_owned).collect();
        self.read.set(self.read.get() + lines.len());
        lines
    }

    fn name(&self) -> String {
        self.world.who(SESSION)["name"].as_str().unwrap().to_owned()
    }

    fn send(&self, more: &[&str]) -> String {
        let name = self.name();
        let arguments = [&["send", &name, "hello", "--json"], more].concat();
        self.world.script(&arguments).expect(0).json()["wake"].as_str().unwrap().to_owned()
    }

    fn last(&self) -> serde_json::Value {
        self.world.who(SESSION)["last_wake"].clone()
    }

    /// The session's prompt hook at our line; what it answers.
    fn takes_the_line(&self, turn: &str) -> String {
        self.hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": LINE, "prompt_id": turn}))
    }
}

#[test]
fn m14_many_senders_at_one_instant_wake_once() {
    let idle = Idle::new();
    let name = idle.name();
    let senders: Vec<_> =
        (0..8).map(|n| idle.world.as_script(&["send", &name, &format!("hello {n}"), "--json"])).collect();
    let outcomes: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = senders.into_iter().map(|command| scope.spawn(|| run(command, b""))).collect();
        let done: Vec<Done> = running.into_iter().map(|sender| sender.join().unwrap()).collect();
        done.into_iter().map(|done| done.expect(0).json()["wake"].as_str().unwrap().to_owned()).collect()
    });
    let lines = idle.woken();
    assert_eq!(lines.len(), 1, "{lines:?} {outcomes:?}");
    let names_the_sender = lines[0].contains(" from script ") && lines[0].contains(" waiting for you.");
    assert!(names_the_sender, "{lines:?}");
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "pushed").count(), 1, "{outcomes:?}");
    assert!(idle.takes_the_line("p2").contains("hello 7"), "one prompt brings all of it");
    assert_eq!(idle.last()["outcome"], "confirmed");
    assert_eq!(idle.last()["route"], "socket");
}

impl Idle {
    /// A turn that takes the line, answers it and ends: what the line brought is in the transcript.
    fn takes_a_turn(&self, turn: &str) -> String {
        let brought = self.takes_the_line(turn);
        self.answers(turn, &brought);
        self.hook(json!({"hook_event_name": "Stop", "prompt_id": turn}));
        brought
    }

    /// The model answers with what a prompt hook has brought, as Claude Code writes it down.
    fn answers(&self, turn: &str, brought: &str) {
        let answer: serde_json::Value = serde_json::from_str(brought).unwrap();
        let context = &answer["hookSpecificOutput"]["additionalContext"];
        assert!(context.is_string(), "{answer}");
        let lines = [
            json!({"type": "user", "uuid": format!("{turn}-u"), "promptId": turn, "message": {"role": "user", "content": LINE}}),
            json!({"type": "attachment", "uuid": format!("{turn}-h"), "parentUuid": format!("{turn}-u"), "attachment": {"type": "hook_additional_context", "hookEvent": "UserPromptSubmit", "content": [context]}}),
            json!({"type": "assistant", "uuid": format!("{turn}-a"), "parentUuid": format!("{turn}-h"), "message": {"id": turn, "role": "assistant", "content": [{"type": "text", "text": "fine"}]}}),
        ];
        let mut file = fs::OpenOptions::new().append(true).open(self.transcript()).unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
    }

    /// Waits for the next line in the inbox.
    fn is_woken(&self) -> bool {
        wait::until(LIMIT, || !self.woken().is_empty())
    }
}

/// The session has no MCP server here. Its turn is over within a second of its wake.
#[test]
fn m14_mail_right_after_a_short_turn_wakes_again() {
    let idle = Idle::new();
    for round in 0..5 {
        idle.send(&[]);
        assert!(idle.is_woken(), "round {round}: {}", idle.last());
        let brought = idle.takes_a_turn(&format!("t{round}"));
        assert!(brought.contains("| hello"), "round {round}: {brought}");
    }
}

/// Esc ends a turn without an event. Only the agent's registry tells.
#[test]
fn m14_mail_for_a_turn_that_ends_without_an_event_is_followed() {
    let idle = Idle::new();
    idle.hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": "work", "prompt_id": "p2"}));
    idle.register("busy");
    assert_eq!(idle.send(&[]), "pending_turn_end");
    assert_eq!(idle.woken(), Vec::<String>::new());
    idle.register("idle");
    assert!(idle.is_woken(), "{}", idle.last());
    // So does mail at a dialog that its person dismisses.
    assert!(idle.takes_a_turn("p3").contains("| hello"));
    idle.register("waiting");
    assert_eq!(idle.send(&[]), "skipped_dialog");
    assert_eq!(idle.woken(), Vec::<String>::new());
    idle.register("idle");
    assert!(idle.is_woken(), "{}", idle.last());
}

/// Mail may come after the stop hook has looked, while the registry still calls the session busy.
#[test]
fn m14_mail_between_the_stop_and_the_idle_session_is_followed() {
    let idle = Idle::new();
    idle.register("busy");
    assert_eq!(idle.send(&[]), "pending_turn_end", "its turn has just had its last event");
    idle.register("idle");
    assert!(idle.is_woken(), "{}", idle.last());
}

#[test]
fn m14_a_wake_whose_sender_was_killed_is_made_at_the_next_event() {
    let idle = Idle::new();
    idle.register("busy");
    let name = idle.name();
    // Killed at its first fork: the mail is accepted, and no process follows it.
    idle.world.script(&["send", &name, "hello", "--wake", "off", "--json"]).expect(0);
    let store = rusqlite::Connection::open(idle.world.home().join("baton.db")).unwrap();
    store.execute("UPDATE message SET attention = 0", []).unwrap();
    idle.register("idle");
    assert_eq!(idle.woken(), Vec::<String>::new());
    idle.hook(json!({"hook_event_name": "Notification", "notification_type": "idle_prompt", "message": "Claude is waiting for your input"}));
    assert!(idle.is_woken(), "{}", idle.last());
}

#[test]
fn doctor_names_an_idle_session_whose_mail_waits() {
    let idle = Idle::new();
    let name = idle.name();
    idle.world.script(&["send", &name, "hello", "--wake", "off", "--json"]).expect(0);
    let wake = || {
        let checks = idle.world.script(&["doctor", "--json"]).json();
        let found = checks.as_array().unwrap().iter().find(|check| check["check"] == "wake").cloned();
        found.unwrap_or_else(|| panic!("{checks}"))
    };
    assert_eq!(wake()["verdict"], "pass", "quiet mail may wait");
    let store = rusqlite::Connection::open(idle.world.home().join("baton.db")).unwrap();
    store.execute("UPDATE message SET attention = 0", []).unwrap();
    assert_eq!(wake()["verdict"], "pass", "its sender may still be about to wake it");
    store.execute("UPDATE message SET sent_at = sent_at - 3600000", []).unwrap();
    let check = wake();
    assert_eq!(check["verdict"], "warn", "{check}");
    assert!(check["hint"].as_str().unwrap().contains(&format!("baton wake {name}")), "{check}");
    idle.register("busy");
    assert_eq!(wake()["verdict"], "pass", "its turn brings it");
}

#[test]
fn m14_off_means_off_everywhere() {
    let idle = Idle::new();
    assert_eq!(idle.send(&["--wake", "off"]), "skipped_disabled");
    idle.register("busy");
    assert_eq!(idle.send(&[]), "pending_turn_end", "its registry wins");
    idle.register("waiting");
    assert_eq!(idle.send(&[]), "skipped_dialog");
    idle.world.configure("wake = \"off\"\n");
    idle.register("idle");
    assert_eq!(idle.send(&[]), "skipped_disabled");
    if idle.world.has_person() {
        let name = idle.name();
        idle.world.person(&["wake", &name, "--off"]).expect(0);
        idle.world.configure("");
        assert_eq!(idle.send(&[]), "skipped_disabled");
        idle.world.person(&["dnd", "on", &name]).expect(0);
        idle.world.person(&["wake", &name, "--on"]).expect(0);
        assert_eq!(idle.send(&[]), "skipped_dnd");
        assert!(idle.takes_the_line("p2").contains("taken meanwhile"), "nothing comes with a prompt either");
        idle.world.person(&["send", &name, "it burns", "--urgent"]).expect(0);
        assert_eq!(idle.woken().len(), 1, "urgent mail passes");
        let brought = idle.takes_the_line("p3");
        assert!(brought.contains("it burns") && !brought.contains("| hello"), "{brought}");
        idle.hook(json!({"hook_event_name": "Stop", "prompt_id": "p3"}));
    }
    assert_eq!(idle.woken(), Vec::<String>::new());
    let refused = idle.world.script(&["send", &idle.name(), "it burns", "--urgent", "--json"]);
    refused.expect_error(3, "not-a-person");
    idle.world.script(&["dnd", "until", "yesterday", "--json"]).expect_error(64, "bad-duration");
    idle.world.script(&["wake", "nobody", "--json"]).expect_error(1, "unknown-recipient");
}

#[test]
fn m14_a_line_that_finds_nothing_is_swallowed_and_begins_no_turn() {
    let idle = Idle::new();
    let answer: serde_json::Value = serde_json::from_str(&idle.takes_the_line("p2")).unwrap();
    assert_eq!(answer["decision"], "block");
    assert_eq!(idle.world.who(SESSION)["state"], "idle");
    let typed = idle.hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": format!("{LINE} What is that?"), "prompt_id": "p3"}));
    assert_eq!(typed, "", "a person may quote it");
}

#[test]
fn m14_a_wake_is_no_turn_of_a_person() {
    let idle = Idle::new();
    let before = idle.world.script(&["log", "--json"]).stdout;
    assert!(!before.contains("budget"));
    idle.send(&[]);
    assert!(idle.takes_the_line("p2").contains("hello"));
    // What counts the hops of a chain is a person's turn; see m17.
    let again = idle.takes_the_line("p2");
    assert!(!again.contains("| hello"), "a second hook of the same line brings nothing twice: {again}");
}

#[test]
fn m14_an_inbox_that_does_not_answer_is_tried_again_and_then_the_sender_is_told() {
    let idle = Idle::new();
    let name = idle.name();
    let sender = Puppet::start(&idle.world, Style::Claude, "sender");
    idle.register_as(SESSION, &idle.world.path("nobody.sock"), "idle");
    let sent = sender.shell(&["send", &name, "are you there?", "--json"]).expect(0).json();
    assert_eq!(sent["wake"], "no_route", "its socket is named, but nobody listens");
    let last = idle.last();
    assert!(last["detail"].as_str().unwrap().contains("does not answer"), "{last}");
    // Two more tries, each a second after the one before; then it is given up, and said once.
    let given_up = wait::poll(LIMIT, || {
        let outcome = idle.world.script(&["wake", &name, "--json"]).json()["outcome"].clone();
        (outcome == "unconfirmed").then_some(())
    });
    assert!(given_up.is_some(), "{}", idle.last());
    idle.world.script(&["wake", &name, "--json"]).expect(0);
    assert_eq!(idle.last()["outcome"], "unconfirmed");
    let told = sender.shell(&["inbox", "--peek", "--json"]).expect(0).json();
    let told = told.as_array().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0]["body"].as_str().unwrap().contains("could not be woken"), "{told:?}");
    // New mail is a new reason.
    idle.register("idle");
    assert_eq!(idle.send(&[]), "pushed");
    assert_eq!(idle.woken().len(), 1);
}

#[test]
fn m14_the_inbox_of_another_session_or_process_gets_nothing() {
    let idle = Idle::new();
    idle.register_as("another", &idle.world.path("inbox.sock"), "idle");
    assert_eq!(idle.send(&[]), "no_route", "the registry names another session");
    let stranger = idle.world.path("stranger.sock");
    let _listener = UnixListener::bind(&stranger).unwrap();
    idle.register_as(SESSION, &stranger, "idle");
    assert_eq!(idle.send(&[]), "no_route");
    assert!(idle.last()["detail"].as_str().unwrap().contains("another process"), "{}", idle.last());
    assert_eq!(idle.woken(), Vec::<String>::new());
}
