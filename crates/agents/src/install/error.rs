//! Why baton was not set up or not removed. In every case, no file was left half edited.

use std::path::PathBuf;

use crate::config::Place;
use crate::config::file::FileError;
use crate::config::json::JsonError;
use crate::config::toml::TomlError;

/// Why baton was not set up or not removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// A JSON file can't be edited.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A TOML file can't be edited.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// A file can't be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another program's MCP server has our name.
    #[error("edit {place}: `{key}` already exists and does not belong to baton")]
    NameTaken { place: Place, key: String },
    /// A file that baton would own belongs to another program or another home.
    #[error("write {path}: a file of that name already exists and does not belong to baton")]
    FileTaken { path: PathBuf },
    /// A baton with another home is already set up there.
    #[error("edit {place}: baton is set up there with another home, {home}")]
    OtherHome {
        place: Place,
        /// The other home.
        home: String,
    },
    /// A path that can't be written into a configuration.
    #[error("use {path}: {why}")]
    BadPath { path: PathBuf, why: &'static str },
    /// A manifest that a newer baton wrote.
    #[error("read {path}: it was written by a newer baton (format {version})")]
    NewerManifest { path: PathBuf, version: u64 },
    /// A write failed after others had succeeded, and these could not be undone.
    #[error("{source}; and failed to restore {}", list(.left))]
    HalfDone {
        /// The first failure.
        source: Box<InstallError>,
        /// The files that stayed changed.
        left: Vec<PathBuf>,
    },
}

impl InstallError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Json(e) => e.code(),
            Self::Toml(e) => e.code(),
            Self::File(e) => e.code(),
            Self::NameTaken { .. } => "setup-name-taken",
            Self::FileTaken { .. } => "setup-file-taken",
            Self::OtherHome { .. } => "setup-other-home",
            Self::BadPath { .. } => "setup-bad-path",
            Self::NewerManifest { .. } => "setup-newer-manifest",
            Self::HalfDone { .. } => "setup-half-done",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Json(e) => e.hint(),
            Self::Toml(e) => e.hint(),
            Self::File(e) => e.hint(),
            Self::NameTaken { .. } => "rename the other server, then run the same command again",
            Self::FileTaken { .. } => {
                "move it away; if a baton with another home wrote it, run `baton setup --remove` with that home first"
            }
            Self::OtherHome { .. } => "run `baton setup --remove` with that home first",
            Self::BadPath { .. } => "install baton, or put its home, under another path",
            Self::NewerManifest { .. } => "use the newer baton",
            Self::HalfDone { .. } => "run `baton setup --remove` when the cause is gone",
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
