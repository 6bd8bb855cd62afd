//! Watches the jobs of the sessions that this server serves.
//!
//! A worker reports the end of its job to the asker itself, unless it is killed. The server lives
//! as long as the session, so it waits for the kernel to report the end of each worker. Then it
//! ends the job of a dead worker, and the asker gets mail. One thread blocks on all of this and
//! does not poll. A sweep every twenty seconds covers what can't be waited for.

use crate::server_state::ServerState;
use baton_core::Error;
use baton_core::id::{JobId, ParticipantId};
use baton_jobs::place::Place;
use baton_jobs::reconcile;
use baton_machine::bell::Bell;
use baton_machine::process;
use baton_store::{JobRow, Store};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A ring or an end that got lost is noticed after this time.
const SWEEP_INTERVAL: Duration = Duration::from_secs(20);
/// Jobs that are waited for at once. The sweep finds the others.
const MAX_WATCHED_JOBS: usize = 200;

/// The participants whose jobs are watched.
#[derive(Default)]
pub(crate) struct Askers {
    known: Mutex<BTreeSet<ParticipantId>>,
    /// Wakes the thread.
    poke: Mutex<Option<UnixStream>>,
}

impl Askers {
    /// Watches the jobs of another participant.
    pub(crate) fn add(&self, asker: ParticipantId) {
        if self.insert(asker) {
            self.poke();
        }
    }

    /// Checks the jobs of an asker now, and watches them from then on.
    pub(crate) fn look_after(&self, asker: ParticipantId) {
        self.insert(asker);
        self.poke();
    }

    fn insert(&self, asker: ParticipantId) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(asker)
    }

    fn poke(&self) {
        if let Some(poke) = self.poke.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            // If the pipe is full, the thread will wake anyway.
            poke.write_all(b"!").ok();
        }
    }

    fn all(&self) -> Vec<ParticipantId> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// Starts the thread, which runs until the process ends.
pub(crate) fn start(server: &Arc<ServerState>) {
    let started = UnixStream::pair().and_then(|(poke, poked)| {
        poke.set_nonblocking(true)?;
        poked.set_nonblocking(true)?;
        *server.askers.poke.lock().unwrap_or_else(PoisonError::into_inner) = Some(poke);
        let server = Arc::clone(server);
        thread::Builder::new().name("jobs".to_owned()).spawn(move || JobWatcher::new(server, poked).run())
    });
    if let Err(error) = started {
        server.log(&format!("mcp: the job watcher could not start: {error}"));
    }
}

struct JobWatcher {
    server: Arc<ServerState>,
    poked: UnixStream,
    bells: HashMap<ParticipantId, Bell>,
    /// Each becomes readable when the worker ends.
    endings: HashMap<JobId, OwnedFd>,
    /// The bells of jobs whose worker has not recorded its process yet.
    beginnings: HashMap<JobId, Bell>,
}

impl JobWatcher {
    fn new(server: Arc<ServerState>, poked: UnixStream) -> Self {
        Self { server, poked, bells: HashMap::new(), endings: HashMap::new(), beginnings: HashMap::new() }
    }

    fn run(&mut self) {
        loop {
            let mut open = Vec::new();
            for asker in self.server.askers.all() {
                self.listen(asker);
                match self.reconcile(asker) {
                    Ok(rows) => open.extend(rows),
                    Err(error) => self.server.log(&format!("mcp: the check of the jobs failed: {error}")),
                }
            }
            open.truncate(MAX_WATCHED_JOBS);
            self.watch(&open);
            self.sleep();
        }
    }

    /// Called before the jobs are read, so that no ring is missed.
    fn listen(&mut self, asker: ParticipantId) {
        if !self.bells.contains_key(&asker)
            && let Ok(bell) = Bell::listen(&self.server.options.home, asker)
        {
            self.bells.insert(asker, bell);
        }
    }

    /// Ends the jobs of an asker whose worker is dead, and returns those that still run. One
    /// indexed read if there are none.
    fn reconcile(&self, asker: ParticipantId) -> Result<Vec<JobRow>, Error> {
        if !Store::path(&self.server.options.home).exists() {
            return Ok(Vec::new());
        }
        let seen = self.server.with_store(|store| store.jobs_generation(asker))?;
        if seen == 0 {
            return Ok(Vec::new());
        }
        let mut rows = reconcile::owed_to(&self.server.runtime(), asker)?;
        if rows.iter().all(|row| row.status.is_end() && row.told) {
            self.server.with_store(|store| store.clear_jobs_generation(asker, seen))?;
        }
        rows.retain(|row| !row.status.is_end());
        Ok(rows)
    }

    fn watch(&mut self, open: &[JobRow]) {
        self.endings.retain(|id, _| open.iter().any(|row| row.id == *id));
        self.beginnings.retain(|id, _| open.iter().any(|row| row.id == *id && row.worker.is_none()));
        for row in open {
            match row.worker {
                Some(worker) if !self.endings.contains_key(&row.id) => {
                    self.endings.extend(process::ending(worker).map(|ending| (row.id.clone(), ending)));
                }
                None if !self.beginnings.contains_key(&row.id) => {
                    let bell = Bell::listen_at(&Place::of(&self.server.options.home, &row.id).bell());
                    self.beginnings.extend(bell.ok().map(|bell| (row.id.clone(), bell)));
                }
                _ => {}
            }
        }
    }

    fn sleep(&mut self) {
        let timeout = Timespec { tv_sec: SWEEP_INTERVAL.as_secs().cast_signed(), tv_nsec: 0 };
        let ids: Vec<JobId> = self.endings.keys().cloned().collect();
        let mut fds: Vec<PollFd<'_>> =
            ids.iter().map(|id| PollFd::from_borrowed_fd(self.endings[id].as_fd(), PollFlags::IN)).collect();
        fds.push(PollFd::new(&self.poked, PollFlags::IN));
        let bells = self.bells.values().chain(self.beginnings.values());
        fds.extend(bells.map(|bell| PollFd::new(bell.watch(), PollFlags::IN)));
        // After an interruption the loop checks again too.
        poll(&mut fds, Some(&timeout)).ok();
        let ended: Vec<JobId> = ids
            .iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty())
            .map(|(id, _)| id.clone())
            .collect();
        drop(fds);
        // An end is reported once. If the job can't be ended now, the sweep does it.
        ended.iter().for_each(|id| drop(self.endings.remove(id)));
        self.bells.values_mut().chain(self.beginnings.values_mut()).for_each(Bell::drain);
        // Empties the pipe: the next round checks everything.
        rustix::io::read(&self.poked, &mut [0; 64]).ok();
    }
}
