//! A backend: one agent's program as something that does a task.
//!
//! A backend starts the program (or finds its server), hands it the prompt byte for byte, and turns what it says into
//! [`Observation`]s. It decides nothing: whether the job has ended is the judges' business (`baton_core::job::judge`). It never edits the
//! user's configuration of that agent; what a job may do goes along with its session or its process.

pub mod child;
pub mod claude;
pub mod codex;
pub mod copilot;
pub mod cursor;
pub mod gemini;
mod headless;
pub mod opencode;
pub mod pi;
pub mod replies;
mod tree;
mod words;

use baton_core::approval::Answer;
use baton_core::job::{Allow, Fault, Observation, Snapshot};
use baton_core::{Code, Error};
use baton_store::Process;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file of a job that holds a prompt which can't travel as one.
pub const PROMPT_FILE: &str = "prompt.md";

/// Every backend. Adding one is a file and a row here.
pub const ALL: &[&dyn Backend] = &[
    &claude::Claude,
    &codex::Codex,
    &opencode::OpenCode,
    &gemini::Gemini,
    &copilot::Copilot,
    &cursor::Cursor,
    &pi::Pi,
];

/// "other", for any but the asker's own, and then the names of all of [`ALL`].
pub const OTHER_AND_NAMES: &[&str] =
    &["other", "claude", "codex", "opencode", "gemini", "copilot", "cursor", "pi"];

/// The backend of an agent, by the agent's name on our command line.
pub fn of(agent: &str) -> Option<&'static dyn Backend> {
    ALL.iter().copied().find(|backend| backend.agent() == agent)
}

/// Refuses a task that asks for what a backend does not have, by its [`Capabilities`].
fn check_options(backend: &dyn Backend, task: &Task) -> Result<(), Error> {
    let can = backend.capabilities();
    let agent = backend.agent();
    let refuse = |what: String, hint: String| Err(Error::new(Code::UnsupportedOption, what).hint(hint));
    if let Some(effort) = task.effort.as_deref().filter(|effort| !can.efforts.contains(effort)) {
        let known = match can.efforts {
            [] => "it knows no efforts: leave --effort out".to_owned(),
            efforts => format!("it knows {}", efforts.join(", ")),
        };
        return refuse(format!("{agent} has no effort {}", baton_core::frame::shown(effort, 40)), known);
    }
    match task.model.as_deref() {
        Some(_) if !can.model => {
            refuse(format!("{agent} can't be told a model"), "leave --model out".to_owned())
        }
        Some("") => refuse("the model has no name".to_owned(), "leave --model out, or name one".to_owned()),
        _ if task.read_only && can.read_only == ReadOnly::Unsupported => refuse(
            format!("{agent} can't be kept from writing"),
            "leave --read-only out, or take another agent".to_owned(),
        ),
        _ if task.resume.is_some() && !can.resume => {
            refuse(format!("{agent} can't go on with a session"), "leave --resume out".to_owned())
        }
        _ => Ok(()),
    }
}

/// A new id for a session, where the program takes ours: then it is known before anything can go wrong.
fn uuid() -> String {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&baton_mail::random());
    bytes[8..].copy_from_slice(&baton_mail::random());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// What a mutex guards, also after a thread has panicked with it: each change of it is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes what a backend has learnt, from any thread.
pub type Report = Arc<dyn Fn(Observation) + Send + Sync>;

/// How a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// By a sandbox of the backend: whatever runs can't write.
    Sandbox,
    /// By the backend's own rules over its tools.
    Rules,
    /// It can't be kept, so it is refused.
    Unsupported,
}

/// What a backend can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A model can be chosen.
    pub model: bool,
    /// The efforts that it knows; empty where it knows none.
    pub efforts: &'static [&'static str],
    /// How `--read-only` is kept.
    pub read_only: ReadOnly,
    /// An old session can go on.
    pub resume: bool,
    /// Its permission questions can be answered while it waits.
    pub answers: bool,
    /// The longest prompt in bytes that it takes as a prompt; a longer one travels as a file that the prompt points to.
    pub prompt_bytes: usize,
}

