//! Finds the session that a call belongs to.
//!
//! If the agent's calls name their session, that counts. Otherwise the server takes the first of
//! these:
//!
//! 1. The newest session that hooks registered for a process above this one. The server survives a
//!    clear, so every call looks this up.
//! 2. The session that a hook named over this connection.
//! 3. The session that was claimed.
//! 4. The session that the environment names, which may be stale.
//!
//! The server never guesses, because a wrong guess would hand one session's mail to another. The
//! caller then gets `unbound-session`.

use crate::server_state::ServerState;
use baton_agents::McpCaller;
use baton_core::id::SessionRow;
use baton_core::process::Process;
use baton_core::session::State;
use baton_core::{Code, Error, limits};
use baton_machine::{process, project};
use baton_mail::identity::{self, Identity, Kind};
use baton_mail::{directory, evidence};
use baton_store::{Participant, SessionInfo, Sighting, Store};
use std::path::Path;

type OwnedSession = (Participant, SessionRow);

/// Who calls. A subagent speaks for its parent.
pub(crate) fn identify(
    server: &ServerState,
    store: &mut Store,
    caller: &McpCaller,
) -> Result<Identity, Error> {
    let subagent = is_subagent(store, caller)?;
    let found = match &caller.session_id {
        Some(id) => by_call(server, store, id, subagent)?,
        None => by_place(server, store)?,
    };
    let (participant, session) = found.ok_or_else(unbound_error)?;
    let subagent = subagent || has_working_subagent(server, store, session)?;
    let kind = Kind::Session { session, call: caller.call.clone(), subagent };
    Ok(Identity { project: participant.project.clone(), participant, kind })
}

/// The participant that this server serves, by what hooks have reported. `None` if they have
/// reported nothing yet. Records nothing.
pub(crate) fn bound_participant(server: &ServerState, store: &Store) -> Result<Option<Participant>, Error> {
    let found = by_hooks(server, store)?;
    found.map(|(participant, _)| store.participant(participant.id)).transpose().map(Option::flatten)
}

/// The participant that this server wakes: the one that it serves. If hooks have not named that
/// yet, it is the only session that it could be, by the rule of [`claim`]. A wake hands nothing
/// over, so a mistake does no harm.
pub(crate) fn participant_to_wake(server: &ServerState, store: &Store) -> Result<Option<Participant>, Error> {
    if let Some(found) = bound_participant(server, store)? {
        return Ok(Some(found));
    }
    if !server.may_serve_unknown {
        return Ok(None);
    }
    let agent = server.options.agent.name();
    let cwd = server.options.cwd.to_string_lossy();
    let mut candidates = store.everybody(Some(&project::of(&server.options.cwd)))?;
    candidates.retain(|other| other.agent == agent && other.state != State::Gone && other.process.is_none());
    let only = if candidates.len() == 1 { candidates.pop() } else { None };
    Ok(only.filter(|only| only.cwd.as_deref() == Some(&*cwd)))
}

/// Whether a subagent calls, by the call itself or by what its hook announced.
pub(crate) fn is_subagent(store: &Store, caller: &McpCaller) -> Result<bool, Error> {
    if caller.subagent {
        return Ok(true);
    }
    caller.call.as_deref().map_or(Ok(false), |call| store.is_subagent_call(call))
}

/// Whether a subagent of the session is working, for agents whose calls don't say who makes them.
/// Then the subagent is the caller, because its parent waits for it.
fn has_working_subagent(server: &ServerState, store: &Store, session: SessionRow) -> Result<bool, Error> {
    let Some(SessionInfo { native, transcript: Some(transcript), .. }) = store.session(session)? else {
        return Ok(false);
    };
    let transcript = Path::new(&transcript);
    let folder = server.options.agent.subagent_folder(&native, transcript, None);
    Ok(folder.is_some_and(|folder| evidence::is_subagent_working(&folder, transcript)))
}

/// Claims a session for a server that has no other way to find its session.
///
/// A server may claim the session that it is already bound to. An unbound server may claim a
/// session only if all of this is true: it has not ended, no process is known to run it, it works
/// in the server's own folder, and no other session of that project could be meant.
pub(crate) fn claim(
    server: &ServerState,
    store: &mut Store,
    caller: &McpCaller,
    session_id: &str,
) -> Result<Participant, Error> {
    let agent = server.options.agent.name();
    let not_yours = |why: &str| {
        Err(Error::new(Code::NotYourSession, format!("that session can't be claimed: {why}"))
            .hint("who lists the sessions; if your hooks should have named yours, run `baton doctor`"))
    };
    let Some((participant, session)) = store.participant_of(Some(agent), session_id)? else {
        return not_yours(&format!("no {agent} session has that id"));
    };
    match identify(server, store, caller) {
        Ok(identity) if identity.session() == Some(session) => return Ok(participant),
        Ok(identity) => return not_yours(&format!("you are {}", identity.participant.name)),
        Err(error) if error.code() != Code::UnboundSession => return Err(error),
        Err(_) => {}
    }
    if caller.session_id.is_some() {
        return not_yours("your calls name another");
    }
    if participant.state == State::Gone {
        return not_yours("it has ended");
    }
    if participant.process.is_some() {
        return not_yours("another process runs it");
    }
    let here = project::of(&server.options.cwd);
    if participant.project != here
        || participant.cwd.as_deref() != Some(&*server.options.cwd.to_string_lossy())
    {
        return not_yours("it works in another folder");
    }
    let candidates = directory::who(store, Some(&here), false)?;
    if candidates.iter().filter(|other| other.agent == agent && other.process.is_none()).count() > 1 {
        return not_yours("it is not the only one here that could be yours");
    }
    server.claim(session);
    Ok(participant)
}

