//! Cancelling: asks the worker, and after a while does it itself. It has a deadline of its own.

use crate::place::Place;
use crate::wait::{self, Until};
use crate::{Host, reconcile};
use baton_core::job::Fault;
use baton_core::{Code, Error};
use baton_mail::{bell, process};
use baton_store::{JobRow, Jobs};
use rustix::process::{Pid, Signal};
use std::time::{Duration, Instant};

/// The worker has so long to stop the turn and clean up.
const WORKER: Duration = Duration::from_secs(8);

/// Cancels a job; the row as it stands afterwards, which says what was really done.
pub fn cancel(host: &Host, jobs: &mut Jobs, row: JobRow) -> Result<JobRow, Error> {
    let row = reconcile::one(host, jobs, row);
    if row.status.is_end() || !jobs.ask_cancel(&row.id)? {
        return Err(Error::new(Code::JobEnded, format!("job {} has {} already", row.id, past(&row)))
            .hint(format!("`baton job result {}` shows what it has", row.id)));
    }
    bell::ring_at(&Place::of(&host.home, &row.id).bell());
    let ids = [row.id.clone()];
    let waited = wait::wait(host, jobs, &ids, Until::All, Instant::now() + WORKER, &mut |_| true)?;
    match waited.into_iter().next() {
        Some(row) if row.status.is_end() => Ok(row),
        Some(row) => Ok(by_force(host, jobs, &row)),
        None => Err(Error::new(Code::UnknownJob, format!("job {} was removed", row.id))),
    }
}

/// Its worker does not answer: ends it, and then what it left.
fn by_force(host: &Host, jobs: &mut Jobs, row: &JobRow) -> JobRow {
    if let Some(worker) = row.worker
        && let Some(pid) = Pid::from_raw(worker.pid).filter(|_| process::is_alive(worker))
    {
        // Gone already is what we want.
        rustix::process::kill_process(pid, Signal::KILL).ok();
        let deadline = Instant::now() + Duration::from_secs(1);
        while process::is_alive(worker) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let fault =
        Fault::new(Code::JobCancelled, "the job was cancelled; its worker did not answer and was ended");
    let row = JobRow { cancel: true, ..row.clone() };
    reconcile::bury(host, jobs, &row, &fault)
}

fn past(row: &JobRow) -> &'static str {
    match row.status {
        baton_core::job::Status::Completed => "been completed",
        baton_core::job::Status::Cancelled => "been cancelled",
        _ => "failed",
    }
}
