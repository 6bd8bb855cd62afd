//! Decides what one event does to the mail of its session.
//!
//! [`plan`] is a pure function from what is known ([`Facts`]) to what must be done ([`Plan`]). The
//! caller executes the plan in one transaction. Most events need few facts, and some facts cost a
//! read of a file or of the store. Such a fact is `None` until the plan depends on it. Then `plan`
//! names it ([`Missing`]), and the caller reads it and calls `plan` again.
//!
//! ```text
//! loop { match plan(&facts) { Ok(plan) => execute(plan), Err(missing) => facts.read(missing) } }
//! ```
//!
//! Nothing here knows which agent sent the event: what differs between agents is in [`AgentFacts`].

use super::proof::{Anchor, Proof};
use super::turn::{self, Occasion, Settle, View};
use crate::event::{Event, EventKind, Reply, Source};
use crate::id::{OfferId, WakeId};
use crate::limits::{self, Limits};
use crate::session::{self, State};
use crate::wake;

/// What is known when an event comes in.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    pub event: &'a Event,
    /// What the store knows about its session.
    pub session: SessionFacts<'a>,
    /// How its agent behaves.
    pub agent: AgentFacts,
    /// The open offers of its participant.
    pub offers: Vec<OfferFacts<'a>>,
    /// Facts that cost a read.
    pub reads: Reads,
}

/// What the store knows about a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionFacts<'a> {
    /// What it was doing before the event.
    pub state: State,
    /// The agent's id of the turn that began last.
    pub turn: Option<&'a str>,
    /// The transcript's length when that turn began.
    pub turn_from: u64,
    /// Times in a row that mail kept it from stopping.
    pub stops: u32,
    /// The file of its conversation.
    pub transcript: Option<&'a str>,
    /// The open mail offer. While there is one, no other mail is offered.
    pub mail_offer: Option<OfferId>,
    /// Mail is queued for it.
    pub queued: bool,
    /// Its wake, if no event has confirmed it yet.
    pub wake: Option<WakeId>,
    /// Only urgent mail may reach it now.
    pub only_urgent: bool,
    /// No person has said anything in it yet.
    pub fresh: bool,
    /// This event resumes it in another process than before, so its transcript is complete.
    pub resumed: bool,
}

/// How an agent behaves, as far as mail depends on it.
#[derive(Clone, Copy, Debug)]
pub struct AgentFacts {
    /// It passes a hook's text on to its model at this event.
    pub takes_context: bool,
    /// A prompt that is typed into a running turn may be held for minutes, or taken back without a
    /// trace.
    pub holds_typed_ahead: bool,
    /// Its stop hook also runs when the person interrupts the turn.
    pub stops_when_interrupted: bool,
    /// Only its transcript shows a compaction.
    pub writes_summaries: bool,
    /// Its model gets what a hook prints at the start of a session.
    pub hears_at_start: bool,
}

/// An open offer.
#[derive(Clone, Copy, Debug)]
pub struct OfferFacts<'a> {
    pub id: OfferId,
    /// It was made for the event's own session.
    pub of_this_session: bool,
    /// The agent's id of the turn it was made in.
    pub turn: Option<&'a str>,
    /// It was made for another session, which has ended.
    pub session_over: bool,
    /// What was read about it so far.
    pub proof: Option<ProofRead>,
}

/// What was read about an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofRead {
    /// What it proves.
    pub proof: Proof,
    /// A longer wait would show nothing new.
    pub waited: bool,
}

/// Facts that cost a read. `None` means not read yet.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    /// Urgent mail is queued.
    pub urgent_waits: Option<bool>,
    /// The settings.
    pub limits: Option<Limits>,
    /// The transcript's length now; zero without one.
    pub transcript_length: Option<u64>,
    /// The agent has already written down a prompt of the event's turn.
    pub turn_is_written: Option<bool>,
    /// The turn was taken back, not answered.
    pub turn_is_taken_back: Option<bool>,
    /// The participant has asks that are still open, in either direction.
    pub has_open_asks: Option<bool>,
    /// A summary has replaced the conversation since the last turn began.
    pub is_summarized: Option<bool>,
    /// The session continues another one of its participant.
    pub is_continuation: Option<bool>,
}

