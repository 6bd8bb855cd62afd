//! An idle session notices its mail: by its agent's own inbox, by a hook that waits in its
//! background, by the agent's queue, by a plugin of ours, in its terminal.
//!
//! The name of each story begins with that of its agent, by which `scripts/test --agent` finds it.

use crate::copilot::idle::pushing;
use crate::manual_wake;
use crate::sandbox::{LIMIT, StorySandbox, press_until, rounds, screen_of, submit, wait_for_screen};
use crate::sync_points::Barrier;
use baton_agents::Screen;
use baton_testkit::agents::{Agent, Program as _, Session};
use baton_testkit::copilot::Copilot;
use baton_testkit::faults::{self, KillPoint};
use baton_testkit::gemini::Gemini;
use baton_testkit::tmux::Tmux;
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::{Value, json};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The end of every line that wakes a session.
const LINE_END: &str = " waiting for you.";
/// No session is woken twice within a second.
const DEBOUNCE: Duration = Duration::from_millis(1_100);

/// An agent in a terminal that has answered once and is idle now.
fn idle<'a>(stage: &'a StorySandbox, agent: Agent, open: impl FnOnce() -> Tmux<'a>) -> (Tmux<'a>, String) {
    let terminal = open();
    submit(&terminal, agent, "first words");
    stage.request(|request| request.shows("first words"));
    let name = stage.name_of(agent);
    is_in_state(stage, &name, "idle");
    (terminal, name)
}

fn is_in_state(stage: &StorySandbox, name: &str, state: &str) {
    let is = wait::poll(LIMIT, || (of(stage, name)["state"] == state).then_some(()));
    assert!(is.is_some(), "{name} is {} and not {state}: {}", of(stage, name), stage.trouble());
}

fn of(stage: &StorySandbox, name: &str) -> Value {
    let who = stage.json(&["who", "--all"]);
    let found = who.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == name).cloned());
    found.unwrap_or(Value::Null)
}

/// Sends to an idle session and sees it woken by that route, the mail in its model's request, and
/// the draft of its person untouched. With many rounds also how long that takes, and in turns how
/// long the bare route takes, where that can be used by hand.
fn woken(stage: &StorySandbox, terminal: &Tmux<'_>, name: &str, route: &str, by_hand: Option<&dyn Fn(&str)>) {
    let timed = rounds() >= 20;
    let (mut took, mut bare) = (Vec::new(), Vec::new());
    for round in 0..rounds().max(2) {
        // Typed once, it stays.
        let draft = if round == 0 { "" } else { "half a sentence" };
        if round == 1 {
            terminal.type_text(draft);
        }
        if timed {
            std::thread::sleep(DEBOUNCE);
        }
        // A hook that waits in the background takes a moment to come back.
        let there = wait::until(LIMIT, || of(stage, name)["wake_routes"][0] == route);
        assert!(there, "{} {}", of(stage, name), stage.trouble());
        let body = format!("WAKE-{route}-{round}.");
        let began = Instant::now();
        let sent = stage.json(&["send", name, &body]);
        // Right after another wake it is left to the server of the session, which looks a moment
        // later.
        let expected = if timed { &["pushed"][..] } else { &["pushed", "skipped_debounced"] };
        assert!(expected.contains(&sent["wake"].as_str().unwrap_or_default()), "{sent} {}", stage.trouble());
        stage.request(|request| request.shows(&body));
        took.push(began.elapsed());
        assert_eq!(stage.end_of(&body), "seen", "{}", stage.trouble());
        stage.shown_once(&body);
        is_in_state(stage, name, "idle");
        // A plugin is its own waker, and writes nothing down.
        if route != "plugin" {
            let last = &of(stage, name)["last_wake"];
            let expected = (&Value::from(route), &Value::from("confirmed"));
            assert_eq!((&last["route"], &last["outcome"]), expected, "{}", stage.trouble());
        }
        assert!(terminal.screen().contains(draft), "the draft is gone: {}", terminal.screen());
        if let Some(by_hand) = by_hand.filter(|_| timed) {
            let text = format!("BY-HAND-{round}.");
            let began = Instant::now();
            by_hand(&text);
            stage.request(|request| request.shows(&text));
            bare.push(began.elapsed());
            is_in_state(stage, name, "idle");
        }
    }
    if !bare.is_empty() {
        let (ours, bare) = (p95(took), p95(bare));
        println!(
            "\n{route}: from send to the model's request, p95 {ours:?}; the bare route by hand {bare:?}"
        );
        assert!(ours <= bare + Duration::from_secs(1), "{ours:?} against {bare:?}");
    }
}

