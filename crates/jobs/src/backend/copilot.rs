//! GitHub Copilot CLI over its agent client protocol (`copilot --acp`): JSON-RPC in lines.
//!
//! There its hooks run, so the guard sees each tool; its questions can be answered; and the prompt is no argument. What a job may do goes with
//! the process (`--allow-…`, `--deny-tool`), so the user's files stay as they are.
//!
//! Its answer to a prompt says `end_turn` also when the request to the model failed, and its notes to people come as the model's words. So the truth
//! about a turn is its transcript, which is looked into when the answer has come.

mod acp;
mod recall;

use super::child::Child;
use super::lock;
use super::{Backend, Capabilities, ReadOnly, Report, Task, Turn, tree};
use acp::Client;
use baton_core::approval::Answer;
use baton_core::job::{Allow, Fault, Observation, Snapshot};
use baton_core::{Code, Error};
use baton_store::Process;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The efforts that `--reasoning-effort` takes; whether a model has them is said when the session is opened.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// What fits into the context that it takes a model of unknown size to have: it counts the prompt's tokens, and refuses what is too much.
const PROMPT_BYTES: usize = 104 << 10;
/// How long it may take to end by itself once its input has.
const LEAVE: Duration = Duration::from_secs(2);
/// Any of these is a login.
const LOGINS: &[&str] = &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"];

/// GitHub Copilot CLI.
#[derive(Debug)]
pub struct Copilot;

impl Backend for Copilot {
    fn agent(&self) -> &'static str {
        "copilot"
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
        if !LOGINS.iter().any(set) && !files.into_iter().flatten().any(|file| file.exists()) {
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
        // What it is told in answer to a line; the child is there before its first line.
        let (tell, told) = std::sync::mpsc::channel::<Value>();
        let child = Child::start(
            &mut command(task),
            &task.folder.join("stderr"),
            move |line| {
                if let Some(answer) = lock(&of_lines).line(line, baton_mail::now()) {
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
        // It may have ended already; then that is told.
        child.write_line(&acp::hello().to_string()).ok();
        Ok(Box::new(Running { child, client, engine }))
    }

    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot> {
        recall::recall(&recall::transcript(task, session)?, &acp::prompt(&task.prompt))
    }
}

/// The command. The prompt and the session are told over its input.
fn command(task: &Task) -> Command {
    let mut command = Child::command(task);
    command.args(["--acp", "--no-auto-update"]);
    match task.allow {
        // A refusal goes before whatever is allowed.
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
    /// What does the work where the program is only a launcher: it lives on when that is killed.
    engine: Arc<Mutex<Vec<Process>>>,
}

impl Turn for Running {
    fn look(&self) -> Option<Result<Snapshot, String>> {
        None
    }

    fn answer(&self, question: &str, answer: &Answer) -> Result<(), Error> {
        // The lock is held until the answer is noted: a denial ends the turn at once. It reads its input whatever we do with its output.
        let mut client = lock(&self.client);
        let line = client.answer(question, answer)?;
        self.child.write_line(&line.to_string()).map_err(|error| {
            Error::new(Code::BackendGone, format!("Copilot does not listen any more: {error}"))
        })?;
        client.answered(question, answer);
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
        if !self.child.wait(LEAVE) {
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
    /// Its commands are in groups of their own.
    fn end(&self) {
        let below = tree::below(self.child.process());
        self.child.end(Duration::from_secs(1));
        tree::kill(&below);
    }
}