/// A fact that a plan depends on and that is not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Search for the proof of [`Facts::offers`]`[index]`.
    Proof(usize),
    /// Search again, and wait a moment for the agent to write: no later event may search soon.
    PatientProof(usize),
    /// [`Reads::urgent_waits`].
    UrgentWaits,
    /// [`Reads::limits`].
    Limits,
    /// [`Reads::transcript_length`].
    TranscriptLength,
    /// [`Reads::turn_is_written`].
    TurnIsWritten,
    /// [`Reads::turn_is_taken_back`].
    TurnIsTakenBack,
    /// [`Reads::has_open_asks`].
    HasOpenAsks,
    /// [`Reads::is_summarized`].
    IsSummarized,
    /// [`Reads::is_continuation`].
    IsContinuation,
}

/// What becomes of one open offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub offer: OfferId,
    pub how: Settle,
}

/// A turn that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnStart {
    /// The agent's id for it.
    pub id: Option<String>,
    /// The transcript's length when it began.
    pub from: u64,
    /// A person began it.
    pub by_person: bool,
}

/// An offer to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOffer {
    pub anchor: Anchor,
    /// The turn it is made in.
    pub turn: Option<String>,
    /// The transcript's length now.
    pub position: u64,
    /// Where the search for its proof starts to read.
    pub read_from: u64,
    /// It keeps the session from stopping.
    pub at_stop: bool,
    /// It takes only urgent mail.
    pub only_urgent: bool,
}

/// What must be done about one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What becomes of the open offers.
    pub settle: Vec<Settlement>,
    /// The session's new state.
    pub state: Option<State>,
    /// The file of its conversation, if that is new.
    pub transcript: Option<String>,
    /// The turn that begins.
    pub turn: Option<TurnStart>,
    /// The wake that this event confirms.
    pub confirms: Option<WakeId>,
    /// The offer to make. The store may still find no mail for it.
    pub offer: Option<NewOffer>,
    /// The model gets a reminder of its open asks.
    pub reminds: bool,
    /// The event is a wake line, and no mail waits, so the prompt must not reach the model.
    pub swallows_prompt: bool,
    /// Mail is left over if no offer is made now.
    leaves_mail: bool,
    /// The event ends a turn, so a reply makes the turn go on.
    at_stop: bool,
    /// Mail waits, whether or not it may come into the session now.
    mail_waits: bool,
    /// The event says that no turn runs.
    ends_turn: bool,
    /// The session ends.
    ends: bool,
}

impl Plan {
    /// Whether the plan writes to the store.
    pub fn writes(&self) -> bool {
        self.offer.is_some()
            || self.state.is_some()
            || self.turn.is_some()
            || self.transcript.is_some()
            || self.confirms.is_some()
            || self.settle.iter().any(|settlement| settlement.how != Settle::Keep)
    }

    /// The reply to the agent. `mail` is the text of the offer that was made, `reminder` the list
    /// of open asks.
    pub fn reply(&self, mail: Option<String>, reminder: Option<String>) -> Reply {
        match (mail, reminder) {
            (None, None) if self.swallows_prompt => Reply::Block(wake::NOTHING_WAITS.to_owned()),
            (None, None) => Reply::Silent,
            (None, Some(reminder)) => Reply::Context(reminder),
            (Some(mail), reminder) => {
                let text = reminder.map_or_else(|| mail.clone(), |reminder| format!("{reminder}\n{mail}"));
                if self.at_stop { Reply::Continue(text) } else { Reply::Context(text) }
            }
        }
    }

    /// Whether the session is idle after the plan was executed, and mail is left in the queue.
    /// `offered` says whether an offer was made.
    ///
    /// Mail that comes after the facts were read has a living sender. That sender finds the session
    /// idle and wakes it, or finds it busy and has the mail followed.
    pub fn leaves_mail_idle(&self, offered: bool) -> bool {
        !offered && self.mail_waits && (self.ends_turn || self.state == Some(State::Idle))
    }