fn p95(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[(times.len() * 95).div_ceil(100) - 1]
}

#[test]
fn claude_is_woken_through_its_inbox() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let claude = stage.claude().asking();
        let (terminal, name) = idle(&stage, Agent::Claude, || claude.open("claude", Session::New));
        let session = of(&stage, &name)["session_id"].as_str().unwrap().to_owned();
        let by_hand = |text: &str| {
            let entry = claude.registry(&session).unwrap();
            let mut inbox = UnixStream::connect(entry["messagingSocketPath"].as_str().unwrap()).unwrap();
            let line = json!({"type": "user", "message": {"role": "user", "content": text}});
            inbox.write_all(format!("{line}\n").as_bytes()).unwrap();
        };
        woken(&stage, &terminal, &name, "socket", Some(&by_hand));
    });
}

#[test]
fn claude_that_bypasses_permissions_is_woken_by_a_hook_in_its_background() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Claude, || stage.claude().open("claude", Session::New));
        woken(&stage, &terminal, &name, "waiter", None);
    });
}

#[test]
fn codex_is_woken_through_its_queue() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Codex], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Codex, || stage.open(Agent::Codex, Session::New));
        let thread = of(&stage, &name)["session_id"].as_str().unwrap().to_owned();
        let by_hand = |text: &str| {
            let mut queue = stage.sandbox.command(stage.sandbox.path("bin/codex"));
            queue.env("CODEX_HOME", stage.sandbox.path("home/.codex"));
            queue.args(["queue", "--thread", &thread, "--message", text]);
            stage.sandbox.run(&mut queue, LIMIT).expect_ok();
        };
        woken(&stage, &terminal, &name, "queue", Some(&by_hand));
    });
}

#[test]
fn codex_whose_terminal_was_closed_is_not_woken() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Codex], Script::by(|_| Step::say("fine")));
        let (terminal, name) =
            idle(&stage, Agent::Codex, || stage.codex().in_daemon().open("codex", Session::New));
        assert_eq!(of(&stage, &name)["pid"], Value::Null, "the daemon runs it, and names nobody");
        assert_eq!(
            stage.json(&["send", &name, "SOMEBODY-IS-THERE"])["wake"],
            "pushed",
            "{}",
            stage.trouble()
        );
        stage.request(|request| request.shows("SOMEBODY-IS-THERE"));
        assert_eq!(stage.end_of("SOMEBODY-IS-THERE"), "seen", "{}", stage.trouble());
        drop(terminal);
        let closed = wait::until(LIMIT, || of(&stage, &name)["wake"] == "no_client");
        assert!(closed, "{}", stage.trouble());
        let asked = stage.model.requests().len();
        assert_eq!(stage.json(&["send", &name, "NOBODY-IS-THERE"])["wake"], "no_client");
        std::thread::sleep(Duration::from_secs(4));
        assert_eq!(stage.model.requests().len(), asked, "no turn began that nobody watches");
        assert_eq!(stage.state_of("NOBODY-IS-THERE"), "queued");
    });
}

