//! Whether an event may speak for the session that its payload names.
//!
//! A payload can name any session, and any process can run a hook. So the processes decide: an
//! event is the session's own if the session's process is above it. A session may also run in a
//! second process, or go on in another one. Then that process must be an agent of the same kind
//! that neither runs another session nor was started below another agent.

use crate::identity::{self, AgentProcess};
use baton_agents::Agent;
use baton_core::Error;
use baton_core::event::EventKind;
use baton_core::id::SessionRow;
use baton_core::process::Process;
use baton_core::session::State;
use baton_machine::process;
use baton_machine::process::mark::{self, Mark};
use baton_store::Store;

/// What the store knows about the session that an event names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedSession {
    pub(crate) session: SessionRow,
    pub(crate) process: Option<Process>,
    pub(crate) state: State,
}

/// Whether an event comes from the session that it names. In the common case, a hook that the agent
/// itself runs, this is one system call.
pub(crate) fn comes_from_session(
    store: &Store,
    agent: &dyn Agent,
    named: NamedSession,
    event: EventKind,
) -> Result<bool, Error> {
    if named.process.is_some_and(|process| process::parent() == Some(process.pid)) {
        return Ok(true);
    }
    let above = process::above_us();
    if named.process.is_some_and(|process| above.processes.contains(&process)) {
        return Ok(true);
    }
    let elsewhere = named.process.is_some_and(process::is_alive);
    let Some(AgentProcess { process: nearest, arguments }) =
        identity::nearest_agent(above.processes.iter().copied())
    else {
        // No agent is above. Below a marked process, or if some processes are hidden, any agent may
        // be above.
        return Ok(!elsewhere && mark::own().is_none() && above.whole);
    };
    if !agent.is_process(&arguments) {
        return Ok(false);
    }
    let others = store.sessions_of_process(nearest.pid, nearest.start)?;
    let runs_another = others.iter().any(|(_, session)| *session != named.session);
    if !elsewhere {
        // An agent may resume an ended session in its own process, but not one that may still be
        // working.
        let begins =
            matches!(event, EventKind::Start(_)) && (named.process.is_some() || named.state == State::Gone);
        return Ok(!runs_another || begins);
    }
    Ok(!runs_another && above.whole && is_outermost(nearest, &above.processes))
}

/// Whether no other agent is above this one. An agent may run as a launcher and its child, with
/// nothing in between.
pub(crate) fn is_outermost(agent: Process, above: &[Process]) -> bool {
    if mark::own().is_some_and(|mark| mark != Mark::of(agent)) {
        return false;
    }
    let beyond = above.iter().skip_while(|process| **process != agent).skip(1);
    let is_agent = |process: &&Process| {
        let arguments = process::arguments(process.pid);
        baton_agents::ALL.iter().any(|agent| agent.is_process(&arguments))
    };
    !beyond.skip_while(is_agent).any(|process| is_agent(&process))
}