    /// Whether the participant's bell rings after the plan was executed: mail is left over after a
    /// stop, a wake was confirmed, or the session ended. `offered` says whether an offer was made.
    pub fn rings(&self, offered: bool) -> bool {
        self.leaves_mail && !offered || self.confirms.is_some() || self.ends
    }
}

/// Decides what one event does to the mail of its session, or names the fact that is missing for
/// that.
pub fn plan(facts: &Facts<'_>) -> Result<Plan, Missing> {
    let Facts { event, session, agent, reads, .. } = facts;
    let settle = settle_offers(facts)?;
    let settled = |id| settle.iter().any(|one: &Settlement| one.offer == id && one.how != Settle::Keep);
    let open = session.mail_offer.is_some_and(|id| !settled(id));
    let returns = settle.iter().any(|one| matches!(one.how, Settle::Return | Settle::Doubt));
    // Mail that returns to the queue now counts as waiting too.
    let waits = if session.only_urgent {
        session.queued && reads.urgent_waits.ok_or(Missing::UrgentWaits)?
    } else {
        session.queued || returns
    };
    let may_deliver = |view: View| {
        if !waits {
            // No mail waits, so no limit applies: a quiet hook does not read the settings.
            return Ok(false);
        }
        let limits = reads.limits.as_ref().ok_or(Missing::Limits)?;
        Ok(turn::may_deliver(event, view, agent.takes_context, limits))
    };
    let mut view = View { open, queued: waits, stops: session.stops, turn_running: false };
    let prompts = matches!(event.kind, EventKind::Prompt | EventKind::Woken);
    if prompts && agent.holds_typed_ahead && event.turn.is_some() {
        let noted = event.turn.as_deref() == session.turn;
        // Only two decisions depend on it: to bring mail with this prompt, and to swallow it.
        let matters = !noted && (may_deliver(view)? || turn::is_in_vain(event, view));
        view.turn_running = noted || (matters && reads.turn_is_written.ok_or(Missing::TurnIsWritten)?);
    }
    let may_be_taken_back = event.kind == EventKind::Stop && agent.stops_when_interrupted;
    let delivers = may_deliver(view)?
        && !(may_be_taken_back && reads.turn_is_taken_back.ok_or(Missing::TurnIsTakenBack)?);
    let swallows_prompt = turn::is_in_vain(event, view);
    // A request may still belong to the turn before a prompt that was typed meanwhile.
    let new_turn = event.turn.is_some()
        && event.turn.as_deref() != session.turn
        && event.kind != EventKind::Request
        && !swallows_prompt;
    let by_person = event.kind == EventKind::Prompt && !view.turn_running;
    let length = if delivers || new_turn || by_person {
        reads.transcript_length.ok_or(Missing::TranscriptLength)?
    } else {
        0
    };
    let begins = new_turn || (by_person && event.turn.is_none());
    let turn_from = if begins { length } else { session.turn_from };
    // A question may be settled after its turn.
    let runs_a_turn = session::after(event) == Some(State::Busy) && event.kind != EventKind::QuestionSettled;
    let named = event.transcript.as_ref().map(|path| path.to_string_lossy().into_owned());
    Ok(Plan {
        state: session::change(session.state, event).filter(|_| !swallows_prompt),
        // A session that one of its own commands registered, before any hook ran, has no transcript
        // yet.
        transcript: named.filter(|path| session.transcript != Some(path)),
        turn: (new_turn || by_person).then(|| TurnStart {
            id: event.turn.clone(),
            from: turn_from,
            by_person,
        }),
        confirms: session.wake.filter(|_| runs_a_turn),
        offer: delivers.then(|| NewOffer {
            anchor: anchor(event),
            turn: event.turn.clone().or_else(|| session.turn.map(str::to_owned)),
            position: length,
            read_from: start_of_search(turn_from, length),
            at_stop: event.kind == EventKind::Stop,
            only_urgent: session.only_urgent,
        }),
        reminds: !swallows_prompt && reminds(facts)?,
        swallows_prompt,
        leaves_mail: event.kind == EventKind::Stop && waits && !open,
        at_stop: event.kind == EventKind::Stop,
        mail_waits: session.queued || returns,
        ends_turn: matches!(event.kind, EventKind::Stop | EventKind::Interrupted | EventKind::IdleNotice)
            || swallows_prompt,
        ends: event.kind == EventKind::End,
        settle,
    })
}

