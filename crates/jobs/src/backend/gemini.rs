//! Gemini CLI: a headless run with lines of JSON as output.
//!
//! No question can be asked in such a run: tools that would need one don't exist for the model.
//! (Its other mode, `--acp`, asks, but does not run the hooks by which the guard sees a tool.) A
//! policy file at the highest level denies what a read-only job must not do. It only ever denies,
//! so the user's own rules stay.
//!
//! Its transcript does not show whether a message is a step or the end: it is written before its
//! tool calls are. So the end of a turn is kept in the job's folder.

mod trust;

use super::child::{Child, Ended};
use super::headless::{self, Listener};
use super::{Backend, Capabilities, ReadOnly, Report, Task, Turn, describe};
use baton_core::job::{Allow, Fault, Finish, Observation, Said, Snapshot, Tool, ToolState};
use baton_core::time::Moment;
use baton_core::{Code, Error, limits};
use baton_machine::{files, own};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// It reads 8 MiB of input and cuts off the rest. This much was tested.
const PROMPT_BYTES: usize = 1 << 20;
/// The variables by which a session of Gemini CLI marks its children.
const SESSION_VARIABLES: &[&str] =
    &["GEMINI_CLI", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD", "GEMINI_PLANS_DIR"];
/// Any of these is a login.
const LOGIN_VARIABLES: &[&str] = &[
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_GENAI_USE_GCA",
    "GOOGLE_GENAI_USE_VERTEXAI",
];
/// Where a login, or the name of one, may be.
const LOGIN_FILES: &[&str] = &[".gemini/oauth_creds.json", ".gemini/settings.json", ".gemini/.env", ".env"];
/// Its exit codes without a login, and in a folder that it does not trust.
const NO_LOGIN_EXIT: i32 = 41;
const NOT_TRUSTED_EXIT: i32 = 55;
/// The beginning of its error if the folder has no such session.
const NOT_RESUMED_PREFIX: &str = "Error resuming session";

/// What a read-only job must not do. Tools of MCP servers may change anything.
const READ_ONLY_POLICY: &str = r#"[[rule]]
toolName = ["run_shell_command", "write_file", "replace", "save_memory", "invoke_agent", "exit_plan_mode"]
decision = "deny"
priority = 999
denyMessage = "This job is read-only."

[[rule]]
mcpName = "*"
toolName = "*"
decision = "deny"
priority = 998
denyMessage = "This job is read-only."
"#;

#[derive(Debug)]
pub struct Gemini;

impl Gemini {
    pub(super) const NAME: &str = "gemini";
}

impl Backend for Gemini {
    fn agent(&self) -> &'static str {
        Self::NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            model: true,
            efforts: &[],
            read_only: ReadOnly::Rules,
            resume: true,
            answers: false,
            prompt_bytes: PROMPT_BYTES,
        }
    }

    fn check(&self, task: &Task) -> Result<(), Error> {
        super::check_options(self, task)?;
        let set = |name: &&str| task.variable(name).is_some_and(|value| !value.is_empty());
        let places = [home(task), Some(task.cwd.as_path())];
        let has_file = |folder: &Path| LOGIN_FILES.iter().any(|file| folder.join(file).exists());
        if !LOGIN_VARIABLES.iter().any(set) && !places.into_iter().flatten().any(has_file) {
            return Err(Error::new(Code::NotLoggedIn, "Gemini CLI has no login here")
                .hint("run `gemini` in a terminal once and log in, or set GEMINI_API_KEY"));
        }
        Ok(())
    }

    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault> {
        if let Some(session) = &task.resume
            && transcripts(task, session).is_empty()
        {
            let lost = format!("Gemini CLI kept no session {session}");
            return Err(Fault::new(Code::NothingToResume, lost).hint("start the job without --resume"));
        }
        let session = task.resume.clone().unwrap_or_else(super::uuid);
        let folder = task.folder.clone();
        let unwritable = |error: std::io::Error| {
            let place = folder.display();
            Fault::new(Code::BackendStart, format!("{place}: {error}"))
                .hint("free some space, or check its rights")
        };
        let mut command = command(task, &session);
        if task.read_only {
            let policy = task.folder.join(POLICY_FILE);
            own::rewrite(&policy)
                .and_then(|mut file| file.write_all(READ_ONLY_POLICY.as_bytes()))
                .map_err(unwritable)?;
            command.arg("--admin-policy").arg(policy);
        }
        if let Some(folders) = trust::for_worktree(task, home(task)).map_err(unwritable)? {
            command.env(trust::TRUST_FILE_VARIABLE, folders);
        }
        let mut task = task.clone();
        if names_files(&task.prompt) {
            task.put_prompt_into_file().map_err(unwritable)?;
        }
        if task.prompt_file().is_some() {
            command.arg("--include-directories").arg(&task.folder);
        }
        report(Observation::Session(session.clone()));
        let listener = Stream::new(session, task.clone());
        headless::start(&mut command, &task, &task.prompt, listener, report)
    }

    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot> {
        headless::kept_end(&task.folder, session).or_else(|| {
            // The turn was begun, and that is all that is known.
            (!transcripts(task, session).is_empty()).then(Snapshot::default)
        })
    }
}

