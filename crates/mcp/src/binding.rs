//! Whose session a call belongs to.
//!
//! Where the agent's calls name their session, that is the truth. Elsewhere it is, in this order: the newest session that hooks
//! registered for a process above this one (the server survives a clear, so this is looked up each time); the session that a hook named
//! over this very connection; the one that was claimed; and the environment, which may be stale. A guess that could hand one
//! session's mail to another is never made: then the caller gets `unbound-session`.

use crate::desk::Desk;
use baton_agents::McpCaller;
use baton_core::id::SessionRow;
use baton_core::session::State;
use baton_core::{Code, Error, limits};
use baton_mail::identity::{self, Identity, Kind};
use baton_mail::{directory, evidence, process, project};
use baton_store::{Participant, Process, SessionInfo, Sighting, Store};
use std::path::Path;

type Found = (Participant, SessionRow);

/// Who calls, subagents included: they speak for their parent.
pub(crate) fn identify(desk: &Desk, store: &mut Store, caller: &McpCaller) -> Result<Identity, Error> {
    let subagent = is_subagent(store, caller)?;
    let found = match &caller.session_id {
        Some(id) => by_call(desk, store, id, subagent)?,
        None => by_place(desk, store)?,
    };
    let (participant, session) = found.ok_or_else(unbound)?;
    let subagent = subagent || is_beside_a_subagent(desk, store, session)?;
    let kind = Kind::Session { session, call: caller.call.clone(), subagent };
    Ok(Identity { project: participant.project.clone(), participant, kind })
}

/// The participant that this server serves, by what hooks have said; `None` while they have not. Registers nothing.
pub(crate) fn bound(desk: &Desk, store: &Store) -> Result<Option<Participant>, Error> {
    let found = by_hooks(desk, store)?;
    found.map(|(participant, _)| store.participant(participant.id)).transpose().map(Option::flatten)
}

/// Whether a subagent calls, by what the call says or by what its hook announced.
pub(crate) fn is_subagent(store: &Store, caller: &McpCaller) -> Result<bool, Error> {
    if caller.subagent {
        return Ok(true);
    }
    caller.call.as_deref().map_or(Ok(false), |call| store.is_subagent_call(call))
}

/// Whether a subagent of the session is at work, where calls don't say who makes them: then it is the caller, as its parent waits for it.
fn is_beside_a_subagent(desk: &Desk, store: &Store, session: SessionRow) -> Result<bool, Error> {
    let Some(SessionInfo { native, transcript: Some(transcript), .. }) = store.session(session)? else {
        return Ok(false);
    };
    let transcript = Path::new(&transcript);
    let folder = desk.options.agent.subagent_folder(&native, transcript, None);
    Ok(folder.is_some_and(|folder| evidence::subagent_works(&folder, transcript)))
}