/// What becomes of each open offer, by its proof.
fn settle_offers(facts: &Facts<'_>) -> Result<Vec<Settlement>, Missing> {
    let mut settled = Vec::with_capacity(facts.offers.len());
    for (index, offer) in facts.offers.iter().enumerate() {
        let occasion = occasion(facts, offer);
        let read = offer.proof.ok_or(Missing::Proof(index))?;
        if !read.waited && is_worth_a_wait(facts.event.kind, read.proof, occasion) {
            return Err(Missing::PatientProof(index));
        }
        settled.push(Settlement { offer: offer.id, how: turn::settle(read.proof, occasion) });
    }
    Ok(settled)
}

/// Whether to wait for the agent to write, because no event searches again soon. That is so at a
/// stop, where mail that was not taken can return for the last time in this turn. It is so at the
/// end, after which mail without proof goes back to the queue. And it is so before an offer counts
/// as unprovable.
fn is_worth_a_wait(event: EventKind, proof: Proof, occasion: Occasion) -> bool {
    match proof {
        Proof::Blind => occasion != Occasion::Passing,
        Proof::Open => matches!(event, EventKind::Stop | EventKind::End),
        Proof::Held => event == EventKind::Stop,
        Proof::Proven | Proof::Passed => false,
    }
}

/// The occasion that an event is for an open offer.
fn occasion(facts: &Facts<'_>, offer: &OfferFacts<'_>) -> Occasion {
    let event = facts.event;
    if !offer.of_this_session {
        return if offer.session_over { Occasion::Replaced } else { Occasion::Passing };
    }
    if facts.session.resumed {
        return Occasion::Ended;
    }
    // This is a second hook of the offer's own prompt, or a prompt that was typed into its turn. No
    // turn has ended, and none begins.
    let prompts = matches!(event.kind, EventKind::Prompt | EventKind::Woken);
    let same_turn = prompts && event.turn.is_some() && event.turn.as_deref() == offer.turn;
    if same_turn { Occasion::Passing } else { Occasion::of(event) }
}

/// Whether the model no longer has its open asks in its context: after a clear or a compaction. If
/// an agent drops what a hook prints at a start, the reminder comes with the first prompt after a
/// clear. If only the transcript shows a compaction, it comes with the first prompt after that.
fn reminds(facts: &Facts<'_>) -> Result<bool, Missing> {
    let Facts { event, session, agent, reads, .. } = facts;
    let has_open_asks = || reads.has_open_asks.ok_or(Missing::HasOpenAsks);
    let lost_sight = match event.kind {
        EventKind::Prompt | EventKind::Woken if agent.writes_summaries => {
            // Few sessions have open asks, so that is read first.
            return Ok(has_open_asks()? && reads.is_summarized.ok_or(Missing::IsSummarized)?);
        }
        EventKind::Start(Source::Clear | Source::Compact) => agent.hears_at_start,
        EventKind::Prompt if session.fresh && !agent.hears_at_start => {
            reads.is_continuation.ok_or(Missing::IsContinuation)?
        }
        _ => false,
    };
    Ok(lost_sight && has_open_asks()?)
}

fn anchor(event: &Event) -> Anchor {
    match event.kind {
        EventKind::Start(_) => Anchor::Start,
        EventKind::Prompt | EventKind::Woken => Anchor::Prompt,
        EventKind::Stop => Anchor::Stop,
        _ => Anchor::Tools(event.calls.clone()),
    }
}

/// The transcript offset from which to search for the proof of an offer that is made now. It is a
/// little before the offer's turn, to learn which response the offer belongs to, but no further
/// back than one search reads.
pub fn start_of_search(turn_from: u64, length: u64) -> u64 {
    let turn = turn_from.min(length).saturating_sub(limits::LOOK_BEHIND_BYTES);
    turn.max(length.saturating_sub(limits::LOOK_BYTES / 2))
}

#[cfg(test)]
mod tests;
