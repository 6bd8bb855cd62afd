//! The sessions that a plugin has reported: their bells, and when to repeat a push.

use baton_core::event::{Event, EventKind};
use baton_core::id::ParticipantId;
use baton_core::{Code, Error};
use baton_machine::bell::{Attendance, Bell, Watch};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A push without effect is repeated after this time, then after twice as long, and so on.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(2);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// The sessions of one link, by the agent's own id.
#[derive(Debug, Default)]
pub struct Sessions(BTreeMap<String, Known>);

#[derive(Debug)]
struct Known {
    bell: Watch,
    attendance: Attendance,
    cwd: Option<PathBuf>,
    /// When to repeat the push.
    next: Option<Instant>,
    delay: Duration,
}

impl Sessions {
    /// Listens to a session's bell.
    pub fn listen(&mut self, home: &Path, event: &Event, participant: ParticipantId) -> Result<(), Error> {
        let bell = Bell::listen(home, participant)?.into_watch();
        let attendance = Attendance::begin(home, participant).map_err(|error| {
            Error::new(Code::StoreUnavailable, format!("can't attend to {}: {error}", event.session_id))
        })?;
        let known = Known { bell, attendance, cwd: event.cwd.clone(), next: None, delay: FIRST_RETRY_DELAY };
        self.0.insert(event.session_id.clone(), known);
        Ok(())
    }

    pub fn knows(&self, session: &str) -> bool {
        self.0.contains_key(session)
    }

    /// Attends to all sessions, including those whose former attendant is dead.
    pub fn renew_attendance(&mut self) {
        self.0.values_mut().for_each(|known| known.attendance.renew());
    }

    pub fn forget(&mut self, session: &str) {
        self.0.remove(session);
    }

    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The bells, in the order of the names.
    pub fn bells(&self) -> impl Iterator<Item = (&str, &Watch)> {
        self.0.iter().map(|(name, known)| (name.as_str(), &known.bell))
    }

    pub fn drain_bells(&mut self, rung: &[String]) {
        for name in rung {
            if let Some(known) = self.0.get_mut(name) {
                known.bell.drain();
            }
        }
    }

    pub fn next_try(&self) -> Option<Instant> {
        self.0.values().filter_map(|known| known.next).min()
    }

    /// The sessions whose push must be repeated now.
    pub fn due(&self) -> Vec<String> {
        let now = Instant::now();
        let due = self.0.iter().filter(|(_, known)| known.next.is_some_and(|next| next <= now));
        due.map(|(name, _)| name.clone()).collect()
    }

    /// An event for the session, if a push may be tried now.
    pub fn may_try(&mut self, session: &str) -> Option<Event> {
        let known = self.0.get_mut(session)?;
        if known.next.is_some_and(|next| next > Instant::now()) {
            return None;
        }
        known.next = None;
        Some(Event { cwd: known.cwd.clone(), ..Event::new(EventKind::IdleNotice, session) })
    }

    /// A push went out. If it has no effect, it is repeated.
    pub fn record_push(&mut self, session: &str) {
        if let Some(known) = self.0.get_mut(session) {
            known.next = Some(Instant::now() + known.delay);
            known.delay = (known.delay * 2).min(MAX_RETRY_DELAY);
        }
    }

    /// A push failed, so the next one waits.
    pub fn record_failed_push(&mut self, session: &str) {
        if let Some(known) = self.0.get_mut(session) {
            known.next = Some(Instant::now() + known.delay);
        }
    }

    /// The session sent a request to its model, so it works.
    pub fn reset_retry(&mut self, session: &str) {
        if let Some(known) = self.0.get_mut(session) {
            (known.next, known.delay) = (None, FIRST_RETRY_DELAY);
        }
    }
}
