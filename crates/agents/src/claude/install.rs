//! What baton puts into Claude Code's configuration: hooks, an MCP server, and for the user a slash command and a subagent.
//! For the user: `~/.claude/settings.json` and `~/.claude.json` (both under `$CLAUDE_CONFIG_DIR`, if that
//! is set). For a project: `.claude/settings.json` and `.mcp.json` in its directory.
//! `hook_rows` is the table to change when the set of hooks changes. Pure: bytes in, edits out.

use serde_json::Value;
use std::path::{Path, PathBuf};

use super::tools::FAILURE;
use crate::config::json::{Bom, Dialect, Reader};
use crate::install::delegation::{self, Part};
use crate::install::hooks::{HELD_SECONDS, HookSet};
use crate::install::server::JsonServer;
use crate::install::{
    Current, FileEdit, Form, Guard, HookRow, Install, InstallError, OwnCommand, Records, SERVER, Scope,
    Server, Target, Trust, plain, summary,
};

const AGENT: &str = "claude";
const TRUST: &str = "Claude Code asks each person once before it starts a server from .mcp.json: run `claude` in the project and approve `baton`";
/// Seconds that a command hook may take.
const COMMAND_TIMEOUT: u32 = 10;
/// Seconds that the hook of a question may take: the longest that one may be held, and some. Its own clock is shorter.
const HELD_TIMEOUT: u32 = HELD_SECONDS;
/// Seconds that a call of our MCP server may take.
const TOOL_TIMEOUT: u32 = 10;
/// Seconds that a hook may wait in the background: a week. It ends with its session.
const WAITER_TIMEOUT: u32 = 7 * 24 * 3600;

/// Who reads `settings.json`. Seen with 2.1.325; a byte order mark is skipped.
const SETTINGS: Reader = Reader {
    malformed: "Claude Code ignores all of it, hooks and permission rules included",
    bom: Bom::Skipped,
    dialect: Dialect::Strict,
};
/// Who reads `~/.claude.json` and `.mcp.json`.
const STATE: Reader = Reader {
    malformed: "Claude Code calls it corrupted and does not use it",
    bom: Bom::Skipped,
    dialect: Dialect::Strict,
};

/// The hooks that are installed: one form per event, because two run side by side and the agent waits for the slower.
///
/// A command where the server is not up yet or any more (start, end), and where mail must come through even if it is off (prompt, stop; and
/// a call to an absent server shows the person an error at each stop). Between tools, where each millisecond counts, a call of the
/// session's MCP server, which costs no process. Before our own tools, the same: it tells which calls are a subagent's.
///
/// At start and stop one more, in the background: it waits there to wake the session, where nothing better can.
/// Around each tool, a command of its own for the guard, which needs neither server nor store.
///
/// Commands alone in a project, and none in the background: Copilot reads that file too, and one hook of another form makes it ignore all of them, other people's included.
pub fn hook_rows(scope: &Scope, guard: Guard) -> Vec<HookRow> {
    let form = Form::Command { timeout: COMMAND_TIMEOUT };
    let command = |event| HookRow { event, matcher: None, form: form.clone() };
    let tool = |event, matcher, more: &[(&'static str, &'static str)]| match scope {
        Scope::User => tool(event, matcher, more),
        Scope::Project(_) => HookRow { event, matcher, form: form.clone() },
    };
    let mut rows = vec![
        command("SessionStart"),
        command("SessionEnd"),
        command("UserPromptSubmit"),
        command("Stop"),
        HookRow { event: "PermissionRequest", matcher: None, form: Form::Command { timeout: HELD_TIMEOUT } },
        command("Notification"),
        tool(
            "PostToolBatch",
            None,
            &[("tool_name", "${tool_calls.0.tool_name}"), ("tool_use_id", "${tool_calls.0.tool_use_id}")],
        ),
        tool(
            "PreToolUse",
            Some("mcp__baton__.*"),
            &[("tool_name", "${tool_name}"), ("tool_use_id", "${tool_use_id}")],
        ),
    ];
    if *scope == Scope::User {
        let waiter = |event| HookRow { event, matcher: None, form: Form::Waiter { timeout: WAITER_TIMEOUT } };
        rows.extend([waiter("SessionStart"), waiter("Stop")]);
    }
    let more = match guard {
        Guard::Off => return rows,
        Guard::On => Vec::new(),
        Guard::Closed => vec![("onFailure", "block")],
    };
    let judged = |event, timeout, holds| HookRow {
        event,
        matcher: None,
        form: Form::Guard { timeout, more: more.clone(), holds },
    };
    rows.extend([
        judged("PreToolUse", HELD_TIMEOUT, true),
        judged("PostToolUse", COMMAND_TIMEOUT, false),
        judged(FAILURE, COMMAND_TIMEOUT, false),
    ]);
    rows
}

