//! A record of an installation under baton's home, written before the files change: per file the
//! hash of the bytes that we wrote, a backup of the old bytes, and what we had to make. It makes
//! removal exact, but nothing depends on it. Format 1. A reader refuses newer formats, and treats
//! an unreadable file as a lost one.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Install, InstallError, Scope};
use crate::agent::{ALL, Agent};
use crate::config::file::{FileError, Snapshot, write_private};
use crate::config::json::{Container, Was};

const FORMAT_VERSION: u64 = 1;
/// The file in a home that names the user's configuration file. Setup writes it, and the last
/// removal deletes it.
pub const CONFIG_RECORD: &str = "config-path";
/// The longest list of folders that setup made.
const MAX_MADE_BYTES: u64 = 1 << 20;
/// Backups that are kept in addition to those that the manifest names, per agent and scope.
const MAX_OLD_BACKUPS: usize = 16;

/// What setup did to one agent in one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    version: u64,
    agent: String,
    /// `user`, or the project's directory.
    scope: String,
    pub files: Vec<Entry>,
}

/// What setup did to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub path: PathBuf,
    /// Hash of the bytes that we wrote.
    pub after: String,
    /// The backup to restore; `None` if there was no file.
    pub original: Option<Backup>,
    /// The containers that we made; `None` if that is not known any more.
    pub made: Option<Vec<Container>>,
    /// The directories that we made, outermost first.
    pub dirs: Vec<PathBuf>,
}

/// A copy of a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Backup {
    pub sha256: String,
    pub path: PathBuf,
}

#[derive(Clone, Debug)]
pub(super) struct Records {
    setup: PathBuf,
    stem: String,
    agent: &'static str,
    scope: String,
}

impl Records {
    pub fn new(agent: &'static str, install: &Install) -> Self {
        let scope = match install.scope() {
            Scope::User => "user".to_owned(),
            Scope::Project(dir) => dir.display().to_string(),
        };
        let stem = format!("{agent}-{}", &sha256(scope.as_bytes())[..16]);
        Self { setup: Path::new(install.home()).join("setup"), stem, agent, scope }
    }

    pub fn manifest_path(&self) -> PathBuf {
        self.setup.join(format!("{}.json", self.stem))
    }

    pub fn lock_path(&self) -> PathBuf {
        self.setup.join("lock")
    }

    /// The folders that the first setup had to make for baton's own files, each followed by a NUL.
    fn made_path(&self) -> PathBuf {
        self.setup.join("made")
    }

    /// Records folders that were made for baton's own files, so that the last removal can remove
    /// them.
    pub fn note_made(&self, made: &[PathBuf]) -> io::Result<()> {
        if made.is_empty() {
            return Ok(());
        }
        let mut file = baton_machine::own::append(&self.made_path())?;
        let lines: Vec<u8> =
            made.iter().flat_map(|dir| dir.as_os_str().as_bytes().iter().copied().chain([0])).collect();
        file.write_all(&lines)
    }

    /// Removes what setup itself needed, if nothing is set up any more and no backup is kept. Needs
    /// the lock. What can't be removed stays: it is empty, or belongs to another program.
    pub fn leave(&self) {
        fs::remove_dir(self.backup_dir()).ok();
        fs::remove_dir(self.setup.join("backups")).ok();
        let (lock, made) = (self.lock_path(), self.made_path());
        let Ok(entries) = fs::read_dir(&self.setup) else { return };
        if entries.flatten().any(|entry| entry.path() != lock && entry.path() != made) {
            return;
        }
        let noted = baton_machine::own::read(&made, MAX_MADE_BYTES).unwrap_or_default();
        fs::remove_file(&made).ok();
        fs::remove_file(&lock).ok();
        if let Some(home) = self.setup.parent() {
            fs::remove_file(home.join(CONFIG_RECORD)).ok();
        }
        let dirs = noted.split(|byte| *byte == 0).filter(|dir| !dir.is_empty());
        let mut dirs: Vec<PathBuf> = dirs.map(|dir| PathBuf::from(OsStr::from_bytes(dir))).collect();
        dirs.sort();
        for dir in dirs.iter().rev() {
            fs::remove_dir(dir).ok();
        }
    }

    fn backup_dir(&self) -> PathBuf {
        self.setup.join("backups").join(&self.stem)
    }

    pub fn manifest(&self, files: Vec<Entry>) -> Manifest {
        Manifest { version: FORMAT_VERSION, agent: self.agent.to_owned(), scope: self.scope.clone(), files }
    }

    /// The manifest, or `None` if there is none that can be read.
    pub fn load(&self) -> Result<Option<Manifest>, InstallError> {
        #[derive(Deserialize)]
        struct Head {
            version: u64,
        }
        let path = self.manifest_path();
        let Some(bytes) = Snapshot::read(&path)?.bytes().map(<[u8]>::to_vec) else { return Ok(None) };
        match serde_json::from_slice::<Head>(&bytes) {
            Ok(head) if head.version > FORMAT_VERSION => {
                Err(InstallError::NewerManifest { path, version: head.version })
            }
            _ => Ok(serde_json::from_slice(&bytes).ok()),
        }
    }

    pub fn save(&self, manifest: &Manifest) -> Result<(), FileError> {
        let mut bytes = serde_json::to_vec_pretty(manifest).expect("a manifest is plain data");
        bytes.push(b'\n');
        write_private(&self.manifest_path(), &bytes)
    }

