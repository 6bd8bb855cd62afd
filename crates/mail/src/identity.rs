//! Finds out who calls: an agent's session, the person, or a script.
//!
//! It checks, in this order, the kernel's mark, the processes above, the environment and the
//! terminal. A process that was born below an agent is never the person, whatever its terminal. A
//! session's id in the environment counts only if the session's process is above, or if that
//! process was never known and no other agent is above. An uncertain caller is a stranger. This is
//! a seat belt, not a lock: `docs/trust.md` lists what remains possible.

use crate::{caller, claim, directory, presence};
use baton_agents::agent::Env;
use baton_agents::{ALL, Agent, Shell};
use baton_core::id::SessionRow;
use baton_core::process::Process;
use baton_core::rights::Caller;
use baton_core::session::State;
use baton_core::{Code, Error, name};
use baton_machine::process::{Above, mark};
use baton_machine::{process, project};
use baton_store::{Found, Participant, RunningSession, Sighting, Store};
use std::ffi::OsString;
use std::path::Path;

/// Who calls.
#[derive(Clone, Debug)]
pub struct Identity {
    pub participant: Participant,
    pub kind: Kind,
    /// The project that it works in.
    pub project: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An agent's session.
    Session {
        session: SessionRow,
        /// The id of the tool call that runs this process, if it is known.
        call: Option<String>,
        /// A subagent of the session runs this process.
        subagent: bool,
    },
    /// The person at a terminal.
    Person,
    /// A program without a terminal.
    Script,
    /// A caller that baton can't be certain about. It may do at most what a script may.
    Stranger(Doubt),
}

/// Why baton is not certain who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The caller was started below an agent, and is no session that baton knows.
    BelowAgent,
    /// The environment names a session, but that session's process is not above the caller.
    OtherSession,
    /// The processes above the caller can't be followed to the first of them.
    Lost,
    /// A program opened the terminal and ran the command in it.
    NoPrompt,
}

impl Doubt {
    /// The reason, as a clause.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BelowAgent => "this process was started below an agent",
            Self::OtherSession => "the session that the environment names does not run this process",
            Self::Lost => "baton can't see all processes above this one",
            Self::NoPrompt => "a program opened this terminal and ran the command in it",
        }
    }

    /// What the caller can do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::BelowAgent => "run it in a terminal that no agent started",
            Self::OtherSession => {
                "don't set the session's variables yourself, or run it in that session's own shell"
            }
            Self::Lost => "run it in your own terminal, outside any container or sandbox",
            Self::NoPrompt => "run it from a shell prompt",
        }
    }

    /// The error for an action that only the person or a known session may do.
    pub fn refusal(self) -> Error {
        let message = format!("baton is not certain who you are: {}", self.as_str());
        Error::new(Code::IdentityUncertain, message).hint(self.hint())
    }
}

impl Identity {
    /// The session's row, for an agent.
    pub fn session(&self) -> Option<SessionRow> {
        match self.kind {
            Kind::Session { session, .. } => Some(session),
            _ => None,
        }
    }

