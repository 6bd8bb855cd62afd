//! A job's folder, with its lock, its log and its bell.
//!
//! The lock says whether the worker lives. It is taken before the record is committed, and handed
//! over as the worker's standard input. It lasts as long as any process has that open file: the
//! kernel releases it when the last one ends, however it ends. No file locks anything by its mere
//! existence.

use baton_core::id::JobId;
use baton_core::{Code, Error};
use baton_machine::own;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
}

/// What the lock says about the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A process holds it: the worker lives, or is being started.
    Yes,
    /// No process holds it: there is no worker any more.
    No,
    /// It can't be checked.
    Unknown,
}

impl Place {
    /// The folder of a job, whether it exists or not.
    pub fn of(home: &Path, id: &JobId) -> Self {
        Self { folder: home.join("jobs").join(id.as_str()) }
    }

    /// Creates the folder, and takes its lock.
    pub fn make(&self) -> Result<File, Error> {
        let refused = |error: io::Error| {
            let code = match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOSPC) => Code::DiskFull,
                _ => Code::StoreUnavailable,
            };
            Error::new(code, format!("can't make {}: {error}", self.folder.display()))
                .hint("check the disk and the rights of BATON_HOME; nothing was started")
        };
        own::folder(&self.folder).map_err(refused)?;
        let lock = own::create_new(&self.lock()).map_err(refused)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| refused(errno.into()))?;
        own::create_new(&self.bell()).map_err(refused)?;
        Ok(lock)
    }

    /// Whether a worker lives.
    pub fn held(&self) -> Held {
        let file = match own::open(&self.lock()) {
            Ok(file) => file,
            // The folder was removed, and with it all that a worker needs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Held::No,
            Err(_) => return Held::Unknown,
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Held::No,
            Err(Errno::WOULDBLOCK) => Held::Yes,
            Err(_) => Held::Unknown,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    /// One line for each thing that happened. Append-only.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Rung at each change: by the worker for those that wait, and by others for the worker.
    pub fn bell(&self) -> PathBuf {
        self.folder.join("bell")
    }

    /// What the backend writes to stderr.
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
