//! Every way in which baton says no.
//!
//! An error has a code that programs match on, a message that reads well after "error: ", a hint that names what to do
//! next, and through its code an exit status. Expected errors are the user's world; `internal` is a bug of ours.

use std::fmt;

/// What the process exits with; see cli.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// A wait ran out; the thing goes on.
    NotYet = 2,
    /// A rule or a permission said no.
    Refused = 3,
    /// The command line is wrong.
    Usage = 64,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $exit:ident;)*) => {
        /// The machine-readable name of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code there is, for the reference and its test.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The code as programs see it.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// What the process exits with.
            pub fn exit(self) -> Exit {
                match self { $(Code::$name => Exit::$exit,)* }
            }
        }
    };
}

codes! {
    /// The command line can't be understood.
    Usage = "usage", Usage;
    /// A duration is not like `45s`, `8m`, `4h`, `7d`.
    BadDuration = "bad-duration", Usage;
    /// An address can't be one.
    BadAddress = "bad-address", Usage;
    /// A name that nobody may carry.
    BadName = "bad-name", Failed;
    /// Another participant of the project has that name.
    NameTaken = "name-taken", Failed;
    /// No participant like that was ever seen.
    UnknownRecipient = "unknown-recipient", Failed;
    /// The address fits several participants.
    AmbiguousTarget = "ambiguous-target", Failed;
    /// The address is the sender's own.
    SelfTarget = "self-target", Failed;
    /// The name exists, but in another project.
    OtherProject = "other-project", Failed;
    /// The address names another machine, and none is joined.
    UnknownMachine = "unknown-machine", Failed;
    /// Nothing was said.
    EmptyBody = "empty-body", Failed;
    /// More than 64 KiB.
    BodyTooLarge = "body-too-large", Failed;
    /// Bytes that are no UTF-8, or half of a surrogate pair.
    BodyNotUtf8 = "body-not-utf8", Failed;
    /// A NUL character.
    BodyHasNul = "body-has-nul", Failed;
    /// The body could not be read.
    BodyUnreadable = "body-unreadable", Failed;
    /// No message with that id is visible to the caller.
    MessageNotFound = "message-not-found", Failed;
    /// No ask with that id.
    RequestNotFound = "request-not-found", Failed;
    /// Nobody took the ask in time: it has no answer, and gets none.
    AskExpired = "ask-expired", Failed;
    /// The ask could not be delivered, or nobody knows whether it was.
    AskUndelivered = "ask-undelivered", Failed;
    /// Only the recipient of a message may answer it.
    NotRecipient = "not-recipient", Refused;
    /// baton's own notes have nobody to answer to.
    NoReplyAddress = "no-reply-address", Failed;
    /// The same key with other content.
    KeyConflict = "key-conflict", Failed;
    /// Too much back and forth without a person.
    BudgetExhausted = "budget-exhausted", Refused;
    /// The recipient's mailbox holds as much as it may.
    MailboxFull = "mailbox-full", Refused;
    /// A wait ran out.
    TimedOut = "timed-out", NotYet;
    /// A subagent tried to take its parent's mail.
    Subagent = "subagent", Refused;
    /// `--as` below an agent, or from a script.
    NotAPerson = "not-a-person", Refused;
    /// Something that only an agent's session can do.
    NotASession = "not-a-session", Failed;
    /// The session is not known to be the caller's own.
    NotYourSession = "not-your-session", Refused;
    /// The MCP server does not know whose session it serves.
    UnboundSession = "unbound-session", Failed;
    /// The store can't be opened.
    StoreUnavailable = "store-unavailable", Failed;
    /// Another process held the store for too long.
    StoreLocked = "store-locked", Failed;
    /// The file is not a store, or damaged.
    StoreCorrupt = "store-corrupt", Failed;
    /// A newer baton wrote this store.
    StoreNewer = "store-newer", Failed;
    /// The disk is full.
    DiskFull = "disk-full", Failed;
    /// The store lies on a read-only disk.
    StoreReadOnly = "store-read-only", Failed;
    /// An agent's sandbox keeps this command from the store.
    Sandboxed = "sandboxed", NotYet;
    /// The configuration file can't be read.
    ConfigMalformed = "config-malformed", Failed;
    /// Another program's file can't be edited safely.
    AgentConfig = "agent-config", Failed;
    /// No agent like that.
    UnknownAgent = "unknown-agent", Usage;
    /// The agent is not installed here.
    AgentMissing = "agent-missing", Failed;
    /// The agent's program is there, but in a version that can't do what is asked.
    UnsupportedVersion = "unsupported-version", Failed;
    /// The agent's program has no login, or its key was refused.
    NotLoggedIn = "not-logged-in", Failed;
    /// The agent can't be told that model, effort, or limit.
    UnsupportedOption = "unsupported-option", Failed;
    /// A folder that is missing, or not what is needed there.
    BadFolder = "bad-folder", Failed;
    /// No job with that id, or it is another project's.
    UnknownJob = "unknown-job", Failed;
    /// Several jobs begin with that.
    AmbiguousJob = "ambiguous-job", Failed;
    /// The job has ended, and what is asked needs one that has not.
    JobEnded = "job-ended", Failed;
    /// The job has not ended, and what is asked needs one that has.
    JobRunning = "job-running", Failed;
    /// The backend kept no session that could go on.
    NothingToResume = "nothing-to-resume", Failed;
    /// Nothing waits for an answer under that id.
    UnknownApproval = "unknown-approval", Failed;
    /// The question was answered before.
    AlreadyAnswered = "already-answered", Failed;
    /// Whoever asked is not there any more.
    AskerGone = "asker-gone", Failed;
    /// The answer was given, but nothing shows that it was taken.
    NotConfirmed = "not-confirmed", Failed;
    /// The question can be answered only where it is shown: in the agent's own terminal.
    OnlyInTerminal = "only-in-terminal", Failed;
    /// Several questions begin like that.
    AmbiguousApproval = "ambiguous-approval", Failed;
    /// An agent that nobody has named a reviewer for that project.
    NotAReviewer = "not-a-reviewer", Refused;
    /// A job may not start another one.
    TooDeep = "too-deep", Refused;
    /// The job was cancelled.
    JobCancelled = "job-cancelled", Failed;
    /// The process that watched the job is gone.
    WorkerGone = "worker-gone", Failed;
    /// The agent's program, or its server, ended in the middle of the work.
    BackendGone = "backend-gone", Failed;
    /// The agent's program could not be started, or did not answer in time.
    BackendStart = "backend-start", Failed;
    /// The agent says that its turn failed.
    BackendError = "backend-error", Failed;
    /// The agent can't be heard any more by any way.
    TransportLost = "transport-lost", Failed;
    /// Nothing happened for too long.
    Stalled = "stalled", Failed;
    /// A tool counts as running, but nothing of it is there.
    StuckTool = "stuck-tool", Failed;
    /// The whole took too long.
    JobTimeout = "job-timeout", Failed;
    /// The account has no more to spend, or too much was asked of it at once.
    RateLimited = "rate-limited", Failed;
    /// No commit has that name.
    UnknownBase = "unknown-base", Failed;
    /// Nothing has changed that could be reviewed.
    NothingToReview = "nothing-to-review", Failed;
    /// A reviewer's answer is not what it was asked for.
    BadReview = "bad-review", Failed;
    /// Output could not be written.
    OutputClosed = "output-closed", Failed;
    /// A bug of ours.
    Internal = "internal", Failed;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refusal with its reason and the way on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// An error with its message; add a [`hint`](Self::hint) wherever there is a way on.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The machine-readable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What happened, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// What a fallible call of baton gives.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_and_kebab_case() {
        let mut seen = HashSet::new();
        for code in Code::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} twice");
            assert!(
                text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{text}"
            );
        }
    }
}
