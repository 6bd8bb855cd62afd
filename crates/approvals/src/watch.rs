//! Whether anyone watches the inbox: a kernel lock, which ends with the watching process.

use baton_machine::own::{self, Sharing};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another process may hold the lock to look at it.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Questions are held for an answer as long as one of these lives.
#[derive(Debug)]
pub struct Watcher {
    _file: File,
}

impl Watcher {
    /// Begins to watch. Any number of processes may.
    pub fn begin(home: &Path) -> io::Result<Self> {
        let path = file(home);
        if let Some(folder) = path.parent() {
            own::folder(folder)?;
        }
        let file = own::append(&path)?;
        own::lock(&file, Sharing::Shared, LOCK_WAIT)?;
        Ok(Self { _file: file })
    }
}

pub fn is_watched(home: &Path) -> bool {
    let alone = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive);
    own::write_existing(&file(home)).is_ok_and(|file| alone(file) == Err(Errno::WOULDBLOCK))
}

fn file(home: &Path) -> PathBuf {
    home.join("bell").join("approvals.watched")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_a_lock_that_a_stopped_process_keeps_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        drop(Watcher::begin(home.path()).unwrap());
        let kept = own::append(&file(home.path())).unwrap();
        flock(&kept, FlockOperation::LockExclusive).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let folder = home.path().to_owned();
        std::thread::spawn(move || tell.send(Watcher::begin(&folder).map(drop)));
        let refused = told.recv_timeout(Duration::from_secs(60)).expect("it ends by itself").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_watcher_is_known_while_it_watches() {
        let home = tempfile::tempdir().unwrap();
        assert!(!is_watched(home.path()));
        let first = Watcher::begin(home.path()).unwrap();
        let second = Watcher::begin(home.path()).unwrap();
        assert!(is_watched(home.path()));
        drop(first);
        assert!(is_watched(home.path()));
        drop(second);
        assert!(!is_watched(home.path()));
    }
}
