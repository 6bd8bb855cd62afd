//! `job-worker`: the process that watches one job.

use super::{Session, host};
use baton_core::error::Exit;
use baton_core::id::JobId;
use baton_core::{Code, Error};
use baton_jobs::{start, worker};
use clap::Args;

// `baton job-worker`
#[derive(Debug, Args)]
pub struct JobWorker {
    /// Only start it, as nobody's child
    #[arg(long)]
    detach: bool,
    /// The job
    job: String,
}

impl JobWorker {
    /// Works until the job has ended.
    pub fn run(self, session: &Session) -> Result<Exit, Error> {
        let id = JobId::parse(&self.job).ok_or_else(|| {
            Error::new(Code::UnknownJob, "that is no job's id").hint("`baton job start` calls this")
        })?;
        let host = host(session)?;
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