const POLICY_FILE: &str = "read-only.toml";

/// Whether a prompt could name a file: then Gemini CLI would change the text and add that file.
fn names_files(prompt: &str) -> bool {
    let before = std::iter::once(' ').chain(prompt.chars());
    before.zip(prompt.chars()).any(|(before, c)| c == '@' && before != '\\')
}

fn home(task: &Task) -> Option<&Path> {
    let set = task.variable("GEMINI_CLI_HOME").filter(|home| !home.is_empty());
    set.map(Path::new).or_else(|| task.user_home())
}

fn command(task: &Task, session: &str) -> Command {
    let mut command = Child::command(task);
    for name in SESSION_VARIABLES {
        command.env_remove(name);
    }
    // Otherwise it starts itself again, and the process that was started is not the one that works.
    command.env("GEMINI_CLI_NO_RELAUNCH", "1");
    let mode = match task.allow {
        _ if task.read_only => "default",
        Allow::Ask => "default",
        Allow::Edits => "auto_edit",
        Allow::All => "yolo",
    };
    command.args(["--output-format", "stream-json", "--approval-mode", mode]);
    if let Some(model) = &task.model {
        command.arg(format!("--model={model}"));
    }
    let which = if task.resume.is_some() { "resume" } else { "session-id" };
    command.arg(format!("--{which}={session}"));
    command
}

/// The transcripts of a session. Their names end with the beginning of its id, and their first
/// lines name it.
fn transcripts(task: &Task, session: &str) -> Vec<PathBuf> {
    let Some(home) = home(task) else { return Vec::new() };
    let ending = format!("-{}.jsonl", session.get(..8).unwrap_or(session));
    let projects = fs::read_dir(home.join(".gemini/tmp")).into_iter().flatten().flatten();
    let chats = projects
        .flat_map(|project| fs::read_dir(project.path().join("chats")).into_iter().flatten().flatten());
    let files = chats.map(|file| file.path()).filter(|path| path.to_string_lossy().ends_with(&ending));
    files.filter(|path| first_line(path).is_some_and(|head| head["sessionId"] == session)).collect()
}

