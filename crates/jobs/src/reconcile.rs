//! The truth about a job, found out at each read.
//!
//! A job that has not ended has a worker, and a worker holds its lock. Where nobody does, the worker is gone: the backend is asked once whether it
//! has finished nevertheless; if not, what is left of the job is ended and the job has failed. Reconciling never fails its caller: what can't
//! be written down is told all the same.

use crate::place::{Held, Place};
use crate::request::Request;
use crate::{Host, backend, processes, tell, worker};
use baton_core::id::ParticipantId;
use baton_core::job::judge::Verdict;
use baton_core::job::{Fault, Status};
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_mail::process;
use baton_store::{JobEnd, JobFilter, JobRow, Jobs, Process, Store};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// One job takes so long at most.
const LIMIT: Duration = Duration::from_secs(2);
/// Processes of a dead worker's job have so long to go by themselves.
const POLITE: Duration = Duration::from_millis(400);
/// Only where nobody can say whether the worker lives, silence of so long decides.
pub const SILENCE: Span = Span::seconds(60);

/// Brings rows up to the truth, all at once.
pub fn all(host: &Host, jobs: &mut Jobs, rows: Vec<JobRow>) -> Vec<JobRow> {
    let mut rows = rows;
    let suspects: Vec<usize> = (0..rows.len()).filter(|at| is_suspect(host, &rows[*at])).collect();
    let (found, results) = mpsc::channel();
    for &at in &suspects {
        let (host, row, found) = (host.clone(), rows[at].clone(), found.clone());
        thread::spawn(move || {
            if let Ok(mut jobs) = Jobs::open(&host.home) {
                found.send((at, look_closer(&host, &mut jobs, &row))).ok();
            }
        });
    }
    drop(found);
    // Those who don't come back in time are dead all the same, only not cleaned up yet: the next reader does it.
    for &at in &suspects {
        if !rows[at].status.is_end() {
            rows[at] = as_failed(&rows[at], &worker_gone(&rows[at]));
        }
    }
    let deadline = Instant::now() + LIMIT;
    while let Ok((at, row)) = results.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        rows[at] = row;
    }
    jobs.tidy();
    rows
}

/// Brings one row up to the truth.
pub fn one(host: &Host, jobs: &mut Jobs, row: JobRow) -> JobRow {
    if !is_suspect(host, &row) {
        return row;
    }
    all(host, jobs, vec![row.clone()]).pop().unwrap_or(row)
}

/// Looks after the jobs that somebody asked for. `seen` is the number that its events were told with; when nothing is left to look after, they
/// are told nothing any more.
pub fn look_after(host: &Host, store: &mut Store, asker: ParticipantId, seen: i64) -> Result<(), Error> {
    if owed_to(host, asker)?.iter().all(|row| row.status.is_end() && row.told) {
        store.clear_jobs(asker, seen)?;
    }
    Ok(())
}

/// The jobs that somebody asked for and that have not ended, or had not when he was told last; as they really stand.
pub fn owed_to(host: &Host, asker: ParticipantId) -> Result<Vec<JobRow>, Error> {
    let Some(mut jobs) = Jobs::open_if_any(&host.home)? else { return Ok(Vec::new()) };
    let rows = jobs.list(JobFilter::Owed(asker), 1000)?;
    Ok(all(host, &mut jobs, rows))
}

/// Whether a job counts as going on, but nobody looks after it.
pub fn is_dead(host: &Host, row: &JobRow) -> bool {
    !row.status.is_end() && is_suspect(host, row)
}

/// Whether what stands there may not be all there is to say.
fn is_suspect(host: &Host, row: &JobRow) -> bool {
    if row.status.is_end() {
        return !row.told;
    }
    match Place::of(&host.home, &row.id).held() {
        Held::Yes => false,
        Held::No => true,
        Held::Unknown => silence(row) >= SILENCE && !row.worker.is_some_and(process::is_alive),
    }
}

fn silence(row: &JobRow) -> Span {
    let last = row.activity.as_ref().map_or(row.started_at.unwrap_or(row.created_at), |(_, at)| *at);
    baton_mail::now().since(last)
}

fn look_closer(host: &Host, jobs: &mut Jobs, seen: &JobRow) -> JobRow {
    // Its worker may have written the end between our read and our look at its lock.
    let row = match jobs.get(&seen.id) {
        Ok(Some(row)) => row,
        _ => seen.clone(),
    };
    if row.status.is_end() {
        tell::ended(host, jobs, &row.id);
        return jobs.get(&row.id).ok().flatten().unwrap_or(row);
    }
    bury(host, jobs, &row, &worker_gone(&row))
}

/// Ends a job that has no worker any more.
pub fn bury(host: &Host, jobs: &mut Jobs, row: &JobRow, fault: &Fault) -> JobRow {
    let recalled = || {
        let request = Request::parse(&row.request)?;
        worker::recall(&worker::task(host, row, &request), &row.agent, row.session.as_deref()?)
    };
    let mut verdict = recalled();
    let mut exit = None;
    if !matches!(verdict, Some(Verdict::Completed(_))) {
        exit = Some(clean_up(host, row));
        // It may have finished while we were at it.
        verdict = recalled();
    }
    let (status, result, fault) = match verdict {
        Some(Verdict::Completed(text)) => (Status::Completed, Some(text), None),
        Some(Verdict::Failed(told)) => (Status::Failed, None, Some(told)),
        _ if row.cancel => (Status::Cancelled, None, Some(fault.clone())),
        _ => (Status::Failed, None, Some(fault.clone())),
    };
    // A worker that never began has nothing that could have finished.
    let status =
        if row.status == Status::Queued && status == Status::Completed { Status::Failed } else { status };
    let now = baton_mail::now();
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
            tell::ended(host, jobs, &row.id);
            jobs.get(&row.id).ok().flatten().unwrap_or_else(|| row.clone())
        }
        // Told all the same.
        Err(_) => {
            JobRow { status, result, fault, ended_at: Some(now), elapsed: Some(elapsed), ..row.clone() }
        }
    }
}

/// Ends what is left of a job without a worker. In words what was done.
pub fn clean_up(host: &Host, row: &JobRow) -> String {
    let marked = |process: &Process| processes::is_marked(*process, processes::JOB, row.id.as_str());
    let root = row.backend.filter(|process| process::is_alive(*process)).filter(marked);
    let count = processes::end_all(&row.id, root, POLITE);
    if let (Some(request), Some(backend)) = (Request::parse(&row.request), backend::of(&row.agent)) {
        backend.abandon(&worker::task(host, row, &request), row.session.as_deref());
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
        .hint("was it killed, or the machine restarted? `baton job logs` has its last words; --resume lets the agent go on")
}

fn as_failed(row: &JobRow, fault: &Fault) -> JobRow {
    let status = if row.cancel { Status::Cancelled } else { Status::Failed };
    JobRow { status, fault: Some(fault.clone()), ended_at: Some(baton_mail::now()), ..row.clone() }
}