/// Whether the process that hooks named for a session is above this one, or no longer runs.
pub(crate) fn may_be_ours(server: &ServerState, process: Option<Process>) -> bool {
    process.is_none_or(|process| server.lineage.contains(&process) || !process::is_alive(process))
}

/// Whether the agent above this server may run a session that a call names. It may run a session
/// whose process was never known, unless another agent is the nearest above, or this server has
/// lost the agent that it was started below.
fn is_run_here(server: &ServerState, store: &Store, session: SessionRow) -> Result<bool, Error> {
    let process = store.session(session)?.and_then(|info| info.process);
    Ok(match process {
        Some(process) => {
            server.lineage.contains(&process) || (!process::is_alive(process) && server.may_serve_unknown)
        }
        None => server.may_serve_unknown,
    })
}

fn by_call(
    server: &ServerState,
    store: &mut Store,
    session_id: &str,
    subagent: bool,
) -> Result<Option<OwnedSession>, Error> {
    let agent = server.options.agent.name();
    let known = store.participant_of(Some(agent), session_id)?;
    if let Some((_, session)) = &known
        && !is_run_here(server, store, *session)?
    {
        return Err(Error::new(Code::NotYourSession, "the call names a session that another process runs")
            .hint("only the agent that runs a session speaks for it"));
    }
    if known.is_some() || subagent {
        return Ok(known);
    }
    register(server, store, session_id)?;
    store.participant_of(Some(agent), session_id)
}

fn by_place(server: &ServerState, store: &mut Store) -> Result<Option<OwnedSession>, Error> {
    match by_hooks(server, store)? {
        Some(found) => Ok(Some(found)),
        None => by_environment(server, store),
    }
}

fn by_hooks(server: &ServerState, store: &Store) -> Result<Option<OwnedSession>, Error> {
    let agent = server.options.agent.name();
    for above in &server.lineage {
        let sessions = store.sessions_of_process(above.pid, above.start)?;
        if let Some(found) = sessions.into_iter().find(|(participant, _)| participant.agent == agent) {
            return Ok(Some(found));
        }
    }
    let named = server.hook_named().map(|id| store.participant_of(Some(agent), &id)).transpose()?.flatten();
    for session in named.map(|(_, session)| session).into_iter().chain(server.claimed()) {
        if let Some(found) = still_ours(server, store, session)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn still_ours(
    server: &ServerState,
    store: &Store,
    session: SessionRow,
) -> Result<Option<OwnedSession>, Error> {
    let Some(info) =
        store.session(session)?.filter(|info| info.state != State::Gone && may_be_ours(server, info.process))
    else {
        return Ok(None);
    };
    Ok(store.participant(info.participant)?.map(|participant| (participant, session)))
}

/// The session that the environment names, for agents whose hooks have not run. It is stale after a
/// clear, so a session that has ended here does not count.
fn by_environment(server: &ServerState, store: &mut Store) -> Result<Option<OwnedSession>, Error> {
    let agent = server.options.agent;
    let Some(shell) = agent.shell(&*server.options.env).filter(|_| server.may_serve_unknown) else {
        return Ok(None);
    };
    let known = store.participant_of(Some(agent.name()), &shell.session_id)?;
    let info = known.as_ref().map(|(_, session)| store.session(*session)).transpose()?.flatten();
    match info {
        Some(SessionInfo { process: Some(process), state, .. }) if server.lineage.contains(&process) => {
            return Ok(known.filter(|_| state != State::Gone));
        }
        Some(SessionInfo { process: Some(process), .. }) if process::is_alive(process) => return Ok(None),
        Some(info) if info.state != State::Gone => return Ok(known),
        _ => register(server, store, &shell.session_id)?,
    }
    store.participant_of(Some(agent.name()), &shell.session_id)
}

/// Records a session that no hook has reported.
fn register(server: &ServerState, store: &mut Store, session_id: &str) -> Result<(), Error> {
    if session_id.is_empty() || session_id.len() > limits::LABEL_BYTES {
        return Err(Error::new(Code::Usage, "the session id of the call is empty or too long"));
    }
    let options = &server.options;
    store
        .sight_session(&Sighting {
            agent: options.agent.name(),
            native: session_id,
            project: &project::of(&options.cwd),
            cwd: &options.cwd.to_string_lossy(),
            transcript: None,
            // Without the environment, which may come from another session in whose shell this one
            // was started.
            process: identity::agent_process(options.agent, &|_| None),
            source: None,
            state: State::Busy,
            now: baton_machine::clock::now(),
        })
        .map(drop)
}

fn unbound_error() -> Error {
    Error::new(Code::UnboundSession, "this server does not know whose session it serves")
        .hint("find your session with who and call claim_session with its session_id; `baton doctor` checks the hooks")
}
