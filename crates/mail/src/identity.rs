//! Who calls: an agent's session, the person, or a script.
//!
//! The agent's own environment first, then the process tree, then the terminal. Below an agent nobody is the person, whatever the terminal
//! says. This is a seat belt, not a lock: all processes of one user could forge it.

use crate::{process, project};
use baton_agents::agent::Env;
use baton_agents::{ALL, Agent, Shell};
use baton_core::id::SessionRow;
use baton_core::session::State;
use baton_core::{Code, Error, name};
use baton_store::{Found, Participant, Process, Sighting, Store};
use std::path::Path;

/// Who calls.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its mailbox.
    pub participant: Participant,
    /// How it was recognised.
    pub kind: Kind,
    /// The project that it works in.
    pub project: String,
}

/// What kind of caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An agent's session.
    Session {
        /// The session.
        session: SessionRow,
        /// The id of the tool call that runs us, where it is known.
        call: Option<String>,
        /// A subagent of the session runs us.
        subagent: bool,
    },
    /// The person at a terminal.
    Person,
    /// A program without a terminal.
    Script,
}

impl Identity {
    /// The session's row, for an agent.
    pub fn session(&self) -> Option<SessionRow> {
        match self.kind {
            Kind::Session { session, .. } => Some(session),
            _ => None,
        }
    }
}

/// Finds out who calls. `terminal` says whether a person could be typing.
pub fn identify(
    store: &mut Store,
    env: Env<'_>,
    cwd: &Path,
    terminal: &dyn Fn() -> bool,
    claimed: Option<&str>,
) -> Result<Identity, Error> {
    let project = project::of(cwd);
    let mut above = Vec::new();
    let mut found = by_environment(store, env, cwd, &project)?;
    if found.is_none() {
        above = process::ancestors();
        found = by_process_tree(store, &above)?;
    }
    if let Some((participant, kind)) = found {
        if claimed.is_some() {
            return Err(Error::new(
                Code::NotAPerson,
                "--as is for the person at a terminal; you are an agent's session",
            )
            .hint(format!("you are {}; leave --as out", participant.name)));
        }
        let project = participant.project.clone();
        return Ok(Identity { participant, kind, project });
    }
    let person = terminal() && !below_an_agent(&above);
    match claimed {
        Some(_) if !person => {
            Err(Error::new(Code::NotAPerson, "--as is for the person at a terminal").hint("leave --as out"))
        }
        Some(name) if name != name::USER => match store.find_name(&project, name)? {
            Found::One(participant) => {
                Ok(Identity { participant: *participant, kind: Kind::Person, project })
            }
            _ => Err(Error::new(
                Code::UnknownRecipient,
                format!("nobody here is called {}", baton_core::frame::shown(name, 60)),
            )
            .hint("`baton who --all` lists the names")),
        },
        _ => {
            let (name, kind) = if person { (name::USER, Kind::Person) } else { (name::SCRIPT, Kind::Script) };
            Ok(Identity { participant: store.ensure_outsider(name, crate::now())?, kind, project })
        }
    }
}

fn by_environment(
    store: &mut Store,
    env: Env<'_>,
    cwd: &Path,
    project: &str,
) -> Result<Option<(Participant, Kind)>, Error> {
    let Some((agent, shell)) = shell_around(env) else { return Ok(None) };
    let mut found = store.participant_of(Some(agent.name()), &shell.session_id)?;
    if found.is_none() {
        if let Some((participant, session)) = session_of_process(store, agent, env)? {
            return Ok(Some((participant, Kind::Session { session, call: shell.call, subagent: true })));
        }
        register(store, agent, env, &shell, cwd, project)?;
        found = store.participant_of(Some(agent.name()), &shell.session_id)?;
    }
    let Some((participant, session)) = found else { return Ok(None) };
    Ok(Some((participant, Kind::Session { session, call: shell.call, subagent: shell.subagent })))
}

/// The session that hooks named for the agent's process above us. Where the environment names another that they never did, it is a
/// subagent's: some agents give each of those an id of its own.
fn session_of_process(
    store: &Store,
    agent: &dyn Agent,
    env: Env<'_>,
) -> Result<Option<(Participant, SessionRow)>, Error> {
    let Some(process) = agent_process(agent, env) else { return Ok(None) };
    let sessions = store.sessions_of_process(process.pid, process.start)?;
    Ok(sessions.into_iter().find(|(participant, _)| participant.agent == agent.name()))
}

/// Whose shell this is. An agent that runs in another one's shell passes that one's environment on, so where there are several the nearest process
/// of one of them decides. Nobody's, by the environment, where that one does not name its session.
fn shell_around(env: Env<'_>) -> Option<(&'static dyn Agent, Shell)> {
    let mut shells: Vec<(&'static dyn Agent, Shell)> =
        ALL.iter().filter_map(|agent| Some((*agent, agent.shell(env)?))).collect();
    let unnamed: Vec<_> = ALL.iter().filter(|agent| agent.is_unnamed_shell(env)).collect();
    let mut nearest = None;
    if !shells.is_empty() && shells.len() + unnamed.len() > 1 {
        for above in process::ancestors() {
            let arguments = process::arguments(above.pid);
            if unnamed.iter().any(|agent| agent.is_process(&arguments)) {
                return None;
            }
            nearest = shells.iter().position(|(agent, _)| agent.is_process(&arguments));
            if nearest.is_some() {
                break;
            }
        }
    }
    (!shells.is_empty()).then(|| shells.swap_remove(nearest.unwrap_or(0)))
}

/// A session whose hooks are not installed or have not run yet: it exists all the same.
fn register(
    store: &mut Store,
    agent: &dyn Agent,
    env: Env<'_>,
    shell: &Shell,
    cwd: &Path,
    project: &str,
) -> Result<(), Error> {
    store
        .sight_session(&Sighting {
            agent: agent.name(),
            native: &shell.session_id,
            project,
            cwd: &cwd.to_string_lossy(),
            transcript: None,
            process: agent_process(agent, env),
            source: None,
            state: State::Busy,
            now: crate::now(),
        })
        .map(drop)
}

/// The process that runs the session which we are below: as the agent says it, else the nearest of its kind above us, unless that one runs
/// several sessions and so names none of them.
pub fn agent_process(agent: &dyn Agent, env: Env<'_>) -> Option<Process> {
    if let Some(pid) = agent.hook_process(env) {
        return process::find(pid);
    }
    // Not beyond a shared one: what is above that only happened to start it.
    let (nearest, arguments) = process::ancestors().into_iter().find_map(|above| {
        let arguments = process::arguments(above.pid);
        agent.is_process(&arguments).then_some((above, arguments))
    })?;
    (!agent.is_shared_process(&arguments)).then_some(nearest)
}

fn by_process_tree(store: &Store, above: &[Process]) -> Result<Option<(Participant, Kind)>, Error> {
    let found = store.nearest_session(above)?;
    Ok(found
        .map(|(participant, session)| (participant, Kind::Session { session, call: None, subagent: false })))
}

fn below_an_agent(above: &[Process]) -> bool {
    above.iter().any(|above| {
        let arguments = process::arguments(above.pid);
        ALL.iter().any(|agent| agent.is_process(&arguments))
    })
}
