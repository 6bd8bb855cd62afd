//! The limits that several crates share, each with a name and a reason. Those that a person may set
//! are in [`Limits`].

use crate::job::Allow;
use crate::time::Span;

/// Longest body of a message. A longer text belongs in a file, and its path in the message.
pub const BODY_BYTES: usize = 65_536;
/// Longest name of a participant. People and agents type it.
pub const NAME_CHARS: usize = 32;
/// Longest tag. People and agents type it.
pub const TAG_CHARS: usize = 32;
/// Longest idempotency key, thread or foreign id in the store. Real ones are far shorter.
pub const LABEL_BYTES: usize = 512;
/// How many recipients one send may have, so that one tag can't flood every session.
pub const MAX_RECIPIENTS: usize = 100;
/// How many sessions a message to everyone may reach. More of them are addressed by tags.
pub const MAX_EVERYONE: usize = 50;
/// Longest hook payload. A longer one is read to its end and ignored; the largest known tool
/// results are far shorter.
pub const PAYLOAD_BYTES: usize = 16 << 20;
/// How long a hook may take in all, including its wait for a locked store.
pub const HOOK_BUDGET: Span = Span(2000);
/// How long a hook waits for another process that writes. It leaves time within [`HOOK_BUDGET`] to
/// log the failure.
pub const HOOK_LOCK_WAIT: Span = Span(1500);
/// How long a command or an MCP call waits for another process that writes. A person waits longer
/// than a hook may.
pub const COMMAND_LOCK_WAIT: Span = Span::seconds(10);
/// How far before an offer the search for its proof starts, to find the response that the offer
/// belongs to.
pub const LOOK_BEHIND_BYTES: u64 = 256 << 10;
/// How much of a transcript one search reads. Offers are checked every few events, so only a
/// transcript that grew by more in between reaches this. Then the next search goes on from there.
pub const LOOK_BYTES: u64 = 64 << 20;
/// How long a hook waits for an agent to record what it took, if mail would otherwise be stuck.
pub const SETTLE_WAIT: Span = Span(400);
/// Room that the list of open asks takes from the mail of the same event.
pub const REMINDER_SIZE: usize = 2_500;
/// How often an offer of one message may come back before baton gives up and tells its sender.
pub const MAX_RETURNS: u32 = 20;
/// A command or a server that makes the WAL longer than this folds it into the store.
pub const WAL_BYTES_COMMAND: u64 = 256 << 10;
/// A hook folds the WAL only beyond this. So it stays bounded even if only hooks write.
pub const WAL_BYTES_HOOK: u64 = 1 << 20;
/// How often a waiting process reads the store without a ring. This bounds the delay of a lost
/// ring.
pub const SWEEP_INTERVAL: Span = Span::seconds(5);
/// How many sessions the MCP tool `who` lists, and in how many bytes, because the list goes into a
/// context.
pub const MAX_WHO_SESSIONS: usize = 100;
/// See [`MAX_WHO_SESSIONS`].
pub const WHO_BYTES: usize = 32 << 10;
/// How many names of unknown events and tools are kept per agent. More of them say nothing new.
pub const MAX_UNKNOWN_NAMES: usize = 100;
/// Longest such name that is kept. As a file name it can take three times as many bytes.
pub const UNKNOWN_NAME_BYTES: usize = 80;
/// How long baton waits before it notes the same unknown name again.
pub const UNKNOWN_NOTE_INTERVAL: Span = Span::days(1);
/// Longest question that is kept whole. The rest can't be shown, so a longer one can't be approved
/// here.
pub const SUBJECT_BYTES: usize = 256 << 10;
/// Longest line that stands for a question in lists.
pub const HEAD_CHARS: usize = 120;
/// A log that grows beyond this is moved aside, and a new one starts.
pub const LOG_BYTES: u64 = 1 << 20;

/// How long git may take for all questions of the guard about one repository. What it has not
/// answered by then is unknown.
pub const GIT_BUDGET: Span = Span(1200);
/// Longest configuration file of the person or a project. A longer one is refused like one with a
/// mistake.
pub const CONFIG_BYTES: u64 = 1 << 20;
/// Longest small file of another program: a registry, a pointer to a session, settings.
pub const AGENT_FILE_BYTES: u64 = 4 << 20;
/// Longest file that only holds a path, such as git's `HEAD`.
pub const POINTER_BYTES: u64 = 64 << 10;
/// Longest small file that baton writes itself.
pub const OWN_FILE_BYTES: u64 = 4 << 20;
/// Longest transcript that is read whole, at the end of a job.
pub const TRANSCRIPT_BYTES: u64 = 1 << 30;

/// The limits that a person may set. A project's file may only lower them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Messages that one event may bring into a context.
    pub messages_per_event: usize,
    /// Characters that one event may bring, if the agent accepts that many.
    pub chars_per_event: usize,
    /// How many times in a row mail may keep a session from stopping.
    pub stops_in_a_row: u32,
    /// How many replies a chain may have without a person's turn.
    pub hops: u32,
    /// Messages between one pair of agents within [`Limits::pair_window`].
    pub pair_messages: u32,
    /// The window of [`Limits::pair_messages`].
    pub pair_window: Span,
    /// Whether the person at a session's terminal sees a line for each message that comes.
    pub show_mail: bool,
    /// How long mail waits for its recipient before it expires.
    pub ttl: Span,
    /// How long seen mail and the trail are kept.
    pub keep: Span,
    /// How large the store may grow before seen mail is trimmed early.
    pub keep_bytes: u64,
    /// Messages that may wait in one mailbox.
    pub mailbox: u32,
    /// Whether idle sessions are woken at all.
    pub wake: bool,
    /// Automatic wakes of one recipient within an hour.
    pub wakes_per_hour: u32,
    /// Whether a session may be woken while no person is in front of it.
    pub wake_unattended: bool,
    /// What a job may do without asking.
    pub job_allow: Allow,
    /// How long a job may take in all.
    pub job_timeout: Span,
    /// A job in which nothing happens for this long has stalled.
    pub job_idle: Span,
    /// How long a job's model may be out of reach.
    pub job_retry: Span,
    /// How deep jobs may be nested.
    pub job_depth: u32,
    /// How long ended jobs are kept.
    pub job_keep: Span,
    /// How long a question that no person would see is held for an answer.
    pub approval_hold: Span,
    /// Whether another agent reviews before a session may stop.
    pub review_gate: bool,
    /// The reviewer; `None` for another agent than the one that stops.
    pub review_agent: Option<&'static str>,
    /// How often in a row a review may keep a session from stopping.
    pub review_rounds: u32,
    /// How long a review before a stop may take.
    pub review_timeout: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages_per_event: 20,
            chars_per_event: 10_000,
            stops_in_a_row: 5,
            hops: 8,
            pair_messages: 60,
            pair_window: Span::minutes(10),
            show_mail: true,
            ttl: Span::days(7),
            keep: Span::days(30),
            keep_bytes: 200 << 20,
            mailbox: 10_000,
            wake: true,
            wakes_per_hour: 60,
            wake_unattended: false,
            job_allow: Allow::Edits,
            job_timeout: Span::minutes(240),
            job_idle: Span::minutes(60),
            job_retry: Span::minutes(10),
            job_depth: 1,
            job_keep: Span::days(30),
            approval_hold: Span::seconds(55),
            review_gate: false,
            review_agent: None,
            review_rounds: 2,
            review_timeout: Span::minutes(5),
        }
    }
}
