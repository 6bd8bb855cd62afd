//! Claude Code in a sandbox, against the scripted model.
//!
//! Writes what lets it start without a dialog, builds its commands, finds its transcripts. What
//! hooks and servers it gets is the test's business.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agents::{Agent, Program, Session};
use crate::model::Model;
use crate::process::Finished;
use crate::sandbox::Sandbox;
use crate::tmux::Tmux;
use crate::transcript;

/// A key that no service knows. Its last 20 characters are approved in the configuration.
const FAKE_KEY: &str = "fake-key-of-a-test-0123456789abcdefghij";

/// A headless run with a scripted model takes a few seconds.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Until the interactive screen is there.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Whether tools run without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permissions {
    /// All tools run.
    Bypassed,
    /// The user is asked.
    Asked,
}

/// Claude Code, ready to start.
#[derive(Debug)]
pub struct Claude<'a> {
    sandbox: &'a Sandbox,
    url: String,
    permissions: Permissions,
}

impl<'a> Claude<'a> {
    /// Prepares the sandbox's home for Claude Code. Panics when it is not installed.
    pub fn new(sandbox: &'a Sandbox, model: &Model) -> Claude<'a> {
        let program = Agent::Claude.locate().unwrap_or_else(|missing| panic!("{missing}"));
        sandbox.install("claude", &program);
        let claude = Claude { sandbox, url: model.url(), permissions: Permissions::Bypassed };
        fs::create_dir_all(sandbox.path("home/.claude")).expect("a folder in the home");
        let project = sandbox.project().canonicalize().expect("the project exists");
        claude.edit_config(|config| {
            config["hasCompletedOnboarding"] = true.into();
            config["bypassPermissionsModeAccepted"] = true.into();
            config["customApiKeyResponses"] =
                json!({"approved": [&FAKE_KEY[FAKE_KEY.len() - 20..]], "rejected": []});
            config["projects"][project.to_string_lossy().as_ref()] =
                json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
        });
        claude
    }

    /// The same, but tools ask the user.
    pub fn asking(mut self) -> Self {
        self.permissions = Permissions::Asked;
        self
    }

    /// Changes `~/.claude.json`.
    pub fn edit_config(&self, edit: impl FnOnce(&mut Value)) {
        edit_json(self.sandbox.path("home/.claude.json"), edit);
    }

    /// Changes `~/.claude/settings.json`.
    pub fn edit_settings(&self, edit: impl FnOnce(&mut Value)) {
        edit_json(self.sandbox.path("home/.claude/settings.json"), edit);
    }

    /// Adds a hook, such as `{"type":"command","command":"..."}`, for all tools if the event has
    /// tools.
    pub fn add_hook(&self, event: &str, hook: Value) {
        self.edit_settings(|settings| add_hook(settings, event, hook));
    }

    /// Adds an MCP server for the user.
    pub fn add_mcp_server(&self, name: &str, program: &str, arguments: &[&str]) {
        let server = json!({"type": "stdio", "command": program, "args": arguments});
        self.edit_config(|config| config["mcpServers"][name] = server);
    }

    fn command(&self, session: Session<'_>) -> Command {
        let mut command = self.sandbox.command(self.sandbox.path("bin/claude"));
        command.env("ANTHROPIC_BASE_URL", &self.url).env("ANTHROPIC_API_KEY", FAKE_KEY);
        // IS_SANDBOX lets it bypass permissions as root, which a namespace makes of everyone.
        for switch in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_TELEMETRY",
            "IS_SANDBOX",
        ] {
            command.env(switch, "1");
        }
        match self.permissions {
            Permissions::Bypassed => command.arg("--dangerously-skip-permissions"),
            Permissions::Asked => command.args(["--permission-mode", "manual"]),
        };
        match session {
            Session::New => {}
            Session::Resume(id) => _ = command.args(["--resume", id]),
            Session::Fork(id) => _ = command.args(["--resume", id, "--fork-session"]),
        }
        command
    }

    /// `claude -p`: one turn, events as JSON lines on standard output.
    pub fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        let mut command = self.command(session);
        command.args(["--output-format", "stream-json", "--verbose", "-p", prompt]);
        command
    }

    /// The command of an interactive session.
    pub fn interactive(&self, session: Session<'_>) -> Command {
        self.command(session)
    }

    /// Runs one headless turn to its end, which must be a good one.
    #[track_caller]
    pub fn run(&self, session: Session<'_>, prompt: &str) -> Finished {
        self.sandbox.run(&mut self.headless(session, prompt), RUN_LIMIT).expect_ok()
    }

    /// Opens an interactive session and waits until it takes input.
    #[track_caller]
    pub fn open(&self, name: &str, session: Session<'_>) -> Tmux<'a> {
        let terminal = Tmux::start(self.sandbox, name, &self.interactive(session));
        let ready = |screen: &str| {
            screen.contains("Claude Code v") && screen.lines().any(|line| line.starts_with('❯'))
        };
        let shown = terminal.wait_until("Claude Code's input line", START_LIMIT, ready);
        shown.unwrap_or_else(|error| panic!("{error}"));
        terminal
    }

    /// The transcripts of all main conversations, oldest first.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let mut files = transcript::files_below(&self.sandbox.path("home/.claude/projects"), ".jsonl");
        files.retain(|path| !path.components().any(|part| part.as_os_str() == "subagents"));
        files
    }

    /// The lines of a session's transcript.
    pub fn transcript(&self, session: &str) -> Vec<Value> {
        let name = format!("{session}.jsonl");
        let path = self.transcripts().into_iter().find(|path| path.ends_with(&name));
        path.map(|path| transcript::lines(&path)).unwrap_or_default()
    }

    /// The session's entry in the registry of running sessions, `~/.claude/sessions/<pid>.json`.
    pub fn registry(&self, session: &str) -> Option<Value> {
        let files = transcript::files_below(&self.sandbox.path("home/.claude/sessions"), ".json");
        let entries = files.iter().filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok());
        entries.into_iter().find(|entry: &Value| entry["sessionId"] == session)
    }
}

impl<'a> Program<'a> for Claude<'a> {
    fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        self.headless(session, prompt)
    }

    fn open(&self, session: Session<'_>) -> Tmux<'a> {
        self.open("claude", session)
    }

    fn session_id(&self, run: &Finished) -> Option<String> {
        session_id(run)
    }
}

/// The session id of a headless run.
pub fn session_id(run: &Finished) -> Option<String> {
    let events = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.into_iter().find_map(|event| event["session_id"].as_str().map(ToOwned::to_owned))
}

/// Appends a hook in the format that Claude Code and Codex share.
pub(crate) fn add_hook(settings: &mut Value, event: &str, hook: Value) {
    let mut group = json!({"hooks": [hook]});
    if event.contains("ToolUse") || event == "PermissionRequest" {
        group["matcher"] = "*".into();
    }
    let groups = &mut settings["hooks"][event];
    match groups.as_array_mut() {
        Some(groups) => groups.push(group),
        None => *groups = json!([group]),
    }
}

/// Changes a JSON file, which need not exist.
pub(crate) fn edit_json(path: PathBuf, edit: impl FnOnce(&mut Value)) {
    let mut value = match fs::read(&path) {
        Ok(text) => {
            serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        }
        Err(_) => json!({}),
    };
    edit(&mut value);
    fs::write(&path, value.to_string()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
