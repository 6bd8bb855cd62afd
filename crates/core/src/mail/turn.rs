//! What one event may do to the mail of its session.

use super::proof::Proof;
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

/// Why an open offer is judged now. It decides what an unclear proof means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Something happened in the session, and more will.
    Passing,
    /// A turn ended or a new one begins. An agent that leaves no proof had its chance.
    Boundary,
    /// The session ended, or its process did. The file is complete, and a resumed session goes on
    /// with its content.
    Ended,
    /// The participant went on in another session. No session goes on with that file.
    Replaced,
}

impl Occasion {
    /// The occasion that an event is for an offer of its own session. The caller knows whether a
    /// start resumes a dead process.
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
    /// It can't be known. The messages are offered once more and marked as a possible repeat, or
    /// end as unconfirmed.
    Doubt,
    /// It stays open.
    Keep,
}

/// Judges an open offer by its proof.
///
/// | proof | passing | boundary | ended | replaced |
/// |---|---|---|---|---|
/// | proven | seen | seen | seen | seen |
/// | passed | return | return | return | return |
/// | held | keep | keep | keep | return |
/// | open | keep | keep | return | return |
/// | blind | keep | doubt | doubt | doubt |
pub fn settle(proof: Proof, occasion: Occasion) -> Settle {
    use Occasion::{Boundary, Ended, Passing, Replaced};
    match (proof, occasion) {
        (Proof::Proven, _) => Settle::Seen,
        (Proof::Passed, _) | (Proof::Held, Replaced) | (Proof::Open, Ended | Replaced) => Settle::Return,
        (Proof::Blind, Boundary | Ended | Replaced) => Settle::Doubt,
        (Proof::Held, Passing | Boundary | Ended)
        | (Proof::Open, Passing | Boundary)
        | (Proof::Blind, Passing) => Settle::Keep,
    }
}

/// Whether mail may be pushed into a session: only while it is idle. `takes` says whether its agent
/// takes pushes.
pub fn may_push(state: State, view: View, takes: bool) -> bool {
    takes && state == State::Idle && view.queued && !view.open
}

/// Whether an event is a wake line in vain: no mail waits, and no offer is open. An open offer may
/// have been made with this prompt, by another hook. If not, the answer to this prompt is the proof
/// that the offer lacks.
pub fn is_in_vain(event: &Event, view: View) -> bool {
    event.kind == EventKind::Woken && !view.queued && !view.open && !view.turn_running
}

/// Whether this event may bring mail. `takes` says whether the agent passes a hook's text on at
/// this event at all.
pub fn may_deliver(event: &Event, view: View, takes: bool, limits: &Limits) -> bool {
    if !takes || view.open || !view.queued || event.subagent.is_some() {
        return false;
    }
    match event.kind {
        EventKind::Start(source) => source.is_new_turnless(),
        EventKind::AfterTool | EventKind::AfterTools => true,
        // An agent may hold a prompt that is typed into a running turn for minutes, or the person
        // may take it back without a trace.
        EventKind::Prompt | EventKind::Woken => !view.turn_running,
        EventKind::Stop => view.stops < limits.stops_in_a_row,
        // Mail before a tool reaches the model no earlier than mail after it, and is lost if the
        // person interrupts.
        EventKind::BeforeTool
        | EventKind::Request
        | EventKind::PushFailed
        | EventKind::Continued
        | EventKind::Blocked
        | EventKind::QuestionSettled
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

#[cfg(test)]
mod tests {
    use super::*;

    const WAITING: View = View { open: false, queued: true, stops: 0, turn_running: false };

    #[test]
    fn mail_is_pushed_only_into_an_idle_session_of_an_agent_that_takes_pushes() {
        assert!(may_push(State::Idle, WAITING, true));
        assert!(!may_push(State::Idle, WAITING, false));
        for state in [State::Busy, State::Blocked, State::Gone] {
            assert!(!may_push(state, WAITING, true), "{state:?}");
        }
        assert!(!may_push(State::Idle, View { queued: false, ..WAITING }, true));
        assert!(!may_push(State::Idle, View { open: true, ..WAITING }, true));
    }

    #[test]
    fn a_subagent_takes_no_mail() {
        let event = Event::new(EventKind::AfterTools, "s");
        assert!(may_deliver(&event, WAITING, true, &Limits::default()));
        let of_subagent = Event { subagent: Some("a".to_owned()), ..event };
        assert!(!may_deliver(&of_subagent, WAITING, true, &Limits::default()));
    }
}
