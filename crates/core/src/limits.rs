//! Every limit of baton, each with a name and a reason. Those that a person may set are in [`Limits`].

use crate::job::Allow;
use crate::time::Span;

/// Longest body of a message. More belongs in a file, whose path is the message.
pub const BODY_BYTES: usize = 65_536;
/// Longest name of a participant.
pub const NAME_CHARS: usize = 32;
/// Longest tag.
pub const TAG_CHARS: usize = 32;
/// Longest idempotency key, thread or foreign id that we store.
pub const LABEL_BYTES: usize = 512;
/// Recipients of one send.
pub const RECIPIENTS: usize = 100;
/// A hook payload beyond this is drained and ignored; the largest tool results seen are far below.
pub const PAYLOAD_BYTES: usize = 16 << 20;
/// How long a hook may take in all, including its wait for a locked store.
pub const HOOK_BUDGET: Span = Span(2000);
/// How long a hook waits for another process that writes; leaves room within [`HOOK_BUDGET`] to say so in the log.
pub const HOOK_LOCK_WAIT: Span = Span(1500);
/// How long a command or an MCP call waits for another process that writes.
pub const COMMAND_LOCK_WAIT: Span = Span::seconds(10);
/// How far before an offer's position the search for proof starts, to learn which response it hangs on.
pub const LOOK_BEHIND: u64 = 256 << 10;
/// How much of a transcript one look reads at most. An offer is looked at each few events, so only a
/// transcript that grew by more in between meets this, and then the look goes on next time.
pub const LOOK_BYTES: u64 = 64 << 20;
/// How long a hook waits for an agent to write down what it took, when mail would otherwise be stranded.
pub const SETTLE_WAIT: Span = Span(400);
/// Offers of one message that came back before we give up and tell its sender.
pub const MAX_RETURNS: u32 = 20;
/// A WAL longer than this is folded into the store by the command or server that made it so.
pub const WAL_BYTES_COMMAND: u64 = 256 << 10;
/// A hook folds it only past this, so that a store which only hooks write to stays bounded too.
pub const WAL_BYTES_HOOK: u64 = 1 << 20;
/// A lost doorbell is noticed after this.
pub const SWEEP: Span = Span::seconds(5);
/// Sessions that the MCP tool `who` lists at most, and the bytes that they take at most: the list goes into a context.
pub const WHO_SESSIONS: usize = 100;
/// See [`WHO_SESSIONS`].
pub const WHO_BYTES: usize = 32 << 10;
/// Names of unknown events and tools that are kept per agent; more of them than this say nothing new.
pub const UNKNOWN_NAMES: usize = 100;
/// Longest such name, as it is kept; a file's name takes three times as much.
pub const UNKNOWN_NAME_BYTES: usize = 80;
/// An unknown name that keeps coming is noted again only after this.
pub const UNKNOWN_AGAIN: Span = Span::days(1);
/// The hook's log is started anew past this size.
pub const LOG_BYTES: u64 = 1 << 20;

/// The limits that a person may set. A project's file may only lower them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Messages that one event may bring into a context.
    pub messages_per_event: usize,
    /// Characters that one event may bring, if the agent takes that many.
    pub chars_per_event: usize,
    /// Times in a row that mail may keep a session from stopping.
    pub stops_in_a_row: u32,
    /// Replies in a chain without a person's turn.
    pub hops: u32,
    /// Messages between one pair of agents within [`Limits::pair_window`].
    pub pair_messages: u32,
    /// The window of [`Limits::pair_messages`].
    pub pair_window: Span,
    /// How long mail waits for its recipient.
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
    /// Whether a session may be woken although nobody sits in front of it.
    pub wake_unattended: bool,
    /// What a job may do without asking.
    pub job_allow: Allow,
    /// How long a job may take in all.
    pub job_timeout: Span,
    /// A job in which nothing happens for so long has stalled.
    pub job_idle: Span,
    /// A job's model may be out of reach for so long.
    pub job_retry: Span,
    /// So many jobs may stand above one another.
    pub job_depth: u32,
    /// How long ended jobs are kept.
    pub job_keep: Span,
    /// How long a question that nobody would see is held for an answer.
    pub approval_hold: Span,
    /// Whether another agent reviews before a session may stop.
    pub review_gate: bool,
    /// Who reviews there; `None` for another agent than the one that stops.
    pub review_agent: Option<&'static str>,
    /// How often in a row a review may keep a session from stopping.
    pub review_rounds: u32,
    /// How long such a review may take.
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