    pub fn delete(&self) -> Result<(), FileError> {
        let path = self.manifest_path();
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(FileError::io("delete", &path, e)),
            _ => Ok(()),
        }
    }

    /// Tells the other scopes about a file that we made and that stays because of their entries.
    /// The last scope that is removed removes it.
    pub fn hand_over(&self, ours: &Entry) -> Result<(), InstallError> {
        let root = ours.made.iter().flatten().find(|c| c.at.is_empty() && c.was == Was::Absent);
        let Some(root) = root else { return Ok(()) };
        for (other, mut manifest) in self.others()? {
            let Some(entry) = manifest.files.iter_mut().find(|e| e.path == ours.path) else { continue };
            let Some(made) = &mut entry.made else { continue };
            made.retain(|container| !container.at.is_empty());
            made.push(root.clone());
            entry.dirs = ours.dirs.clone();
            other.save(&manifest)?;
        }
        Ok(())
    }

    /// What the other agents and scopes know about a file.
    pub fn elsewhere(&self, path: &Path) -> Result<Vec<Entry>, InstallError> {
        let others = self.others()?.into_iter();
        Ok(others.filter_map(|(_, manifest)| manifest.entry(path).cloned()).collect())
    }

    /// The records of the other agents and scopes.
    fn others(&self) -> Result<Vec<(Self, Manifest)>, InstallError> {
        let files = match fs::read_dir(&self.setup) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|e| FileError::io("read", &self.setup, e))?,
        };
        let stems = files.filter_map(|file| {
            let name = file.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".json").filter(|stem| *stem != self.stem).map(str::to_owned)
        });
        let mut found = Vec::new();
        for stem in stems {
            let other = Self { stem, ..self.clone() };
            if let Some(manifest) = other.load()? {
                found.push((other, manifest));
            }
        }
        Ok(found)
    }

    /// Keeps a copy of these bytes of `path`, and returns where.
    pub fn back_up(&self, path: &Path, bytes: &[u8]) -> Result<Backup, FileError> {
        let backup = self.backup_of(path, bytes);
        write_private(&backup.path, bytes)?;
        Ok(backup)
    }

    /// Where a copy of these bytes is or would be.
    pub fn backup_of(&self, path: &Path, bytes: &[u8]) -> Backup {
        let sha256 = sha256(bytes);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{}-{}", &sha256[..16], name.trim_start_matches('.'));
        Backup { path: self.backup_dir().join(name), sha256 }
    }

    /// The bytes of a backup, if it is unchanged.
    pub fn restore(&self, backup: &Backup) -> Option<Vec<u8>> {
        let snapshot = Snapshot::read(&backup.path).ok()?;
        let bytes = snapshot.bytes()?;
        (sha256(bytes) == backup.sha256).then(|| bytes.to_vec())
    }

    /// Deletes the oldest backups beyond `MAX_OLD_BACKUPS` that `manifest` does not name.
    pub fn prune(&self, manifest: Option<&Manifest>) -> io::Result<()> {
        let named = |path: &Path| {
            let originals = manifest.iter().flat_map(|m| &m.files).filter_map(|f| f.original.as_ref());
            originals.into_iter().any(|backup| backup.path == path)
        };
        let mut old = Vec::new();
        for file in fs::read_dir(self.backup_dir())? {
            let file = file?;
            if !named(&file.path()) {
                old.push((file.metadata()?.modified()?, file.path()));
            }
        }
        old.sort();
        let excess = old.len().saturating_sub(MAX_OLD_BACKUPS);
        old[..excess].iter().try_for_each(|(_, path)| fs::remove_file(path))
    }
}

impl Manifest {
    pub fn entry(&self, path: &Path) -> Option<&Entry> {
        self.files.iter().find(|entry| entry.path == path)
    }
}

/// The agents that setup has connected to a home, for the person or for any project.
pub fn connected(home: &Path) -> Vec<&'static dyn Agent> {
    let records = fs::read_dir(home.join("setup")).into_iter().flatten().flatten();
    let names: Vec<String> = records
        .filter_map(|record| record.file_name().into_string().ok()?.strip_suffix(".json").map(str::to_owned))
        .collect();
    let is_connected = |agent: &&'static dyn Agent| {
        names.iter().any(|name| name.rsplit_once('-').is_some_and(|(named, _)| named == agent.name()))
    };
    ALL.iter().copied().filter(is_connected).collect()
}

/// The files of projects that setup has written for a home. To be removed, their record is needed.
pub fn in_projects(home: &Path) -> Vec<PathBuf> {
    let records = fs::read_dir(home.join("setup")).into_iter().flatten().flatten();
    let of_user = format!("-{}.json", &sha256(b"user")[..16]);
    let is_of_a_project = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".json") && !name.ends_with(&of_user)
    };
    let files = |path: PathBuf| -> Option<Vec<PathBuf>> {
        let snapshot = Snapshot::read(&path).ok()?;
        let manifest: Manifest = serde_json::from_slice(snapshot.bytes()?).ok()?;
        Some(manifest.files.into_iter().map(|entry| entry.path).filter(|file| file.exists()).collect())
    };
    records.map(|record| record.path()).filter(is_of_a_project).filter_map(files).flatten().collect()
}

/// The hash in lower-case hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
