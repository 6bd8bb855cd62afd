//! `baton hook AGENT --review`: the stop gate. Another agent reviews the changes before a session
//! may stop.
//!
//! It takes as long as a review takes, and is installed only if the person has switched it on.
//! After an error the session may stop, and the log gets a line.

use super::{HookArgs, append_log, is_foreign, output_closed, print, read_payload};
use crate::environment;
use crate::settings::Settings;
use baton_agents::install::REVIEW_SECONDS;
use baton_core::event::{EventKind, Reply};
use baton_core::review::{self, StopDecision, Stopping, Unreviewed};
use baton_core::{Code, Error};
use baton_jobs::review::Order;
use baton_jobs::review::stop_gate::{self, Memory};
use baton_jobs::{Runtime, processes};
use baton_mail::hook_event;
use baton_mail::identity::{Identity, Kind};
use baton_store::{Role, Store};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The part of the hook's time limit that is kept for ending a slow review and for the answer.
const END_RESERVE: Duration = Duration::from_secs(30);
/// How long an agent may take to read the answer.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs a review if one is wanted, and answers.
pub fn run(args: &HookArgs, home: &Path, deadline: Instant) -> Result<(), Error> {
    let begun = Instant::now();
    let agent = baton_agents::by_name(&args.agent)?;
    let payload = read_payload(deadline)?;
    if is_foreign(agent, &payload) {
        return Ok(());
    }
    let event = agent.parse(&payload, None)?;
    if event.kind != EventKind::Stop || event.subagent.is_some() {
        return Ok(());
    }
    let cwd = event.cwd.clone().unwrap_or_else(|| PathBuf::from("/"));
    let limits = Settings::load(&cwd)?.limits;
    let (name, session) = (agent.name(), event.session_id.as_str());
    let memory = Memory::of(home, name, session);
    let in_job = environment::get(processes::JOB_VARIABLE).is_some();
    let on = limits.review_gate && !in_job;
    // Runs git only if the gate is on.
    let found = on.then(|| stop_gate::look(&cwd, &memory, &environment::get));
    let stopping = Stopping {
        on: limits.review_gate,
        in_job,
        stop_active: event.stop_active,
        rounds: memory.rounds,
        most: limits.review_rounds,
        changes: found.as_ref().map_or(review::Changes::Unknown, |found| found.new),
    };
    let log = |what: &str| append_log(home, &format!("{name}: review: {what}"));
    let Some(found) = found else { return Ok(()) };
    match (review::wanted(stopping), found.changes) {
        (Ok(()), Some(changes)) => {
            let runtime = Runtime {
                home: home.to_owned(),
                program: environment::own_program()?,
                environment: environment::all(),
                limits,
                guard: crate::guard::open,
            };
            let mut store = Store::open(home, Role::Command)?;
            if let Some(view) = store.hook_view(name, session)? {
                hook_event::check_comes_from_session(&store, agent, &view, &event)?;
            }
            let me = identity(&store, name, session)?;
            let longest =
                limits.review_timeout.to_std().min(Duration::from_secs(REVIEW_SECONDS.into()) - END_RESERVE);
            let order = Order {
                agent: limits.review_agent,
                cwd: &changes.root,
                timeout: limits.review_timeout,
                told: true,
            };
            let rounds = review::rounds_before(event.stop_active, memory.rounds);
            match stop_gate::run(&runtime, &mut store, &me, &order, &changes, begun + longest) {
                StopDecision::Allow => save_memory(home, name, session, &found.allowed),
                StopDecision::Block(reason) => {
                    // Saved before the answer: otherwise an error could hold the session once more.
                    Memory { rounds: rounds + 1, ..memory }.keep(home, name, session).map_err(save_failed)?;
                    let answer = agent.render(&event, &Reply::Continue(reason), None);
                    print(&answer, Instant::now() + READ_TIMEOUT).map_err(|error| output_closed(&error))
                }
                StopDecision::CouldNotRun(why) => {
                    log(&format!("could not run: {why}"));
                    Ok(())
                }
            }
        }
        (Err(Unreviewed::NothingNew), _) => save_memory(home, name, session, &found.allowed),
        (Err(Unreviewed::Unknown), _) => {
            let why = found.why.map_or_else(String::new, |error| error.message().to_owned());
            log(&format!("could not run: {why}"));
            Ok(())
        }
        // The session has had its rounds. No review has allowed the changes that it stops with now.
        _ => Ok(()),
    }
}

fn identity(store: &Store, agent: &str, session: &str) -> Result<Identity, Error> {
    let found = store.participant_of(Some(agent), session)?;
    let (participant, session) =
        found.ok_or_else(|| Error::new(Code::UnboundSession, "review: the session is not known"))?;
    let project = participant.project.clone();
    Ok(Identity { participant, kind: Kind::Session { session, call: None, subagent: false }, project })
}

fn save_memory(home: &Path, agent: &str, session: &str, memory: &Memory) -> Result<(), Error> {
    memory.keep(home, agent, session).map_err(save_failed)
}

fn save_failed(error: std::io::Error) -> Error {
    Error::new(Code::StoreUnavailable, format!("review: the result can't be saved: {error}"))
}
