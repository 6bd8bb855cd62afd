//! The last route of waking: a line typed into the agent's terminal, through tmux, and never where it could do harm.
//!
//! A key that reaches the wrong place approves a tool, ends a person's half-written prompt or runs as a command. So nothing is typed unless:
//! the pane's process tree holds the very process of the agent, which reads that pane's keys (it is the foreground of the pane's
//! terminal); the screen shows an empty input box that the agent's adapter recognises; the text goes in as a bracketed paste, which no
//! agent's dialog takes for an answer; and Enter follows only when the screen shows our line in the box and nothing else. tmux itself
//! compares what was looked at with what is there when it pastes and when it presses Enter, so nothing can come between the look and the
//! key but what the agent has not yet drawn. What was pasted is never taken back: keys for that could meet something else. A line that was
//! left in the box is found there by the next wake, which presses Enter only.
//!
//! tmux has no way to wait for a screen, so it is looked at again and again, for a bounded time.

mod tmux;

use crate::process;
use baton_agents::{Agent, Screen};
use baton_core::wake;
use baton_store::Process;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{LocalModes, tcgetattr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tmux::{Guarded, Look, Pane, Server};

/// How long a screen may take to show what was pasted, and to be cleared by Enter.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);

/// Between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// How long a ready screen must have stood still.
const SETTLED: Duration = Duration::from_millis(400);

/// From the first sight of the line in the box to Enter: agents take an Enter that follows too soon for a part of the paste (Gemini CLI:
/// below 100 ms), and on a busy machine only the screen tells when they have read it. It must stand still for so long.
const BEFORE_ENTER: Duration = Duration::from_millis(200);

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
    /// The person looks back, or chooses something, in tmux itself.
    CopyMode,
    /// Keys for this pane go to others too, or to none.
    Shared,
    /// The screen shows nothing that we know.
    Unknown,
    /// The agent runs in no pane of a tmux that answers, or does not read that pane's keys.
    NoPane,
    /// The line was pasted, but then the screen showed something else than it alone, so Enter was not pressed.
    Left,
    /// tmux did not do it.
    Failed(String),
}

impl std::fmt::Display for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Typed::Typed => "typed",
            Typed::Dialog => "a question is open there",
            Typed::Draft => "its person is typing",
            Typed::Busy => "a turn runs there, or another process types",
            Typed::CopyMode => "its person looks back in tmux",
            Typed::Shared => "its pane shares its keys with others",
            Typed::Unknown => "its screen shows nothing that is known",
            Typed::NoPane => "it runs in no pane of tmux",
            Typed::Left => {
                "the line stands in its input box, but something came between, so Enter was not pressed"
            }
            Typed::Failed(why) => why,
        })
    }
}

/// Types one line and Enter into the terminal in which `agent` runs as `process`, if that is safe right now.
pub fn type_line(agent: &dyn Agent, process: Process, line: &str) -> Typed {
    let attempt = Attempt::new(agent, process, line).and_then(|attempt| attempt.run());
    attempt.map_or_else(|refused| refused, |()| Typed::Typed)
}

/// Whether the terminal in which `agent` runs as `process` shows an empty input box, and nothing else is drawn there: then it asks its person nothing.
pub fn is_ready(agent: &dyn Agent, process: Process) -> bool {
    let rested = |attempt: Attempt<'_>| {
        let look = attempt.look()?;
        match agent.screen(&look.screen) {
            Screen::Ready => attempt.settled(look).map(drop),
            other => Err(refusal(&other)),
        }
    };
    Attempt::new(agent, process, wake::LINE).and_then(rested).is_ok()
}

struct Attempt<'a> {
    agent: &'a dyn Agent,
    process: Process,
    line: &'a str,
    server: Server,
    pane: Pane,
    /// Held while we type, so that two wakes don't paste twice.
    _alone: Alone,
}

impl<'a> Attempt<'a> {
    fn new(agent: &'a dyn Agent, process: Process, line: &'a str) -> Result<Self, Typed> {
        if line.trim().is_empty() || line.chars().any(char::is_control) {
            return Err(Typed::Failed("what is typed must be one line of text".to_owned()));
        }
        let server = Server::of(process.pid).ok_or(Typed::NoPane)?;
        let pane = server.pane_of(process)?;
        let alone = Alone::in_terminal(&pane.tty)?;
        Ok(Self { agent, process, line, server, pane, _alone: alone })
    }

    fn run(&self) -> Result<(), Typed> {
        let look = self.look()?;
        match self.agent.screen(&look.screen) {
            Screen::Ready if !look.can_search() => {
                Err(Typed::Failed("this tmux can't search a screen".to_owned()))
            }
            Screen::Ready => {
                self.paste(&self.settled(look)?)?;
                self.press_enter()
            }
            // It was left there by an earlier wake.
            Screen::Draft(text) if self.is_line(&text) => self.press_enter(),
            other => Err(refusal(&other)),
        }
    }

