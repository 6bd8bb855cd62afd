//! Checks a job's record against the truth, at each read.
//!
//! A job that has not ended has a worker, and a worker holds its lock. If no process holds the
//! lock, the worker is gone. Then the backend is asked once whether it has finished all the same;
//! if not, what is left of the job is ended, and the job has failed. Reconciling never fails its
//! caller: an end that can't be written is still returned.

use crate::place::{Held, Place};
use crate::request::Request;
use crate::{Runtime, asker_mail, backend, processes, worker};
use baton_core::id::ParticipantId;
use baton_core::job::judge::JobVerdict;
use baton_core::job::{Fault, Status};
use baton_core::process::Process;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_machine::process;
use baton_store::{JobEnd, JobFilter, JobRow, Jobs, Store};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long one job may take.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long processes of a dead worker's job may take to end after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_millis(400);
/// If the lock can't be checked, a worker counts as dead after this long without a sign of life.
pub const SILENCE_LIMIT: Span = Span::seconds(60);

/// Reconciles rows, all at once.
pub fn all(runtime: &Runtime, jobs: &mut Jobs, rows: Vec<JobRow>) -> Vec<JobRow> {
    let mut rows = rows;
    let suspects: Vec<usize> = (0..rows.len()).filter(|at| is_suspect(runtime, &rows[*at])).collect();
    let (found, results) = mpsc::channel();
    for &at in &suspects {
        let (runtime, row, found) = (runtime.clone(), rows[at].clone(), found.clone());
        thread::spawn(move || {
            if let Ok(mut jobs) = Jobs::open(&runtime.home) {
                found.send((at, look_closer(&runtime, &mut jobs, &row))).ok();
            }
        });
    }
    drop(found);
    // A job that is not checked in time counts as dead. The next reader cleans it up.
    for &at in &suspects {
        if !rows[at].status.is_end() {
            rows[at] = as_failed(&rows[at], &worker_gone(&rows[at]));
        }
    }
    let deadline = Instant::now() + RECONCILE_TIMEOUT;
    while let Ok((at, row)) = results.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        rows[at] = row;
    }
    jobs.tidy();
    rows
}

pub fn one(runtime: &Runtime, jobs: &mut Jobs, row: JobRow) -> JobRow {
    if !is_suspect(runtime, &row) {
        return row;
    }
    all(runtime, jobs, vec![row.clone()]).pop().unwrap_or(row)
}

/// Looks after the jobs that a participant asked for. `seen` is the jobs generation from the hook's
/// view. If no job is left to look after, the generation is cleared, but only if it still has that
/// value.
pub fn look_after(
    runtime: &Runtime,
    store: &mut Store,
    asker: ParticipantId,
    seen: i64,
) -> Result<(), Error> {
    if owed_to(runtime, asker)?.iter().all(|row| row.status.is_end() && row.told) {
        store.clear_jobs_generation(asker, seen)?;
    }
    Ok(())
}

/// The jobs of an asker that have not ended, or of whose end it has not been told, reconciled.
pub fn owed_to(runtime: &Runtime, asker: ParticipantId) -> Result<Vec<JobRow>, Error> {
    let Some(mut jobs) = Jobs::open_if_any(&runtime.home)? else { return Ok(Vec::new()) };
    let rows = jobs.list(JobFilter::Owed(asker), 1000)?;
    Ok(all(runtime, &mut jobs, rows))
}

/// Whether a job counts as running, but has no worker.
pub fn is_dead(runtime: &Runtime, row: &JobRow) -> bool {
    !row.status.is_end() && is_suspect(runtime, row)
}

/// Whether the record may be out of date: an end that was not told, or a worker that is gone.
fn is_suspect(runtime: &Runtime, row: &JobRow) -> bool {
    if row.status.is_end() {
        return !row.told;
    }
    match Place::of(&runtime.home, &row.id).held() {
        Held::Yes => false,
        Held::No => true,
        Held::Unknown => silence(row) >= SILENCE_LIMIT && !row.worker.is_some_and(process::is_alive),
    }
}

