//! Setting baton up in an agent's configuration, and removing it again. A `Target` (one per agent)
//! turns the bytes of its files into edits and does no I/O. A `Plan` reads the files, shows the
//! edits to a person, and applies all of them or none, with backups and a manifest under baton's
//! home. If a file is still as we left it, removal restores the original bytes. If not, it removes
//! our entries by value, with or without a manifest.

pub(crate) mod delegation;
mod error;
pub mod hooks;
mod manifest;
mod own_command;
pub(crate) mod own_file;
mod plan;
pub mod plugin;
pub(crate) mod server;
pub(crate) mod shell;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::diff;
use crate::config::json::{Container, Made, Was};
pub use error::InstallError;
pub use hooks::{Form, GUARD, HOLD, HookRow, REVIEW, REVIEW_SECONDS, Server, WAIT};
pub(crate) use manifest::sha256;
pub use manifest::{CONFIG_RECORD, connected, in_projects};
pub use own_command::{OwnCommand, Run};
pub use plan::{Applied, Plan};

/// The name of baton's MCP server in every agent's configuration.
pub const SERVER: &str = "baton";

/// Whose configuration is edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's, for all projects.
    User,
    /// A project's, in this directory.
    Project(PathBuf),
}

/// Whether the guard judges tool calls, and what happens to a call that it could not judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardHooks {
    /// It does not.
    Off,
    /// It does. If nothing of baton ran, the call goes on, which is what each agent does by
    /// default.
    On,
    /// It does. If nothing of baton ran, the call does not run, if the agent has a setting for
    /// that.
    Closed,
}

impl GuardHooks {
    /// The name of the mode, for our plugins.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "open",
            Self::Closed => "closed",
        }
    }
}

/// Whether another agent reviews the work before a session may stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopGate {
    /// No agent does.
    Off,
    /// One does, for agents whose stop hooks can wait that long.
    On,
}

impl StopGate {
    /// The hook that an event needs for it, if any. Only in the user's own configuration: in a
    /// project it would affect everyone.
    pub(crate) fn row(self, scope: &Scope, event: &'static str) -> Option<HookRow> {
        let wanted = self == Self::On && *scope == Scope::User;
        let form = Form::Review { timeout: REVIEW_SECONDS };
        wanted.then_some(HookRow { event, matcher: None, form })
    }
}

#[derive(Clone, Debug)]
pub struct Install {
    baton: String,
    home: String,
    scope: Scope,
    guard: GuardHooks,
    gate: StopGate,
}

impl Install {
    /// `baton` is the program, `home` the folder of its data; both absolute.
    pub fn new(baton: &Path, home: &Path, scope: Scope) -> Result<Self, InstallError> {
        let install = Self {
            baton: plain(baton)?,
            home: plain(home)?,
            scope,
            guard: GuardHooks::On,
            gate: StopGate::Off,
        };
        if let Scope::Project(dir) = &install.scope {
            plain(dir)?;
        }
        Ok(install)
    }

    /// The same with another mode of the guard. The default is on.
    pub fn with_guard(self, guard: GuardHooks) -> Self {
        Self { guard, ..self }
    }

    pub fn guard(&self) -> GuardHooks {
        self.guard
    }

    /// The same with another stop gate. The default is off.
    pub fn with_stop_gate(self, gate: StopGate) -> Self {
        Self { gate, ..self }
    }

    pub fn stop_gate(&self) -> StopGate {
        self.gate
    }

    pub fn baton(&self) -> &str {
        &self.baton
    }

    /// The folder of baton's data.
    pub fn home(&self) -> &str {
        &self.home
    }

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
        return Err(bad("it contains a control character"));
    }
    Ok(text.to_owned())
}

