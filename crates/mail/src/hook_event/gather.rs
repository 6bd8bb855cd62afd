//! Gathers the facts that the plan of an event depends on, and reads no others.

use super::{Caller, takes_only_urgent};
use crate::evidence;
use baton_agents::Agent;
use baton_core::Error;
use baton_core::event::{Event, EventKind, Source};
use baton_core::frame;
use baton_core::limits::{self, Limits};
use baton_core::mail::plan::{AgentFacts, OfferFacts, ProofRead, Reads, SessionFacts};
use baton_core::mail::{self, Facts, Missing, Plan, Proof, Turns};
use baton_machine::process;
use baton_store::{HookView, OpenOffer, Store};
use std::path::Path;
use std::time::Instant;

/// Open asks of each direction that a reminder lists.
const MAX_REMINDER_ASKS: usize = 5;

/// The plan for an event, with what was read to make it.
pub(super) struct Gathered {
    pub(super) plan: Plan,
    /// The settings if mail waits, else the defaults.
    pub(super) limits: Limits,
    /// The list of open asks, if the plan reminds the model of them.
    pub(super) reminder: Option<String>,
}

/// Decides what an event does to its session's mail.
pub(super) fn plan(
    store: &Store,
    caller: &Caller<'_>,
    event: &Event,
    view: &HookView,
    resumed: bool,
) -> Result<Gathered, Error> {
    let transcript = event.transcript.as_deref().or(view.transcript.as_deref().map(Path::new));
    let mut open = Vec::with_capacity(view.open.len());
    for id in &view.open {
        // Another hook may have settled an offer meanwhile.
        open.extend(store.open_offer(*id)?);
    }
    let reader = Reader {
        store,
        caller,
        event,
        view,
        transcript,
        open: &open,
        // All offers share one wait.
        deadline: Instant::now() + limits::SETTLE_WAIT.to_std(),
    };
    let mut facts = Facts {
        event,
        session: session_facts(view, resumed),
        agent: agent_facts(caller.agent, event.kind),
        offers: open.iter().map(|offer| offer_facts(offer, view)).collect(),
        reads: Reads::default(),
    };
    let mut reminder = None;
    loop {
        match mail::plan(&facts) {
            Ok(plan) => {
                let reminder = reminder.filter(|_| plan.reminds);
                return Ok(Gathered { plan, limits: facts.reads.limits.unwrap_or_default(), reminder });
            }
            Err(missing) => reader.read(missing, &mut facts, &mut reminder)?,
        }
    }
}

fn session_facts(view: &HookView, resumed: bool) -> SessionFacts<'_> {
    SessionFacts {
        state: view.state,
        turn: view.turn.as_deref(),
        turn_from: view.turn_from,
        stops: view.stops,
        transcript: view.transcript.as_deref(),
        mail_offer: view.mail_offer,
        queued: view.queued,
        wake: view.wake,
        only_urgent: takes_only_urgent(view),
        fresh: view.fresh,
        resumed,
    }
}

fn agent_facts(agent: &dyn Agent, event: EventKind) -> AgentFacts {
    AgentFacts {
        takes_context: agent.context_limit(event).is_some(),
        holds_typed_ahead: agent.quirks().holds_typed_ahead,
        stops_when_interrupted: agent.quirks().stops_when_interrupted,
        writes_summaries: agent.quirks().writes_summaries,
        hears_at_start: agent.quirks().hears_at_start,
    }
}

fn offer_facts<'a>(offer: &'a OpenOffer, view: &HookView) -> OfferFacts<'a> {
    let of_this_session = offer.session == view.session;
    let is_dead = || offer.process.is_some_and(|process| !process::is_alive(process));
    OfferFacts {
        id: offer.id,
        of_this_session,
        turn: offer.turn.as_deref(),
        session_over: !of_this_session && (offer.ended || is_dead()),
        proof: None,
    }
}

/// Reads single facts.
struct Reader<'a> {
    store: &'a Store,
    caller: &'a Caller<'a>,
    event: &'a Event,
    view: &'a HookView,
    transcript: Option<&'a Path>,
    open: &'a [OpenOffer],
    deadline: Instant,
}

