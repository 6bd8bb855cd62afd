//! Every error that baton reports.
//!
//! An error has a code that programs match on, a message that reads well after "error: ", and a
//! hint that names what to do next. Its code decides the exit status. Expected errors are about the
//! user's world; `internal` is a bug in baton.

use std::fmt;

/// The exit status of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Done = 0,
    Failed = 1,
    /// A wait ran out; what it waited for goes on.
    NotYet = 2,
    /// A rule or a missing permission refused it.
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
            /// Every code, for the reference and its test.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The code as programs read it.
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
    /// The text is no address.
    BadAddress = "bad-address", Usage;
    /// A name that no participant may have.
    BadName = "bad-name", Failed;
    /// Another participant of the project has that name.
    NameTaken = "name-taken", Failed;
    /// No participant with that address was ever seen.
    UnknownRecipient = "unknown-recipient", Failed;
    /// The address fits several participants.
    AmbiguousTarget = "ambiguous-target", Failed;
    /// A message to everyone, from a caller that did not say that it means everyone.
    ConsentNeeded = "consent-needed", Refused;
    /// The address is the sender's own.
    SelfTarget = "self-target", Failed;
    /// The name exists, but in another project.
    OtherProject = "other-project", Failed;
    /// The address names another machine, and none is joined.
    UnknownMachine = "unknown-machine", Failed;
    EmptyBody = "empty-body", Usage;
    /// More than 64 KiB.
    BodyTooLarge = "body-too-large", Failed;
    /// Bytes that are not UTF-8, or half of a surrogate pair.
    BodyNotUtf8 = "body-not-utf8", Failed;
    /// A NUL character.
    BodyHasNul = "body-has-nul", Failed;
    /// The body could not be read.
    BodyUnreadable = "body-unreadable", Failed;
    /// No message with that id is visible to the caller.
    MessageNotFound = "message-not-found", Failed;
    /// The ids of several messages begin with that text.
    AmbiguousMessage = "ambiguous-message", Failed;
    /// No ask with that id.
    RequestNotFound = "request-not-found", Failed;
    /// No one took the ask in time, so it gets no answer.
    AskExpired = "ask-expired", Failed;
    /// The ask could not be delivered, or it is not known whether it was.
    AskUndelivered = "ask-undelivered", Failed;
    /// The one that is asked waits, directly or through others, for the one who asks.
    WouldDeadlock = "would-deadlock", Failed;
    /// Only the recipient of a message may answer it.
    NotRecipient = "not-recipient", Refused;
    /// The message is a note from baton, which takes no reply.
    NoReplyAddress = "no-reply-address", Failed;
    /// The key was used before with other content.
    KeyConflict = "key-conflict", Failed;
    /// Too many messages between agents without a person's turn.
    BudgetExhausted = "budget-exhausted", Refused;
    /// The recipient's mailbox is full.
    MailboxFull = "mailbox-full", Refused;
    TimedOut = "timed-out", NotYet;
    /// The request was accepted or goes on; only the wait for it ended.
    WaitFailed = "wait-failed", NotYet;
    /// A subagent tried to take its parent's mail.
    Subagent = "subagent", Refused;
    /// `--as` below an agent, or from a script.
    NotAPerson = "not-a-person", Refused;
    /// The caller can't be recognised for certain.
    IdentityUncertain = "identity-uncertain", Refused;
    /// This caller may not do it; see docs/trust.md.
    NotPermitted = "not-permitted", Refused;
    /// Only an agent's session can do it.
    NotASession = "not-a-session", Failed;
    /// The session is not known to be the caller's own.
    NotYourSession = "not-your-session", Refused;
    /// The MCP server does not know whose session it serves.
    UnboundSession = "unbound-session", Failed;
    /// The store can't be opened.
    StoreUnavailable = "store-unavailable", Failed;
    /// There is nothing of baton in the home.
    NoHome = "no-home", Failed;
    /// Another process held the store for too long.
    StoreLocked = "store-locked", Failed;
    /// The file is not a store, or it is damaged.
    StoreCorrupt = "store-corrupt", Failed;
    /// Other users can write to the home, or replace it.
    HomeUnsafe = "home-unsafe", Refused;
    /// A newer baton wrote this store.
    StoreNewer = "store-newer", Failed;
    DiskFull = "disk-full", Failed;
    /// The store is on a read-only disk.
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
    /// The agent's program is installed, but its version can't do what is asked.
    UnsupportedVersion = "unsupported-version", Failed;
    /// The agent's program has no login, or its key was refused.
    NotLoggedIn = "not-logged-in", Failed;
    /// The agent does not take that model, effort or limit.
    UnsupportedOption = "unsupported-option", Failed;
    /// A folder is missing, or is not what is needed there.
    BadFolder = "bad-folder", Failed;
    /// No job has that id, or it belongs to another project.
    UnknownJob = "unknown-job", Failed;
    /// The ids of several jobs begin with that text.
    AmbiguousJob = "ambiguous-job", Failed;
    /// The job has ended, and the request needs one that has not.
    JobEnded = "job-ended", Failed;
    /// The job has not ended, and the request needs one that has.
    JobRunning = "job-running", Failed;
    /// The backend kept no session that can be resumed.
    NothingToResume = "nothing-to-resume", Failed;
    /// No question with that id waits for an answer.
    UnknownApproval = "unknown-approval", Failed;
    /// The question was answered before.
    AlreadyAnswered = "already-answered", Failed;
    /// The agent that asked is gone.
    AskerGone = "asker-gone", Failed;
    /// The answer was given, but nothing shows that the agent took it.
    NotConfirmed = "not-confirmed", Failed;
    /// The question can be answered only where it is shown: in the agent's own terminal.
    OnlyInTerminal = "only-in-terminal", Failed;
    /// The ids of several questions begin with that text.
    AmbiguousApproval = "ambiguous-approval", Failed;
    /// The question has changed since it was shown.
    QuestionChanged = "question-changed", Refused;
    /// The question was not shown in full, and there is no terminal to show it in and confirm.
    NotShown = "not-shown", Refused;
    /// baton does not keep all of the question because it is too long, so it can't be approved
    /// here.
    QuestionTooLarge = "question-too-large", Refused;
    /// The person was asked once more, and did not say yes. Nothing was done.
    Declined = "declined", Failed;
    /// There is no exact rule that "always" would grant.
    NoSuchRule = "no-such-rule", Refused;
    /// The agent is not named as a reviewer for that project.
    NotAReviewer = "not-a-reviewer", Refused;
    /// A job may not start another one.
    TooDeep = "too-deep", Refused;
    JobCancelled = "job-cancelled", Failed;
    /// The process that watched the job is gone.
    WorkerGone = "worker-gone", Failed;
    /// The agent's program, or its server, ended in the middle of the work.
    BackendGone = "backend-gone", Failed;
    /// The agent's program could not be started, or did not answer in time.
    BackendStart = "backend-start", Failed;
    /// The agent says that its turn failed.
    BackendError = "backend-error", Failed;
    /// No channel to the agent is left.
    TransportLost = "transport-lost", Failed;
    /// Nothing happened for too long.
    Stalled = "stalled", Failed;
    /// A tool counts as running, but has no process.
    StuckTool = "stuck-tool", Failed;
    /// The job took too long in all.
    JobTimeout = "job-timeout", Failed;
    /// The account has used up its budget or its rate.
    RateLimited = "rate-limited", Failed;
    /// No commit has that name.
    UnknownBase = "unknown-base", Failed;
    /// There is no change to review.
    NothingToReview = "nothing-to-review", Failed;
    /// A reviewer's answer does not have the form that it was asked for.
    BadReview = "bad-review", Failed;
    /// A session or a job still uses what is to be deleted.
    InUse = "in-use", Failed;
    /// The program that reads the output wants no more of it, as `head` does. That is no failure.
    ReaderGone = "reader-gone", Done;
    /// Output could not be written.
    OutputClosed = "output-closed", Failed;
    /// A bug in baton.
    Internal = "internal", Failed;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error with its reason and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// An error with its message. Add a [`hint`](Self::hint) if there is something to do about it.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

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

/// The result of a call that may fail.
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
