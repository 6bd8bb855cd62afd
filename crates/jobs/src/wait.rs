//! Waiting for jobs: on their bells and on the ends of their workers, by the kernel. It costs nothing while nothing happens.

use crate::place::Place;
use crate::{Host, reconcile};
use baton_core::Error;
use baton_core::id::JobId;
use baton_mail::bell::Bell;
use baton_mail::process;
use baton_store::{JobRow, Jobs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A ring or an end may get lost; the truth is looked at this often.
const SWEEP: Duration = Duration::from_secs(5);

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// All of them have ended.
    All,
    /// One of them has.
    Any,
}

/// Waits for jobs. `changed` sees their rows whenever something may have, and says whether to go on waiting. The rows as they stand at the end.
pub fn wait(
    host: &Host,
    jobs: &mut Jobs,
    ids: &[JobId],
    until: Until,
    deadline: Instant,
    changed: &mut dyn FnMut(&[JobRow]) -> bool,
) -> Result<Vec<JobRow>, Error> {
    // Listened first, looked then: what happens in between is rung for.
    let mut bells: Vec<Option<Bell>> =
        ids.iter().map(|id| Bell::listen_at(&Place::of(&host.home, id).bell()).ok()).collect();
    let mut endings: Vec<Option<OwnedFd>> = ids.iter().map(|_| None).collect();
    loop {
        let mut rows = Vec::new();
        for id in ids {
            rows.extend(jobs.get(id)?);
        }
        let rows = reconcile::all(host, jobs, rows);
        let ended = rows.iter().filter(|row| row.status.is_end()).count();
        let done = match until {
            Until::All => ended == rows.len(),
            Until::Any => ended > 0 || rows.is_empty(),
        };
        let go_on = changed(&rows);
        let left = deadline.saturating_duration_since(Instant::now());
        if done || !go_on || left.is_zero() {
            return Ok(rows);
        }
        for (ending, row) in endings.iter_mut().zip(&rows) {
            if ending.is_none() && !row.status.is_end() {
                *ending = row.worker.and_then(process::ending);
            }
            if row.status.is_end() {
                *ending = None;
            }
        }
        sleep(&mut bells, &endings, left.min(SWEEP));
    }
}

fn sleep(bells: &mut [Option<Bell>], endings: &[Option<OwnedFd>], longest: Duration) {
    let timeout =
        Timespec { tv_sec: longest.as_secs().cast_signed(), tv_nsec: i64::from(longest.subsec_nanos()) };
    let mut fds: Vec<PollFd<'_>> =
        bells.iter().flatten().map(|bell| PollFd::new(bell.watch(), PollFlags::IN)).collect();
    fds.extend(endings.iter().flatten().map(|ending| PollFd::new(ending, PollFlags::IN)));
    // Interrupted or not: whoever waits looks again.
    poll(&mut fds, Some(&timeout)).ok();
    bells.iter_mut().flatten().for_each(Bell::drain);
}
