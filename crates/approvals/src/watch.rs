//! Somebody watches the inbox: a lock of the kernel's, which ends with the process.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// As long as one of these lives, questions are held for an answer.
#[derive(Debug)]
pub struct Watcher {
    _file: File,
}

impl Watcher {
    /// Begins to watch. Any number may.
    pub fn begin(home: &Path) -> io::Result<Self> {
        let path = file(home);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::LockShared)?;
        Ok(Self { _file: file })
    }
}

/// Whether somebody watches.
pub fn is_watched(home: &Path) -> bool {
    let alone = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive);
    OpenOptions::new().append(true).open(file(home)).is_ok_and(|file| alone(file) == Err(Errno::WOULDBLOCK))
}

fn file(home: &Path) -> PathBuf {
    home.join("bell").join("approvals.watched")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_watches_is_known_as_long_as_it_does() {
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
