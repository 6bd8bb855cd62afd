//! Setting baton up in an agent's configuration, and taking it out again.
//! A `Target` (one per agent) turns the bytes of its files into edits and does no I/O; a `Plan` reads
//! the files, holds the edits for a person to see, and applies them all or none, with backups and a
//! manifest under baton's home. Removal gives the original bytes back where the file is still as we
//! left it; elsewhere it takes out our entries by value, with or without a manifest.

pub(crate) mod delegation;
mod error;
pub mod hooks;
mod manifest;
mod own_command;
pub(crate) mod own_file;
mod plan;
pub(crate) mod server;
pub(crate) mod shell;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::diff;
use crate::config::json::{Container, Made, Was};
pub use error::InstallError;
pub use hooks::{Form, GUARD, HOLD, HookRow, REVIEW, REVIEW_SECONDS, Server, WAIT};
pub(crate) use manifest::sha256;
pub use own_command::{OwnCommand, Run};
pub use plan::{Applied, Plan};

/// The name of our MCP server in every agent's configuration.
pub const SERVER: &str = "baton";

/// Whose configuration is edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's: all projects.
    User,
    /// One project's, in this directory.
    Project(PathBuf),
}

/// Whether tool calls are judged, and what becomes of one when nobody could judge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// They are not.
    Off,
    /// They are. A call that could not be judged because nothing of ours ran goes on, as each agent has it by itself.
    On,
    /// They are, and such a call does not run, where the agent lets that be said.
    Closed,
}

impl Guard {
    /// In a word, for our plugins.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "open",
            Self::Closed => "closed",
        }
    }
}

/// Whether another agent reviews before a session may stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopGate {
    /// Nobody does.
    Off,
    /// One does, for agents whose stop hooks can hold them for as long as that takes.
    On,
}

impl StopGate {
    /// The hook that it needs at an event, if it does. For the person's own configuration alone: in a project's it would be everybody's.
    pub(crate) fn row(self, scope: &Scope, event: &'static str) -> Option<HookRow> {
        let wanted = self == Self::On && *scope == Scope::User;
        let form = Form::Review { timeout: REVIEW_SECONDS };
        wanted.then_some(HookRow { event, matcher: None, form })
    }
}

/// What is installed for whom.
#[derive(Clone, Debug)]
pub struct Install {
    baton: String,
    home: String,
    scope: Scope,
    guard: Guard,
    gate: StopGate,
}

impl Install {
    /// `baton` is the program, `home` where it keeps its data; both absolute.
    pub fn new(baton: &Path, home: &Path, scope: Scope) -> Result<Self, InstallError> {
        let install =
            Self { baton: plain(baton)?, home: plain(home)?, scope, guard: Guard::On, gate: StopGate::Off };
        if let Scope::Project(dir) = &install.scope {
            plain(dir)?;
        }
        Ok(install)
    }

