//! A backend: one agent's program, as something that does a task.
//!
//! A backend starts the program (or finds its server), hands it the prompt byte for byte, and turns
//! its output into [`Observation`]s. It decides nothing: the judges in `baton_core::job::judge`
//! decide whether the job has ended. It never edits the user's configuration of the agent. What a
//! job may do goes with its session or its process.

pub mod child;
pub mod claude;
pub mod codex;
pub mod copilot;
pub mod cursor;
mod describe;
pub mod gemini;
mod headless;
pub mod opencode;
pub mod pi;
pub mod replies;
mod tree;

use baton_core::approval::{Answer, Question, Subject};
use baton_core::job::{Allow, Fault, Observation, Snapshot};
use baton_core::process::Process;
use baton_core::{Code, Error};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file of a job that holds a prompt too long for its agent.
pub const PROMPT_FILE: &str = "prompt.md";

macro_rules! backends {
    ($($backend:path),* $(,)?) => {
        /// Every backend.
        pub const ALL: &[&dyn Backend] = &[$(&$backend),*];

        /// "other", for any agent but the asker's own, and then the name of each backend.
        pub const OTHER_AND_NAMES: &[&str] = &["other", $(<$backend>::NAME),*];
    };
}

// The table. To add a backend, add a file and a row here.
backends![
    claude::Claude,
    codex::Codex,
    opencode::OpenCode,
    gemini::Gemini,
    copilot::Copilot,
    cursor::Cursor,
    pi::Pi,
];

/// The backend of an agent, by the agent's name on the command line.
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
            refuse(format!("{agent} can't be given a model"), "leave --model out".to_owned())
        }
        Some("") => refuse("the model has no name".to_owned(), "leave --model out, or name one".to_owned()),
        _ if task.read_only && can.read_only == ReadOnly::Unsupported => refuse(
            format!("{agent} can't be kept from writing"),
            "leave --read-only out, or take another agent".to_owned(),
        ),
        _ if task.resume.is_some() && !can.resume => {
            refuse(format!("{agent} can't resume a session"), "leave --resume out".to_owned())
        }
        _ => Ok(()),
    }
}

/// The version of an agent that baton was verified with, for hints.
fn verified(agent: &str) -> &'static str {
    baton_agents::by_name(agent).ok().and_then(|agent| agent.verified()).unwrap_or("the newest version")
}

/// A new session id, for programs that let the caller choose it. So it is known before anything can
/// go wrong.
fn uuid() -> String {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&baton_machine::random::id());
    bytes[8..].copy_from_slice(&baton_machine::random::id());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// An error unless the backend still asks what was shown, under whatever id.
fn is_same(held: &Subject, shown: &Question) -> Result<(), Error> {
    if *held == shown.subject {
        return Ok(());
    }
    Err(Error::new(Code::QuestionChanged, "it now asks something other than what was shown"))
}

/// The error for an "always" without an exact rule that was shown.
fn no_rule() -> Error {
    Error::new(Code::NoSuchRule, "there is no exact rule for \"always\" here").hint("approve it this once")
}

/// Locks a mutex, even after a thread has panicked with it: each change of its content is complete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes what a backend has learnt. Any thread may call it.
pub type Report = Arc<dyn Fn(Observation) + Send + Sync>;

/// How `--read-only` is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// A sandbox of the backend keeps all that runs in it from writing.
    Sandbox,
    /// The backend's own rules limit its tools.
    Rules,
    /// It can't be enforced, so it is refused.
    Unsupported,
}

/// What a backend can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A model can be chosen.
    pub model: bool,
    /// The efforts that it knows; empty if it knows none.
    pub efforts: &'static [&'static str],
    pub read_only: ReadOnly,
    /// An old session can be resumed.
    pub resume: bool,
    /// Its permission questions can be answered while it waits.
    pub answers: bool,
    /// The longest prompt in bytes. A longer one goes into a file that the prompt names.
    pub prompt_bytes: usize,
}

