//! Watching over the jobs of the sessions that this server serves.
//!
//! A worker tells its job's asker of the end itself, unless it is killed. The server lives as long as the session, so it waits for the ends of the
//! workers, by the kernel's word, and then looks: what a dead worker left behind is ended, and the asker has mail. One thread blocks on all of that and
//! polls nothing; a look every twenty seconds covers what can't be waited for.

use crate::desk::Desk;
use baton_core::Error;
use baton_core::id::{JobId, ParticipantId};
use baton_jobs::place::Place;
use baton_jobs::reconcile;
use baton_mail::bell::Bell;
use baton_mail::process;
use baton_store::{JobRow, Store};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// For a ring or an end that got lost.
const SWEEP: Duration = Duration::from_secs(20);
/// So many jobs are waited for at once; more are found by the sweep.
const MOST: usize = 200;

/// Those whose jobs are watched over.
#[derive(Default)]
pub(crate) struct Askers {
    known: Mutex<BTreeSet<ParticipantId>>,
    /// Tells the thread of a new one.
    poke: Mutex<Option<UnixStream>>,
}

impl Askers {
    /// Watches over the jobs of one more.
    pub(crate) fn add(&self, asker: ParticipantId) {
        let new = self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(asker);
        if let Some(poke) = self.poke.lock().unwrap_or_else(PoisonError::into_inner).as_mut().filter(|_| new)
        {
            // A full pipe has been poked enough.
            poke.write_all(b"!").ok();
        }
    }

    fn all(&self) -> Vec<ParticipantId> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// Begins it; it lasts as long as the process.
pub(crate) fn begin(desk: &Arc<Desk>) {
    let begun = UnixStream::pair().and_then(|(poke, poked)| {
        poke.set_nonblocking(true)?;
        poked.set_nonblocking(true)?;
        *desk.askers.poke.lock().unwrap_or_else(PoisonError::into_inner) = Some(poke);
        let desk = Arc::clone(desk);
        thread::Builder::new().name("jobs".to_owned()).spawn(move || Overseer::new(desk, poked).keep())
    });
    if let Err(error) = begun {
        desk.log(&format!("mcp: nobody watches over the jobs: {error}"));
    }
}

struct Overseer {
    desk: Arc<Desk>,
    poked: UnixStream,
    bells: HashMap<ParticipantId, Bell>,
    /// The ends of the workers.
    endings: HashMap<JobId, OwnedFd>,
    /// The bells of jobs whose worker has not said yet who it is.
    beginnings: HashMap<JobId, Bell>,
}

impl Overseer {
    fn new(desk: Arc<Desk>, poked: UnixStream) -> Self {
        Self { desk, poked, bells: HashMap::new(), endings: HashMap::new(), beginnings: HashMap::new() }
    }

    fn keep(&mut self) {
        loop {
            let mut open = Vec::new();
            for asker in self.desk.askers.all() {
                self.listen(asker);
                match self.look(asker) {
                    Ok(rows) => open.extend(rows),
                    Err(error) => self.desk.log(&format!("mcp: a look at the jobs failed: {error}")),
                }
            }
            open.truncate(MOST);
            self.wait_for(&open);
            self.sleep();
        }
    }

    /// Before the look, so that no ring is missed.
    fn listen(&mut self, asker: ParticipantId) {
        if !self.bells.contains_key(&asker)
            && let Ok(bell) = Bell::listen(&self.desk.options.home, asker)
        {
            self.bells.insert(asker, bell);
        }
    }

    /// The jobs of an asker that go on, after those that only seemed to were ended. One indexed read where there are none.
    fn look(&self, asker: ParticipantId) -> Result<Vec<JobRow>, Error> {
        if !Store::path(&self.desk.options.home).exists() {
            return Ok(Vec::new());
        }
        let seen = self.desk.mail(|store| store.jobs_of(asker))?;
        if seen == 0 {
            return Ok(Vec::new());
        }
        let mut rows = reconcile::owed_to(&self.desk.host(), asker)?;
        if rows.iter().all(|row| row.status.is_end() && row.told) {
            self.desk.mail(|store| store.clear_jobs(asker, seen))?;
        }
        rows.retain(|row| !row.status.is_end());
        Ok(rows)
    }

    fn wait_for(&mut self, open: &[JobRow]) {
        self.endings.retain(|id, _| open.iter().any(|row| row.id == *id));
        self.beginnings.retain(|id, _| open.iter().any(|row| row.id == *id && row.worker.is_none()));
        for row in open {
            match row.worker {
                Some(worker) if !self.endings.contains_key(&row.id) => {
                    self.endings.extend(process::ending(worker).map(|ending| (row.id.clone(), ending)));
                }
                None if !self.beginnings.contains_key(&row.id) => {
                    let bell = Bell::listen_at(&Place::of(&self.desk.options.home, &row.id).bell());
                    self.beginnings.extend(bell.ok().map(|bell| (row.id.clone(), bell)));
                }
                _ => {}
            }
        }
    }

    fn sleep(&mut self) {
        let timeout = Timespec { tv_sec: SWEEP.as_secs().cast_signed(), tv_nsec: 0 };
        let ids: Vec<JobId> = self.endings.keys().cloned().collect();
        let mut fds: Vec<PollFd<'_>> =
            ids.iter().map(|id| PollFd::from_borrowed_fd(self.endings[id].as_fd(), PollFlags::IN)).collect();
        fds.push(PollFd::new(&self.poked, PollFlags::IN));
        let bells = self.bells.values().chain(self.beginnings.values());
        fds.extend(bells.map(|bell| PollFd::new(bell.watch(), PollFlags::IN)));
        // Interrupted or not: it is looked again.
        poll(&mut fds, Some(&timeout)).ok();
        let ended: Vec<JobId> = ids
            .iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty())
            .map(|(id, _)| id.clone())
            .collect();
        drop(fds);
        // An end is news once: a job that can't be ended now is left to the sweep.
        ended.iter().for_each(|id| drop(self.endings.remove(id)));
        self.bells.values_mut().chain(self.beginnings.values_mut()).for_each(Bell::drain);
        // As much as there is; whatever was poked for is looked at next.
        rustix::io::read(&self.poked, &mut [0; 64]).ok();
    }
}
