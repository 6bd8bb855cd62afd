//! `job` and `run`: hand tasks to other agents, and look after them.

mod look;
mod start;
mod wait;
mod worker;

pub use start::Run;
pub use wait::{Limit, Style, report, watch};
pub use worker::{JobWorker, KeepServer};

use super::Session;
use crate::environment;
use crate::print::Out;
use baton_core::Error;
use baton_core::error::Exit;
use baton_jobs::Host;
use clap::Subcommand;

// `baton job …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Job {
    /// Hand a task to another agent; returns at once
    Start(start::Start),
    /// The jobs of this project, the newest first
    List(look::List),
    /// How a job stands, or all that run
    Status(look::Status),
    /// Wait for jobs to end
    Wait(wait::Wait),
    /// What a job has come to
    Result(look::ShowResult),
    /// What a job has done so far
    Logs(look::Logs),
    /// Stop a job
    Cancel(look::Cancel),
    /// Look at every job that has not ended, and end those that are dead
    Heal(look::Heal),
    /// Forget ended jobs that are old and were read, and worktrees that hold nothing
    Prune(look::Prune),
}

impl Job {
    /// Does it.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        match self {
            Self::Start(start) => start.run(session, out),
            Self::List(list) => list.run(session, out),
            Self::Status(status) => status.run(session, out),
            Self::Wait(wait) => wait.run(session, out),
            Self::Result(result) => result.run(session, out),
            Self::Logs(logs) => logs.run(session, out),
            Self::Cancel(cancel) => cancel.run(session, out),
            Self::Heal(heal) => heal.run(session, out),
            Self::Prune(prune) => prune.run(session, out),
        }
    }
}

/// Where jobs run.
pub fn host(session: &Session) -> Result<Host, Error> {
    let program = environment::own_program()?;
    Ok(Host {
        home: session.home.clone(),
        program,
        environment: environment::all(),
        limits: session.limits()?,
        gate: crate::gate::open,
    })
}