/// Claims a session for a server that can't be bound otherwise.
///
/// Allowed is the session that the server is bound to anyway. An unbound server may claim one only if nothing speaks against it: it
/// has not ended, no process is known to run it, it works in the server's own folder, and no other session of that project could be meant.
pub(crate) fn claim(
    desk: &Desk,
    store: &mut Store,
    caller: &McpCaller,
    session_id: &str,
) -> Result<Participant, Error> {
    let agent = desk.options.agent.name();
    let not_yours = |why: &str| {
        Err(Error::new(Code::NotYourSession, format!("that session can't be claimed: {why}"))
            .hint("who lists the sessions; run `baton doctor` if your hooks should have named yours"))
    };
    let Some((participant, session)) = store.participant_of(Some(agent), session_id)? else {
        return not_yours(&format!("no {agent} session has that id"));
    };
    match identify(desk, store, caller) {
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
    let here = project::of(&desk.options.cwd);
    if participant.project != here || participant.cwd.as_deref() != Some(&*desk.options.cwd.to_string_lossy())
    {
        return not_yours("it works in another folder");
    }
    let candidates = directory::who(store, Some(&here), false)?;
    if candidates.iter().filter(|other| other.agent == agent && other.process.is_none()).count() > 1 {
        return not_yours("it is not the only one here that could be yours");
    }
    desk.claim(session);
    Ok(participant)
}

/// The process that hooks named for a session is one above us, or none that still runs.
pub(crate) fn may_be_ours(desk: &Desk, process: Option<Process>) -> bool {
    process.is_none_or(|process| desk.lineage.contains(&process) || !process::is_alive(process))
}

fn by_call(desk: &Desk, store: &mut Store, session_id: &str, subagent: bool) -> Result<Option<Found>, Error> {
    let agent = desk.options.agent.name();
    let known = store.participant_of(Some(agent), session_id)?;
    if known.is_some() || subagent {
        return Ok(known);
    }
    register(desk, store, session_id)?;
    store.participant_of(Some(agent), session_id)
}

fn by_place(desk: &Desk, store: &mut Store) -> Result<Option<Found>, Error> {
    match by_hooks(desk, store)? {
        Some(found) => Ok(Some(found)),
        None => by_environment(desk, store),
    }
}

fn by_hooks(desk: &Desk, store: &Store) -> Result<Option<Found>, Error> {
    let agent = desk.options.agent.name();
    for above in &desk.lineage {
        let sessions = store.sessions_of_process(above.pid, above.start)?;
        if let Some(found) = sessions.into_iter().find(|(participant, _)| participant.agent == agent) {
            return Ok(Some(found));
        }
    }
    let named = desk.hook_named().map(|id| store.participant_of(Some(agent), &id)).transpose()?.flatten();
    for session in named.map(|(_, session)| session).into_iter().chain(desk.claimed()) {
        if let Some(found) = still_ours(desk, store, session)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn still_ours(desk: &Desk, store: &Store, session: SessionRow) -> Result<Option<Found>, Error> {
    let Some(info) =
        store.session(session)?.filter(|info| info.state != State::Gone && may_be_ours(desk, info.process))
    else {
        return Ok(None);
    };
    Ok(store.participant(info.participant)?.map(|participant| (participant, session)))
}

/// The session that the environment names: for agents whose hooks have not run. Stale after a clear, so a session that ended here is not it.
fn by_environment(desk: &Desk, store: &mut Store) -> Result<Option<Found>, Error> {
    let agent = desk.options.agent;
    let Some(shell) = agent.shell(&*desk.options.env) else { return Ok(None) };
    let known = store.participant_of(Some(agent.name()), &shell.session_id)?;
    let info = known.as_ref().map(|(_, session)| store.session(*session)).transpose()?.flatten();
    match info {
        Some(SessionInfo { process: Some(process), state, .. }) if desk.lineage.contains(&process) => {
            return Ok(known.filter(|_| state != State::Gone));
        }
        Some(SessionInfo { process: Some(process), .. }) if process::is_alive(process) => return Ok(None),
        Some(info) if info.state != State::Gone => return Ok(known),
        _ => register(desk, store, &shell.session_id)?,
    }
    store.participant_of(Some(agent.name()), &shell.session_id)
}

/// A session that no hook has told us about: it exists all the same.
fn register(desk: &Desk, store: &mut Store, session_id: &str) -> Result<(), Error> {
    if session_id.is_empty() || session_id.len() > limits::LABEL_BYTES {
        return Err(Error::new(Code::Usage, "the session id of the call is empty or too long"));
    }
    let options = &desk.options;
    store
        .sight_session(&Sighting {
            agent: options.agent.name(),
            native: session_id,
            project: &project::of(&options.cwd),
            cwd: &options.cwd.to_string_lossy(),
            transcript: None,
            // Not by the environment: it may be that of another session in whose shell this one was started.
            process: identity::agent_process(options.agent, &|_| None),
            source: None,
            state: State::Busy,
            now: baton_mail::now(),
        })
        .map(drop)
}

fn unbound() -> Error {
    Error::new(Code::UnboundSession, "this server does not know whose session it serves")
        .hint("find your session with who and call claim_session with its session_id; `baton doctor` checks the hooks")
}