/// The current files of a target; `None` is a missing file.
#[derive(Clone, Debug, Default)]
pub struct Current(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Current {
    /// The bytes of a file; `None` if it is missing.
    pub fn bytes(&self, path: &Path) -> Option<&[u8]> {
        self.0.get(path)?.as_deref()
    }
}

impl FromIterator<(PathBuf, Option<Vec<u8>>)> for Current {
    fn from_iter<I: IntoIterator<Item = (PathBuf, Option<Vec<u8>>)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

/// The containers that an earlier installation made in each file, if that is known.
#[derive(Clone, Debug, Default)]
pub struct Records(BTreeMap<PathBuf, Vec<Container>>);

impl Records {
    pub fn made(&self, path: &Path) -> Made<'_> {
        self.0.get(path).map_or(Made::Unknown, |made| Made::Known(made))
    }
}

impl FromIterator<(PathBuf, Vec<Container>)> for Records {
    fn from_iter<I: IntoIterator<Item = (PathBuf, Vec<Container>)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

#[derive(Clone, Debug)]
pub struct FileEdit {
    pub path: PathBuf,
    /// The current bytes; `None` if the file is missing.
    pub before: Option<Vec<u8>>,
    /// The bytes afterwards; `None` if the file is removed.
    pub after: Option<Vec<u8>>,
    /// The change in words: "add 11 hooks".
    pub what: String,
    /// The containers that had to be made.
    pub made: Vec<Container>,
    /// The agent's own command for this change, for a file that a running agent rewrites itself.
    pub by: Option<OwnCommand>,
}

impl FileEdit {
    /// An edit that writes `after`. If the file is new, the containers record that.
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

    /// An edit that removes something, perhaps the whole file.
    pub fn take_out(path: &Path, before: &[u8], after: Option<Vec<u8>>, what: String) -> Self {
        Self { path: path.to_owned(), before: Some(before.to_vec()), after, what, made: Vec::new(), by: None }
    }

    /// The same, by the agent's own command while one of its sessions runs.
    pub fn by(self, command: OwnCommand) -> Self {
        Self { by: Some(command), ..self }
    }

    pub fn is_change(&self) -> bool {
        self.before != self.after
    }

    pub fn diff(&self) -> String {
        diff::unified(&self.path.display().to_string(), self.before.as_deref(), self.after.as_deref())
    }
}

/// An agent's configuration in one scope. Pure: bytes in, edits out.
pub trait Target {
    /// The agent's name, as in `baton setup NAME`.
    fn agent(&self) -> &'static str;
    fn install(&self) -> &Install;
    /// All files of an installation. If there are hooks, their file is the first.
    fn files(&self) -> Vec<PathBuf>;
    /// The files in which one of our entries also serves other agents. The last agent that is
    /// removed removes the entry.
    fn shared(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// The edits that set baton up. Some may change nothing.
    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError>;
    /// The edits that remove baton.
    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError>;
    /// What a person should know beside the edits, such as a trust that only they can give.
    fn notes(&self, now: &Current) -> Vec<String>;
    /// Whether the agent uses the entries in its files.
    fn trust(&self, _now: &Current) -> Result<Trust, InstallError> {
        Ok(Trust::NotAsked)
    }
    /// Our code that the agent loads into its own process, if any.
    fn loaded(&self) -> Option<&Path> {
        None
    }
}

/// Whether an agent uses the entries in its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// It needs no trust.
    #[default]
    NotAsked,
    /// It trusts them.
    Given,
    /// It does not, until a person acts.
    Missing {
        /// What is not trusted.
        what: String,
        /// What the person should do.
        hint: String,
    },
    /// It asks the user, and baton can't see the answer. With what the user should do.
    Hidden(String),
}

/// "add 3 hooks, update 1", or that nothing changes.
pub(crate) fn summary(edited: &hooks::Edited, one: &str, many: &str) -> String {
    let parts = [("add", edited.added), ("update", edited.updated), ("drop", edited.dropped)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(verb, n)| if *n == 1 { format!("{verb} {one}") } else { format!("{verb} {n} {many}") })
        .collect();
    if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
}