/// A call of our MCP server. A field that an event lacks arrives as an empty string.
fn tool(
    event: &'static str,
    matcher: Option<&'static str>,
    more: &[(&'static str, &'static str)],
) -> HookRow {
    let mut input = vec![
        ("hook_event_name", event),
        ("session_id", "${session_id}"),
        ("prompt_id", "${prompt_id}"),
        ("transcript_path", "${transcript_path}"),
        ("cwd", "${cwd}"),
        ("agent_id", "${agent_id}"),
    ];
    input.extend(more);
    HookRow { event, matcher, form: Form::McpTool { tool: "hook_event", input, timeout: TOOL_TIMEOUT } }
}

/// Claude Code's configuration in one scope.
#[derive(Clone, Debug)]
pub struct Claude {
    install: Install,
    rows: Vec<HookRow>,
    settings: PathBuf,
    servers: PathBuf,
    /// How to hand tasks to others.
    parts: Vec<Part>,
}

impl Claude {
    /// `user_home` is the person's home; `config_dir` is `$CLAUDE_CONFIG_DIR`, if that is set.
    pub fn new(install: Install, user_home: &Path, config_dir: Option<&Path>) -> Result<Self, InstallError> {
        let mut rows = hook_rows(install.scope(), install.guard());
        rows.extend(install.stop_gate().row(install.scope(), "Stop"));
        Self::with_rows(install, user_home, config_dir, rows)
    }

    /// The same with another set of hooks.
    pub fn with_rows(
        install: Install,
        user_home: &Path,
        config_dir: Option<&Path>,
        rows: Vec<HookRow>,
    ) -> Result<Self, InstallError> {
        let (settings, servers) = match (install.scope(), config_dir) {
            (Scope::Project(dir), _) => (dir.join(".claude/settings.json"), dir.join(".mcp.json")),
            (Scope::User, Some(dir)) => (dir.join("settings.json"), dir.join(".claude.json")),
            (Scope::User, None) => (user_home.join(".claude/settings.json"), user_home.join(".claude.json")),
        };
        plain(&settings)?;
        plain(&servers)?;
        // A project's would be for people who have no baton.
        let parts = match install.scope() {
            Scope::Project(_) => Vec::new(),
            Scope::User => vec![
                Part::command(&install, settings.with_file_name("commands").join("baton-run.md")),
                Part::subagent(&install, settings.with_file_name("agents").join("baton-worker.md")),
            ],
        };
        Ok(Self { install, rows, settings, servers, parts })
    }

    /// The file that holds the hooks.
    pub fn settings_path(&self) -> &Path {
        &self.settings
    }

    /// The file that holds the MCP entry.
    pub fn servers_path(&self) -> &Path {
        &self.servers
    }

