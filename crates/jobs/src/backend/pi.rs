//! Pi, with `pi --mode rpc`.
//!
//! Pi has no permissions, so each job's Pi loads a small extension from the job's folder, beside
//! the user's extensions. It asks about what the job may not do by itself, and it hands over a
//! prompt that Pi would take for a command. Before the prompt goes out, the backend checks that the
//! extension is loaded. What the user's extensions block stays blocked.

mod recall;
mod turn;

use super::child::Child;
use super::{Backend, Capabilities, ReadOnly, Report, Task, Turn};
use baton_core::job::{Allow, Fault, Observation, Snapshot};
use baton_core::{Code, Error};
use baton_machine::own;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use turn::{Running, State};

/// The longest prompt. One of five times this size was tested.
const PROMPT_BYTES: usize = 1 << 20;
/// How long it may take to start, and to take the prompt.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The tools of a read-only task.
const READ_ONLY_TOOLS: &str = "read,grep,find,ls";
/// The command by which the extension takes a prompt.
const COMMAND_NAME: &str = "baton-job";
/// The beginning of the extension's questions.
const QUESTION_PREFIX: &str = "baton-permission:";
const EXTENSION_SOURCE: &str = include_str!("pi/extension.ts");
/// Parts of the names of variables that hold a key.
const KEY_VARIABLE_PARTS: &[&str] = &["API_KEY", "TOKEN", "AWS_", "GOOGLE_", "AZURE_", "CREDENTIALS"];

#[derive(Clone, Copy, Debug)]
pub struct Pi;

impl Pi {
    pub(super) const NAME: &str = "pi";
}

impl Backend for Pi {
    fn agent(&self) -> &'static str {
        Self::NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            model: true,
            efforts: &["off", "minimal", "low", "medium", "high", "xhigh", "max"],
            read_only: ReadOnly::Rules,
            resume: true,
            answers: true,
            prompt_bytes: PROMPT_BYTES,
        }
    }

    fn check(&self, task: &Task) -> Result<(), Error> {
        super::check_options(self, task)?;
        let is_key = |name: &str| KEY_VARIABLE_PARTS.iter().any(|part| name.contains(part));
        let has_key = task.environment.iter().any(|(name, _)| name.to_str().is_some_and(is_key));
        // It may contain a login, another provider, or an extension that brings one.
        let has_home = agent_home(task).is_none_or(|home| home.exists());
        if has_key || has_home { Ok(()) } else { Err(not_logged_in("Pi has no login here")) }
    }

    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault> {
        let extension = task.folder.join("pi-extension.ts");
        own::rewrite(&extension)
            .and_then(|mut file| file.write_all(extension_for(task).as_bytes()))
            .map_err(|error| {
                Fault::new(Code::BackendStart, format!("{} can't be written: {error}", extension.display()))
                    .hint("check the free space of the disk")
            })?;
        let resume = task.resume.as_deref().map(|session| session_to_resume(task, session)).transpose()?;
        let state = Arc::new(State::new(Arc::clone(&report)));
        let (of_lines, of_end) = (Arc::clone(&state), Arc::clone(&state));
        let child = Child::start(
            &mut command(task, &extension, resume),
            &task.folder.join("backend.log"),
            move |line| of_lines.hear(line),
            move |how| of_end.ended(&how),
        );
        let child = child.map_err(|error| {
            Fault::new(
                Code::BackendStart,
                format!("{} could not be started: {error}", task.program.display()),
            )
            .hint("check that `pi --version` works in a terminal")
        })?;
        let running = Running { child, state };
        let begun = begin(task, &running, &report);
        if begun.is_err() {
            running.close();
        }
        begun.map(|()| Box::new(running) as Box<dyn Turn>)
    }

    fn recall(&self, task: &Task, _session: &str) -> Option<Snapshot> {
        recall::look(&recall::Place::read(task)?)
    }
}

fn command(task: &Task, extension: &std::path::Path, resume: Option<PathBuf>) -> Command {
    let mut command = Child::command(task);
    command.args(["--mode", "rpc", "--extension"]).arg(extension);
    match resume {
        Some(file) => _ = command.arg("--session").arg(file),
        None => _ = command.args(["--session-id", &super::uuid(), "--name", &task.label]),
    }
    if let Some(model) = &task.model {
        command.args(["--model", model]);
    }
    if let Some(effort) = &task.effort {
        command.args(["--thinking", effort]);
    }
    if task.read_only {
        command.args(["--tools", READ_ONLY_TOOLS]);
    }
    command
}

/// The extension, for what this task may do.
fn extension_for(task: &Task) -> String {
    let level = match task.allow {
        _ if task.read_only => "read-only",
        Allow::Ask => "ask",
        Allow::Edits => "edits",
        Allow::All => "all",
    };
    EXTENSION_SOURCE
        .replace("{level}", level)
        .replace("{command}", COMMAND_NAME)
        .replace("{mark}", QUESTION_PREFIX)
}