#[test]
fn gemini_is_woken_in_its_terminal() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Gemini], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Gemini, || stage.open(Agent::Gemini, Session::New));
        for round in 0..rounds().max(2) {
            let body = format!("TYPED-{round}.");
            let sent = stage.json(&["send", &name, &body]);
            // While its last hooks still run its screen is not what it will be; then it is tried
            // again.
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
        // What its person is typing is left alone, and not sent.
        terminal.type_text("half a sentence");
        wait_for_screen(&terminal, Agent::Gemini, &Screen::Draft("half a sentence".to_owned()));
        let sent = stage.json(&["send", &name, "WHILE-TYPING"]);
        // Under load a hook of before may still run; what its screen shows then is no place to type
        // into either.
        let left_alone = ["skipped_draft", "skipped_debounced", "skipped_busy", "no_route"];
        assert!(left_alone.contains(&sent["wake"].as_str().unwrap_or_default()), "{sent}");
        assert!(terminal.screen().contains("half a sentence"), "{}", terminal.screen());
        terminal.press(&["Enter"]);
        stage.request(|request| request.shows("half a sentence") && request.shows("WHILE-TYPING"));
        stage.shown_once("WHILE-TYPING");
    });
}

/// An idle session that a plugin of ours brings its mail, with the extension beside it that does
/// the same by hand.
fn woken_by_its_plugin(stage: &StorySandbox, agent: Agent) {
    let (terminal, name) = idle(stage, agent, || stage.open(agent, Session::New));
    let session = of(stage, &name)["session_id"].as_str().expect("an id").to_owned();
    woken(stage, &terminal, &name, "plugin", Some(&|text| manual_wake::wake(stage, &session, text)));
    assert_eq!(stage.model.sightings("half a sentence").requests, 0, "the draft was sent");
}

#[test]
fn opencode_is_woken_by_its_plugin() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::OpenCode], Script::by(|_| Step::say("fine")));
        manual_wake::for_opencode(&stage);
        woken_by_its_plugin(&stage, Agent::OpenCode);
    });
}

#[test]
fn pi_is_woken_by_its_extension() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Pi], Script::by(|_| Step::say("fine")));
        manual_wake::for_pi(&stage);
        woken_by_its_plugin(&stage, Agent::Pi);
    });
}

#[test]
fn copilot_is_woken_by_its_extension() {
    isolated(|| {
        let stage = pushing(Script::by(|_| Step::say("fine")));
        manual_wake::for_copilot(&stage);
        woken_by_its_plugin(&stage, Agent::Copilot);
    });
}

/// Wakes while a dialog is open.
const AT_A_DIALOG: usize = 20;

