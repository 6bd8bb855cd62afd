//! `baton hook AGENT --review`: the stop gate. Another agent reviews what has changed before a session may stop.
//!
//! It takes as long as a review takes, and is installed only where the person has switched it on. Whatever goes wrong lets the session stop, and
//! is a line in the log.

use super::{Call, is_foreign, note, output_closed, print, read_payload};
use crate::environment;
use crate::settings::Settings;
use baton_agents::install::REVIEW_SECONDS;
use baton_core::event::{EventKind, Reply};
use baton_core::review::{self, Gate, Stopping, Unreviewed};
use baton_core::{Code, Error};
use baton_jobs::review::Order;
use baton_jobs::review::gate::{self, Memory};
use baton_jobs::{Host, processes};
use baton_mail::identity::{Identity, Kind};
use baton_store::{Role, Store};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is left of the hook's own time limit when a review is given up: to end it, and to answer.
const SPARE: Duration = Duration::from_secs(30);
/// How long an agent may take to read the answer.
const READ_LIMIT: Duration = Duration::from_secs(2);

/// Reviews, if that is wanted, and answers.
pub fn run(call: &Call, home: &Path, deadline: Instant) -> Result<(), Error> {
    let begun = Instant::now();
    let agent = baton_agents::by_name(&call.agent)?;
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
    let in_job = environment::get(processes::JOB).is_some();
    let on = limits.review_gate && !in_job;
    // Git is asked only where it matters.
    let found = on.then(|| gate::look(&cwd, &memory));
    let stopping = Stopping {
        on: limits.review_gate,
        in_job,
        stop_active: event.stop_active,
        rounds: memory.rounds,
        most: limits.review_rounds,
        changes: found.as_ref().map_or(review::Changes::Unknown, |found| found.new),
    };
    let log = |what: &str| note(home, &format!("{name}: review: {what}"));
    let Some(found) = found else { return Ok(()) };
    match (review::wanted(stopping), found.changes) {
        (Ok(()), Some(changes)) => {
            let host = Host {
                home: home.to_owned(),
                program: environment::own_program()?,
                environment: environment::all(),
                limits,
                gate: crate::gate::open,
            };
            let mut store = Store::open(home, Role::Command)?;
            let me = identity(&store, name, session)?;
            let longest =
                limits.review_timeout.to_std().min(Duration::from_secs(REVIEW_SECONDS.into()) - SPARE);
            let order = Order {
                agent: limits.review_agent,
                cwd: &changes.root,
                timeout: limits.review_timeout,
                told: true,
            };
            let rounds = review::rounds_before(event.stop_active, memory.rounds);
            match gate::run(&host, &mut store, &me, &order, &changes, begun + longest) {
                Gate::Allow => keep(home, name, session, &found.allowed),
                Gate::Block(reason) => {
                    // Written down first: a session must not be held once more because nobody remembers.
                    Memory { rounds: rounds + 1, ..memory }.keep(home, name, session).map_err(unkept)?;
                    let answer = agent.render(&event, &Reply::Continue(reason));
                    print(&answer, Instant::now() + READ_LIMIT).map_err(|error| output_closed(&error))
                }
                Gate::CouldNotRun(why) => {
                    log(&format!("could not run: {why}"));
                    Ok(())
                }
            }
        }
        (Err(Unreviewed::NothingNew), _) => keep(home, name, session, &found.allowed),
        (Err(Unreviewed::Unknown), _) => {
            let why = found.why.map_or_else(String::new, |error| error.message().to_owned());
            log(&format!("could not run: {why}"));
            Ok(())
        }
        // It has had its rounds; what it stops with now was not allowed by anybody.
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

fn keep(home: &Path, agent: &str, session: &str, memory: &Memory) -> Result<(), Error> {
    memory.keep(home, agent, session).map_err(unkept)
}

fn unkept(error: std::io::Error) -> Error {
    Error::new(Code::StoreUnavailable, format!("review: what was reviewed can't be written down: {error}"))
}
