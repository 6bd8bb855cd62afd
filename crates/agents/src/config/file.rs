//! Reading and replacing whole files of other programs. A write makes a temporary file in the same
//! directory, syncs it, renames it over the target and syncs the directory: readers see the old
//! file or the new one. Symlinks are followed and stay; mode and owner stay. If the file is no
//! longer what was read, nothing is written. This module never writes in place, and never touches a
//! file that is not a regular one.

use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest configuration file that baton reads.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The age from which a temporary file counts as abandoned.
const STALE_AGE: Duration = Duration::from_secs(600);

/// Why a file was not read or not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A directory, pipe, socket or device.
    #[error("edit {path}: it is not a regular file")]
    NotRegular { path: PathBuf },
    /// A symlink to nothing.
    #[error("edit {path}: it is a symlink to a file that does not exist")]
    Dangling { path: PathBuf },
    /// The file has several names (hard links), and a rename would separate them.
    #[error("edit {path}: the file has several names (hard links), and only this one would change")]
    HardLinked { path: PathBuf },
    /// Larger than `MAX_BYTES`.
    #[error("edit {path}: it is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge { path: PathBuf },
    /// The file or its directory is read-only.
    #[error("write {path}: it is read-only")]
    ReadOnly {
        /// The file, or its directory.
        path: PathBuf,
    },
    /// Another program wrote the file after we had read it.
    #[error("write {path}: another program changed it in the meantime; nothing was written")]
    Changed { path: PathBuf },
    /// Any other error of the system.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was tried: "read", "write", ...
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl FileError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotRegular { .. } => "file-not-regular",
            Self::Dangling { .. } => "file-dangling-symlink",
            Self::HardLinked { .. } => "file-hard-linked",
            Self::TooLarge { .. } => "file-too-large",
            Self::ReadOnly { .. } => "file-read-only",
            Self::Changed { .. } => "file-changed",
            Self::Io { .. } => "file-io",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotRegular { .. } => "move it away, then run the same command again",
            Self::Dangling { .. } => "create the file it points to, or delete the symlink",
            Self::HardLinked { .. } => {
                "replace it by a separate file or a symlink, then run the same command again"
            }
            Self::TooLarge { .. } => "a configuration file of this size is probably not one",
            Self::ReadOnly { .. } => "make it writable, or edit it in the place that manages it",
            Self::Changed { .. } => "run the same command again",
            Self::Io { .. } => "check the path and its permissions",
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem if action != "read" => {
                Self::ReadOnly { path }
            }
            _ => Self::Io { action, path, source },
        }
    }
}

/// A file at one moment. `bytes` is `None` if it was missing.
#[derive(Clone, Debug)]
pub struct Snapshot {
    path: PathBuf,
    target: PathBuf,
    bytes: Option<Vec<u8>>,
}

impl Snapshot {
    /// Reads a whole file, through symlinks.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let err = |e| FileError::io("read", path, e);
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    return Err(FileError::Dangling { path: path.to_owned() });
                }
                return Ok(Self { path: path.to_owned(), target: path.to_owned(), bytes: None });
            }
            Err(e) => return Err(err(e)),
        };
        if !fs::metadata(&target).map_err(err)?.is_file() {
            return Err(FileError::NotRegular { path: path.to_owned() });
        }
        // Must not hang on a pipe that has just replaced the file.
        let nonblock = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nonblock).open(&target).map_err(err)?;
        let meta = file.metadata().map_err(err)?;
        if !meta.is_file() {
            return Err(FileError::NotRegular { path: path.to_owned() });
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(err)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(FileError::TooLarge { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), target, bytes: Some(bytes) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// Fails if the file can't be replaced or is no longer what was read.
    pub fn check_writable(&self) -> Result<(), FileError> {
        self.check_unchanged()?;
        self.check_place()
    }

    /// Fails if the file can't be replaced, whatever its content is now.
    pub fn check_place(&self) -> Result<(), FileError> {
        if self.bytes.is_some() {
            let meta = fs::metadata(&self.target).map_err(|e| FileError::io("write", &self.path, e))?;
            if meta.mode() & 0o222 == 0 {
                return Err(FileError::ReadOnly { path: self.path.clone() });
            }
            if meta.nlink() > 1 {
                return Err(FileError::HardLinked { path: self.path.clone() });
            }
        }
        // The nearest existing directory is the one that will be written to.
        let dir = self.target.ancestors().skip(1).find(|dir| dir.exists()).unwrap_or(Path::new("/"));
        let meta = fs::metadata(dir).map_err(|e| FileError::io("write", dir, e))?;
        // The mode would not stop root, but it still says that the file should not be written.
        let writable = rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok();
        if !meta.is_dir() || meta.mode() & 0o222 == 0 || !writable {
            return Err(FileError::ReadOnly { path: dir.to_owned() });
        }
        Ok(())
    }

    /// Replaces the file by `bytes`, or deletes it. A new file gets `mode`, and its missing
    /// directories are made and returned, outermost first.
    pub fn replace(&self, bytes: Option<&[u8]>, mode: u32) -> Result<Vec<PathBuf>, FileError> {
        self.check_writable()?;
        let Some(bytes) = bytes else {
            if self.bytes.is_some() {
                fs::remove_file(&self.target).map_err(|e| FileError::io("delete", &self.path, e))?;
                sync_dir(&self.target)?;
            }
            return Ok(Vec::new());
        };
        let made = make_parents(&self.target, dir_mode(mode))?;
        let over = match &self.bytes {
            Some(_) => {
                Over::Old(fs::metadata(&self.target).map_err(|e| FileError::io("write", &self.path, e))?)
            }
            None => Over::Nothing(mode),
        };
        write_atomically(&self.target, bytes, &over, || self.check_unchanged())?;
        Ok(made)
    }

    /// The directories that `replace` would have to make, outermost first.
    pub fn missing_dirs(&self) -> Vec<PathBuf> {
        missing_parents(&self.target)
    }

    fn check_unchanged(&self) -> Result<(), FileError> {
        let now = Self::read(&self.path)?;
        if now.bytes == self.bytes && now.target == self.target {
            return Ok(());
        }
        Err(FileError::Changed { path: self.path.clone() })
    }
}

/// Writes a file of baton: mode 0600, parents made with 0700, an existing file is replaced.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    make_parents(path, 0o700)?;
    write_atomically(path, bytes, &Over::Anything(0o600), || Ok(()))
}

