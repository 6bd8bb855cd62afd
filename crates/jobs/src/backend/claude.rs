//! Claude Code: `claude -p` with lines of JSON both ways.
//!
//! It asks for permissions over the same streams (`--permission-prompt-tool stdio`). What its own
//! rules allow or deny is not asked. What they or a hook want confirmed is always asked. The rest
//! is answered by what the job may do. So nothing is bypassed, and what a user denies stays denied.
//! The turn is over when it says `result` and nothing of the turn runs in the background. Until
//! then a `result` is only a step, because Claude Code goes on when a background task ends.

mod read_only;
mod recall;
mod stream;

use super::child::Child;
use super::lock;
use super::{Backend, Capabilities, ReadOnly, Report, Task, Turn, tree};
use baton_core::approval::{Answer, Question};
use baton_core::job::{Allow, Fault, Observation, Snapshot};
use baton_core::process::Process;
use baton_core::{Code, Error};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use stream::Stream;

/// The efforts that `--effort` takes.
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
/// The longest prompt that was tested.
const PROMPT_BYTES: usize = 1 << 20;
/// How long it may take to exit after its input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for background commands once the model has nothing more to say: they may be
/// servers. Claude Code itself waits this long, unless its variable says otherwise (in
/// milliseconds, 0 for no limit).
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(600);
const BACKGROUND_VARIABLE: &str = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS";
/// Any of these is a login.
const LOGIN_VARIABLES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

#[derive(Debug)]
pub struct Claude;

impl Claude {
    pub(super) const NAME: &str = "claude";
}

impl Backend for Claude {
    fn agent(&self) -> &'static str {
        Self::NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            model: true,
            efforts: EFFORTS,
            read_only: ReadOnly::Rules,
            resume: true,
            answers: true,
            prompt_bytes: PROMPT_BYTES,
        }
    }

    fn check(&self, task: &Task) -> Result<(), Error> {
        super::check_options(self, task)?;
        if is_logged_out(task) {
            return Err(Error::new(Code::NotLoggedIn, "Claude Code has no login here")
                .hint("run `claude` in a terminal once and log in, or set ANTHROPIC_API_KEY"));
        }
        Ok(())
    }

    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault> {
        if let Some(session) = &task.resume
            && recall::transcript(task, session).is_none()
        {
            let lost = format!("Claude Code kept no session {session}");
            return Err(Fault::new(Code::NothingToResume, lost).hint("start the job without --resume"));
        }
        let session = task.resume.clone().unwrap_or_else(super::uuid);
        report(Observation::Session(session.clone()));
        let stream = Arc::new(Mutex::new(Stream::new(task.allow, task.read_only, Arc::clone(&report))));
        let (of_lines, of_end) = (Arc::clone(&stream), Arc::clone(&stream));
        // Before the program could report its end.
        report(Observation::Busy);
        let patience = patience_for_commands(task);
        // The answers to its lines. The child exists before its first line.
        let (tell, told) = std::sync::mpsc::channel::<Value>();
        let child = Child::start(
            &mut command(task, &session),
            &task.folder.join("stderr"),
            move |line| {
                let mut stream = lock(&of_lines);
                for answer in stream.line(line, baton_machine::clock::now()) {
                    tell.send(answer).ok();
                }
                if let Some((result, patience)) = stream.waits_for_commands().zip(patience) {
                    wait_for_commands(Arc::downgrade(&of_lines), result, patience);
                }
            },
            move |ended| lock(&of_end).ended(&ended.in_words()),
        );
        let child = child.map_err(|error| {
            Fault::new(Code::BackendStart, format!("{}: {error}", task.program.display()))
                .hint("check that `claude --version` works in a terminal")
        })?;
        let writer = Arc::clone(&child);
        std::thread::spawn(move || {
            for answer in told {
                if writer.write_line(&answer.to_string()).is_err() {
                    return;
                }
            }
        });
        let turn = Box::new(Running { child, stream });
        // If it has ended already, its end is reported.
        turn.child.write_line(&message(&task.prompt).to_string()).ok();
        Ok(turn)
    }

    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot> {
        recall::recall(task, session)
    }
}

/// How long to wait for background commands; `None` for no limit.
fn patience_for_commands(task: &Task) -> Option<Duration> {
    let set = task.variable(BACKGROUND_VARIABLE).and_then(|value| value.to_str()?.trim().parse().ok());
    Some(set.map_or(BACKGROUND_TIMEOUT, Duration::from_millis)).filter(|patience| !patience.is_zero())
}

/// Ends the turn after a while if only background commands are left of it.
fn wait_for_commands(stream: Weak<Mutex<Stream>>, result: u64, patience: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(patience);
        if let Some(stream) = stream.upgrade() {
            lock(&stream).stop_waiting(result);
        }
    });
}

