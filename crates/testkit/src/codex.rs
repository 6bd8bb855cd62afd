//! Codex in a sandbox, against the scripted model.
//!
//! Writes a configuration with the model as its provider, builds its commands, finds its rollouts.
//! Interactive sessions run without Codex's daemon, which would outlive the test and copy itself
//! into the sandbox.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agents::{Agent, Program, Session};
use crate::claude::{add_hook, edit_json};
use crate::model::Model;
use crate::process::Finished;
use crate::sandbox::Sandbox;
use crate::tmux::Tmux;
use crate::transcript;

/// A headless run with a scripted model takes about a second.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Until the interactive screen is there.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Whether hooks must be trusted in the configuration to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookTrust {
    /// As for a user: hooks that are not trusted are skipped, silently.
    Needed,
    /// All hooks run.
    Bypassed,
}

/// Codex, ready to start.
#[derive(Debug)]
pub struct Codex<'a> {
    sandbox: &'a Sandbox,
    trust: HookTrust,
    /// Whether commands wait for the user, in interactive sessions.
    asks: bool,
    /// Whether its sessions run in the daemon that it starts, as they do for people.
    daemon: bool,
}

impl<'a> Codex<'a> {
    /// Prepares the sandbox's home for Codex, unless it is prepared already. Panics when Codex is
    /// not installed.
    pub fn new(sandbox: &'a Sandbox, model: &Model) -> Codex<'a> {
        let program = Agent::Codex.locate().unwrap_or_else(|missing| panic!("{missing}"));
        sandbox.install("codex", &program);
        fs::create_dir_all(sandbox.path("home/.codex")).expect("a folder in the home");
        let codex = Codex { sandbox, trust: HookTrust::Needed, asks: false, daemon: false };
        if sandbox.path("home/.codex/config.toml").exists() {
            return codex;
        }
        let project = sandbox.project().canonicalize().expect("the project exists");
        let (url, project) = (quoted(&format!("{}/v1", model.url())), quoted(&project.to_string_lossy()));
        codex.append_config(&format!(
            "model = \"scripted\"\n\
             model_provider = \"scripted\"\n\
             approval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\n\
             [model_providers.scripted]\n\
             name = \"scripted\"\n\
             base_url = {url}\n\
             env_key = \"SCRIPTED_KEY\"\n\
             wire_api = \"responses\"\n\
             [features]\n\
             plugins = false\n\
             [analytics]\n\
             enabled = false\n\
             [projects.{project}]\n\
             trust_level = \"trusted\"\n"
        ));
        codex
    }

    /// The same, but hooks run without being trusted.
    pub fn trusting_hooks(mut self) -> Self {
        self.trust = HookTrust::Bypassed;
        self
    }

    /// The same, but in interactive sessions a command that asks to leave the sandbox waits for the
    /// user.
    pub fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    /// The same, but its sessions run in a daemon, and outlive their terminals.
    pub fn in_daemon(mut self) -> Self {
        self.daemon = true;
        self
    }

    /// Adds to the end of `config.toml`.
    pub fn append_config(&self, toml: &str) {
        let path = self.sandbox.path("home/.codex/config.toml");
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(toml.as_bytes())).expect("write Codex's configuration");
    }

    /// Adds a hook to `hooks.json`, such as `{"type":"command","command":"..."}`.
    pub fn add_hook(&self, event: &str, hook: Value) {
        edit_json(self.sandbox.path("home/.codex/hooks.json"), |hooks| add_hook(hooks, event, hook));
    }

    /// Adds an MCP server.
    pub fn add_mcp_server(&self, name: &str, program: &str, arguments: &[&str]) {
        let program = quoted(program);
        let arguments = json!(arguments);
        self.append_config(&format!("[mcp_servers.{name}]\ncommand = {program}\nargs = {arguments}\n"));
    }

    fn command(&self) -> Command {
        let mut command = self.sandbox.command(self.sandbox.path("bin/codex"));
        command.env("SCRIPTED_KEY", "fake-key-of-a-test").env("CODEX_HOME", self.sandbox.path("home/.codex"));
        command
    }

    fn trust_flag(&self) -> Option<&'static str> {
        (self.trust == HookTrust::Bypassed).then_some("--dangerously-bypass-hook-trust")
    }

    /// `codex exec`: one turn, events as JSON lines on standard output.
    pub fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        let mut command = self.command();
        command.args(["exec", "--json"]).args(self.trust_flag());
        match session {
            Session::New => {}
            Session::Resume(id) => _ = command.args(["resume", id]),
            Session::Fork(id) => _ = command.args(["fork", id]),
        }
        command.arg(prompt);
        command
    }

    /// The command of an interactive session, without the daemon.
    pub fn interactive(&self, session: Session<'_>) -> Command {
        let mut command = self.command();
        command.args((!self.daemon).then_some("--no-daemon")).args(self.trust_flag());
        if self.asks {
            command.args(["--ask-for-approval", "on-request", "--sandbox", "read-only"]);
        }
        match session {
            Session::New => {}
            Session::Resume(id) => _ = command.args(["resume", id]),
            Session::Fork(id) => _ = command.args(["fork", id]),
        }
        command
    }

    /// Runs one headless turn to its end, which must be a good one.
    #[track_caller]
    pub fn run(&self, session: Session<'_>, prompt: &str) -> Finished {
        self.sandbox.run(&mut self.headless(session, prompt), RUN_LIMIT).expect_ok()
    }

    /// Opens an interactive session and waits until it takes input. Its session, and so its
    /// `SessionStart` hook, begins with the first prompt.
    #[track_caller]
    pub fn open(&self, name: &str, session: Session<'_>) -> Tmux<'a> {
        let terminal = Tmux::start(self.sandbox, name, &self.interactive(session));
        let ready =
            |screen: &str| screen.contains("scripted") && screen.lines().any(|line| line.starts_with('›'));
        let shown = terminal.wait_until("Codex's input line", START_LIMIT, ready);
        shown.unwrap_or_else(|error| panic!("{error}"));
        terminal
    }

    /// The rollouts of all threads, subagents' included, oldest first.
    pub fn rollouts(&self) -> Vec<PathBuf> {
        transcript::files_below(&self.sandbox.path("home/.codex/sessions"), ".jsonl")
    }

    /// The lines of a thread's rollout.
    pub fn rollout(&self, thread: &str) -> Vec<Value> {
        let suffix = format!("{thread}.jsonl");
        let path = self.rollouts().into_iter().find(|path| path.to_string_lossy().ends_with(&suffix));
        path.map(|path| transcript::lines(&path)).unwrap_or_default()
    }
}

impl<'a> Program<'a> for Codex<'a> {
    fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        self.headless(session, prompt)
    }

    fn open(&self, session: Session<'_>) -> Tmux<'a> {
        self.open("codex", session)
    }

    fn session_id(&self, run: &Finished) -> Option<String> {
        thread_id(run)
    }
}

/// The thread id of a headless run, which is the session id of its hooks.
pub fn thread_id(run: &Finished) -> Option<String> {
    let events = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.into_iter().find_map(|event| event["thread_id"].as_str().map(ToOwned::to_owned))
}

/// A TOML basic string: JSON's escapes are a subset of TOML's.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}