impl Reader<'_> {
    fn read(
        &self,
        missing: Missing,
        facts: &mut Facts<'_>,
        reminder: &mut Option<String>,
    ) -> Result<(), Error> {
        let Self { store, caller, view, transcript, .. } = *self;
        let agent = caller.agent;
        let in_transcript = |read: &dyn Fn(&Path) -> bool| Some(transcript.is_some_and(read));
        match missing {
            Missing::Proof(index) => facts.offers[index].proof = Some(self.read_proof(&self.open[index])),
            Missing::PatientProof(index) => {
                facts.offers[index].proof = Some(self.await_proof(&self.open[index]));
            }
            Missing::UrgentWaits => {
                facts.reads.urgent_waits = Some(store.urgent_waits(view.participant)?);
            }
            Missing::Limits => facts.reads.limits = Some((caller.limits)()),
            Missing::TranscriptLength => {
                facts.reads.transcript_length = Some(evidence::transcript_length(transcript));
            }
            Missing::TurnIsWritten => {
                let length = evidence::transcript_length(transcript);
                facts.reads.transcript_length = Some(length);
                facts.reads.turn_is_written = in_transcript(&|file| self.turn_is_written(file, length));
            }
            Missing::TurnIsTakenBack => {
                facts.reads.turn_is_taken_back =
                    in_transcript(&|file| evidence::turn_is_taken_back(agent, file, view.turn_from));
            }
            Missing::HasOpenAsks => {
                let asks = store.open_asks(view.participant, MAX_REMINDER_ASKS)?;
                *reminder = frame::remind(&asks.mine, &asks.theirs);
                facts.reads.has_open_asks = Some(reminder.is_some());
            }
            Missing::IsSummarized => {
                facts.reads.is_summarized =
                    in_transcript(&|file| evidence::is_summarized(agent, file, view.turn_from));
            }
            Missing::IsContinuation => {
                facts.reads.is_continuation = Some(store.is_continuation(view.session, view.participant)?);
            }
        }
        Ok(())
    }

    fn turn_is_written(&self, file: &Path, length: u64) -> bool {
        let same_file = self.view.transcript.as_deref().map(Path::new) == Some(file);
        let since = if same_file { self.view.turn_from } else { 0 };
        let turn = self.event.turn.as_deref();
        turn.is_some_and(|turn| evidence::turn_is_written(self.caller.agent, file, since, length, turn))
    }

    fn read_proof(&self, offer: &OpenOffer) -> ProofRead {
        let agent = self.agent_of(offer);
        if agent.quirks().shows_requests {
            // Its plugin shows each request, so there is nothing to wait for.
            return ProofRead { proof: self.proof_by_plugin(offer), waited: true };
        }
        ProofRead { proof: evidence::read_proof(agent, offer, self.turn_now()), waited: false }
    }

    fn await_proof(&self, offer: &OpenOffer) -> ProofRead {
        let agent = self.agent_of(offer);
        let proof = evidence::await_proof(agent, offer, self.turn_now(), self.deadline);
        ProofRead { proof, waited: true }
    }

    /// The agent that the offer was made for. Another session of the same participant may run in
    /// another agent, with another transcript format.
    fn agent_of(&self, offer: &OpenOffer) -> &dyn Agent {
        baton_agents::by_name(&offer.agent).unwrap_or(self.caller.agent)
    }

    /// The turn that the session is in. Some agents name a turn only when it begins.
    fn turn_now(&self) -> Option<&str> {
        self.event.turn.as_deref().or(self.view.turn.as_deref())
    }

    /// What an event of a plugin proves about an offer.
    fn proof_by_plugin(&self, offer: &OpenOffer) -> Proof {
        let event = self.event;
        match event.kind {
            EventKind::Request if offer.session == self.view.session => {
                let turns = Turns { offer: offer.turn.clone(), now: event.turn.clone(), unnamed: false };
                let maker_lives = process::is_alive(offer.claimer);
                mail::proof_in_request(&offer.nonce, &offer.anchor, &turns, &event.shown, maker_lives)
            }
            // The model no longer gets what a compaction has summarized.
            EventKind::PushFailed | EventKind::Start(Source::Compact)
                if event.shown.marks.contains(&mail::mark(&offer.nonce)) =>
            {
                Proof::Passed
            }
            _ => Proof::Held,
        }
    }
}