/// What a new file replaces.
enum Over {
    /// A file whose mode and owner it keeps.
    Old(fs::Metadata),
    /// Nothing. If a file exists by now, it stays. With the mode of the new file.
    Nothing(u32),
    /// Whatever is there. With the mode of the new file.
    Anything(u32),
}

fn write_atomically(
    target: &Path,
    bytes: &[u8],
    over: &Over,
    last_check: impl FnOnce() -> Result<(), FileError>,
) -> Result<(), FileError> {
    let err = |e| FileError::io("write", target, e);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let dir = target.parent().unwrap_or(Path::new("/"));
    let prefix = format!(".{name}.baton-");
    // The remains of a killed run only take space. They are not worth a failure.
    sweep(dir, &prefix).ok();
    let mut temp = tempfile::Builder::new().prefix(&prefix).tempfile_in(dir).map_err(err)?;
    temp.write_all(bytes).map_err(err)?;
    let file = temp.as_file();
    let mode = match over {
        Over::Nothing(mode) | Over::Anything(mode) => *mode,
        Over::Old(old) => {
            let new = file.metadata().map_err(err)?;
            if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
                fchown(file, Some(old.uid()), Some(old.gid())).map_err(err)?;
            }
            old.mode() & 0o7777
        }
    };
    file.set_permissions(fs::Permissions::from_mode(mode)).map_err(err)?;
    file.sync_all().map_err(err)?;
    last_check()?;
    match over {
        Over::Nothing(_) => temp.persist_noclobber(target).map(drop).map_err(|e| match e.error.kind() {
            io::ErrorKind::AlreadyExists => FileError::Changed { path: target.to_owned() },
            _ => err(e.error),
        })?,
        Over::Old(_) | Over::Anything(_) => temp.persist(target).map(drop).map_err(|e| err(e.error))?,
    }
    sync_dir(target)
}

/// Deletes temporary files of killed runs, when no run can use them any more.
fn sweep(dir: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let old = |meta: fs::Metadata| meta.modified().and_then(|m| m.elapsed().map_err(io::Error::other));
        if entry.file_name().to_string_lossy().starts_with(prefix) && old(entry.metadata()?)? > STALE_AGE {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes the missing directories above `path`, and returns them, outermost first.
pub(crate) fn make_parents(path: &Path, mode: u32) -> Result<Vec<PathBuf>, FileError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut made = Vec::new();
    for dir in missing_parents(path) {
        match fs::DirBuilder::new().mode(mode).create(&dir) {
            Ok(()) => {
                sync_dir(&dir)?;
                made.push(dir);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(FileError::io("create", &dir, e)),
        }
    }
    Ok(made)
}

fn missing_parents(path: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<_> =
        path.ancestors().skip(1).take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// The mode of a directory for files of this mode: users who may read the files may enter it.
fn dir_mode(mode: u32) -> u32 {
    mode | (mode & 0o444) >> 2
}

fn sync_dir(path: &Path) -> Result<(), FileError> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| FileError::io("write", dir, e))
}
