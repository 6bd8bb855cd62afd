//! The last wake route: types a line into the agent's terminal through tmux, and never where it
//! could do harm.
//!
//! A key in the wrong place can approve a tool, send a person's half-written prompt or run as a
//! command. So these rules hold:
//!
//! - The agent's process is in the pane's process tree and reads the pane's keys: it is in the
//!   foreground of its terminal.
//! - The screen shows an empty input box that the agent's adapter recognises.
//! - The text goes in as a bracketed paste, which no agent's dialog takes as an answer.
//! - Enter follows only when the box shows our line and nothing else.
//!
//! When tmux pastes or presses Enter, it first compares the pane with our snapshot. So only what
//! the agent has not drawn yet can come in between. Pasted text is never removed, because the keys
//! for that could reach something else. If a line stays in the box, the next wake finds it there
//! and only presses Enter.
//!
//! tmux can't wait for a screen to change, so this module polls, for a limited time.

mod tmux;

use baton_agents::{Agent, Screen};
use baton_core::process::Process;
use baton_core::wake::line;
use baton_machine::process;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{LocalModes, tcgetattr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tmux::{Acted, Pane, PaneSnapshot, Server};

/// How long a screen may take to show a paste, and to clear after Enter.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(2);

const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// How long a ready screen must not change.
const STILL_TIME: Duration = Duration::from_millis(400);

/// The time from when the box first shows the line to Enter. The screen must not change in between.
/// Agents take an Enter that comes too soon as part of the paste (Gemini CLI: below 100 ms), and on
/// a busy machine only the screen shows when they have read the paste.
const ENTER_DELAY: Duration = Duration::from_millis(200);

/// What became of an attempt to type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// The line was in the box alone, and Enter was pressed.
    Typed,
    /// A question is open.
    Dialog,
    /// The person has typed something.
    Draft,
    /// A turn is running, or another process types there already.
    Busy,
    /// The person scrolls back or selects something in tmux itself.
    CopyMode,
    /// Keys for this pane also go to other panes, or to none.
    Shared,
    /// The adapter does not recognise the screen.
    Unknown,
    /// The agent is not in a pane of a tmux that answers, or does not read that pane's keys.
    NoPane,
    /// The line was pasted, but then the box did not show it alone, so Enter was not pressed.
    LeftInBox,
    /// tmux failed.
    Failed(String),
}

impl std::fmt::Display for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Typed::Typed => "typed",
            Typed::Dialog => "a question is open there",
            Typed::Draft => "its person is typing",
            Typed::Busy => "a turn runs there, or another process types",
            Typed::CopyMode => "its person is scrolling back in tmux",
            Typed::Shared => "its pane shares its keys with others",
            Typed::Unknown => "baton does not recognise its screen",
            Typed::NoPane => "it does not run in a tmux pane",
            Typed::LeftInBox => {
                "the line is in its input box, but the screen changed meanwhile, so Enter was not pressed"
            }
            Typed::Failed(why) => why,
        })
    }
}

/// Types one line and Enter into the terminal in which `agent` runs as `process`, if that is safe
/// right now.
pub fn type_line(agent: &dyn Agent, process: Process, line: &str) -> Typed {
    let attempt = Attempt::new(agent, process, line).and_then(|attempt| attempt.run());
    attempt.map_or_else(|refused| refused, |()| Typed::Typed)
}

/// Whether the terminal in which `agent` runs as `process` shows an empty input box and does not
/// change. Then the agent asks its person nothing.
pub fn is_ready(agent: &dyn Agent, process: Process) -> bool {
    let rested = |attempt: Attempt<'_>| {
        let snapshot = attempt.snapshot()?;
        match agent.screen(&snapshot.screen) {
            Screen::Ready => attempt.settled(snapshot).map(drop),
            other => Err(refusal(&other)),
        }
    };
    Attempt::new(agent, process, line::PLAIN).and_then(rested).is_ok()
}

struct Attempt<'a> {
    agent: &'a dyn Agent,
    process: Process,
    line: &'a str,
    server: Server,
    pane: Pane,
    /// Held while this attempt types, so that two wakes don't both paste.
    _lock: TerminalLock,
}

impl<'a> Attempt<'a> {
    fn new(agent: &'a dyn Agent, process: Process, line: &'a str) -> Result<Self, Typed> {
        if line.trim().is_empty() || line.chars().any(char::is_control) {
            return Err(Typed::Failed("what is typed must be one line of text".to_owned()));
        }
        let server = Server::of(process.pid).ok_or(Typed::NoPane)?;
        let pane = server.pane_of(process)?;
        let lock = TerminalLock::take(&pane.tty)?;
        Ok(Self { agent, process, line, server, pane, _lock: lock })
    }

    fn run(&self) -> Result<(), Typed> {
        let snapshot = self.snapshot()?;
        match self.agent.screen(&snapshot.screen) {
            Screen::Ready if !snapshot.can_search() => {
                Err(Typed::Failed("this tmux can't search a screen".to_owned()))
            }
            Screen::Ready => {
                self.paste(&self.settled(snapshot)?)?;
                self.press_enter()
            }
            // An earlier wake left a line there. It may name other senders.
            Screen::Draft(text) if self.is_line(&text) => self.press_enter(),
            other => Err(refusal(&other)),
        }
    }

