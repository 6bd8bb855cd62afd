//! Pi in a sandbox, against the scripted model.
//!
//! Writes the model as a provider into its home, builds its commands, finds its session files. Pi
//! needs a newer `node` than the machine may have; the cache has one.

use crate::process::write_program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agents::{Agent, Program, Session, cached_node};
use crate::model::Model;
use crate::process::Finished;
use crate::sandbox::Sandbox;
use crate::tmux::Tmux;
use crate::transcript;

/// Until the interactive screen is there.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Pi, ready to start.
#[derive(Debug)]
pub struct Pi<'a> {
    sandbox: &'a Sandbox,
}

impl<'a> Pi<'a> {
    /// Prepares the sandbox's home for Pi, unless it is prepared already. Panics when Pi is not
    /// installed.
    pub fn new(sandbox: &'a Sandbox, model: &Model) -> Pi<'a> {
        let program = Agent::Pi.locate().unwrap_or_else(|missing| panic!("{missing}"));
        install(sandbox, &program);
        let home = sandbox.path("home/.pi/agent");
        fs::create_dir_all(&home).expect("a folder in the home");
        let provider = json!({
            "baseUrl": format!("{}/v1", model.url_for(Agent::Pi)),
            "api": "openai-completions",
            "apiKey": "fake-key-of-a-test",
            "models": [{"id": "fake-1"}],
        });
        let models = json!({"providers": {"scripted": provider}}).to_string();
        fs::write(home.join("models.json"), models).expect("write Pi's models");
        Pi { sandbox }
    }

    fn command(&self, session: Session<'_>) -> Command {
        let mut command = self.sandbox.command(self.sandbox.path("bin/pi"));
        command.env("PI_OFFLINE", "1");
        command.args(["--offline", "--provider", "scripted", "--model", "fake-1"]);
        match session {
            Session::New => {}
            Session::Resume(id) => _ = command.args(["--session", id]),
            Session::Fork(id) => _ = command.args(["--fork", id]),
        }
        command
    }

    /// `pi --mode json -p`: one turn, events as JSON lines on standard output.
    pub fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        let mut command = self.command(session);
        command.args(["--mode", "json", "-p", prompt]);
        command
    }

    /// `pi --mode rpc`: commands as JSON lines on standard input, events on standard output.
    pub fn rpc(&self, session: Session<'_>) -> Command {
        let mut command = self.command(session);
        command.args(["--mode", "rpc"]);
        command
    }

    /// The command of an interactive session.
    pub fn interactive(&self, session: Session<'_>) -> Command {
        self.command(session)
    }

    /// Opens an interactive session and waits until it takes input.
    #[track_caller]
    pub fn open(&self, name: &str, session: Session<'_>) -> Tmux<'a> {
        let terminal = Tmux::start(self.sandbox, name, &self.interactive(session));
        let ready =
            |screen: &str| screen.lines().any(|line| line.contains("(auto)") && line.contains("fake-1"));
        let shown = terminal.wait_until("Pi's status line", START_LIMIT, ready);
        shown.unwrap_or_else(|error| panic!("{error}"));
        terminal
    }

    /// The files of all sessions, oldest first.
    pub fn session_files(&self) -> Vec<PathBuf> {
        transcript::files_below(&self.sandbox.path("home/.pi/agent/sessions"), ".jsonl")
    }

    /// The lines of a session's file.
    pub fn session_lines(&self, session: &str) -> Vec<Value> {
        let suffix = format!("{session}.jsonl");
        let path = self.session_files().into_iter().find(|path| path.to_string_lossy().ends_with(&suffix));
        path.map(|path| transcript::lines(&path)).unwrap_or_default()
    }
}

impl<'a> Program<'a> for Pi<'a> {
    fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        self.headless(session, prompt)
    }

    fn open(&self, session: Session<'_>) -> Tmux<'a> {
        self.open("pi", session)
    }

    fn session_id(&self, run: &Finished) -> Option<String> {
        session_id(run)
    }
}

/// Makes Pi callable in the sandbox, with its own `node`.
fn install(sandbox: &Sandbox, program: &Path) {
    let launcher = sandbox.path("bin/pi");
    if launcher.exists() {
        return;
    }
    let script = format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", cached_node().display(), program.display());
    write_program(&launcher, script.as_bytes());
}

/// The session id of a headless run, which its first line names.
pub fn session_id(run: &Finished) -> Option<String> {
    let events = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut sessions = events.into_iter().filter(|event| event["type"] == "session");
    sessions.find_map(|event| event["id"].as_str().map(ToOwned::to_owned))
}