/// From a new program to a session that has the prompt.
fn begin(task: &Task, running: &Running, report: &Report) -> Result<(), Fault> {
    let state =
        running.call(&json!({"type": "get_state"}), START_TIMEOUT).map_err(|why| match &task.model {
            Some(model) if why.contains("not found") && why.contains("--list-models") => {
                Fault::new(Code::UnsupportedOption, format!("Pi has no model {model}"))
                    .hint("`pi --list-models` lists them")
            }
            _ => no_start(&why),
        })?;
    check_state(task, running, &state)?;
    check_extension(running)?;
    let session = state["sessionId"].as_str().unwrap_or_default();
    report(Observation::Session(session.to_owned()));
    let file = state["sessionFile"].as_str().unwrap_or_default();
    recall::Place::note(task, file).map_err(|error| {
        Fault::new(Code::BackendStart, format!("the job's folder can't be written: {error}"))
            .hint("check the free space of the disk")
    })?;
    let message = match task.prompt.starts_with('/') {
        true => format!("/{COMMAND_NAME} {}", Value::from(task.prompt.as_str())),
        false => task.prompt.clone(),
    };
    running.call(&json!({"type": "prompt", "message": message}), START_TIMEOUT).map(drop).map_err(|why| {
        match why.to_lowercase() {
            low if low.contains("no api key")
                || low.contains("authentication")
                || low.contains("no model") =>
            {
                not_logged_in(&why).into()
            }
            _ => no_start(&why),
        }
    })
}

/// Whether it took the model and the effort. Pi silently picks similar names and lowers efforts.
fn check_state(task: &Task, running: &Running, state: &Value) -> Result<(), Fault> {
    let (id, provider) = (&state["model"]["id"], &state["model"]["provider"]);
    let full = format!("{}/{}", provider.as_str().unwrap_or_default(), id.as_str().unwrap_or_default());
    if let Some(model) = &task.model
        && *id != model.as_str()
        && full != *model
    {
        return Err(Fault::new(
            Code::UnsupportedOption,
            format!("Pi has no model {model}, and takes {full}"),
        )
        .hint("`pi --list-models` lists them; name it exactly"));
    }
    let Some(effort) = task.effort.as_ref().filter(|effort| state["thinkingLevel"] != effort.as_str()) else {
        return Ok(());
    };
    let levels =
        running.call(&json!({"type": "get_available_thinking_levels"}), START_TIMEOUT).unwrap_or_default();
    let levels = levels["levels"].as_array().into_iter().flatten();
    let levels: Vec<_> = levels.filter_map(Value::as_str).collect();
    Err(Fault::new(Code::UnsupportedOption, format!("{full} has no effort {effort}"))
        .hint(format!("it knows {}", levels.join(", "))))
}

/// Whether the extension is loaded, without which nothing would be asked.
fn check_extension(running: &Running) -> Result<(), Fault> {
    let commands =
        running.call(&json!({"type": "get_commands"}), START_TIMEOUT).map_err(|why| no_start(&why))?;
    let mut commands = commands["commands"].as_array().into_iter().flatten();
    if commands.any(|command| command["name"] == COMMAND_NAME) {
        return Ok(());
    }
    Err(Fault::new(Code::UnsupportedVersion, "this version of Pi did not load baton's extension")
        .hint(format!("`baton job logs` shows why; Pi {} is known to work", super::verified(Pi::NAME))))
}

/// The file of the session to resume. It must belong to the task's folder, because Pi works where
/// the session began.
fn session_to_resume(task: &Task, session: &str) -> Result<PathBuf, Fault> {
    let Some((file, cwd)) = recall::find(task, session) else {
        return Err(Fault::new(Code::NothingToResume, format!("Pi kept no session {session}"))
            .hint("start the job without --resume"));
    };
    if fs::canonicalize(&cwd).ok() != fs::canonicalize(&task.cwd).ok() {
        return Err(Fault::new(
            Code::UnsupportedOption,
            format!("Pi's session {session} belongs to {}", cwd.display()),
        )
        .hint(format!("resume it with --cwd {}", cwd.display())));
    }
    Ok(file)
}

/// The folder of Pi's own files.
fn agent_home(task: &Task) -> Option<PathBuf> {
    let set = task.variable("PI_CODING_AGENT_DIR").filter(|set| !set.is_empty()).map(PathBuf::from);
    set.or_else(|| task.user_home().map(|home| home.join(".pi/agent")))
}

fn not_logged_in(words: &str) -> Error {
    Error::new(Code::NotLoggedIn, words).hint("run `pi` in a terminal and `/login`, or set a provider's key")
}

fn no_start(why: &str) -> Fault {
    Fault::new(Code::BackendStart, format!("Pi took no task: {why}"))
        .hint("`baton job logs` shows its last output; check that `pi` works in a terminal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s24_nothing_of_a_prompt_is_an_argument() {
        let command = command(&Task::with_a_secret("pi"), "/nowhere/x.ts".as_ref(), None);
        let arguments: Vec<String> =
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(arguments.ends_with(&["--name".to_owned(), "baton j1".to_owned()]), "{arguments:?}");
        assert!(!arguments.iter().any(|word| word.contains("SECRET")), "{arguments:?}");
    }
}
