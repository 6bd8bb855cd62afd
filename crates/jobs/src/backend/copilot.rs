//! GitHub Copilot CLI over the agent client protocol (`copilot --acp`): JSON-RPC in lines.
//!
//! In this mode its hooks run, so the guard sees each tool. Its questions can be answered, and the
//! prompt is no argument. What a job may do goes with the process (`--allow-…`, `--deny-tool`), so
//! the user's files stay as they are.
//!
//! Its answer to a prompt says `end_turn` even if the request to the model failed, and its notes to
//! people look like the model's words. So its transcript is the truth about a turn, and is read
//! when the answer has come.

mod acp;
mod recall;

use super::child::Child;
use super::lock;
use super::{Backend, Capabilities, ReadOnly, Report, Task, Turn, tree};
use acp::Client;
use baton_core::approval::{Answer, Question};
use baton_core::job::{Allow, Fault, Observation, Snapshot};
use baton_core::process::Process;
use baton_core::{Code, Error};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The efforts that `--reasoning-effort` takes. Opening the session shows whether the model has
/// them.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// What fits into the context that it assumes for a model of unknown size: it counts the prompt's
/// tokens, and refuses too many.
const PROMPT_BYTES: usize = 104 << 10;
/// How long it may take to exit after its input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Any of these is a login.
const LOGIN_VARIABLES: &[&str] =
    &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"];

/// GitHub Copilot CLI.
#[derive(Debug)]
pub struct Copilot;

impl Copilot {
    pub(super) const NAME: &str = "copilot";
}

impl Backend for Copilot {
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
        let set = |name: &&str| task.variable(name).is_some_and(|value| !value.is_empty());
        let files = [
            recall::home(task).map(|folder| folder.join("config.json")),
            task.user_home().map(|home| home.join(".config/gh/hosts.yml")),
        ];
        if !LOGIN_VARIABLES.iter().any(set) && !files.into_iter().flatten().any(|file| file.exists()) {
            return Err(Error::new(Code::NotLoggedIn, "Copilot has no login here")
                .hint("run `copilot login` in a terminal once, or set COPILOT_GITHUB_TOKEN"));
        }
        Ok(())
    }

    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault> {
        if let Some(session) = &task.resume
            && recall::transcript(task, session).is_none()
        {
            let lost = format!("Copilot kept no session {session}");
            return Err(Fault::new(Code::NothingToResume, lost).hint("start the job without --resume"));
        }
        if let Some(session) = &task.resume {
            report(Observation::Session(session.clone()));
        }
        let client = Arc::new(Mutex::new(Client::new(task, Arc::clone(&report))));
        let (of_lines, of_end) = (Arc::clone(&client), Arc::clone(&client));
        // The answers to its lines. The child exists before its first line.
        let (tell, told) = std::sync::mpsc::channel::<Value>();
        let child = Child::start(
            &mut command(task),
            &task.folder.join("stderr"),
            move |line| {
                if let Some(answer) = lock(&of_lines).line(line, baton_machine::clock::now()) {
                    tell.send(answer).ok();
                }
            },
            move |ended| lock(&of_end).ended(&ended.in_words()),
        );
        let child = child.map_err(|error| {
            Fault::new(Code::BackendStart, format!("{}: {error}", task.program.display()))
                .hint("check that `copilot --version` works in a terminal")
        })?;
        let writer = Arc::clone(&child);
        let engine = Arc::new(Mutex::new(Vec::new()));
        let found = Arc::clone(&engine);
        std::thread::spawn(move || {
            for line in told {
                if lock(&found).is_empty() {
                    *lock(&found) = tree::below(writer.process());
                }
                if writer.write_line(&line.to_string()).is_err() {
                    return;
                }
            }
        });
        // If it has ended already, its end is reported.
        child.write_line(&acp::hello().to_string()).ok();
        Ok(Box::new(Running { child, client, engine }))
    }

    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot> {
        recall::recall(&recall::transcript(task, session)?, &acp::prompt(&task.prompt))
    }
}

/// The command. The prompt and the session go over its input.
fn command(task: &Task) -> Command {
    let mut command = Child::command(task);
    command.args(["--acp", "--no-auto-update"]);
    match task.allow {
        // A denial goes before whatever is allowed.
        _ if task.read_only => _ = command.args(["--deny-tool=write", "--deny-tool=shell"]),
        Allow::Ask => {}
        Allow::Edits => _ = command.arg("--allow-tool=write"),
        Allow::All => _ = command.arg("--allow-all"),
    }
    if let Some(model) = &task.model {
        command.arg(format!("--model={model}"));
    }
    if let Some(effort) = &task.effort {
        command.arg(format!("--reasoning-effort={effort}"));
    }
    command
}

/// A running `copilot --acp`.
struct Running {
    child: Arc<Child>,
    client: Arc<Mutex<Client>>,
    /// The processes that do the work if the program is only a launcher. They live on when the
    /// launcher is killed.
    engine: Arc<Mutex<Vec<Process>>>,
}

impl Turn for Running {
    fn look(&self) -> Option<Result<Snapshot, String>> {
        None
    }

    fn answer(&self, question: &Question, answer: &Answer) -> Result<(), Error> {
        // The lock is held until the answer is recorded, because a denial ends the turn at once.
        // Copilot reads its input even if its output is not read.
        let mut client = lock(&self.client);
        let line = client.answer(question, answer)?;
        self.child.write_line(&line.to_string()).map_err(|error| {
            Error::new(Code::BackendGone, format!("Copilot does not listen any more: {error}"))
        })?;
        client.answered(&question.id, answer);
        Ok(())
    }

    fn abort(&self) -> Result<(), String> {
        let session = lock(&self.client).aborting();
        match session {
            Some(session) => {
                let cancel =
                    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
                self.child.write_line(&cancel.to_string()).map_err(|error| error.to_string())
            }
            // There is no turn yet.
            None => {
                self.end();
                Ok(())
            }
        }
    }

    fn root(&self) -> Option<Process> {
        (!self.child.is_over()).then(|| self.child.process())
    }

    fn close(&self) {
        lock(&self.client).closing();
        self.child.close_input();
        if !self.child.wait(EXIT_TIMEOUT) {
            self.end();
        }
        let engine = lock(&self.engine).clone();
        for process in &engine {
            tree::kill(&tree::below(*process));
        }
        tree::kill(&engine);
    }
}

impl Running {
    /// Its commands are in their own groups.
    fn end(&self) {
        let below = tree::below(self.child.process());
        self.child.end(Duration::from_secs(1));
        tree::kill(&below);
    }
}