fn first_line(path: &Path) -> Option<Value> {
    let mut line = String::new();
    BufReader::new(files::open(path).ok()?.take(limits::AGENT_FILE_BYTES)).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// The last message of the model in a session, as it is written before the turn is over.
fn last_message(task: &Task, session: &str) -> Option<String> {
    let files = transcripts(task, session).into_iter();
    let newest = files.max_by_key(|file| file.metadata().and_then(|found| found.modified()).ok())?;
    let text = files::text(&newest, limits::TRANSCRIPT_BYTES).ok()?;
    let is_answer = |line: &Value| line["type"] == "gemini" && line["model"].is_string();
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let content = lines.rfind(is_answer)?["content"].take();
    content.as_str().map(str::to_owned)
}

/// A turn, by the program's output.
struct Stream {
    session: String,
    task: Task,
    /// What the model has said since the last tool.
    text: String,
    tools: Vec<Tool>,
    /// The last HTTP status in its errors.
    status: Option<u64>,
    /// Why the turn has failed, in its own words.
    failed: Option<String>,
}

impl Stream {
    fn new(session: String, task: Task) -> Self {
        Self { session, task, text: String::new(), tools: Vec::new(), status: None, failed: None }
    }

    fn result(&mut self, line: &Value) -> Vec<Observation> {
        let left = std::mem::take(&mut self.tools).into_iter();
        let mut told: Vec<Observation> = left.map(ended).collect();
        if line["status"] == "success" {
            let mut text = std::mem::take(&mut self.text);
            // An answer that broke off is begun again, and the output does not show which text
            // belongs to which.
            if let Some(last) = last_message(&self.task, &self.session)
                .filter(|last| !last.is_empty() && text.ends_with(last))
            {
                text = last;
            }
            let said = Said { text, finish: Finish::End };
            headless::keep_end(&self.task.folder, &self.session, &said);
            told.extend([Observation::Said(said), Observation::Idle]);
        } else {
            self.failed = Some(line["error"]["message"].as_str().unwrap_or_default().to_owned());
        }
        told
    }
}

fn ended(tool: Tool) -> Observation {
    Observation::Tool(Tool { state: ToolState::Ended, ..tool })
}

/// The fault for an error text, which may contain the provider's own answer.
fn fault(words: &str, status: Option<u64>, now: Moment) -> Fault {
    let inner = words.find('{').zip(words.rfind('}')).and_then(|(from, to)| words.get(from..=to));
    let answer: Option<Value> = inner.and_then(|inner| serde_json::from_str(inner).ok());
    let error = answer.as_ref().map(|answer| &answer["error"]);
    let status = error.and_then(|error| error["code"].as_u64()).or(status);
    let message = error.and_then(|error| error["message"].as_str()).unwrap_or(words);
    describe::fault("gemini", status, message, now)
}

impl Listener for Stream {
    fn line(&mut self, line: &str, _now: Moment) -> Vec<Observation> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        let text = |name: &str| line[name].as_str().unwrap_or_default();
        match text("type") {
            "init" => {
                text("session_id").clone_into(&mut self.session);
                vec![Observation::Session(self.session.clone())]
            }
            "message" if text("role") == "assistant" => {
                self.text.push_str(text("content"));
                vec![Observation::Progress(describe::line(text("content")))]
            }
            "tool_use" => {
                let said = Said { text: std::mem::take(&mut self.text), finish: Finish::ToolCalls };
                let name = text("tool_name");
                let tool =
                    describe::tool("gemini", text("tool_id"), name, &line["parameters"], ToolState::Running);
                self.tools.push(tool.clone());
                vec![Observation::Said(said), Observation::Tool(tool)]
            }
            "tool_result" => {
                let at = self.tools.iter().position(|tool| tool.call == text("tool_id"));
                at.map(|at| ended(self.tools.remove(at))).into_iter().collect()
            }
            "error" => vec![Observation::Progress(describe::line(text("message")))],
            "result" => self.result(&line),
            _ => Vec::new(),
        }
    }

    fn error_line(&mut self, line: &str, _now: Moment) -> Vec<Observation> {
        if let Some(status) = line.trim().strip_prefix("status: ") {
            self.status = status.parse().ok();
        }
        // It ignores a policy that it does not understand, and then the job would not be read-only.
        if line.contains("Policy file error") && line.contains(POLICY_FILE) {
            let fault = Fault::new(
                Code::UnsupportedVersion,
                "Gemini CLI does not understand the rules of a read-only job",
            );
            return vec![Observation::Fault(fault.hint("leave --read-only out, or take another agent"))];
        }
        let retries = line.starts_with("Attempt ") && line.contains("Retrying");
        let message = || line.split(". Retrying").next().unwrap_or(line).to_owned();
        retries.then(|| Observation::Retrying { message: message(), until: None }).into_iter().collect()
    }

    fn failure(&self, now: Moment) -> Option<Fault> {
        self.failed.as_deref().map(|words| fault(words, self.status, now))
    }

    fn ended(&mut self, ended: &Ended, now: Moment) -> Option<Fault> {
        let words = ended.last_words.trim();
        match ended.status.code()? {
            NO_LOGIN_EXIT => Some(describe::fault("gemini", Some(401), words, now)),
            NOT_TRUSTED_EXIT => Some(Fault::new(Code::BadFolder, "Gemini CLI does not trust that folder").hint(
                "run `gemini` there once and trust the folder, or set GEMINI_CLI_TRUST_WORKSPACE=true for the job",
            )),
            _ if words.contains(NOT_RESUMED_PREFIX) => {
                Some(Fault::new(Code::NothingToResume, "Gemini CLI has no such session in that folder").hint(
                    "its sessions belong to the folder that they began in: resume it with --cwd, or start the job without --resume",
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_could_name_a_file_is_known() {
        assert!(names_files("mail@example.org"));
        assert!(names_files("see @file"));
        assert!(names_files("\\@a @b"));
        assert!(!names_files("see \\@file"));
        assert!(!names_files("nothing"));
    }

    #[test]
    fn the_providers_answer_is_found_in_the_words() {
        let words =
            r#"[API Error: {"error":{"code":401,"status":"UNAUTHENTICATED","message":"API key not valid"}}]"#;
        let fault = fault(words, None, Moment(0));
        assert_eq!((fault.error.code(), fault.error.message()), (Code::NotLoggedIn, "API key not valid"));
        let quota =
            super::fault("[API Error: You have exhausted your daily quota on this model.]", None, Moment(0));
        assert_eq!(quota.error.code(), Code::RateLimited);
    }
}
