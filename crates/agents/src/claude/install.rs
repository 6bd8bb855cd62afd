//! What baton puts into Claude Code's configuration: hooks, an MCP server, and for the user a slash
//! command and a subagent. For the user: `~/.claude/settings.json` and `~/.claude.json` (both under
//! `$CLAUDE_CONFIG_DIR`, if that is set). For a project: `.claude/settings.json` and `.mcp.json` in
//! its directory. `hook_rows` is the table to change when the set of hooks changes. Pure: bytes in,
//! edits out.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

use super::tools::FAILURE;
use crate::config::json::{Bom, Dialect, Reader};
use crate::install::delegation::{self, Part};
use crate::install::hooks::{HELD_SECONDS, HookSet};
use crate::install::plugin::{self, PluginFile};
use crate::install::server::JsonServer;
use crate::install::{
    Current, FileEdit, Form, GuardHooks, HookRow, Install, InstallError, OwnCommand, Records, SERVER, Scope,
    Server, Target, Trust, plain, summary,
};

const AGENT: &str = "claude";
/// baton's own tools, as Claude Code names those of the plugin's server.
const PLUGIN_TOOLS: &str = "mcp__plugin_baton_baton__.*";
const TRUST_HINT: &str = "Claude Code asks each person once before it starts a server from .mcp.json: run `claude` in the project and approve `baton`";
/// The timeout of a command hook, in seconds.
const COMMAND_TIMEOUT_SECONDS: u32 = 10;
/// The timeout of the hook of a question, in seconds: a little more than the longest hold. The
/// hook's own limit is shorter.
const HELD_TIMEOUT_SECONDS: u32 = HELD_SECONDS;
/// The timeout of a call of baton's MCP server, in seconds.
const TOOL_TIMEOUT_SECONDS: u32 = 10;
/// The timeout of a hook that waits in the background, in seconds: a week. It ends with its
/// session.
const WAITER_TIMEOUT_SECONDS: u32 = 7 * 24 * 3600;

/// The reader of `settings.json`, as seen with 2.1.325: it skips a byte order mark.
const SETTINGS: Reader = Reader {
    malformed: "Claude Code ignores all of it, hooks and permission rules included",
    bom: Bom::Skipped,
    dialect: Dialect::Strict,
};
/// The reader of `~/.claude.json` and `.mcp.json`.
const STATE: Reader = Reader {
    malformed: "Claude Code calls it corrupted and does not use it",
    bom: Bom::Skipped,
    dialect: Dialect::Strict,
};

/// The hooks that setup installs. Each event has one form, because two hooks run side by side and
/// the agent waits for the slower.
///
/// An event has a command if the server does not run yet or no longer runs (start, end), and if
/// mail must come even if the server is off (prompt, stop; at a stop, a call to an absent server
/// also shows the user an error). Between tools, where each millisecond counts, the hook is a call
/// of the session's MCP server, which starts no process. So is the hook before our own tools, which
/// tells the calls of a subagent.
///
/// At start and stop a second hook waits in the background to wake the session, in case no better
/// route exists. Around each tool, the guard has a command of its own, which needs neither server
/// nor store.
///
/// A project has commands only, and none in the background: Copilot reads that file too, and
/// ignores all hooks in it, also other people's, if one has another form.
pub fn hook_rows(scope: &Scope, guard: GuardHooks) -> Vec<HookRow> {
    let form = Form::Command { timeout: COMMAND_TIMEOUT_SECONDS };
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
        HookRow {
            event: "PermissionRequest",
            matcher: None,
            form: Form::Command { timeout: HELD_TIMEOUT_SECONDS },
        },
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
        let waiter =
            |event| HookRow { event, matcher: None, form: Form::Waiter { timeout: WAITER_TIMEOUT_SECONDS } };
        rows.extend([waiter("SessionStart"), waiter("Stop")]);
    }
    let more = match guard {
        GuardHooks::Off => return rows,
        GuardHooks::On => Vec::new(),
        GuardHooks::Closed => vec![("onFailure", "block")],
    };
    let judged = |event, timeout, holds| HookRow {
        event,
        matcher: None,
        form: Form::Guard { timeout, more: more.clone(), holds },
    };
    rows.extend([
        judged("PreToolUse", HELD_TIMEOUT_SECONDS, true),
        judged("PostToolUse", COMMAND_TIMEOUT_SECONDS, false),
        judged(FAILURE, COMMAND_TIMEOUT_SECONDS, false),
    ]);
    rows
}

