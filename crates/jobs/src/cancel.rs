//! Cancelling a job: asks its worker, and ends it by force if the worker does not answer in time.

use crate::place::Place;
use crate::wait::{self, Until};
use crate::{Runtime, reconcile};
use baton_core::job::Fault;
use baton_core::{Code, Error};
use baton_machine::{bell, process};
use baton_store::{JobRow, Jobs};
use rustix::process::{Pid, Signal};
use std::time::{Duration, Instant};

/// How long the worker may take to stop the turn and clean up.
const WORKER_TIMEOUT: Duration = Duration::from_secs(8);

/// Cancels a job. Returns the row as it is afterwards, which says what was really done.
pub fn cancel(runtime: &Runtime, jobs: &mut Jobs, row: JobRow) -> Result<JobRow, Error> {
    let row = reconcile::one(runtime, jobs, row);
    if row.status.is_end() || !jobs.ask_cancel(&row.id)? {
        return Err(Error::new(Code::JobEnded, format!("job {} has {} already", row.id, past(&row)))
            .hint(format!("`baton job result {}` shows its result", row.id)));
    }
    bell::ring_at(&Place::of(&runtime.home, &row.id).bell());
    let ids = [row.id.clone()];
    let waited = wait::wait(runtime, jobs, &ids, Until::All, Instant::now() + WORKER_TIMEOUT, &mut |_| true)?;
    match waited.into_iter().next() {
        Some(row) if row.status.is_end() => Ok(row),
        Some(row) => Ok(by_force(runtime, jobs, &row)),
        None => Err(Error::new(Code::UnknownJob, format!("job {} was removed", row.id))),
    }
}

/// The worker does not answer: ends it, and then what it left.
fn by_force(runtime: &Runtime, jobs: &mut Jobs, row: &JobRow) -> JobRow {
    if let Some(worker) = row.worker
        && let Some(pid) = Pid::from_raw(worker.pid).filter(|_| process::is_alive(worker))
    {
        // An error means that it is gone already.
        rustix::process::kill_process(pid, Signal::KILL).ok();
        let deadline = Instant::now() + Duration::from_secs(1);
        while process::is_alive(worker) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let fault =
        Fault::new(Code::JobCancelled, "the job was cancelled; its worker did not answer and was ended");
    let row = JobRow { cancel: true, ..row.clone() };
    reconcile::finish_orphaned_job(runtime, jobs, &row, &fault)
}

fn past(row: &JobRow) -> &'static str {
    match row.status {
        baton_core::job::Status::Completed => "been completed",
        baton_core::job::Status::Cancelled => "been cancelled",
        _ => "failed",
    }
}