    /// Waits until the screen has not changed for a while. An agent that has just taken a prompt
    /// also shows an empty box, until it draws its turn.
    fn settled(&self, first: PaneSnapshot) -> Result<PaneSnapshot, Typed> {
        let end = Instant::now() + SCREEN_TIMEOUT;
        let (mut last, mut since) = (first, Instant::now());
        while since.elapsed() < STILL_TIME {
            thread::sleep(POLL_INTERVAL);
            let snapshot = self.snapshot()?;
            match self.agent.screen(&snapshot.screen) {
                Screen::Ready if snapshot.screen == last.screen => {}
                Screen::Ready if Instant::now() < end => since = Instant::now(),
                other => return Err(refusal(&other)),
            }
            last = snapshot;
        }
        Ok(last)
    }

    /// Takes a snapshot of the pane, then checks that the agent still reads its keys.
    fn snapshot(&self) -> Result<PaneSnapshot, Typed> {
        let snapshot = self.server.snapshot(&self.pane, self.line)?;
        if self.server.pane_of(self.process)? != self.pane { Err(Typed::NoPane) } else { Ok(snapshot) }
    }

    fn paste(&self, snapshot: &PaneSnapshot) -> Result<(), Typed> {
        match self.server.paste(&self.pane, snapshot, self.line)? {
            Acted::Done => Ok(()),
            // The screen changed, so tmux did nothing. The next wake sees what it is.
            Acted::Changed => Err(Typed::Busy),
        }
    }

    /// Presses Enter once the box has held the line alone for a while.
    fn press_enter(&self) -> Result<(), Typed> {
        let end = Instant::now() + SCREEN_TIMEOUT;
        let (mut seen, mut last) = (Instant::now(), String::new());
        loop {
            let snapshot = self.snapshot_after_paste()?;
            let shown = self.shown(&snapshot);
            if shown != Shown::Line || !snapshot.finds_line() || snapshot.screen != last {
                seen = Instant::now();
            }
            last.clone_from(&snapshot.screen);
            let rested = seen.elapsed() >= ENTER_DELAY;
            if rested && self.server.press_enter(&self.pane, &snapshot)? == Acted::Done {
                self.wait_until_taken();
                return Ok(());
            }
            if shown == Shown::Else || Instant::now() >= end {
                return Err(Typed::LeftInBox);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn snapshot_after_paste(&self) -> Result<PaneSnapshot, Typed> {
        self.snapshot()
            .map_err(|refused| if let Typed::Failed(_) = refused { refused } else { Typed::LeftInBox })
    }

    /// Waits so that the next wake does not find the line still in the box. A slow agent may take
    /// longer, or may have missed the Enter. Its next event shows whether it woke, not its screen.
    fn wait_until_taken(&self) {
        let end = Instant::now() + SCREEN_TIMEOUT;
        while Instant::now() < end
            && self.snapshot().is_ok_and(|snapshot| self.shown(&snapshot) == Shown::Line)
        {
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn shown(&self, snapshot: &PaneSnapshot) -> Shown {
        match self.agent.screen(&snapshot.screen) {
            Screen::Draft(text) if self.is_line(&text) => Shown::Line,
            Screen::Draft(text) if without_blanks(self.line).starts_with(&without_blanks(&text)) => {
                Shown::NotYet
            }
            Screen::Ready | Screen::Unknown => Shown::NotYet,
            Screen::Draft(_) | Screen::Dialog | Screen::Busy => Shown::Else,
        }
    }

    fn is_line(&self, text: &str) -> bool {
        without_blanks(text) == without_blanks(self.line) || line::is_line_in_box(text)
    }
}

/// Why this screen must not be typed into.
fn refusal(screen: &Screen) -> Typed {
    match screen {
        Screen::Draft(_) => Typed::Draft,
        Screen::Dialog => Typed::Dialog,
        // A ready box is refused only while the screen around it changes.
        Screen::Busy | Screen::Ready => Typed::Busy,
        Screen::Unknown => Typed::Unknown,
    }
}

/// What the box shows after the paste.
#[derive(PartialEq, Eq)]
enum Shown {
    /// The line alone.
    Line,
    /// Not all of it yet.
    NotYet,
    /// Something else.
    Else,
}

/// Removes blanks, which get lost where a box breaks a line.
fn without_blanks(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_whitespace()).collect()
}

/// A lock on a terminal, against other wakes.
struct TerminalLock(OwnedFd);

impl TerminalLock {
    /// Refuses a terminal in line mode: a program that reads single keys has switched that off.
    fn take(tty: &Path) -> Result<Self, Typed> {
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let tty = rustix::fs::open(tty, flags, Mode::empty()).map_err(|_| Typed::NoPane)?;
        let modes = tcgetattr(&tty).map_err(|_| Typed::NoPane)?;
        if modes.local_modes.contains(LocalModes::ICANON) {
            return Err(Typed::NoPane);
        }
        match rustix::fs::flock(&tty, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(Typed::Busy),
            // If a terminal can't be locked, two wakes at once may leave their lines in the box
            // without Enter.
            _ => Ok(Self(tty)),
        }
    }
}

impl Drop for TerminalLock {
    fn drop(&mut self) {
        // Closing is not enough: a process that another thread is starting keeps the file open
        // until it runs its program.
        rustix::fs::flock(&self.0, FlockOperation::Unlock).ok();
    }
}

/// Whether the process is alive and reads the keys of that terminal.
fn reads_keys(process: Process, tty: &Path) -> bool {
    process::is_alive(process) && process::is_foreground(process.pid, tty)
}
