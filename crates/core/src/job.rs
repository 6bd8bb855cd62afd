//! Jobs: a task that another agent does in the background, and what may be said about it.
//!
//! A job is one turn of a backend (an agent's program). Its worker sees it through [`Observation`]s, keeps what follows from them in a
//! [`watch::Watch`], and asks the judges in [`judge`] whether it has come to an end. Nothing here reads a clock: times are spans since the worker
//! began, by a clock that nobody can set.

pub mod judge;
pub mod notice;
pub mod watch;

use crate::approval::Question;
use crate::time::Moment;
use crate::{Code, Error};
use std::fmt;

/// Where a job stands. The three ends are final: the first one stays.
///
/// | from | may become |
/// |---|---|
/// | queued | starting, failed, cancelled |
/// | starting | running, blocked, completed, failed, cancelled |
/// | running | blocked, completed, failed, cancelled |
/// | blocked | running, completed, failed, cancelled |
/// | completed, failed, cancelled | – |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// The record is there, the worker has not said anything yet.
    Queued,
    /// The worker starts the backend.
    Starting,
    /// The backend works.
    Running,
    /// The backend waits for a permission or an answer.
    Blocked,
    /// It ended with a result.
    Completed,
    /// It ended without one; the error says why.
    Failed,
    /// It was stopped because somebody asked.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: &[Status] = &[
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::Blocked,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// As programs see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads [`as_str`](Self::as_str).
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.as_str() == text)
    }

    /// Whether nothing can follow.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Whether a job that stands here may stand there next.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => false,
            Self::Queued => matches!(next, Self::Starting | Self::Failed | Self::Cancelled),
            Self::Starting => next.is_end() || matches!(next, Self::Running | Self::Blocked),
            Self::Running => next.is_end() || next == Self::Blocked,
            Self::Blocked => next.is_end() || next == Self::Running,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a job may do without asking. Whatever the agent's own settings or the guard deny stays denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Allow {
    /// Only what the agent's own settings allow; everything else is asked.
    Ask,
    /// Changing files in the job's folder too.
    #[default]
    Edits,
    /// Everything that the agent's own settings don't deny.
    All,
}

impl Allow {
    /// Every level, the narrowest first.
    pub const ALL: &[Allow] = &[Self::Ask, Self::Edits, Self::All];

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
        }
    }

    /// Reads [`as_str`](Self::as_str).
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|allow| allow.as_str() == text)
    }
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Code, the original words, and what to do.
    pub error: Error,
    /// When it makes sense to try again, where somebody said so.
    pub again_at: Option<Moment>,
}

impl Fault {
    /// A fault with its code and words.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error::new(code, message).into()
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.error = self.error.hint(hint);
        self
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { error, again_at: None }
    }
}

/// What a tool is, as far as its processes matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// It runs a command: while it runs, a process of it should be there.
    Shell,
    /// Anything else; nobody can see whether it lives.
    Other,
}

/// How far a tool call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolState {
    /// Asked for, not begun: perhaps a permission is missing.
    Pending,
    /// At work.
    Running,
    /// Over, well or not.
    Ended,
}

/// One tool call of the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The backend's id of the call.
    pub call: String,
    /// What kind it is.
    pub kind: ToolKind,
    /// Its name and the beginning of what it does: `bash: cargo test`.
    pub what: String,
    /// How far it is.
    pub state: ToolState,
    /// Grows with its output, where the backend shows it; any number, only its change matters.
    pub output: u64,
}

/// How an assistant message ended, by the backend's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The model said what it had to say.
    End,
    /// The model's answer was cut because it was too long; it is an end nevertheless.
    Length,
    /// A step: tools come next.
    ToolCalls,
    /// It is the summary that a compaction made.
    Summary,
    /// A word that we don't know.
    Unknown,
    /// The backend said nothing about it.
    Absent,
}

/// An assistant message that came after our prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its text.
    pub text: String,
    /// How it ended.
    pub finish: Finish,
}

/// What the backend has, all of it, at one look.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Whether it says that it does nothing now; `None` where it can't say.
    pub idle: Option<bool>,
    /// The last assistant message after our prompt.
    pub said: Option<Said>,
    /// The tool calls since our prompt that have not ended.
    pub tools: Vec<Tool>,
    /// What it waits for, of this session and of its children.
    pub questions: Vec<Question>,
    /// The turn ended with an error.
    pub fault: Option<Fault>,
    /// The turn was aborted.
    pub aborted: bool,
    /// Changes whenever something has: messages, parts, lengths. Only its change matters.
    pub version: u64,
}

/// A way by which a backend is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// Its events, as they come.
    Stream,
    /// Asking it.
    Look,
}

/// Something that the worker has learnt about the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The backend's own id of the session.
    Session(String),
    /// It has begun to work on our prompt.
    Busy,
    /// It says that its turn is over.
    Idle,
    /// It moves: words about what it does, empty if there are none.
    Progress(String),
    /// A tool call began, changed or ended.
    Tool(Tool),
    /// An assistant message is complete.
    Said(Said),
    /// It waits for somebody.
    Asked(Question),
    /// That question, by its id, is answered or gone.
    Settled(String),
    /// Its model can't be reached now; it tries again by itself.
    Retrying {
        /// Its words.
        message: String,
        /// When, by the wall clock.
        until: Option<Moment>,
    },
    /// The turn ended with an error.
    Fault(Fault),
    /// The turn was aborted.
    Aborted,
    /// The answer to a look.
    Looked(Snapshot),
    /// A way to hear it is lost, with the reason.
    Lost(Channel, String),
    /// A way to hear it is there again.
    Found(Channel),
    /// Its process, or its server, is gone: how, in words.
    Gone(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_final_and_every_other_status_can_end() {
        for &from in Status::ALL {
            assert_eq!(Status::parse(from.as_str()), Some(from));
            for &to in Status::ALL {
                assert!(!(from.is_end() && from.may_become(to)), "{from} to {to}");
                assert!(!to.may_become(Status::Queued));
            }
            assert!(from.is_end() || (from.may_become(Status::Failed) && from.may_become(Status::Cancelled)));
        }
    }
}
