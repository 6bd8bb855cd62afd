//! The files of baton's home.
//!
//! The last part of a path is never a link. The file belongs to this user alone: the user owns it,
//! and it has no second name elsewhere. So if another process replaces a log, baton does not write
//! to the wrong file. New files have mode 600 and new folders 700, whatever the umask is.

use crate::files;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, openat};
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// The mode of baton's files.
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
/// The mode of baton's folders.
const FOLDER_MODE: u32 = 0o700;

/// Opens a file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    checked(path, OFlags::RDONLY)
}

/// The whole of a file that has at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    files::whole(open(path)?, most)
}

/// The last bytes of a file.
pub fn end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    files::end_of(open(path)?, most)
}

/// Opens a file for appending and reading; creates it if it is missing.
pub fn append(path: &Path) -> io::Result<File> {
    checked(path, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
}

/// Opens a file that exists for writing.
pub fn write_existing(path: &Path) -> io::Result<File> {
    checked(path, OFlags::WRONLY)
}

/// Opens a file for reading and writing, as locks need it; creates it if it is missing.
pub fn lock_file(path: &Path) -> io::Result<File> {
    checked(path, OFlags::RDWR | OFlags::CREATE)
}

/// Makes a new file; one that exists is an error.
pub fn create_new(path: &Path) -> io::Result<File> {
    checked(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
}

/// Opens a file for writing and empties it; creates it if it is missing.
pub fn rewrite(path: &Path) -> io::Result<File> {
    // Emptied only after the check that it belongs to this user.
    let file = checked(path, OFlags::RDWR | OFlags::CREATE)?;
    file.set_len(0)?;
    Ok(file)
}

/// How often baton tries again to get a lock that another process has.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Locks a file, for this process alone or shared. A stopped process keeps its locks, so the wait
/// has a limit.
pub fn lock(file: &File, sharing: Sharing, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let how = match sharing {
        Sharing::Alone => FlockOperation::NonBlockingLockExclusive,
        Sharing::Shared => FlockOperation::NonBlockingLockShared,
    };
    loop {
        match flock(file, how) {
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_INTERVAL)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"));
            }
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Who else may hold a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// No other process.
    Alone,
    /// All that share it.
    Shared,
}

/// Makes a folder and those above it. One that exists stays as it is.
pub fn folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        folder(above)?;
    }
    match std::fs::DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(FOLDER_MODE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn checked(path: &Path, how: OFlags) -> io::Result<File> {
    let file = openat(CWD, path, how | OFlags::NOFOLLOW | files::OPEN_FLAGS, FILE_MODE)?;
    let found = fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(files::not_plain());
    }
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()));
    if !is_trusted(found.st_uid) {
        return refused("it belongs to another user");
    }
    if found.st_nlink > 1 {
        return refused("it has a second name elsewhere");
    }
    if how.contains(OFlags::CREATE) && Mode::from_raw_mode(found.st_mode) != FILE_MODE {
        // Created under an unusual umask, or by hand. If the mode can't be changed, the file is
        // still usable.
        fchmod(&file, FILE_MODE).ok();
    }
    Ok(File::from(file))
}

/// Whether a user's files are trusted: this user's and root's are.
pub(crate) fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}
