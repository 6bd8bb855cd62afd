//! Gemini CLI in a sandbox, against the scripted model.
//!
//! Writes what lets it start without a dialog, builds its commands, finds its transcripts.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agents::{Agent, Program, Session};
use crate::claude::{add_hook, edit_json, session_id};
use crate::model::Model;
use crate::process::Finished;
use crate::sandbox::Sandbox;
use crate::tmux::Tmux;
use crate::transcript;

/// A headless run with a scripted model takes a few seconds.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Until the interactive screen is there.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Whether tools run without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permissions {
    Bypassed,
    Asked,
}

/// Gemini CLI, ready to start.
#[derive(Debug)]
pub struct Gemini<'a> {
    sandbox: &'a Sandbox,
    url: String,
    permissions: Permissions,
}

impl<'a> Gemini<'a> {
    /// Prepares the sandbox's home for Gemini CLI, unless it is prepared already. Panics when it is
    /// not installed.
    pub fn new(sandbox: &'a Sandbox, model: &Model) -> Gemini<'a> {
        let program = Agent::Gemini.locate().unwrap_or_else(|missing| panic!("{missing}"));
        sandbox.install("gemini", &program);
        fs::create_dir_all(sandbox.path("home/.gemini")).expect("a folder in the home");
        let gemini =
            Gemini { sandbox, url: model.url_for(Agent::Gemini), permissions: Permissions::Bypassed };
        if sandbox.path("home/.gemini/trustedFolders.json").exists() {
            return gemini;
        }
        gemini.edit_settings(|settings| {
            settings["security"] = json!({"auth": {"selectedType": "gemini-api-key"}});
            settings["general"] = json!({"enableAutoUpdate": false, "enableAutoUpdateNotification": false});
            settings["privacy"] = json!({"usageStatisticsEnabled": false});
            settings["telemetry"] = json!({"enabled": false});
        });
        let project = sandbox.project().canonicalize().expect("the project exists");
        edit_json(sandbox.path("home/.gemini/trustedFolders.json"), |folders| {
            folders[project.to_string_lossy().as_ref()] = "TRUST_FOLDER".into();
        });
        gemini
    }

    /// The same, but tools ask the user.
    pub fn asking(mut self) -> Self {
        self.permissions = Permissions::Asked;
        self
    }

    /// Changes `~/.gemini/settings.json`.
    pub fn edit_settings(&self, edit: impl FnOnce(&mut Value)) {
        edit_json(self.sandbox.path("home/.gemini/settings.json"), edit);
    }

    /// Adds a hook, such as `{"type":"command","command":"..."}`.
    pub fn add_hook(&self, event: &str, hook: Value) {
        self.edit_settings(|settings| add_hook(settings, event, hook));
    }

    fn command(&self, session: Session<'_>) -> Command {
        let mut command = self.sandbox.command(self.sandbox.path("bin/gemini"));
        command.env("GOOGLE_GEMINI_BASE_URL", &self.url).env("GEMINI_API_KEY", "fake-key-of-a-test");
        command.args(["-m", "gemini-2.5-flash"]);
        if self.permissions == Permissions::Bypassed {
            command.arg("--yolo");
        }
        match session {
            Session::New => {}
            Session::Resume(id) => _ = command.args(["--resume", id]),
            Session::Fork(_) => panic!("Gemini CLI has no forks"),
        }
        command
    }

    /// `gemini -p`: one turn, events as JSON lines on standard output.
    pub fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        let mut command = self.command(session);
        command.args(["-o", "stream-json", "-p", prompt]);
        command
    }

    /// Runs one headless turn to its end, which must be a good one.
    #[track_caller]
    pub fn run(&self, session: Session<'_>, prompt: &str) -> Finished {
        self.sandbox.run(&mut self.headless(session, prompt), RUN_LIMIT).expect_ok()
    }

    /// Opens an interactive session and waits until it takes input.
    #[track_caller]
    pub fn open(&self, name: &str, session: Session<'_>) -> Tmux<'a> {
        let terminal = Tmux::start(self.sandbox, name, &self.command(session));
        let ready = |screen: &str| screen.contains("Type your message");
        let shown = terminal.wait_until("Gemini CLI's input line", START_LIMIT, ready);
        shown.unwrap_or_else(|error| panic!("{error}"));
        terminal
    }

    /// The transcripts of all conversations, subagents' included, oldest first.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        transcript::files_below(&self.sandbox.path("home/.gemini/tmp"), ".jsonl")
    }
}

impl<'a> Program<'a> for Gemini<'a> {
    fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        self.headless(session, prompt)
    }

    fn open(&self, session: Session<'_>) -> Tmux<'a> {
        self.open("gemini", session)
    }

    fn session_id(&self, run: &Finished) -> Option<String> {
        session_id(run)
    }
}
