//! Where a job lives: a folder with its lock, its log and its bell.
//!
//! The lock is the truth about its worker. It is taken before the record is committed, handed over as the worker's standard input, and lasts as
//! long as any process holds that open file: the kernel lets go of it when the last one is gone, however it ends. Nothing is ever locked by a
//! file's mere existence.

use baton_core::id::JobId;
use baton_core::{Code, Error};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The folder of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
}

/// What a lock says about a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Somebody holds it: the worker lives, or is being started.
    Yes,
    /// Nobody holds it: there is no worker any more.
    No,
    /// It can't be looked at.
    Unknown,
}

impl Place {
    /// The folder of a job, there or not.
    pub fn of(home: &Path, id: &JobId) -> Self {
        Self { folder: home.join("jobs").join(id.as_str()) }
    }

    /// Makes it, and takes its lock.
    pub fn make(&self) -> Result<File, Error> {
        let refused = |error: io::Error| {
            let code = match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOSPC) => Code::DiskFull,
                _ => Code::StoreUnavailable,
            };
            Error::new(code, format!("can't make {}: {error}", self.folder.display()))
                .hint("check the disk and the rights of BATON_HOME; nothing was started")
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(refused)?;
        let create = |file: &Path| OpenOptions::new().append(true).create_new(true).mode(0o600).open(file);
        let lock = create(&self.lock()).map_err(refused)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| refused(errno.into()))?;
        create(&self.bell()).map_err(refused)?;
        Ok(lock)
    }

    /// Whether a worker lives.
    pub fn held(&self) -> Held {
        let file = match File::open(self.lock()) {
            Ok(file) => file,
            // The folder was removed: with it went what a worker would need.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Held::No,
            Err(_) => return Held::Unknown,
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Held::No,
            Err(Errno::WOULDBLOCK) => Held::Yes,
            Err(_) => Held::Unknown,
        }
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The lock that its worker holds.
    pub fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    /// What happened, a line each; only ever appended to.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Rung at each change, by the worker for those who wait and by others for the worker.
    pub fn bell(&self) -> PathBuf {
        self.folder.join("bell")
    }

    /// What the backend says besides.
    pub fn stderr(&self) -> PathBuf {
        self.folder.join("backend.log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_lasts_as_long_as_any_process_has_the_open_file() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::of(home.path(), &JobId::from_random([7; 8]));
        assert_eq!(place.held(), Held::No, "nothing was made yet");
        let lock = place.make().unwrap();
        assert_eq!(place.held(), Held::Yes);
        let mut heir = std::process::Command::new("sleep").arg("600").stdin(lock).spawn().unwrap();
        assert_eq!(place.held(), Held::Yes, "handed over");
        assert_eq!(place.held(), Held::Yes, "looking does not take it");
        heir.kill().unwrap();
        heir.wait().unwrap();
        assert_eq!(place.held(), Held::No);
        assert!(place.make().is_err(), "a folder belongs to one job");
    }
}
