//! `job` and `run`: hand tasks to other agents, and look after them.

mod changes;
mod look;
mod start;
mod wait;
mod worker;

pub use start::Run;
pub use wait::{Limit, Style, broke_off, report, was_seen, watch};
pub use worker::{JobWorker, KeepServer};

use super::CommandContext;
use crate::environment;
use crate::print::Out;
use baton_core::Error;
use baton_core::error::Exit;
use baton_jobs::Runtime;
use clap::Subcommand;

// `baton job …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Job {
    /// Hand a task to another agent; returns at once
    Start(start::Start),
    /// The jobs of this project, the newest first
    List(look::List),
    /// The status of a job, or of all that run
    Status(look::Status),
    /// Wait for jobs to end
    Wait(wait::Wait),
    /// The result of a job
    Result(look::ShowResult),
    /// The log of a job
    Logs(look::Logs),
    /// Stop a job
    Cancel(look::Cancel),
    /// Check every job that has not ended, and end those that are dead
    Heal(look::Heal),
    /// Remove old jobs whose results were read, and worktrees that hold nothing
    Prune(look::Prune),
}

impl Job {
    /// Whether it makes a new job.
    pub fn starts_a_job(&self) -> bool {
        matches!(self, Self::Start(_))
    }

    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        match self {
            Self::Start(start) => start.run(context, out),
            Self::List(list) => list.run(context, out),
            Self::Status(status) => status.run(context, out),
            Self::Wait(wait) => wait.run(context, out),
            Self::Result(result) => result.run(context, out),
            Self::Logs(logs) => logs.run(context, out),
            Self::Cancel(cancel) => cancel.run(context, out),
            Self::Heal(heal) => heal.run(context, out),
            Self::Prune(prune) => prune.run(context, out),
        }
    }
}

/// Where jobs run.
pub fn host(context: &CommandContext) -> Result<Runtime, Error> {
    let program = environment::own_program()?;
    Ok(Runtime {
        home: context.home.clone(),
        program,
        environment: environment::all(),
        limits: context.limits()?,
        guard: crate::guard::open,
    })
}
