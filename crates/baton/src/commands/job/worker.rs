//! `job-worker`, the process that watches one job, and `keep-server`, the one that keeps a server
//! for several.

use super::{CommandContext, host};
use baton_core::error::Exit;
use baton_core::id::JobId;
use baton_core::{Code, Error};
use baton_jobs::backend::opencode::keeper;
use baton_jobs::{start, worker};
use clap::Args;
use std::path::PathBuf;

// `baton job-worker`
#[derive(Debug, Args)]
pub struct JobWorker {
    /// Only start the worker, as a child of no other process
    #[arg(long)]
    detach: bool,
    /// The job
    job: String,
}

impl JobWorker {
    /// Works until the job has ended.
    pub fn run(self, context: &CommandContext) -> Result<Exit, Error> {
        let id = JobId::parse(&self.job).ok_or_else(|| {
            Error::new(Code::UnknownJob, "that is no job's id").hint("`baton job start` calls this")
        })?;
        let host = host(context)?;
        let refused = |error: std::io::Error| {
            Error::new(Code::BackendStart, format!("the worker can't begin: {error}"))
        };
        if self.detach {
            start::detach(&host, &id).map_err(refused)?;
        } else {
            let lock = worker::take_lock(&host.home, &id).map_err(refused)?;
            worker::run(&host, &id, lock)?;
        }
        Ok(Exit::Done)
    }
}

// `baton keep-server`
#[derive(Debug, Args)]
pub struct KeepServer {
    /// The file that records the server
    #[arg(long)]
    folder: PathBuf,
    /// The agent's program
    #[arg(long)]
    program: PathBuf,
}

impl KeepServer {
    /// Keeps the server until no job needs it.
    pub fn run(self) -> Result<Exit, Error> {
        keeper::run(&self.folder, &self.program)?;
        Ok(Exit::Done)
    }
}
