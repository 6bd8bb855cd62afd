//! What is typed, and what must not be typed.

use crate::program::{LOG_VARIABLE, NAME, SHOWS_VARIABLE};
use baton_agents::{Agent, by_name};
use baton_core::process::Process;
use baton_machine::process;
use baton_mail::wake::terminal::{Typed, type_line};
use baton_testkit::{Sandbox, Tmux, wait};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const LINE: &str = "[baton] Mail is waiting for you.";
const TIMEOUT: Duration = wait::HANG;

fn claude() -> &'static dyn Agent {
    by_name("claude").unwrap()
}

/// The number of rounds. `scripts/prove` raises it.
fn rounds() -> usize {
    std::env::var("BATON_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// The scripted program in a pane.
struct Pane<'a> {
    terminal: Tmux<'a>,
    log: PathBuf,
    process: Process,
}

impl<'a> Pane<'a> {
    fn open(sandbox: &'a Sandbox, shows: &str) -> Self {
        let mut command = sandbox.command(std::env::current_exe().unwrap());
        command.args(["--exact", NAME, "--nocapture"]);
        Self::open_as(sandbox, shows, command)
    }

    fn open_as(sandbox: &'a Sandbox, shows: &str, mut command: Command) -> Self {
        let log = sandbox.path("keys.log");
        command.env(LOG_VARIABLE, &log).env(SHOWS_VARIABLE, shows);
        let terminal = Tmux::start(sandbox, "pane", &command);
        let pid = wait::poll(TIMEOUT, || {
            let text = std::fs::read_to_string(&log).ok()?;
            text.lines().find_map(|line| line.strip_prefix("pid ")?.parse().ok())
        });
        let process = process::find(pid.unwrap_or_else(|| panic!("{}", terminal.screen()))).unwrap();
        terminal.wait_for("● a fine answer", TIMEOUT).unwrap();
        Self { terminal, log, process }
    }

    fn wake(&self) -> Typed {
        type_line(claude(), self.process, LINE)
    }

    /// The lines of the log with this prefix.
    fn noted(&self, what: &str) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().filter(|line| line.starts_with(what)).map(str::to_owned).collect()
    }

    /// Checks that no key did harm, and that exactly this many lines were submitted, all of them
    /// the wake line.
    fn check_submitted(&self, submitted: usize) {
        assert_eq!(self.noted("approved"), [""; 0], "a dialog was answered");
        assert_eq!(self.noted("touched"), [""; 0], "a draft was touched");
        let lines = self.noted("submitted");
        assert_eq!(lines, vec![format!("submitted {LINE}"); submitted]);
    }
}

#[test]
fn three_hundred_wakes_answer_no_dialog() {
    let sandbox = Sandbox::new();
    let pane = Pane::open(&sandbox, "dialog");
    for _ in 0..300 {
        assert_eq!(pane.wake(), Typed::Dialog);
    }
    pane.check_submitted(0);
}

#[test]
fn a_draft_is_left_alone() {
    let sandbox = Sandbox::new();
    let pane = Pane::open(&sandbox, "draft");
    for _ in 0..50 {
        assert_eq!(pane.wake(), Typed::Draft);
    }
    pane.check_submitted(0);
}

#[test]
fn each_wake_of_a_ready_agent_arrives_once() {
    let sandbox = Sandbox::new();
    let pane = Pane::open(&sandbox, "ready");
    for _ in 0..5 {
        assert_eq!(pane.wake(), Typed::Typed);
    }
    pane.check_submitted(5);
}

#[test]
fn a_screen_that_changes_at_any_instant_meets_no_key_of_ours() {
    for seed in 1..=rounds() {
        let sandbox = Sandbox::new();
        let pane = Pane::open(&sandbox, &seed.to_string());
        let mut outcomes = Vec::new();
        let mut pasted = 0;
        // These wakes found a ready box. The others found something else at first.
        while pasted < 12 && outcomes.len() < 5000 {
            let outcome = pane.wake();
            pasted += usize::from(matches!(outcome, Typed::Typed | Typed::LeftInBox));
            outcomes.push(outcome);
        }
        let count = |wanted: &Typed| outcomes.iter().filter(|outcome| *outcome == wanted).count();
        // All of these must have occurred. Otherwise the test shows nothing.
        for met in [Typed::Typed, Typed::Dialog, Typed::Draft] {
            assert!(count(&met) > 0, "{met:?} never came in {} wakes", outcomes.len());
        }
        assert!(!outcomes.iter().any(|outcome| matches!(outcome, Typed::Failed(_))), "{outcomes:?}");
        pane.check_submitted(count(&Typed::Typed));
    }
}

