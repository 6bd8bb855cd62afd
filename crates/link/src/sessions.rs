//! The sessions that a plugin has spoken of: their doorbells, and when to try a push again.

use baton_core::event::{Event, EventKind};
use baton_core::id::ParticipantId;
use baton_core::{Code, Error};
use baton_mail::bell::{Attendance, Bell, Watch};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A push that shows no effect is repeated after this, then after twice as long, and so on.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The sessions of one link, by the agent's own id.
#[derive(Debug, Default)]
pub struct Sessions(BTreeMap<String, Known>);

#[derive(Debug)]
struct Known {
    bell: Watch,
    attendance: Attendance,
    cwd: Option<PathBuf>,
    /// Not before.
    next: Option<Instant>,
    pause: Duration,
}

impl Sessions {
    /// Listens at a session's door.
    pub fn listen(&mut self, home: &Path, event: &Event, participant: ParticipantId) -> Result<(), Error> {
        let bell = Bell::listen(home, participant)?.into_watch();
        let attendance = Attendance::begin(home, participant).map_err(|error| {
            Error::new(Code::StoreUnavailable, format!("can't attend to {}: {error}", event.session_id))
        })?;
        let known = Known { bell, attendance, cwd: event.cwd.clone(), next: None, pause: FIRST_PAUSE };
        self.0.insert(event.session_id.clone(), known);
        Ok(())
    }

    /// Whether it is listened for.
    pub fn knows(&self, session: &str) -> bool {
        self.0.contains_key(session)
    }

    /// Attends to all of them, also where somebody else did who is gone.
    pub fn attend(&mut self) {
        self.0.values_mut().for_each(|known| known.attendance.renew());
    }

    /// The session is over.
    pub fn forget(&mut self, session: &str) {
        self.0.remove(session);
    }

    /// All of them.
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The bells, in the order of the names.
    pub fn bells(&self) -> impl Iterator<Item = (&str, &Watch)> {
        self.0.iter().map(|(name, known)| (name.as_str(), &known.bell))
    }

    /// Their rings have been heard.
    pub fn silence(&mut self, rung: &[String]) {
        for name in rung {
            if let Some(known) = self.0.get_mut(name) {
                known.bell.drain();
            }
        }
    }

    /// When the next push is to be repeated.
    pub fn next_try(&self) -> Option<Instant> {
        self.0.values().filter_map(|known| known.next).min()
    }

    /// The sessions whose push is to be repeated now.
    pub fn due(&self) -> Vec<String> {
        let now = Instant::now();
        let due = self.0.iter().filter(|(_, known)| known.next.is_some_and(|next| next <= now));
        due.map(|(name, _)| name.clone()).collect()
    }

    /// An event that stands for the session, if a push may be tried now.
    pub fn may_try(&mut self, session: &str) -> Option<Event> {
        let known = self.0.get_mut(session)?;
        if known.next.is_some_and(|next| next > Instant::now()) {
            return None;
        }
        known.next = None;
        Some(Event { cwd: known.cwd.clone(), ..Event::new(EventKind::IdleNotice, session) })
    }

    /// A push went out; if nothing comes of it, it is tried again.
    pub fn tried(&mut self, session: &str) {
        if let Some(known) = self.0.get_mut(session) {
            known.next = Some(Instant::now() + known.pause);
            known.pause = (known.pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A push came to nothing: the next one waits.
    pub fn failed(&mut self, session: &str) {
        if let Some(known) = self.0.get_mut(session) {
            known.next = Some(Instant::now() + known.pause);
        }
    }

    /// The session asked its model something: it is well.
    pub fn went_on(&mut self, session: &str) {
        if let Some(known) = self.0.get_mut(session) {
            (known.next, known.pause) = (None, FIRST_PAUSE);
        }
    }
}
