//! The doorbell: how a sender tells a recipient's waiting process that something came.
//!
//! One file per participant under `bell/` in the home. After its commit the sender writes one byte into it; whoever waits watches the
//! file through the kernel. Any number may watch, none needs to be there, and a lost ring costs nothing but a sweep's time,
//! because the truth is in the store.

use baton_core::id::ParticipantId;
use baton_core::limits;
use baton_core::{Code, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::Watch;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub use macos::Watch;

fn file(home: &Path, participant: ParticipantId) -> PathBuf {
    home.join("bell").join(participant.0.to_string())
}

/// Rings for a participant. Best effort: what it announces is committed already.
pub fn ring(home: &Path, participant: ParticipantId) {
    ring_at(&file(home, participant));
}

/// Rings the bell that is that file, if anybody has ever listened there.
pub fn ring_at(file: &Path) {
    if let Ok(mut bell) = OpenOptions::new().write(true).open(file) {
        // Nobody watches a bell that can't be written; the sweep covers it.
        bell.write_all(b"!").ok();
    }
}

/// Whether somebody brings a participant its mail while it is idle.
pub fn is_attended(home: &Path, participant: ParticipantId) -> bool {
    let shared = |file| flock(&file, FlockOperation::NonBlockingLockShared);
    OpenOptions::new()
        .read(true)
        .open(attended(home, participant))
        .is_ok_and(|file| shared(file) == Err(Errno::WOULDBLOCK))
}

/// Says that somebody brings a participant its mail while it is idle, for as long as this lives: a lock of the kernel's, which ends with
/// the process.
#[derive(Debug)]
pub struct Attendance {
    file: File,
    held: bool,
}

impl Attendance {
    /// Begins it.
    pub fn begin(home: &Path, participant: ParticipantId) -> io::Result<Self> {
        let path = attended(home, participant);
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let mut attendance = Self { file, held: false };
        attendance.renew();
        Ok(attendance)
    }

    /// Takes over from another one who attended to the same participant, once that one is gone.
    pub fn renew(&mut self) {
        self.held = self.held || flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
    }
}

fn attended(home: &Path, participant: ParticipantId) -> PathBuf {
    home.join("bell").join(format!("{}.attended", participant.0))
}

/// Somebody's ear at a participant's door.
#[derive(Debug)]
pub struct Bell {
    watch: Watch,
}

impl Bell {
    /// Starts listening. What was rung before is not heard, so look at the store after this and before the first wait.
    pub fn listen(home: &Path, participant: ParticipantId) -> Result<Self, Error> {
        Self::listen_at(&file(home, participant))
    }

    /// Starts listening at the bell that is that file.
    pub fn listen_at(file: &Path) -> Result<Self, Error> {
        let refused = |error: std::io::Error| {
            Error::new(Code::StoreUnavailable, format!("can't listen at {}: {error}", file.display()))
                .hint("check the rights of BATON_HOME")
        };
        if let Some(folder) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
        }
        OpenOptions::new().create(true).append(true).mode(0o600).open(file).map_err(refused)?;
        Ok(Self { watch: Watch::new(file).map_err(refused)? })
    }

    /// Waits for a ring, until the deadline or the next sweep, whichever comes first. True means: look at the store again.
    pub fn wait(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        self.watch.wait(left.min(limits::SWEEP.to_std()));
        true
    }

    /// Waits for a ring or for the end of something, at most so long.
    pub fn wait_or_end(&mut self, ending: Option<&OwnedFd>, longest: Duration) {
        let timeout =
            Timespec { tv_sec: longest.as_secs().cast_signed(), tv_nsec: i64::from(longest.subsec_nanos()) };
        let mut fds = vec![PollFd::new(&self.watch, PollFlags::IN)];
        fds.extend(ending.map(|ending| PollFd::new(ending, PollFlags::IN)));
        // Interrupted or not: whoever waits looks again.
        poll(&mut fds, Some(&timeout)).ok();
        self.watch.drain();
    }

    /// The kernel's watch, to wait for it among others.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Forgets what was rung so far.
    pub fn drain(&mut self) {
        self.watch.drain();
    }

    /// The kernel's watch, for an event loop.
    pub fn into_watch(self) -> Watch {
        self.watch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_attends_is_known_as_long_as_it_does() {
        let home = tempfile::tempdir().unwrap();
        let participant = ParticipantId(7);
        Bell::listen(home.path(), participant).unwrap();
        let known = || is_attended(home.path(), participant);
        assert!(!known(), "to listen is not to attend");
        let first = Attendance::begin(home.path(), participant).unwrap();
        let mut second = Attendance::begin(home.path(), participant).unwrap();
        assert!(known() && !is_attended(home.path(), ParticipantId(8)));
        drop(first);
        second.renew();
        assert!(known(), "the second takes over");
        drop(second);
        assert!(!known());
    }
}
