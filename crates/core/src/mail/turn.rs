//! What one event may do to the mail of its session.

use super::proof::Look;
use crate::event::{Event, EventKind};
use crate::limits::Limits;
use crate::session::State;

/// What is known about the recipient when an event comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct View {
    /// An offer is open.
    pub open: bool,
    /// Something is queued.
    pub queued: bool,
    /// Times in a row that mail has kept this session from stopping.
    pub stops: u32,
    /// The turn that the event belongs to was already running before it.
    pub turn_running: bool,
}

/// Why we look at an open offer: it decides what an unclear look means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Something happened in the session; more will.
    Passing,
    /// A turn ended or a new one begins: whoever leaves no proof has had its chance.
    Boundary,
    /// The session ended, or its process did: the file is complete. Whoever resumes it goes on with what is in it.
    Ended,
    /// The participant went on in another session: nothing goes on with that file.
    Replaced,
}

impl Occasion {
    /// The occasion that an event of the offer's own session is. Whether a start is a resume of a dead process is for the caller to know.
    pub fn of(event: &Event) -> Self {
        match event.kind {
            EventKind::Stop | EventKind::Prompt | EventKind::Woken | EventKind::IdleNotice => Self::Boundary,
            EventKind::End => Self::Ended,
            _ => Self::Passing,
        }
    }
}

/// What becomes of an open offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Its messages are in the context.
    Seen,
    /// Its messages go back to the queue.
    Return,
    /// Nobody can know: offered once more and marked so, or given up as unconfirmed.
    Doubt,
    /// It stays open.
    Keep,
}

/// Judges an open offer by what the look found.
///
/// | look | passing | boundary | ended | replaced |
/// |---|---|---|---|---|
/// | proven | seen | seen | seen | seen |
/// | passed | return | return | return | return |
/// | held | keep | keep | keep | return |
/// | open | keep | keep | return | return |
/// | blind | keep | doubt | doubt | doubt |
pub fn settle(look: Look, occasion: Occasion) -> Settle {
    use Occasion::{Boundary, Ended, Passing, Replaced};
    match (look, occasion) {
        (Look::Proven, _) => Settle::Seen,
        (Look::Passed, _) | (Look::Held, Replaced) | (Look::Open, Ended | Replaced) => Settle::Return,
        (Look::Blind, Boundary | Ended | Replaced) => Settle::Doubt,
        (Look::Held, Passing | Boundary | Ended)
        | (Look::Open, Passing | Boundary)
        | (Look::Blind, Passing) => Settle::Keep,
    }
}

/// Whether mail may be pushed into a session that nobody has asked anything: only while it is idle. `takes` says whether its agent takes pushes.
pub fn may_push(state: State, view: View, takes: bool) -> bool {
    takes && state == State::Idle && view.queued && !view.open
}

/// Whether an event is the line that woke a session, in vain: nothing waits, and no offer is open. One that is may have been made with this
/// very prompt, by another hook of ours; else the answer to it is the proof that it lacks.
pub fn is_in_vain(event: &Event, view: View) -> bool {
    event.kind == EventKind::Woken && !view.queued && !view.open && !view.turn_running
}

/// Whether this event may bring mail. `takes` says whether the agent passes a hook's text on at this event at all.
pub fn may_deliver(event: &Event, view: View, takes: bool, limits: &Limits) -> bool {
    if !takes || view.open || !view.queued || event.subagent.is_some() {
        return false;
    }
    match event.kind {
        EventKind::Start(source) => source.is_new_turnless(),
        EventKind::AfterTool | EventKind::AfterTools => true,
        // A prompt that is typed into a running turn may be held for minutes, or taken back without a trace.
        EventKind::Prompt | EventKind::Woken => !view.turn_running,
        EventKind::Stop => view.stops < limits.stops_in_a_row,
        // Before a tool it reaches the model no earlier, and is lost when the person interrupts.
        EventKind::BeforeTool
        | EventKind::Request
        | EventKind::PushFailed
        | EventKind::Continued
        | EventKind::Blocked
        | EventKind::IdleNotice
        | EventKind::Interrupted
        | EventKind::Compacting
        | EventKind::SubagentStart
        | EventKind::SubagentStop
        | EventKind::End
        | EventKind::Other
        | EventKind::Unknown => false,
    }
}
