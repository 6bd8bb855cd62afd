//! GitHub Copilot CLI in a sandbox, against the scripted model.
//!
//! All of its configuration for that is in the environment; the test chooses its hooks and servers.
//! It unpacks itself into a cache of about 230 MB, which all sandboxes share.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::agents::{Agent, Program, Session, cache_dir};
use crate::model::Model;
use crate::process::Finished;
use crate::sandbox::Sandbox;
use crate::tmux::Tmux;
use crate::transcript;

/// Until the interactive screen is there.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Copilot, ready to start.
#[derive(Debug)]
pub struct Copilot<'a> {
    sandbox: &'a Sandbox,
    url: String,
    /// Whether tools wait for the user.
    asks: bool,
}

impl<'a> Copilot<'a> {
    /// Prepares the sandbox's home for Copilot. Panics when it is not installed.
    pub fn new(sandbox: &'a Sandbox, model: &Model) -> Copilot<'a> {
        let program = Agent::Copilot.locate().unwrap_or_else(|missing| panic!("{missing}"));
        sandbox.install("copilot", &program);
        fs::create_dir_all(sandbox.path("home/.copilot")).expect("a folder in the home");
        Copilot { sandbox, url: model.url_for(Agent::Copilot), asks: false }
    }

    /// The same, but it asks the user before it runs a tool.
    pub fn asking(self) -> Copilot<'a> {
        Copilot { asks: true, ..self }
    }

    /// Turns its extensions on, as a user does.
    pub fn turn_extensions_on(&self) {
        let on = r#"{"enabledFeatureFlags": {"EXTENSIONS": true}}"#;
        fs::write(self.sandbox.path("home/.copilot/settings.json"), on).expect("its settings");
    }

    fn command(&self, session: Session<'_>) -> Command {
        let mut command = self.sandbox.command(self.sandbox.path("bin/copilot"));
        command
            .env("COPILOT_OFFLINE", "true")
            .env("COPILOT_AUTO_UPDATE", "false")
            .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", self.url))
            .env("COPILOT_PROVIDER_TYPE", "openai")
            .env("COPILOT_PROVIDER_WIRE_API", "completions")
            .env("COPILOT_PROVIDER_API_KEY", "fake-key-of-a-test")
            .env("COPILOT_MODEL", "scripted")
            .env("XDG_CACHE_HOME", cache_dir().join("unpacked"));
        command.args(["--no-auto-update", "--disable-client-telemetry"]);
        if !self.asks {
            command.arg("--allow-all-tools");
        }
        match session {
            Session::New => {}
            Session::Resume(id) => _ = command.arg(format!("--resume={id}")),
            Session::Fork(_) => panic!("Copilot has no forks"),
        }
        command
    }

    /// `copilot -p`: one turn, events as JSON lines on standard output.
    pub fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        let mut command = self.command(session);
        command.args(["--output-format", "json", "-p", prompt]);
        command
    }

    /// Opens an interactive session, trusts the folder, and waits until it takes input.
    #[track_caller]
    pub fn open(&self, name: &str, session: Session<'_>) -> Tmux<'a> {
        let terminal = Tmux::start(self.sandbox, name, &self.command(session));
        let asked = |screen: &str| screen.contains("Do you trust the files in this folder?");
        let ready = |screen: &str| screen.contains("/ commands") && !asked(screen);
        let shown = terminal
            .wait_until("the question of trust", START_LIMIT, |screen| asked(screen) || ready(screen));
        if asked(&shown.unwrap_or_else(|error| panic!("{error}"))) {
            terminal.press(&["Enter"]);
        }
        let shown = terminal.wait_until("Copilot's input line", START_LIMIT, ready);
        shown.unwrap_or_else(|error| panic!("{error}"));
        terminal
    }

    /// The transcripts of all sessions, oldest first.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        transcript::files_below(&self.sandbox.path("home/.copilot/session-state"), "events.jsonl")
    }
}

impl<'a> Program<'a> for Copilot<'a> {
    fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        self.headless(session, prompt)
    }

    fn open(&self, session: Session<'_>) -> Tmux<'a> {
        self.open("copilot", session)
    }

    fn session_id(&self, run: &Finished) -> Option<String> {
        let events = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.into_iter().find_map(|event| event["sessionId"].as_str().map(ToOwned::to_owned))
    }
}
