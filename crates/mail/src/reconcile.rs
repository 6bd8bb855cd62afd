//! Brings the store up to date before it is shown: open offers whose proof has come, sessions whose
//! process has died, and what the agents' own registries say.

use crate::evidence;
use crate::wake::terminal;
use baton_agents::Agent;
use baton_core::Error;
use baton_core::id::ParticipantId;
use baton_core::mail::{Occasion, Settle, turn};
use baton_core::process::Process;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake;
use baton_machine::process;
use baton_store::{Participant, Store};
use std::path::Path;

/// Bytes at the end of a transcript to search for the end of a turn. Little follows it before the
/// next turn begins.
const TRANSCRIPT_END_BYTES: u64 = 64 << 10;

/// Settles the open offers of a participant, or of all participants, as far as their proof is
/// known.
pub fn settle_offers(store: &mut Store, participant: Option<ParticipantId>) -> Result<(), Error> {
    for offer in store.open_offers_of(participant)? {
        let Ok(agent) = baton_agents::by_name(&offer.agent) else { continue };
        let over = offer.ended || offer.process.is_some_and(|process| !process::is_alive(process));
        let occasion = if over { Occasion::Ended } else { Occasion::Passing };
        let settle = turn::settle(evidence::read_proof(agent, &offer, None), occasion);
        if settle != Settle::Keep {
            store.settle(offer.id, settle, baton_machine::clock::now())?;
        }
    }
    Ok(())
}

/// Corrects the recorded state of a participant. A session with a dead process is gone. The agent's
/// own registry is right where events never came. An agent without a registry may report nothing
/// when its person dismisses a question. Then its transcript or its terminal shows it.
pub fn correct_state(store: &mut Store, participant: &mut Participant) -> Result<(), Error> {
    let Some(session) = participant.session.filter(|_| participant.state != State::Gone) else {
        return Ok(());
    };
    let process = participant.process;
    let now = match process {
        Some(process) if !process::is_alive(process) => Some(State::Gone),
        Some(Process { pid, .. }) => {
            registry_state(participant, pid).or_else(|| unblocked(participant, process))
        }
        None => unblocked(participant, None),
    };
    let moment = baton_machine::clock::now();
    let is_late = |state| wake::is_registry_late(participant.state, participant.state_since, state, moment);
    if let Some(state) = now.filter(|state| *state != participant.state && !is_late(*state)) {
        store.correct_state(session, participant.state_since, state, baton_machine::clock::now())?;
        participant.state = state;
        participant.state_since = baton_machine::clock::now();
    }
    Ok(())
}

/// The idle state, if an agent no longer waits for an answer of its person: its transcript says
/// that the turn was interrupted since, or its terminal shows no question. The transcript comes
/// first, because it is also there for a session whose process or terminal is not known.
fn unblocked(participant: &Participant, process: Option<Process>) -> Option<State> {
    if participant.state != State::Blocked {
        return None;
    }
    let agent = baton_agents::by_name(&participant.agent).ok()?;
    let interrupted = interrupted_at(agent, participant).is_some_and(|at| at >= participant.state_since);
    let is_over = interrupted || process.is_some_and(|process| terminal::is_ready(agent, process));
    is_over.then_some(State::Idle)
}

/// When the person interrupted the participant's last turn, if its transcript says so.
pub(crate) fn interrupted_at(agent: &dyn Agent, participant: &Participant) -> Option<Moment> {
    let transcript = participant.transcript.as_deref().map(Path::new)?;
    agent.interrupted_at(&baton_machine::files::end(transcript, TRANSCRIPT_END_BYTES).ok()?)
}

fn registry_state(participant: &Participant, pid: i32) -> Option<State> {
    let agent = baton_agents::by_name(&participant.agent).ok()?;
    let file = agent.registry(pid, participant.transcript.as_deref()?)?;
    let bytes = baton_machine::files::read(&file, baton_core::limits::AGENT_FILE_BYTES).ok()?;
    agent.registry_state(&bytes, participant.native.as_deref()?)
}
