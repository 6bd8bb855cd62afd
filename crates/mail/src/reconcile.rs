//! Bringing the store up to date with the world before it is shown: open offers whose proof is there by now, sessions whose process is
//! gone, and what the agents' own registries say.

use crate::wake::terminal;
use crate::{evidence, process};
use baton_core::Error;
use baton_core::id::ParticipantId;
use baton_core::mail::{Occasion, Settle, turn};
use baton_core::session::State;
use baton_store::{Participant, Process, Store};

/// Settles what can be settled of a participant's open offers, or of everybody's.
pub fn offers(store: &mut Store, participant: Option<ParticipantId>) -> Result<(), Error> {
    for offer in store.open_offers_of(participant)? {
        let Ok(agent) = baton_agents::by_name(&offer.agent) else { continue };
        let over = offer.ended || offer.process.is_some_and(|process| !process::is_alive(process));
        let occasion = if over { Occasion::Ended } else { Occasion::Passing };
        let settle = turn::settle(evidence::look(agent, &offer, None), occasion);
        if settle != Settle::Keep {
            store.settle(offer.id, settle, crate::now())?;
        }
    }
    Ok(())
}

/// What a participant is doing now: a dead process is gone, and the agent's own registry wins over events that never came. An agent without one
/// says nothing when its person turns a question away; then its terminal does.
pub fn state(store: &mut Store, participant: &mut Participant) -> Result<(), Error> {
    let (Some(session), Some((pid, start))) = (participant.session, participant.process) else {
        return Ok(());
    };
    if participant.state == State::Gone {
        return Ok(());
    }
    let process = Process { pid, start };
    let now = if process::is_alive(process) {
        registry(participant, pid).or_else(|| unblocked(participant, process))
    } else {
        Some(State::Gone)
    };
    if let Some(state) = now.filter(|state| *state != participant.state) {
        store.correct_state(session, participant.state_since, state, crate::now())?;
        participant.state = state;
        participant.state_since = crate::now();
    }
    Ok(())
}

/// Whether an agent that asked its person something does so no more, by what its terminal shows.
fn unblocked(participant: &Participant, process: Process) -> Option<State> {
    let agent = baton_agents::by_name(&participant.agent).ok()?;
    (participant.state == State::Blocked && terminal::is_ready(agent, process)).then_some(State::Idle)
}

fn registry(participant: &Participant, pid: i32) -> Option<State> {
    let agent = baton_agents::by_name(&participant.agent).ok()?;
    let file = agent.registry(pid, participant.transcript.as_deref()?)?;
    let bytes = std::fs::read(file).ok()?;
    agent.registry_state(&bytes, participant.native.as_deref()?)
}
