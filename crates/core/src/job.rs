//! Jobs: tasks that another agent does in the background.
//!
//! A job is one turn of a backend (an agent's program). Its worker sees it through
//! [`Observation`]s, keeps a picture of it in a [`watch::Watch`], and asks the judges in [`judge`]
//! whether it has ended. Nothing here reads a clock: times are spans since the worker began, by a
//! clock that can't be set.

pub mod judge;
pub mod notice;
pub mod watch;

use crate::approval::Question;
use crate::time::Moment;
use crate::{Code, Error};
use std::fmt;

/// The environment variables that mark every process of a job; each has one of them.
pub const JOB_MARKS: [&str; 2] = ["BATON_JOB", "BATON_SERVER"];

/// The tag of a job's session. It takes mail, but an address such as `agent:codex` does not mean
/// it.
pub const JOB_TAG: &str = "job";

/// The status of a job. The three ends are final: the first one stays.
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
    /// The record exists; the worker has not reported yet.
    Queued,
    /// The worker starts the backend.
    Starting,
    Running,
    /// The backend waits for a permission or an answer.
    Blocked,
    /// It ended with a result.
    Completed,
    /// It ended without one; the error says why.
    Failed,
    /// It was cancelled on request.
    Cancelled,
}

impl Status {
    pub const ALL: &[Status] = &[
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::Blocked,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The status as programs read it.
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

    /// Whether the status is final.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Whether a job may change from this status to that one.
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

/// What a job may do without asking. What the agent's own settings or the guard deny stays denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Allow {
    /// Only what the agent's own settings allow. The person is asked about everything else.
    Ask,
    /// It may also change files in the job's folder.
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
    /// When to try again, if the backend said so.
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

/// The kinds of tools, as far as their processes matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// It runs a command, so a running call should have a process.
    Shell,
    /// Anything else. Its processes can't be seen.
    Other,
}

/// The state of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolState {
    /// Requested but not started; a permission may be missing.
    Pending,
    Running,
    /// Ended, with or without success.
    Ended,
}

/// One tool call of the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The backend's id of the call.
    pub call: String,
    pub kind: ToolKind,
    /// Its name and the beginning of what it does: `bash: cargo test`.
    pub what: String,
    pub state: ToolState,
    /// Grows with its output, if the backend shows it. Only a change of it matters.
    pub output: u64,
}

/// How an assistant message ended, as the backend says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The model finished its answer.
    End,
    /// The answer was cut because it was too long. It still is an end.
    Length,
    /// A step: tools come next.
    ToolCalls,
    /// The message is the summary of a compaction.
    Summary,
    /// An unknown word.
    Unknown,
    /// The backend does not say.
    Absent,
}

/// An assistant message after the job's prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub text: String,
    pub finish: Finish,
}

/// Everything that the backend has at one look.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Whether it reports itself idle; `None` if it can't say.
    pub idle: Option<bool>,
    /// The last assistant message after the job's prompt.
    pub said: Option<Said>,
    /// The tool calls since the job's prompt that have not ended.
    pub tools: Vec<Tool>,
    /// What this session and its children wait for.
    pub questions: Vec<Question>,
    /// The turn ended with an error.
    pub fault: Option<Fault>,
    pub aborted: bool,
    /// Changes with every change of messages, parts or lengths. Only a change of it matters.
    pub version: u64,
}

/// A channel to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// Its stream of events.
    Stream,
    /// Polling it.
    Look,
}

/// Something that the worker learned about the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The backend's own id of the session.
    Session(String),
    /// It has started to work on the prompt.
    Busy,
    /// It says that its turn is over.
    Idle,
    /// It makes progress. The text says what it does, or is empty.
    Progress(String),
    /// A tool call began, changed or ended.
    Tool(Tool),
    /// An assistant message is complete.
    Said(Said),
    /// It waits for an answer.
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
    Aborted,
    /// What a look found.
    Looked(Snapshot),
    /// A channel is lost, with the reason.
    Lost(Channel, String),
    /// A channel works again.
    Found(Channel),
    /// Its process or its server is gone. The text says how.
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