    /// Whether the person speaks for itself. A person who writes in the name of a session does not.
    pub fn is_person(&self) -> bool {
        let Participant { name, .. } = &self.participant;
        self.kind == Kind::Person && self.participant.is_outsider() && name == name::USER
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
    let (name, kind) = match recognise(store, env, cwd, &project)? {
        Recognised::Session(participant, kind) => {
            if claimed.is_some() {
                return Err(Error::new(
                    Code::NotAPerson,
                    "--as is for the person at a terminal; you are an agent's session",
                )
                .hint(format!("you are {}; leave --as out", participant.name)));
            }
            let project = participant.project.clone();
            return Ok(Identity { participant: *participant, kind, project });
        }
        Recognised::Stranger(doubt) => (name::SCRIPT, Kind::Stranger(doubt)),
        Recognised::Nobody(_) if !terminal() => (name::SCRIPT, Kind::Script),
        Recognised::Nobody(above) => {
            let below_agent = || caller::is_inside_an_agent(env).then_some(Doubt::BelowAgent);
            match presence::doubt(&above.processes).or_else(below_agent) {
                Some(doubt) => (name::SCRIPT, Kind::Stranger(doubt)),
                None => (name::USER, Kind::Person),
            }
        }
    };
    match claimed {
        Some(_) if kind != Kind::Person => {
            Err(Error::new(Code::NotAPerson, "--as is for the person at a terminal").hint("leave --as out"))
        }
        Some(name) if name != name::USER => match store.find_name(&project, &name.to_ascii_lowercase())? {
            Found::One(participant) => Ok(Identity { participant: *participant, kind, project }),
            _ => Err(directory::unknown_recipient(store, &project, name)),
        },
        _ => Ok(Identity {
            participant: store.ensure_outsider(name, baton_machine::clock::now())?,
            kind,
            project,
        }),
    }
}

/// What the processes and the environment show about the caller.
enum Recognised {
    Session(Box<Participant>, Kind),
    Stranger(Doubt),
    /// No sign of an agent above, in these processes.
    Nobody(Above),
}

fn recognise(store: &mut Store, env: Env<'_>, cwd: &Path, project: &str) -> Result<Recognised, Error> {
    let shells: Vec<(&'static dyn Agent, Shell)> =
        ALL.iter().filter_map(|agent| Some((*agent, agent.shell(env)?))).collect();
    let sessions = store.nearest_sessions(process::upwards())?;
    if let Some(newest) = sessions.first() {
        return below_session(store, newest, &sessions, shells);
    }
    let above = process::above_us();
    // The first walk may have met the end of a process, and missed those above it.
    let sessions = store.nearest_sessions(above.processes.iter().copied())?;
    if let Some(newest) = sessions.first() {
        return below_session(store, newest, &sessions, shells);
    }
    let nearest = nearest_agent(above.processes.iter().copied());
    let named = shells
        .into_iter()
        .find(|(agent, _)| nearest.as_ref().is_none_or(|nearest| agent.is_process(&nearest.arguments)));
    let marked = mark::own();
    let Some((agent, shell)) = named else {
        return Ok(match (nearest.is_some() || marked.is_some(), above.whole) {
            (true, _) => Recognised::Stranger(Doubt::BelowAgent),
            (false, false) => Recognised::Stranger(Doubt::Lost),
            (false, true) => Recognised::Nobody(above),
        });
    };
    if nearest.is_none() && (marked.is_some() || !above.whole) {
        return Ok(Recognised::Stranger(Doubt::OtherSession));
    }
    let mut found = store.participant_of(Some(agent.name()), &shell.session_id)?;
    if let Some((_, session)) = &found
        && let Some(process) = store.session(*session)?.and_then(|session| session.process)
        && !above.processes.contains(&process)
    {
        // The session may have been resumed in a process whose hooks have not run yet.
        let resumed = nearest.as_ref().is_some_and(|nearest| {
            !process::is_alive(process) && marked.is_none_or(|mark| mark == mark::Mark::of(nearest.process))
        });
        if !resumed {
            return Ok(Recognised::Stranger(Doubt::OtherSession));
        }
    }
    if found.is_none() {
        register(store, agent, env, &shell, cwd, project)?;
        found = store.participant_of(Some(agent.name()), &shell.session_id)?;
    }
    Ok(found.map_or_else(
        || Recognised::Nobody(above),
        |(participant, session)| {
            let kind = Kind::Session { session, call: shell.call, subagent: shell.subagent };
            Recognised::Session(Box::new(participant), kind)
        },
    ))
}

/// The caller is below the process of these sessions, which hooks named. The environment chooses
/// among them. If it names a session that hooks never named, a subagent calls: some agents give
/// each subagent an id of its own. If it names a session of another process, that is ignored.
fn below_session(
    store: &Store,
    newest: &RunningSession,
    sessions: &[RunningSession],
    shells: Vec<(&'static dyn Agent, Shell)>,
) -> Result<Recognised, Error> {
    let of = |session: &RunningSession, call, subagent| {
        (session.participant, Kind::Session { session: session.session, call, subagent })
    };
    let shell = shells.into_iter().find(|(agent, _)| agent.name() == newest.agent).map(|(_, shell)| shell);
    let (participant, kind) = match shell {
        None => of(newest, None, false),
        Some(shell) => {
            let is_named =
                |one: &&RunningSession| one.agent == newest.agent && one.native == shell.session_id;
            match sessions.iter().find(is_named) {
                Some(named) => of(named, shell.call, shell.subagent),
                None => match store.participant_of(Some(&newest.agent), &shell.session_id)? {
                    None => of(newest, shell.call, true),
                    Some((ended, session)) if runs_in(store, session, newest.process)? => {
                        (ended.id, Kind::Session { session, call: shell.call, subagent: shell.subagent })
                    }
                    Some(_) => of(newest, None, false),
                },
            }
        }
    };
    Ok(Recognised::Session(Box::new(store.owner(participant)?), kind))
}

fn runs_in(store: &Store, session: SessionRow, process: Process) -> Result<bool, Error> {
    Ok(store.session(session)?.is_some_and(|session| session.process == Some(process)))
}

/// The process of an agent, with the arguments that show that it is one.
pub(crate) struct AgentProcess {
    pub(crate) process: Process,
    pub(crate) arguments: Vec<String>,
}

/// The nearest process of any agent.
pub(crate) fn nearest_agent(above: impl IntoIterator<Item = Process>) -> Option<AgentProcess> {
    above.into_iter().find_map(|process| {
        let arguments = process::arguments(process.pid);
        ALL.iter().any(|agent| agent.is_process(&arguments)).then_some(AgentProcess { process, arguments })
    })
}

/// Records a session whose hooks are not installed or have not run yet.
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
            now: baton_machine::clock::now(),
        })
        .map(drop)
}

