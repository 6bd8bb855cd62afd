//! The doorbell: how a sender tells a recipient's waiting process that something came.
//!
//! One file per participant is under `bell/` in the home. After its commit the sender writes one
//! byte into it. Processes that wait watch the file through the kernel. Any number may watch, or
//! none. A lost ring only delays them until the next sweep, because the truth is in the store.

use crate::own;
use baton_core::id::ParticipantId;
use baton_core::limits;
use baton_core::{Code, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
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

/// Rings for a participant. It is best effort: what it announces is already committed.
pub fn ring(home: &Path, participant: ParticipantId) {
    ring_at(&file(home, participant));
}

/// The bell of the inbox: a question was asked, answered or closed, or a job has ended. There are
/// never many, so one bell is enough for all of them.
pub fn inbox(home: &Path) -> PathBuf {
    home.join("bell").join("approvals")
}

/// Rings the bell with this file, if a process has ever listened there.
pub fn ring_at(file: &Path) {
    if let Ok(mut bell) = own::write_existing(file) {
        // A bell that can't be written has no listener. The sweep covers it.
        bell.write_all(b"!").ok();
    }
}

/// Whether a process brings a participant its mail while it is idle.
pub fn is_attended(home: &Path, participant: ParticipantId) -> bool {
    let shared = |file| flock(&file, FlockOperation::NonBlockingLockShared);
    own::open(&attended(home, participant)).is_ok_and(|file| shared(file) == Err(Errno::WOULDBLOCK))
}

/// Says that this process brings a participant its mail while it is idle. It is a kernel lock,
/// which ends with the process.
#[derive(Debug)]
pub struct Attendance {
    file: File,
    held: bool,
}

impl Attendance {
    pub fn begin(home: &Path, participant: ParticipantId) -> io::Result<Self> {
        let path = attended(home, participant);
        let file = own::append(&path)?;
        let mut attendance = Self { file, held: false };
        attendance.renew();
        Ok(attendance)
    }

    /// Takes over from another process that attended the same participant, once that process is
    /// gone.
    pub fn renew(&mut self) {
        self.held = self.held || flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
    }
}

fn attended(home: &Path, participant: ParticipantId) -> PathBuf {
    home.join("bell").join(format!("{}.attended", participant.0))
}

/// How often a process tries to begin to follow mail, and the pause between two tries.
const BEGIN_TRIES: u32 = 5;
const BEGIN_PAUSE: Duration = Duration::from_millis(10);

/// Whether a process follows the mail of a participant, and wakes its session.
pub fn is_followed(home: &Path, participant: ParticipantId) -> bool {
    let shared = |file| flock(&file, FlockOperation::NonBlockingLockShared);
    own::open(&followed(home, participant)).is_ok_and(|file| shared(file) == Err(Errno::WOULDBLOCK))
}

/// Says that this process follows the mail of a participant: it looks at waiting mail until the
/// session has it. It is a kernel lock, which ends with the process.
#[derive(Debug)]
pub struct Following {
    file: File,
    held: bool,
}

impl Following {
    /// Begins, or waits for its turn: see [`renew`](Self::renew).
    pub fn queue(home: &Path, participant: ParticipantId) -> io::Result<Self> {
        let mut following = Self { file: own::append(&followed(home, participant))?, held: false };
        following.renew();
        Ok(following)
    }

    /// Begins; `None` if another process does it. [`is_followed`] holds the lock for an instant, so
    /// this tries more than once.
    pub fn begin(home: &Path, participant: ParticipantId) -> Result<Option<Self>, Error> {
        let refused = |error: io::Error| {
            Error::new(Code::StoreUnavailable, format!("can't lock a file in bell/: {error}"))
                .hint("check the permissions of BATON_HOME")
        };
        let mut following = Self::queue(home, participant).map_err(refused)?;
        for _ in 1..BEGIN_TRIES {
            if following.held {
                break;
            }
            std::thread::sleep(BEGIN_PAUSE);
            following.renew();
        }
        Ok(Some(following).filter(|following| following.held))
    }

    /// Takes over from another process, once that process is gone. True if this process holds it.
    pub fn renew(&mut self) -> bool {
        self.held = self.held || flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        self.held
    }

    /// Stops following. Look at the store once more after this.
    pub fn release(&mut self) {
        // An error leaves the lock held until this process ends.
        self.held = self.held && flock(&self.file, FlockOperation::Unlock).is_err();
    }
}

fn followed(home: &Path, participant: ParticipantId) -> PathBuf {
    home.join("bell").join(format!("{}.followed", participant.0))
}

/// A process that listens to a participant's bell.
#[derive(Debug)]
pub struct Bell {
    watch: Watch,
}

impl Bell {
    /// Starts listening. Earlier rings are not heard, so read the store after this and before the
    /// first wait.
    pub fn listen(home: &Path, participant: ParticipantId) -> Result<Self, Error> {
        Self::listen_at(&file(home, participant))
    }

    /// Starts listening to the bell with this file.
    pub fn listen_at(file: &Path) -> Result<Self, Error> {
        let refused = |error: std::io::Error| {
            Error::new(Code::StoreUnavailable, format!("can't watch {}: {error}", file.display()))
                .hint("check the permissions of BATON_HOME")
        };
        if let Some(folder) = file.parent() {
            own::folder(folder).map_err(refused)?;
        }
        own::append(file).map_err(refused)?;
        Ok(Self { watch: Watch::new(file).map_err(refused)? })
    }

    /// Waits for a ring, until the deadline or the next sweep, whichever comes first. True means:
    /// look at the store again.
    pub fn wait(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        self.watch.wait(left.min(limits::SWEEP_INTERVAL.to_std()));
        true
    }

    /// Waits for a ring or for the end of something, up to this long. True if one of them came.
    pub fn wait_or_end(&mut self, ending: Option<&OwnedFd>, longest: Duration) -> bool {
        let timeout =
            Timespec { tv_sec: longest.as_secs().cast_signed(), tv_nsec: i64::from(longest.subsec_nanos()) };
        let mut fds = vec![PollFd::new(&self.watch, PollFlags::IN)];
        fds.extend(ending.map(|ending| PollFd::new(ending, PollFlags::IN)));
        // Interrupted or not, the caller looks again.
        let ready = poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0);
        self.watch.drain();
        ready
    }

    /// The kernel's watch, to wait for it together with others.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Forgets all rings so far.
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
    fn one_process_follows_a_participant_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let participant = ParticipantId(7);
        Bell::listen(home.path(), participant).unwrap();
        assert!(!is_followed(home.path(), participant));
        let mut first = Following::begin(home.path(), participant).unwrap().expect("no other does");
        assert!(is_followed(home.path(), participant) && !is_followed(home.path(), ParticipantId(8)));
        assert!(Following::begin(home.path(), participant).unwrap().is_none());
        let mut second = Following::queue(home.path(), participant).unwrap();
        assert!(!second.renew());
        first.release();
        assert!(second.renew() && !first.renew());
        drop(second);
        assert!(!is_followed(home.path(), participant));
    }

    #[test]
    fn a_process_counts_as_attending_while_it_does() {
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