/// A dialog that waits for the person's yes, with a draft behind it. Wakes must not answer it, and
/// the mail comes once it is closed. Pi has no dialogs.
fn a_dialog_is_left_alone<'a>(
    stage: &'a StorySandbox,
    agent: Agent,
    may_ask: &Barrier,
    open: impl FnOnce() -> Tmux<'a>,
) {
    let terminal = open();
    submit(&terminal, agent, "please run it");
    stage.request(|request| request.shows("please run it"));
    // Gemini CLI, and Codex after an Esc, are woken in their terminals, and not where their person
    // is typing.
    let draft = if matches!(agent, Agent::Gemini | Agent::Codex) { "" } else { "half a sentence" };
    terminal.type_text(draft);
    terminal.wait_for(draft, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    may_ask.open();
    wait_for_screen(&terminal, agent, &Screen::Dialog);
    let name = stage.name_of(agent);
    is_in_state(stage, &name, "blocked");
    let requests = stage.model.requests().len();
    let bodies: Vec<String> = (0..AT_A_DIALOG).map(|n| format!("MAIL-AT-THE-DIALOG-{n}.")).collect();
    for body in &bodies {
        assert_eq!(stage.json(&["send", &name, body])["wake"], "skipped_dialog", "{}", stage.trouble());
        assert_eq!(stage.json(&["wake", &name])["outcome"], "skipped_dialog", "{}", stage.trouble());
    }
    assert_eq!(screen_of(&terminal, agent), Screen::Dialog, "{}", terminal.screen());
    assert!(!stage.sandbox.path("project/approved.txt").exists(), "a wake approved it");
    assert_eq!(stage.model.requests().len(), requests, "nothing was asked");
    press_until(&terminal, &["Escape"], |_| screen_of(&terminal, agent) != Screen::Dialog);
    // Nobody types anything now: the server or the plugin of the session notices that it is idle,
    // and that mail waits.
    for body in &bodies {
        stage.request(|request| request.shows(body));
        stage.shown_once(body);
    }
    assert!(!stage.sandbox.path("project/approved.txt").exists());
    terminal.wait_for(draft, LIMIT).unwrap_or_else(|error| panic!("the draft is gone: {error}"));
    assert_eq!(stage.model.sightings("half a sentence").requests, 0, "the draft was sent");
}

/// A model that wants to run something that its agent asks the person about, once the story lets
/// it.
fn asks_first(may_ask: &Barrier) -> Script {
    let may_ask = may_ask.clone();
    Script::by(move |request| {
        if request.shows("MAIL-AT-THE-DIALOG") || !request.results().is_empty() {
            return Step::say("fine");
        }
        may_ask.wait(1);
        match request.agent {
            // Outside its sandbox, which is what it asks about.
            Agent::Codex => Step::tool(
                "exec_command",
                json!({"cmd": "touch approved.txt", "sandbox_permissions": "require_escalated", "justification": "It is needed."}),
            ),
            _ => Step::shell("touch approved.txt"),
        }
    })
}

#[test]
fn claude_at_a_dialog_is_left_alone() {
    isolated(|| {
        let may_ask = Barrier::default();
        let stage = StorySandbox::with(&[Agent::Claude], asks_first(&may_ask));
        let claude = stage.claude().asking();
        a_dialog_is_left_alone(&stage, Agent::Claude, &may_ask, || claude.open("claude", Session::New));
    });
}

#[test]
fn codex_at_a_dialog_is_left_alone() {
    isolated(|| {
        let may_ask = Barrier::default();
        let stage = StorySandbox::with(&[Agent::Codex], asks_first(&may_ask));
        let codex = stage.codex().asking();
        a_dialog_is_left_alone(&stage, Agent::Codex, &may_ask, || codex.open("codex", Session::New));
    });
}

/// One process runs the sessions of all terminals there, and no hook names it. Before its first
/// tool has ended, nothing tells the session's own server whom it serves, and after Esc Codex holds
/// its queue: the terminal of the only client is left.
#[test]
fn e5_codex_in_its_daemon_gets_its_mail_after_esc_at_a_dialog() {
    isolated(|| {
        let may_ask = Barrier::default();
        let stage = StorySandbox::with(&[Agent::Codex], asks_first(&may_ask));
        let codex = stage.codex().asking().in_daemon();
        a_dialog_is_left_alone(&stage, Agent::Codex, &may_ask, || codex.open("codex", Session::New));
    });
}

/// After Esc the pane comes before the queue, which Codex holds until its person types.
#[test]
fn e5_codex_is_woken_in_its_terminal_first_after_esc_at_a_dialog() {
    isolated(|| {
        let may_ask = Barrier::default();
        let stage = StorySandbox::with(&[Agent::Codex], asks_first(&may_ask));
        let codex = stage.codex().asking();
        a_dialog_is_left_alone(&stage, Agent::Codex, &may_ask, || codex.open("codex", Session::New));
        let trail = stage.baton(&["log"]).stdout;
        assert!(!trail.contains(" by queue"), "{trail}");
        // Its terminal is closed by now.
        let who = stage.json(&["who", "--all"]);
        let codex = who.as_array().into_iter().flatten().find(|row| row["agent"] == "codex");
        let route = codex.map(|codex| &codex["last_wake"]["route"]);
        assert_eq!(route, Some(&json!("terminal")), "{}", stage.trouble());
    });
}

#[test]
fn opencode_at_a_dialog_is_left_alone() {
    isolated(|| {
        let may_ask = Barrier::default();
        let stage = StorySandbox::with(&[Agent::OpenCode], asks_first(&may_ask));
        let opencode = stage.opencode().asking();
        a_dialog_is_left_alone(&stage, Agent::OpenCode, &may_ask, || opencode.open(Session::New));
    });
}

#[test]
fn gemini_at_a_dialog_is_left_alone() {
    isolated(|| {
        let may_ask = Barrier::default();
        let stage = StorySandbox::with(&[Agent::Gemini], asks_first(&may_ask));
        let gemini = Gemini::new(&stage.sandbox, &stage.model).asking();
        a_dialog_is_left_alone(&stage, Agent::Gemini, &may_ask, || gemini.open("gemini", Session::New));
    });
}

#[test]
fn copilot_at_a_dialog_is_left_alone() {
    isolated(|| {
        let may_ask = Barrier::default();
        let stage = pushing(asks_first(&may_ask));
        let copilot = Copilot::new(&stage.sandbox, &stage.model).asking();
        a_dialog_is_left_alone(&stage, Agent::Copilot, &may_ask, || copilot.open("copilot", Session::New));
    });
}

#[test]
fn claude_takes_fifty_messages_of_one_second_by_one_wake() {
    isolated(|| {
        let slow = Duration::from_secs(3);
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(move |_| Step::say("fine").after(slow)));
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
        let wakes = requests.last().map_or(0, |last| last.count(LINE_END));
        assert_eq!(wakes, 1, "{}", stage.trouble());
    });
}