/// The process that runs the session above this process: the nearest one of that agent. A process
/// that runs several sessions does not show which of them it is. The process that the environment
/// names counts only if it is that nearest one, or if no process above is known as an agent's.
pub fn agent_process(agent: &dyn Agent, env: Env<'_>) -> Option<Process> {
    let named = agent.hook_process(env);
    let is_named = |process: &Process| Some(process.pid) == named;
    let Some(AgentProcess { process: nearest, arguments }) = nearest_agent(process::upwards()) else {
        return process::upwards().find(is_named);
    };
    // The search stops at a shared process or another agent. What is above those did not run this
    // session.
    let ours = agent.is_process(&arguments) && (!agent.is_shared_process(&arguments) || is_named(&nearest));
    ours.then_some(nearest)
}

/// Marks the agent's process above this one. Every process born below it then has the mark for
/// life. The arguments must show that it is the agent: a shell or a terminal is never marked. Does
/// nothing if this process already has a mark.
pub fn mark_agent(agent: &dyn Agent) {
    if mark::own().is_some() {
        return;
    }
    if let Some(AgentProcess { process: nearest, arguments }) = nearest_agent(process::upwards())
        && agent.is_process(&arguments)
    {
        mark::set(nearest);
    }
}

/// Whether a session's process was started by another agent, or below one.
pub fn runs_below_another(process: Process) -> bool {
    !claim::is_outermost(process, &process::ancestors())
}

/// A variable from the environment of the outermost agent above this process. The person set that
/// environment; no repository, model or shell of an agent did. The outer `None` means that no agent
/// is above.
pub fn outermost_agent_variable(name: &str) -> Option<Option<OsString>> {
    let is_agent = |process: &&Process| {
        let arguments = process::arguments(process.pid);
        ALL.iter().any(|agent| agent.is_process(&arguments))
    };
    let above = process::ancestors();
    let outermost = above.iter().rev().find(is_agent)?;
    Some(process::variable(outermost.pid, name).filter(|value| !value.is_empty()))
}

/// Whether a server or plugin of this agent may speak for sessions whose process is not known: the
/// nearest agent above is of that kind, or there is no sign of an agent above.
pub fn may_serve(agent: &dyn Agent) -> bool {
    let above = process::above_us();
    match nearest_agent(above.processes.iter().copied()) {
        Some(nearest) => agent.is_process(&nearest.arguments),
        None => above.whole && mark::own().is_none(),
    }
}

/// Who calls a server that serves this agent, while no session is known: the agent itself if it is
/// the nearest one above, or a script if no agent is above by any sign. An uncertain caller is a
/// stranger.
pub fn unbound_caller(agent: &dyn Agent) -> Caller {
    let above = process::above_us();
    match nearest_agent(above.processes.iter().copied()) {
        Some(nearest) if agent.is_process(&nearest.arguments) => Caller::Agent,
        None if above.whole && mark::own().is_none() => Caller::Script,
        _ => Caller::Stranger,
    }
}

/// Whether the nearest agent's process above us is one of this agent's.
pub fn is_run_by(agent: &dyn Agent) -> bool {
    nearest_is_of(agent) == Some(true)
}

/// Whether the nearest agent's process above us is certainly another agent's.
pub fn is_run_by_another(agent: &dyn Agent) -> bool {
    nearest_is_of(agent) == Some(false)
}

/// Whether the nearest process of an agent above us runs hooks for this agent; `None` if there is
/// no such process.
fn nearest_is_of(agent: &dyn Agent) -> Option<bool> {
    process::ancestors()
        .iter()
        .map(|above| process::arguments(above.pid))
        .find(|args| agent.runs_hooks(args) || ALL.iter().any(|any| any.is_process(args)))
        .map(|args| agent.runs_hooks(&args))
}