fn silence(row: &JobRow) -> Span {
    let last = row.activity.as_ref().map_or(row.started_at.unwrap_or(row.created_at), |activity| activity.at);
    baton_machine::clock::now().since(last)
}

fn look_closer(runtime: &Runtime, jobs: &mut Jobs, seen: &JobRow) -> JobRow {
    // The worker may have written the end between the caller's read and the check of its lock.
    let row = match jobs.get(&seen.id) {
        Ok(Some(row)) => row,
        _ => seen.clone(),
    };
    if row.status.is_end() {
        asker_mail::send_end(runtime, jobs, &row.id);
        return jobs.get(&row.id).ok().flatten().unwrap_or(row);
    }
    finish_orphaned_job(runtime, jobs, &row, &worker_gone(&row))
}

/// Ends a job whose worker is gone.
pub fn finish_orphaned_job(runtime: &Runtime, jobs: &mut Jobs, row: &JobRow, fault: &Fault) -> JobRow {
    let recalled = || {
        let request = Request::parse(&row.request)?;
        worker::recall(&worker::task(runtime, row, &request), &row.agent, row.session.as_deref()?)
    };
    let mut verdict = recalled();
    let mut exit = None;
    if !matches!(verdict, Some(JobVerdict::Completed(_))) {
        exit = Some(clean_up(runtime, row));
        // It may have finished in the meantime.
        verdict = recalled();
    }
    let (status, result, fault) = match verdict {
        Some(JobVerdict::Completed(text)) => (Status::Completed, Some(text), None),
        Some(JobVerdict::Failed(told)) => (Status::Failed, None, Some(told)),
        _ if row.cancel => (Status::Cancelled, None, Some(fault.clone())),
        _ => (Status::Failed, None, Some(fault.clone())),
    };
    // If the worker never began, nothing can have finished.
    let status =
        if row.status == Status::Queued && status == Status::Completed { Status::Failed } else { status };
    let now = baton_machine::clock::now();
    let elapsed = now.since(row.created_at);
    let end = JobEnd {
        status,
        result: result.as_deref(),
        fault: fault.as_ref(),
        exit: exit.as_deref(),
        changes: None,
        elapsed: Some(elapsed),
        now,
    };
    match jobs.end(&row.id, &end) {
        Ok(_) => {
            asker_mail::send_end(runtime, jobs, &row.id);
            jobs.get(&row.id).ok().flatten().unwrap_or_else(|| row.clone())
        }
        // The caller hears of the end, even if it could not be written.
        Err(_) => {
            JobRow { status, result, fault, ended_at: Some(now), elapsed: Some(elapsed), ..row.clone() }
        }
    }
}

/// Ends what is left of a job without a worker. Returns what was done, for people.
pub fn clean_up(runtime: &Runtime, row: &JobRow) -> String {
    let marked = |process: &Process| processes::is_marked(*process, processes::JOB_VARIABLE, row.id.as_str());
    let root = row.backend.filter(|process| process::is_alive(*process)).filter(marked);
    let count = processes::end_all(&row.id, root, TERM_TIMEOUT);
    if let (Some(request), Some(backend)) = (Request::parse(&row.request), backend::of(&row.agent)) {
        backend.abandon(&worker::task(runtime, row, &request), row.session.as_deref());
    }
    match count {
        0 => "none of its processes was left".to_owned(),
        count => format!("{count} of its processes were ended"),
    }
}

fn worker_gone(row: &JobRow) -> Fault {
    let why = if row.worker.is_none() {
        "the worker of the job never began".to_owned()
    } else {
        format!("the worker of the job is gone; it was last heard of {} s ago", silence(row).0 / 1000)
    };
    Fault::new(Code::WorkerGone, why)
        .hint("was it killed, or the machine restarted? `baton job logs` shows its last output; --resume continues its session")
}

fn as_failed(row: &JobRow, fault: &Fault) -> JobRow {
    let status = if row.cancel { Status::Cancelled } else { Status::Failed };
    JobRow { status, fault: Some(fault.clone()), ended_at: Some(baton_machine::clock::now()), ..row.clone() }
}