    /// The same with another guard; on by default.
    pub fn with_guard(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    /// Whether tool calls are judged.
    pub fn guard(&self) -> Guard {
        self.guard
    }

    /// The same with another stop gate; off by default.
    pub fn with_stop_gate(self, gate: StopGate) -> Self {
        Self { gate, ..self }
    }

    /// Whether another agent reviews before a session may stop.
    pub fn stop_gate(&self) -> StopGate {
        self.gate
    }

    /// The program.
    pub fn baton(&self) -> &str {
        &self.baton
    }

    /// Where baton keeps its data.
    pub fn home(&self) -> &str {
        &self.home
    }

    /// Whose configuration is edited.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// The path as text, if every configuration format and the shell can hold it.
pub(crate) fn plain(path: &Path) -> Result<String, InstallError> {
    let bad = |why| InstallError::BadPath { path: path.to_owned(), why };
    let text = path.to_str().ok_or_else(|| bad("it is not UTF-8"))?;
    if !path.is_absolute() {
        return Err(bad("it is not absolute"));
    }
    if text.chars().any(char::is_control) {
        return Err(bad("it has a control character in it"));
    }
    Ok(text.to_owned())
}

/// The files of a target as they are now; `None` is a file that is not there.
#[derive(Clone, Debug, Default)]
pub struct Current(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Current {
    /// The bytes of a file; `None` if it is not there.
    pub fn bytes(&self, path: &Path) -> Option<&[u8]> {
        self.0.get(path)?.as_deref()
    }
}

impl FromIterator<(PathBuf, Option<Vec<u8>>)> for Current {
    fn from_iter<I: IntoIterator<Item = (PathBuf, Option<Vec<u8>>)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

/// The containers that an earlier installation made, file by file, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct Records(BTreeMap<PathBuf, Vec<Container>>);

impl Records {
    /// What is known about a file.
    pub fn made(&self, path: &Path) -> Made<'_> {
        self.0.get(path).map_or(Made::Unknown, |made| Made::Known(made))
    }
}

impl FromIterator<(PathBuf, Vec<Container>)> for Records {
    fn from_iter<I: IntoIterator<Item = (PathBuf, Vec<Container>)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

/// One file's change.
#[derive(Clone, Debug)]
pub struct FileEdit {
    /// The file.
    pub path: PathBuf,
    /// Its bytes now; `None` if it is not there.
    pub before: Option<Vec<u8>>,
    /// Its bytes afterwards; `None` if it goes.
    pub after: Option<Vec<u8>>,
    /// What changes, for people: "add 11 hooks".
    pub what: String,
    /// The containers that had to be made.
    pub made: Vec<Container>,
    /// The agent's own command that makes this change, for a file that a running agent rewrites itself.
    pub by: Option<OwnCommand>,
}

impl FileEdit {
    /// An edit that writes `after`. If there was no file, that is recorded among the containers.
    pub fn write(
        path: &Path,
        before: Option<&[u8]>,
        after: Vec<u8>,
        what: String,
        mut made: Vec<Container>,
    ) -> Self {
        if before.is_none() {
            made.retain(|container| !container.at.is_empty());
            made.push(Container { at: Vec::new(), was: Was::Absent });
        }
        let before = before.map(<[u8]>::to_vec);
        Self { path: path.to_owned(), before, after: Some(after), what, made, by: None }
    }

    /// An edit that takes something out, perhaps the whole file.
    pub fn take_out(path: &Path, before: &[u8], after: Option<Vec<u8>>, what: String) -> Self {
        Self { path: path.to_owned(), before: Some(before.to_vec()), after, what, made: Vec::new(), by: None }
    }

    /// The same, made by the agent's own command while a session of it runs.
    pub fn by(self, command: OwnCommand) -> Self {
        Self { by: Some(command), ..self }
    }

    /// Whether it changes anything.
    pub fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// The change as a unified diff.
    pub fn diff(&self) -> String {
        diff::unified(&self.path.display().to_string(), self.before.as_deref(), self.after.as_deref())
    }
}

/// An agent's configuration in one scope. Pure: bytes in, edits out.
pub trait Target {
    /// The agent's name, as in `baton setup NAME`.
    fn agent(&self) -> &'static str;
    /// What is installed for whom.
    fn install(&self) -> &Install;
    /// All files that an installation concerns.
    fn files(&self) -> Vec<PathBuf>;
    /// Those of them in which an entry of ours serves other agents too: whoever leaves last takes it out.
    fn shared(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// The edits that set baton up. Edits that change nothing may be among them.
    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError>;
    /// The edits that take baton out.
    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError>;
    /// What a person should know beside the edits: a trust that only they can give, and the like.
    fn notes(&self, now: &Current) -> Vec<String>;
    /// Whether the agent uses what stands in its files.
    fn trust(&self, _now: &Current) -> Result<Trust, InstallError> {
        Ok(Trust::NotAsked)
    }
    /// The program of ours that the agent loads into itself, if it does.
    fn loaded(&self) -> Option<&Path> {
        None
    }
}

/// Whether an agent uses what stands in its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// It asks nobody.
    #[default]
    NotAsked,
    /// It does.
    Given,
    /// It does not, until somebody does something about it.
    Missing {
        /// What is not trusted.
        what: String,
        /// What to do.
        hint: String,
    },
    /// It asks the person, and nothing tells us what they said. What to do.
    Hidden(String),
}

/// "add 3 hooks, update 1", or nothing to do.
pub(crate) fn summary(edited: &hooks::Edited, one: &str, many: &str) -> String {
    let parts = [("add", edited.added), ("update", edited.updated), ("drop", edited.dropped)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(verb, n)| if *n == 1 { format!("{verb} {one}") } else { format!("{verb} {n} {many}") })
        .collect();
    if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
}