/// What a backend gets to do.
#[derive(Clone, Debug)]
pub struct Task {
    /// The prompt as the model sees it, with the safety header.
    pub prompt: String,
    /// The agent's program.
    pub program: PathBuf,
    /// The exact environment of the program. It has the variables that mark the job's processes. It
    /// does not have those by which an agent marks its own children: a job is no part of the
    /// session that asked for it.
    pub environment: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// The folder that the user meant, if `cwd` is a worktree made for this job.
    pub worktree_of: Option<PathBuf>,
    /// A folder of this job alone (0700), for the backend's files.
    pub folder: PathBuf,
    /// Baton's home, for what all jobs share.
    pub home: PathBuf,
    /// Baton's own program, for helper processes of a backend.
    pub baton: PathBuf,
    /// A name for the session, without any of the prompt: it may be an argument of a process, which
    /// all users can read.
    pub label: String,
    /// A short title for the session. It begins with the prompt, so it is never an argument.
    pub title: String,
    /// The model, in the agent's own words.
    pub model: Option<String>,
    /// One of [`Capabilities::efforts`].
    pub effort: Option<String>,
    /// It must not change anything.
    pub read_only: bool,
    /// What it may do without asking.
    pub allow: Allow,
    /// The backend's session to resume.
    pub resume: Option<String>,
}

#[cfg(test)]
impl Task {
    /// A task with `SECRET` in its prompt, which no argument of a process may show.
    fn with_a_secret(program: &str) -> Self {
        Self {
            prompt: "SECRET task".to_owned(),
            program: program.into(),
            environment: Vec::new(),
            cwd: "/".into(),
            worktree_of: None,
            folder: "/nowhere".into(),
            home: "/nowhere".into(),
            baton: "baton".into(),
            label: "baton j1".to_owned(),
            title: "baton j1: SECRET task".to_owned(),
            model: None,
            effort: None,
            read_only: false,
            allow: Allow::Ask,
            resume: None,
        }
    }
}

impl Task {
    pub fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.iter().find(|(key, _)| key.as_os_str() == name).map(|(_, value)| value)
    }

    /// Puts a prompt that is too long into a file of the job, and names that file in the prompt
    /// instead.
    pub fn put_prompt_into_file(&mut self) -> io::Result<()> {
        let file = self.folder.join(PROMPT_FILE);
        baton_machine::own::rewrite(&file)?.write_all(self.prompt.as_bytes())?;
        self.prompt = format!(
            "Your task is in the file {}. Read the whole file first (with several calls if it is long), and then do what it says as if it had been written here.",
            file.display()
        );
        Ok(())
    }

    /// The file that the prompt names, if it does.
    pub fn prompt_file(&self) -> Option<PathBuf> {
        Some(self.folder.join(PROMPT_FILE)).filter(|file| file.exists())
    }

    pub fn user_home(&self) -> Option<&Path> {
        self.variable("HOME").map(Path::new)
    }
}

/// One agent's program, as something that does tasks.
pub trait Backend: Sync {
    /// The agent's name on the command line.
    fn agent(&self) -> &'static str;

    fn capabilities(&self) -> Capabilities;

    /// Checks whether the backend can do this task: version, login, model, effort. It starts
    /// nothing but the program itself to ask it, and changes nothing. It must be quick, because a
    /// person waits for it: what takes longer than 100 ms belongs to [`start`](Self::start).
    fn check(&self, task: &Task) -> Result<(), Error>;

    /// Hands the task over. From now on `report` gets everything that the backend learns, first the
    /// session's id as soon as it is known.
    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault>;

    /// What the backend knows of a session whose worker is gone: one look, of two seconds at most.
    /// `None` if that can't be known any more; then the job has failed. It must not start anything
    /// that continues the turn.
    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot>;

    /// Stops the turn of a session whose worker is gone, if the turn does not end with the job's
    /// own processes: in a server that jobs share. The session may not be known yet; what was
    /// started for it must not stay.
    fn abandon(&self, _task: &Task, _session: Option<&str>) {}
}

/// A running turn. Any thread may call.
pub trait Turn: Send + Sync {
    /// Asks the backend for its present state, within ten seconds. `None` if it can't be asked and
    /// its stream is all there is.
    fn look(&self) -> Option<Result<Snapshot, String>>;

    /// Answers a question if it still is what was shown: [`is_same`] is checked under the lock that
    /// holds the question. [`Observation::Settled`] shows that the answer was taken.
    fn answer(&self, question: &Question, answer: &Answer) -> Result<(), Error>;

    /// Asks the backend to stop the turn and what runs in it. [`Observation::Aborted`] or its end
    /// shows that it did.
    fn abort(&self) -> Result<(), String>;

    /// The process whose descendants are its tools, if it is known.
    fn root(&self) -> Option<Process>;

    /// The turn is over, for whatever reason: closes what was opened for it, and ends the program
    /// if it belongs to this job alone. Within five seconds.
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