/// The plugin and the marketplace that names it. A plugin's MCP server has another name than the
/// one of setup, and its start may fail, so all hooks are commands.
pub fn plugin() -> Result<Vec<PluginFile>, InstallError> {
    let mut rows = hook_rows(&Scope::Project(PathBuf::new()), GuardHooks::On);
    for row in rows.iter_mut().filter(|row| row.matcher.is_some()) {
        row.matcher = Some(PLUGIN_TOOLS);
    }
    let waiter =
        |event| HookRow { event, matcher: None, form: Form::Waiter { timeout: WAITER_TIMEOUT_SECONDS } };
    rows.extend([waiter("SessionStart"), waiter("Stop")]);
    let mut manifest = plugin::manifest();
    manifest["author"] = json!({ "name": "baton maintainers" });
    let market = json!({
        "name": SERVER,
        "description": plugin::SUMMARY,
        "owner": { "name": "baton maintainers" },
        "plugins": [{ "name": SERVER, "source": "./claude", "description": plugin::SUMMARY }],
    });
    Ok(vec![
        PluginFile::json(".claude-plugin/marketplace.json", &market),
        PluginFile::json("claude/.claude-plugin/plugin.json", &manifest),
        PluginFile::hooks("claude/hooks/hooks.json", AGENT, None, &rows, &SETTINGS)?,
        PluginFile::json("claude/.mcp.json", &json!({ "mcpServers": plugin::servers(AGENT) })),
        PluginFile::instructions("claude/commands/baton-run.md", delegation::command),
    ])
}

/// A call of baton's MCP server. A field that an event lacks arrives as an empty string.
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
    HookRow {
        event,
        matcher,
        form: Form::McpTool { tool: "hook_event", input, timeout: TOOL_TIMEOUT_SECONDS },
    }
}

#[derive(Clone, Debug)]
pub struct Claude {
    install: Install,
    rows: Vec<HookRow>,
    settings: PathBuf,
    servers: PathBuf,
    /// The files that tell the agent how to hand a task to another agent.
    parts: Vec<Part>,
}

impl Claude {
    /// `user_home` is the user's home; `config_dir` is `$CLAUDE_CONFIG_DIR`, if that is set.
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
        // In a project they would reach people who have no baton.
        let parts = match install.scope() {
            Scope::Project(_) => Vec::new(),
            Scope::User => vec![
                Part::command(&install, settings.with_file_name("commands").join("baton-run.md")),
                Part::subagent(&install, settings.with_file_name("agents").join("baton-worker.md")),
            ],
        };
        Ok(Self { install, rows, settings, servers, parts })
    }

    pub fn settings_path(&self) -> &Path {
        &self.settings
    }

    pub fn servers_path(&self) -> &Path {
        &self.servers
    }

    fn hooks(&self) -> HookSet<'_> {
        let (baton, home) = (self.install.baton(), Some(self.install.home()));
        HookSet { agent: AGENT, baton, home, title: None, rows: &self.rows, reader: &SETTINGS }
    }

    /// Several agents read a project's `.mcp.json`.
    fn servers_are_shared(&self) -> bool {
        matches!(self.install.scope(), Scope::Project(_))
    }

    /// Every running session writes `~/.claude.json`. While one runs, the entry is added and
    /// removed by Claude Code's own commands, which rewrite the file as each session does. These
    /// commands refuse to change an existing entry.
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
        // The server goes first: if its name is taken, the hooks must not be added either.
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
            Scope::Project(_) => vec![TRUST_HINT.to_owned()],
        }
    }

    fn trust(&self, _now: &Current) -> Result<Trust, InstallError> {
        Ok(match self.install.scope() {
            Scope::User => Trust::NotAsked,
            Scope::Project(_) => Trust::Hidden(TRUST_HINT.to_owned()),
        })
    }
}
