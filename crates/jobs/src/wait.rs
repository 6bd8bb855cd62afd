//! Waiting for jobs, on their bells and on the ends of their workers. The kernel wakes the waiter,
//! so waiting costs nothing while nothing happens.

use crate::place::Place;
use crate::{Runtime, reconcile};
use baton_core::id::JobId;
use baton_core::{Code, Error};
use baton_machine::bell::Bell;
use baton_machine::process;
use baton_store::{JobRow, Jobs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// A ring or an end may get lost, so the jobs are checked this often.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    All,
    /// At least one of them has ended.
    Any,
}

/// A caller that waits for jobs, and what else may end its sleep.
pub trait Watcher {
    /// Gets the jobs whenever they may have changed, and after each sleep. Returns whether to go
    /// on.
    fn changed(&mut self, rows: &[JobRow]) -> bool;

    /// What ends a sleep when it can be read.
    fn also(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// The longest sleep.
    fn longest(&self) -> Duration {
        SWEEP_INTERVAL
    }
}

/// A caller that waits for nothing else.
struct Simple<'a>(&'a mut dyn FnMut(&[JobRow]) -> bool);

impl Watcher for Simple<'_> {
    fn changed(&mut self, rows: &[JobRow]) -> bool {
        (self.0)(rows)
    }
}

/// Waits for jobs. `changed` gets their rows whenever they may have changed, and returns whether to
/// go on waiting. Returns the rows as they are at the end.
pub fn wait(
    runtime: &Runtime,
    jobs: &mut Jobs,
    ids: &[JobId],
    until: Until,
    deadline: Instant,
    changed: &mut dyn FnMut(&[JobRow]) -> bool,
) -> Result<Vec<JobRow>, Error> {
    wait_with(runtime, jobs, ids, until, deadline, &mut Simple(changed))
}

/// The same for a caller that has something else to wait for.
pub fn wait_with(
    runtime: &Runtime,
    jobs: &mut Jobs,
    ids: &[JobId],
    until: Until,
    deadline: Instant,
    watcher: &mut dyn Watcher,
) -> Result<Vec<JobRow>, Error> {
    // It listens before it looks, so a change in between rings.
    let mut bells: Vec<Option<Bell>> =
        ids.iter().map(|id| Bell::listen_at(&Place::of(&runtime.home, id).bell()).ok()).collect();
    let mut endings: Vec<Option<OwnedFd>> = ids.iter().map(|_| None).collect();
    loop {
        let found: Result<Vec<_>, Error> = ids.iter().map(|id| jobs.get(id)).collect();
        let left = deadline.saturating_duration_since(Instant::now());
        let rows = match found {
            Ok(found) => reconcile::all(runtime, jobs, found.into_iter().flatten().collect()),
            // Another process writes for very long. The jobs go on.
            Err(error) if error.code() == Code::StoreLocked && !left.is_zero() => {
                sleep(&mut bells, &endings, &watcher.also(), left.min(watcher.longest()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let ended = rows.iter().filter(|row| row.status.is_end()).count();
        let done = match until {
            Until::All => ended == rows.len(),
            Until::Any => ended > 0 || rows.is_empty(),
        };
        let go_on = watcher.changed(&rows);
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
        sleep(&mut bells, &endings, &watcher.also(), left.min(watcher.longest()));
    }
}

fn sleep(
    bells: &mut [Option<Bell>],
    endings: &[Option<OwnedFd>],
    also: &[BorrowedFd<'_>],
    longest: Duration,
) {
    let timeout =
        Timespec { tv_sec: longest.as_secs().cast_signed(), tv_nsec: i64::from(longest.subsec_nanos()) };
    let mut fds: Vec<PollFd<'_>> =
        bells.iter().flatten().map(|bell| PollFd::new(bell.watch(), PollFlags::IN)).collect();
    fds.extend(endings.iter().flatten().map(|ending| PollFd::new(ending, PollFlags::IN)));
    fds.extend(also.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
    // Even if it was interrupted, the caller looks again.
    poll(&mut fds, Some(&timeout)).ok();
    bells.iter_mut().flatten().for_each(Bell::drain);
}