#[test]
fn claude_is_woken_though_the_sender_was_killed() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (_terminal, name) =
            idle(&stage, Agent::Claude, || stage.claude().asking().open("claude", Session::New));
        let mut send = stage.sandbox.command(stage.sandbox.path("bin/baton"));
        send.args(["send", &name, "ITS-SENDER-WAS-KILLED"]);
        // The first connection is that to the inbox: the mail is accepted, the wake claimed, and
        // not performed.
        let point = KillPoint { syscall: "connect".to_owned(), nth: 1 };
        assert!(faults::run_killed_at(&send, b"", &point).killed);
        assert_eq!(stage.state_of("ITS-SENDER-WAS-KILLED"), "queued");
        let request = stage.request(|request| request.shows("ITS-SENDER-WAS-KILLED"));
        assert_eq!(stage.end_of("ITS-SENDER-WAS-KILLED"), "seen", "{}", stage.trouble());
        assert_eq!(request.count("ITS-SENDER-WAS-KILLED"), 1);
    });
}

/// A session that runs since before `baton setup` has its hooks and no MCP server. Two messages at
/// gaps around the length of a short turn: each is seen, without a person.
#[test]
fn claude_without_the_server_sees_mail_at_every_gap() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        stage.without_server();
        stage.configure("limits.wakes_per_hour = 1000\n");
        let (_terminal, name) =
            idle(&stage, Agent::Claude, || stage.claude().asking().open("claude", Session::New));
        for round in 0..rounds().max(3) {
            let gap = Duration::from_millis(500 + (round as u64 * 170) % 500);
            let bodies = [format!("FIRST-OF-TWO-{round}."), format!("SECOND-OF-TWO-{round}.")];
            stage.send(&name, &bodies[0]);
            std::thread::sleep(gap);
            stage.send(&name, &bodies[1]);
            for body in &bodies {
                stage.request(|request| request.shows(body));
                assert_eq!(stage.end_of(body), "seen", "after {gap:?}: {}", stage.trouble());
                stage.shown_once(body);
            }
            is_in_state(&stage, &name, "idle");
        }
    });
}

#[test]
fn claude_that_does_not_want_to_be_disturbed_is_left_in_peace() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Claude, || stage.claude().open("claude", Session::New));
        let refused = stage.baton(&["wake", &name, "--off"]);
        assert!(refused.stderr.contains("is for the person"), "a script is not the person: {refused:?}");
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