    fn hooks(&self) -> HookSet<'_> {
        let (baton, home) = (self.install.baton(), self.install.home());
        HookSet { agent: AGENT, baton, home, rows: &self.rows, reader: &SETTINGS }
    }

    /// A project's `.mcp.json` is read by several agents.
    fn servers_are_shared(&self) -> bool {
        matches!(self.install.scope(), Scope::Project(_))
    }

    /// Every running session writes `~/.claude.json`, so meanwhile the entry in it goes in and out by Claude Code's own commands. They write
    /// the file anew, as each session does. An entry that is there already they refuse to change.
    fn by_command(&self, edit: FileEdit, words: &[&str], entry: Option<Value>) -> FileEdit {
        if *self.install.scope() != Scope::User || edit.after.is_none() {
            return edit;
        }
        let args = words.iter().map(|word| (*word).to_owned()).chain(entry.as_ref().map(Value::to_string));
        edit.by(OwnCommand {
            args: args.collect(),
            env: &[
                ("DISABLE_AUTOUPDATER", "1"),
                ("DISABLE_TELEMETRY", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ],
            keeps: &["CLAUDE_CONFIG_DIR"],
            sessions: self.settings.with_file_name("sessions"),
            at: &["mcpServers", SERVER],
            entry,
        })
    }

    fn server(&self) -> JsonServer<'_> {
        let (baton, home) = (self.install.baton(), self.install.home());
        let agent = (!self.servers_are_shared()).then_some(AGENT);
        JsonServer { agent, baton, home, reader: &STATE }
    }
}

impl Target for Claude {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn install(&self) -> &Install {
        &self.install
    }

    fn files(&self) -> Vec<PathBuf> {
        [self.settings.clone(), self.servers.clone()]
            .into_iter()
            .chain(delegation::paths(&self.parts))
            .collect()
    }

    fn shared(&self) -> Vec<PathBuf> {
        self.servers_are_shared().then(|| self.servers.clone()).into_iter().collect()
    }

    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError> {
        let (settings, servers) = (now.bytes(&self.settings), now.bytes(&self.servers));
        // The server first: if its name is taken, the hooks must not go in either.
        let server = self.server().install(&self.servers, servers.unwrap_or_default())?;
        let hooks = self.hooks().install(&self.settings, settings.unwrap_or_default())?;
        let what = summary(&hooks, "1 hook", "hooks");
        let hooks = FileEdit::write(&self.settings, settings, hooks.bytes, what, hooks.made);
        let what = summary(&server, "the MCP server `baton`", "MCP servers");
        let is_new = server.added > 0;
        let mut server = FileEdit::write(&self.servers, servers, server.bytes, what, server.made);
        if is_new {
            let add = ["mcp", "add-json", "--scope", "user", SERVER];
            server = self.by_command(server, &add, Some(self.server().entry()));
        }
        let mut edits = vec![hooks, server];
        edits.extend(delegation::write(&self.parts, now)?);
        Ok(edits)
    }

    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError> {
        let mut edits = Vec::new();
        let mut owner = Server::Ours;
        if let Some(bytes) = now.bytes(&self.servers) {
            owner = self.server().owner(&self.servers, bytes)?;
            let (after, n) = self.server().remove(&self.servers, bytes, records.made(&self.servers))?;
            if n > 0 {
                let what = "remove the MCP server `baton`".to_owned();
                let edit = FileEdit::take_out(&self.servers, bytes, after, what);
                edits.push(self.by_command(edit, &["mcp", "remove", "--scope", "user", SERVER], None));
            }
        }
        if let Some(bytes) = now.bytes(&self.settings) {
            let made = records.made(&self.settings);
            let (after, n) = self.hooks().remove(&self.settings, bytes, made, owner)?;
            if n > 0 {
                let what = format!("remove {n} {}", if n == 1 { "hook" } else { "hooks" });
                edits.push(FileEdit::take_out(&self.settings, bytes, after, what));
            }
        }
        edits.extend(delegation::remove(&self.parts, now));
        Ok(edits)
    }

    fn notes(&self, _now: &Current) -> Vec<String> {
        match self.install.scope() {
            Scope::User => Vec::new(),
            Scope::Project(_) => vec![TRUST.to_owned()],
        }
    }

    fn trust(&self, _now: &Current) -> Result<Trust, InstallError> {
        Ok(match self.install.scope() {
            Scope::User => Trust::NotAsked,
            Scope::Project(_) => Trust::Hidden(TRUST.to_owned()),
        })
    }
}