/// What is wanted of a backend.
#[derive(Clone, Debug)]
pub struct Task {
    /// The prompt as the model shall see it, safety header and all.
    pub prompt: String,
    /// The agent's program.
    pub program: PathBuf,
    /// The exact environment for it. What marks the job's processes is in there already; what an agent tells its own children about itself is not: a
    /// job is no part of the session that asked for it.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it works.
    pub cwd: PathBuf,
    /// The folder that was meant, where `cwd` is a worktree which was made of its repository for this job.
    pub worktree_of: Option<PathBuf>,
    /// A folder of this job alone (0700), for files that the backend needs.
    pub folder: PathBuf,
    /// Baton's own home, for what all jobs share.
    pub home: PathBuf,
    /// Baton's own program, for processes that a backend keeps beside its agent's.
    pub baton: PathBuf,
    /// A short name for the session.
    pub title: String,
    /// The model to take, in the agent's own words.
    pub model: Option<String>,
    /// How hard to think, one of [`Capabilities::efforts`].
    pub effort: Option<String>,
    /// It must not change anything.
    pub read_only: bool,
    /// What it may do without asking.
    pub allow: Allow,
    /// The backend's own session that shall go on.
    pub resume: Option<String>,
}

impl Task {
    /// A variable of the environment of the task.
    pub fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.iter().find(|(key, _)| key.as_os_str() == name).map(|(_, value)| value)
    }

    /// Puts the prompt into a file of the job, to which the prompt then points: for what can't travel as a prompt.
    pub fn put_prompt_into_file(&mut self) -> io::Result<()> {
        let file = self.folder.join(PROMPT_FILE);
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&file)?.write_all(self.prompt.as_bytes())?;
        self.prompt = format!(
            "Your task is in the file {}. Read the whole file first (with several calls if it is long), and then do what it says as if it had been written here.",
            file.display()
        );
        Ok(())
    }

    /// The file that the prompt points to, if it does.
    pub fn prompt_file(&self) -> Option<PathBuf> {
        Some(self.folder.join(PROMPT_FILE)).filter(|file| file.exists())
    }

    /// The user's home as the backend will see it.
    pub fn user_home(&self) -> Option<&Path> {
        self.variable("HOME").map(Path::new)
    }
}

/// One agent's program as something that does tasks.
pub trait Backend: Sync {
    /// The agent's name on our command line.
    fn agent(&self) -> &'static str;

    /// What it can be asked for.
    fn capabilities(&self) -> Capabilities;

    /// Whether this very task can be honoured: version, login, model, effort. Nothing is started but the program to ask it, and nothing is
    /// changed. It must be quick (the person waits for it): what takes longer than 100 ms is found out in [`start`](Self::start).
    fn check(&self, task: &Task) -> Result<(), Error>;

    /// Hands the task over. Everything that is learnt from now on goes to `report`, beginning with the session's id as soon as it is known.
    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault>;

    /// What the backend has of a session whose watcher is gone: one look, two seconds at most. `None` where it can't be known any more
    /// (then the job has failed). Nothing is started for it that would go on with the turn.
    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot>;

    /// Stops the turn of a session whose watcher is gone, where it does not end with the job's own processes: in a server that jobs share. The session
    /// may not have been known yet; what was started for it must not stay.
    fn abandon(&self, _task: &Task, _session: Option<&str>) {}
}

/// A running turn. Any thread may call.
pub trait Turn: Send + Sync {
    /// What the backend has now, by asking it; ten seconds at most. `None` where there is nothing to ask, and its stream is all there is.
    fn look(&self) -> Option<Result<Snapshot, String>>;

    /// Answers a question. That it was taken is seen by [`Observation::Settled`].
    fn answer(&self, question: &str, answer: &Answer) -> Result<(), Error>;

    /// Asks the backend to stop the turn and what runs in it. That it did is seen by [`Observation::Aborted`], or by its end.
    fn abort(&self) -> Result<(), String>;

    /// The process below which its tools run, if it can be seen.
    fn root(&self) -> Option<Process>;

    /// The turn is over, whatever the reason: closes what was opened for it, and ends the program if it is this job's alone. Five seconds at most.
    fn close(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_can_be_named() {
        let names: Vec<&str> = ALL.iter().map(|backend| backend.agent()).collect();
        assert_eq!(&OTHER_AND_NAMES[1..], names);
    }
}