#[test]
fn wakes_at_the_same_time_don_t_mix() {
    let sandbox = Sandbox::new();
    let pane = Pane::open(&sandbox, "ready");
    let process = pane.process;
    let wakes: Vec<_> =
        (0..8).map(|_| std::thread::spawn(move || type_line(claude(), process, LINE))).collect();
    let outcomes: Vec<Typed> = wakes.into_iter().map(|wake| wake.join().unwrap()).collect();
    let typed = outcomes.iter().filter(|outcome| **outcome == Typed::Typed).count();
    assert!(typed >= 1, "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Typed::Typed | Typed::Busy)), "{outcomes:?}");
    pane.check_submitted(typed);
}

#[test]
fn a_line_that_was_left_in_the_box_only_gets_enter() {
    let sandbox = Sandbox::new();
    let pane = Pane::open(&sandbox, "ready");
    pane.terminal.type_text(LINE);
    pane.terminal.wait_for(LINE, TIMEOUT).unwrap();
    assert_eq!(pane.wake(), Typed::Typed);
    pane.check_submitted(1);
}

#[test]
fn a_pane_whose_keys_go_elsewhere_is_not_typed_into() {
    let sandbox = Sandbox::new();
    let pane = Pane::open(&sandbox, "ready");
    pane.terminal.command(&["copy-mode", "-t", "test"]);
    assert_eq!(pane.wake(), Typed::CopyMode);
    pane.terminal.command(&["send-keys", "-t", "test", "-X", "cancel"]);
    pane.terminal.command(&["set-option", "-t", "test", "-w", "synchronize-panes", "on"]);
    assert_eq!(pane.wake(), Typed::Shared);
    pane.terminal.command(&["set-option", "-t", "test", "-w", "synchronize-panes", "off"]);
    pane.check_submitted(0);
    assert_eq!(pane.wake(), Typed::Typed);
    pane.check_submitted(1);
}

#[test]
fn only_the_agents_own_process_in_the_pane_is_typed_to() {
    let sandbox = Sandbox::new();
    let pane = Pane::open(&sandbox, "ready");
    let later = Process { start: pane.process.start + 1, ..pane.process };
    assert_eq!(type_line(claude(), later, LINE), Typed::NoPane);
    // A process that claims to be in that pane, but is not below it.
    let tmux = format!("{},1,0", pane.terminal.socket().display());
    let mut stranger = Command::new("sleep").arg("60").env_clear().env("TMUX", tmux).spawn().unwrap();
    let process = process::find(stranger.id().cast_signed()).unwrap();
    assert_eq!(type_line(claude(), process, LINE), Typed::NoPane);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    let mut outside = Command::new("sleep").arg("60").env_clear().spawn().unwrap();
    let process = process::find(outside.id().cast_signed()).unwrap();
    assert_eq!(type_line(claude(), process, LINE), Typed::NoPane);
    outside.kill().unwrap();
    outside.wait().unwrap();
    pane.terminal.kill();
    assert_eq!(pane.wake(), Typed::NoPane);
    pane.check_submitted(0);
}

#[test]
fn a_stopped_agent_leaves_its_screen_to_a_shell_that_is_not_typed_to() {
    let sandbox = Sandbox::new();
    let mut shell = sandbox.command("sh");
    // With job control: when the program stops, the shell reads the keys, but the screen still
    // shows the box.
    let script =
        "set -m; \"$0\" \"$@\"; stty sane; read line; echo \"submitted $line\" >> \"$BATON_TEST_LOG\"";
    shell.args(["-c", script]).arg(std::env::current_exe().unwrap()).args(["--exact", NAME, "--nocapture"]);
    let pane = Pane::open_as(&sandbox, "ready", shell);
    assert_eq!(pane.wake(), Typed::Typed);
    pane.check_submitted(1);
    let stop = Command::new("kill").args(["-STOP", &pane.process.pid.to_string()]).status().unwrap();
    assert!(stop.success());
    let tty = pane.terminal.command(&["display-message", "-p", "-t", "test", "#{pane_tty}"]);
    let tty = PathBuf::from(tty.trim());
    assert!(wait::until(TIMEOUT, || !process::is_foreground(pane.process.pid, &tty)));
    assert!(pane.terminal.screen().contains('❯'));
    for _ in 0..20 {
        assert_eq!(pane.wake(), Typed::NoPane);
    }
    pane.check_submitted(1);
}

#[test]
fn only_one_line_of_text_is_typed() {
    let sandbox = Sandbox::new();
    let pane = Pane::open(&sandbox, "ready");
    for line in ["", "  ", "two\nlines", "a\rb", "a\u{1b}[201~\rb"] {
        assert!(matches!(type_line(claude(), pane.process, line), Typed::Failed(_)), "{line:?}");
    }
    // Text that tmux or its formats could interpret.
    let odd = "-t #{pane_id} ; kill-server , } # %1 'x' \"y\" \\";
    assert_eq!(type_line(claude(), pane.process, odd), Typed::Typed);
    assert_eq!(pane.noted("submitted"), [format!("submitted {odd}")]);
}