/// The command, without the prompt.
fn command(task: &Task, session: &str) -> Command {
    let mut command = Child::command(task);
    command.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    command.args(["--permission-prompt-tool", "stdio"]);
    let mode = if task.allow == Allow::Edits && !task.read_only { "acceptEdits" } else { "default" };
    command.args(["--permission-mode", mode]);
    if task.read_only {
        // Otherwise git would write its index when it is asked for the status.
        command.env("GIT_OPTIONAL_LOCKS", "0");
        command.arg(format!("--tools={}", read_only::TOOLS.join(",")));
        command.arg(format!("--settings={}", read_only::settings()));
    }
    if task.prompt_file().is_some() {
        command.arg(format!("--add-dir={}", task.folder.display()));
    }
    if !task.label.is_empty() {
        command.arg(format!("--name={}", task.label));
    }
    if let Some(model) = &task.model {
        command.arg(format!("--model={model}"));
    }
    if let Some(effort) = &task.effort {
        command.arg(format!("--effort={effort}"));
    }
    let which = if task.resume.is_some() { "resume" } else { "session-id" };
    command.arg(format!("--{which}={session}"));
    command
}

/// The prompt as a line. Claude Code searches the last block of a message for commands (`/`) and
/// files (`@`), so another block follows a prompt that could contain one.
fn message(prompt: &str) -> Value {
    let mut blocks = vec![json!({"type": "text", "text": prompt})];
    if prompt.trim_start().starts_with('/') || prompt.contains('@') {
        blocks.push(json!({"type": "text", "text": "(That is the whole task.)"}));
    }
    json!({"type": "user", "message": {"role": "user", "content": blocks}})
}

/// Whether there is certainly no login. Only the existence of files counts. If its configuration
/// exists, nothing is certain: it may name a key or a helper, and on macOS the login is in the
/// keychain.
fn is_logged_out(task: &Task) -> bool {
    let config = recall::config_folder(task);
    let has = |name: &str| task.variable(name).is_some_and(|value| !value.is_empty());
    let files = [
        config.as_ref().map(|folder| folder.join(".credentials.json")),
        config.as_ref().map(|folder| folder.join("settings.json")),
        config.map(|folder| folder.join(".claude.json")),
        task.user_home().map(|home| home.join(".claude.json")),
    ];
    cfg!(not(target_os = "macos"))
        && !LOGIN_VARIABLES.iter().any(|name| has(name))
        && !files.into_iter().flatten().any(|file| file.exists())
}

/// A running `claude -p`.
struct Running {
    child: Arc<Child>,
    stream: Arc<Mutex<Stream>>,
}

impl Turn for Running {
    fn look(&self) -> Option<Result<Snapshot, String>> {
        None
    }

    fn answer(&self, question: &Question, answer: &Answer) -> Result<(), Error> {
        // The lock is not held during the write, because the output is read under the same lock.
        let answered = lock(&self.stream).answer(question, answer)?;
        if let Some(line) = &answered.line {
            self.child.write_line(&line.to_string()).map_err(|error| {
                Error::new(Code::BackendGone, format!("Claude Code does not listen any more: {error}"))
            })?;
        }
        lock(&self.stream).answered(answered);
        Ok(())
    }

    fn abort(&self) -> Result<(), String> {
        lock(&self.stream).aborting();
        let interrupt = json!({"type": "control_request", "request_id": "baton-abort",
            "request": {"subtype": "interrupt"}});
        self.child.write_line(&interrupt.to_string()).map_err(|error| error.to_string())
    }

    fn root(&self) -> Option<Process> {
        (!self.child.is_over()).then(|| self.child.process())
    }

    fn close(&self) {
        lock(&self.stream).closing();
        self.child.close_input();
        if !self.child.wait(EXIT_TIMEOUT) {
            // Its commands are in their own groups.
            let below = tree::below(self.child.process());
            self.child.end(Duration::from_secs(1));
            tree::kill(&below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s24_nothing_of_a_prompt_is_an_argument() {
        let task = Task::with_a_secret("claude");
        let arguments: Vec<String> =
            command(&task, "s").get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(arguments.contains(&"--name=baton j1".to_owned()), "{arguments:?}");
        assert!(!arguments.iter().any(|word| word.contains("SECRET")), "{arguments:?}");
    }

    #[test]
    fn a_prompt_that_could_hold_a_command_is_not_the_last_block() {
        let blocks = |prompt: &str| message(prompt)["message"]["content"].as_array().map_or(0, Vec::len);
        assert_eq!(blocks("do /that"), 1);
        assert_eq!(blocks(" /clear"), 2);
        assert_eq!(blocks("read @file"), 2);
        assert_eq!(message(" /x")["message"]["content"][0]["text"], " /x");
    }
}