    /// Waits until nothing has been drawn for a while: an agent that has just taken a prompt shows an empty box, too, until its turn is drawn.
    fn settled(&self, first: Look) -> Result<Look, Typed> {
        let end = Instant::now() + SHOWN_WITHIN;
        let (mut last, mut since) = (first, Instant::now());
        while since.elapsed() < SETTLED {
            thread::sleep(LOOK_AGAIN);
            let look = self.look()?;
            match self.agent.screen(&look.screen) {
                Screen::Ready if look.screen == last.screen => {}
                Screen::Ready if Instant::now() < end => since = Instant::now(),
                other => return Err(refusal(&other)),
            }
            last = look;
        }
        Ok(last)
    }

    /// Looks at the screen, and then checks that it is still the agent that reads this pane's keys.
    fn look(&self) -> Result<Look, Typed> {
        let look = self.server.look(&self.pane, self.line)?;
        if self.server.pane_of(self.process)? != self.pane { Err(Typed::NoPane) } else { Ok(look) }
    }

    fn paste(&self, look: &Look) -> Result<(), Typed> {
        match self.server.paste(&self.pane, look, self.line)? {
            Guarded::Done => Ok(()),
            // Something was drawn since. Nothing was done, and the next wake sees what it is.
            Guarded::Changed => Err(Typed::Busy),
        }
    }

    /// Presses Enter once the box has held the line alone for a while.
    fn press_enter(&self) -> Result<(), Typed> {
        let end = Instant::now() + SHOWN_WITHIN;
        let (mut seen, mut last) = (Instant::now(), String::new());
        loop {
            let look = self.look_after_paste()?;
            let shown = self.shown(&look);
            if shown != Shown::Line || !look.finds_line() || look.screen != last {
                seen = Instant::now();
            }
            last.clone_from(&look.screen);
            let rested = seen.elapsed() >= BEFORE_ENTER;
            if rested && self.server.press_enter(&self.pane, &look)? == Guarded::Done {
                self.wait_until_taken();
                return Ok(());
            }
            if shown == Shown::Else || Instant::now() >= end {
                return Err(Typed::Left);
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn look_after_paste(&self) -> Result<Look, Typed> {
        self.look().map_err(|refused| if let Typed::Failed(_) = refused { refused } else { Typed::Left })
    }

    /// So that the next wake does not find the line still in the box. A slow agent may take longer, or have missed the Enter; whether it
    /// woke is told by its next event, not by its screen.
    fn wait_until_taken(&self) {
        let end = Instant::now() + SHOWN_WITHIN;
        while Instant::now() < end && self.look().is_ok_and(|look| self.shown(&look) == Shown::Line) {
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn shown(&self, look: &Look) -> Shown {
        match self.agent.screen(&look.screen) {
            Screen::Draft(text) if self.is_line(&text) => Shown::Line,
            Screen::Draft(text) if signs(self.line).starts_with(&signs(&text)) => Shown::NotYet,
            Screen::Ready | Screen::Unknown => Shown::NotYet,
            Screen::Draft(_) | Screen::Dialog | Screen::Busy => Shown::Else,
        }
    }

    fn is_line(&self, text: &str) -> bool {
        signs(text) == signs(self.line)
    }
}

/// Why nothing is typed into such a screen.
fn refusal(screen: &Screen) -> Typed {
    match screen {
        Screen::Draft(_) => Typed::Draft,
        Screen::Dialog => Typed::Dialog,
        // A box that is ready is refused only while something is drawn around it.
        Screen::Busy | Screen::Ready => Typed::Busy,
        Screen::Unknown => Typed::Unknown,
    }
}

/// What the box shows after the paste.
#[derive(PartialEq, Eq)]
enum Shown {
    /// Our line alone.
    Line,
    /// Not yet all of it.
    NotYet,
    /// Something else came.
    Else,
}

/// A text without its blanks, which are lost where a box breaks a line.
fn signs(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_whitespace()).collect()
}

/// A terminal that is ours alone, among those that wake.
struct Alone(OwnedFd);

impl Alone {
    /// A program that reads single keys has switched the terminal's own editing off; with it on, nobody reads them now.
    fn in_terminal(tty: &Path) -> Result<Self, Typed> {
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let tty = rustix::fs::open(tty, flags, Mode::empty()).map_err(|_| Typed::NoPane)?;
        let modes = tcgetattr(&tty).map_err(|_| Typed::NoPane)?;
        if modes.local_modes.contains(LocalModes::ICANON) {
            return Err(Typed::NoPane);
        }
        match rustix::fs::flock(&tty, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(Typed::Busy),
            // Where a terminal can't be locked, two wakes at once may leave their lines in the box, and press no Enter.
            _ => Ok(Self(tty)),
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // Closing is not enough: a process that another thread starts just now holds it open until it runs its program.
        rustix::fs::flock(&self.0, FlockOperation::Unlock).ok();
    }
}

/// Whether the process is alive and reads the keys of that terminal.
fn reads_keys(process: Process, tty: &Path) -> bool {
    process::is_alive(process) && process::is_foreground(process.pid, tty)
}
