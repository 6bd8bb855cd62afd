//! What baton puts into Codex's configuration: hooks, the trust they need, an MCP server, and for
//! the user a skill. For the user: `hooks.json` and `config.toml` in `$CODEX_HOME`. For a project:
//! `.codex/hooks.json` and `.codex/config.toml` in its directory. The trust stays in the user's
//! `config.toml`, because Codex reads it only there. `hook_rows` is the table to change when the
//! set of hooks changes. Pure: bytes in, edits out.

use serde_json::json;
use std::path::{Path, PathBuf};

use super::trust::{self, Positions};
use crate::config::json::{Bom, Dialect, Json, Made, Reader, Was};
use crate::config::toml::{Block, Change, Scalar, Toml};
use crate::install::delegation::{self, Part};
use crate::install::hooks::{HELD_SECONDS, HookSet};
use crate::install::plugin::{self, PluginFile};
use crate::install::server::{home_in_args, server_args};
use crate::install::{
    Current, FileEdit, Form, GuardHooks, HookRow, Install, InstallError, Records, SERVER, Scope, Server,
    Target, Trust, plain, summary,
};

const AGENT: &str = "codex";
/// The timeout of a command hook, in seconds.
const COMMAND_TIMEOUT_SECONDS: u32 = 10;
/// The timeout of the hook of a question, in seconds: a little more than the longest hold. The
/// hook's own limit is shorter.
const HELD_TIMEOUT_SECONDS: u32 = HELD_SECONDS;
/// The longest timeout, in seconds, that Codex gives a hook while a session ends.
const ENDING_TIMEOUT_SECONDS: u32 = 3;
/// The timeout of a call of baton's MCP server, in seconds.
const TOOL_TIMEOUT_SECONDS: u32 = 10;
const SERVERS: &str = "mcp_servers";
const UNTRUSTED_PROJECT: &str = "Codex reads .codex/ only in projects that it trusts";
const TRUST_HINT: &str = "run `codex` in the project once and say yes";

/// The reader of `hooks.json`, as seen with 0.166.0: strict JSON, no byte order mark, no other
/// keys.
const HOOKS: Reader =
    Reader { malformed: "Codex runs none of the hooks in it", bom: Bom::Malformed, dialect: Dialect::Strict };

/// The hooks that setup installs. Each event has one form, because two hooks run side by side and
/// the agent waits for the slower.
///
/// An event has a command if mail must come even if the server is off. After each tool, the hook is
/// a call of the session's MCP server, which starts no process. A subagent's calls name their
/// thread, so mail needs no hook before tools. Around each tool, the guard has a command of its
/// own, which needs neither server nor store.
pub fn hook_rows(guard: GuardHooks) -> Vec<HookRow> {
    let command = |event, timeout| HookRow { event, matcher: None, form: Form::Command { timeout } };
    let mut rows = vec![
        command("SessionStart", COMMAND_TIMEOUT_SECONDS),
        command("SessionEnd", ENDING_TIMEOUT_SECONDS),
        command("UserPromptSubmit", COMMAND_TIMEOUT_SECONDS),
        command("Stop", COMMAND_TIMEOUT_SECONDS),
        command("PermissionRequest", HELD_TIMEOUT_SECONDS),
        command("Interrupt", ENDING_TIMEOUT_SECONDS),
        tool("PostToolUse", None, &[("tool_name", "${tool_name}"), ("tool_use_id", "${tool_use_id}")]),
    ];
    if guard != GuardHooks::Off {
        let judged = |event, timeout, holds| HookRow {
            event,
            matcher: None,
            form: Form::Guard { timeout, more: Vec::new(), holds },
        };
        rows.extend([
            judged("PreToolUse", HELD_TIMEOUT_SECONDS, true),
            judged("PostToolUse", COMMAND_TIMEOUT_SECONDS, false),
        ]);
    }
    rows
}

/// The plugin and the marketplace that names it. All hooks are commands, which need no server.
pub fn plugin() -> Result<Vec<PluginFile>, InstallError> {
    let mut rows = hook_rows(GuardHooks::On);
    for row in rows.iter_mut().filter(|row| matches!(row.form, Form::McpTool { .. })) {
        row.form = Form::Command { timeout: COMMAND_TIMEOUT_SECONDS };
    }
    let mut manifest = plugin::manifest();
    manifest["hooks"] = "./hooks/hooks.json".into();
    manifest["mcpServers"] = "./.mcp.json".into();
    let market = json!({
        "name": SERVER,
        "interface": { "displayName": SERVER },
        "plugins": [{
            "name": SERVER,
            "source": { "source": "local", "path": "./codex" },
            "policy": { "installation": "AVAILABLE", "authentication": "ON_INSTALL" },
            "category": "Productivity",
        }],
    });
    Ok(vec![
        PluginFile::json(".agents/plugins/marketplace.json", &market),
        PluginFile::json("codex/.codex-plugin/plugin.json", &manifest),
        PluginFile::hooks("codex/hooks/hooks.json", AGENT, None, &rows, &HOOKS)?,
        PluginFile::json("codex/.mcp.json", &json!({ "mcpServers": plugin::servers(AGENT) })),
    ])
}

/// A call of baton's MCP server, with fields that the event always has: Codex drops a call with a
/// missing field.
fn tool(
    event: &'static str,
    matcher: Option<&'static str>,
    more: &[(&'static str, &'static str)],
) -> HookRow {
    let mut input = vec![
        ("hook_event_name", event),
        ("session_id", "${session_id}"),
        ("turn_id", "${turn_id}"),
        ("transcript_path", "${transcript_path}"),
        ("cwd", "${cwd}"),
    ];
    input.extend(more);
    HookRow {
        event,
        matcher,
        form: Form::McpTool { tool: "hook_event", input, timeout: TOOL_TIMEOUT_SECONDS },
    }
}

#[derive(Clone, Debug)]
pub struct Codex {
    install: Install,
    rows: Vec<HookRow>,
    hooks: PathBuf,
    servers: PathBuf,
    trust: PathBuf,
    /// The files that tell the agent how to hand a task to another agent.
    parts: Vec<Part>,
}

impl Codex {
    /// `user_home` is the user's home; `codex_home` is `$CODEX_HOME`, if that is set.
    ///
    /// Codex resolves symlinks in a `$CODEX_HOME` that is set and in its working directory, but not
    /// in `~/.codex`. Trust depends on the path, so this does the same.
    pub fn new(install: Install, user_home: &Path, codex_home: Option<&Path>) -> Result<Self, InstallError> {
        let mut rows = hook_rows(install.guard());
        rows.extend(install.stop_gate().row(install.scope(), "Stop"));
        Self::with_rows(install, user_home, codex_home, rows)
    }

    /// The same with another set of hooks.
    pub fn with_rows(
        install: Install,
        user_home: &Path,
        codex_home: Option<&Path>,
        rows: Vec<HookRow>,
    ) -> Result<Self, InstallError> {
        let resolved = |dir: &Path| std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let user = codex_home.map_or_else(|| user_home.join(".codex"), resolved);
        let dir = match install.scope() {
            Scope::User => user.clone(),
            Scope::Project(dir) => resolved(dir).join(".codex"),
        };
        let (hooks, servers, trust) =
            (dir.join("hooks.json"), dir.join("config.toml"), user.join("config.toml"));
        for path in [&hooks, &servers, &trust] {
            plain(path)?;
        }
        let parts = match install.scope() {
            Scope::Project(_) => Vec::new(),
            Scope::User => vec![Part::skill(&install, dir.join("skills/baton-jobs/SKILL.md"))],
        };
        Ok(Self { install, rows, hooks, servers, trust, parts })
    }

    pub fn hooks_path(&self) -> &Path {
        &self.hooks
    }

    pub fn servers_path(&self) -> &Path {
        &self.servers
    }

    /// The file that holds the trust: in either scope it is the user's.
    pub fn trust_path(&self) -> &Path {
        &self.trust
    }

    fn hook_set(&self) -> HookSet<'_> {
        let (baton, home) = (self.install.baton(), Some(self.install.home()));
        HookSet { agent: AGENT, baton, home, title: None, rows: &self.rows, reader: &HOOKS }
    }

    fn positions(&self, bytes: &[u8], server: Server) -> Result<Positions, InstallError> {
        let json = Json::parse(bytes, &self.hooks, &HOOKS)?;
        Ok(Positions::of(&json, &self.hook_set().find(&json, server)))
    }

    /// The trust after a change of the hooks file.
    fn carry_trust(
        &self,
        config: &[u8],
        before: &Positions,
        after: &Positions,
    ) -> Result<(Vec<u8>, usize), InstallError> {
        let rows = self.hook_set();
        // A hash does not depend on the hook's position, so it finds trust that was left behind.
        let fresh = rows.install(&self.hooks, b"")?;
        let stale = self.positions(&fresh.bytes, Server::Ours)?.ours.into_iter().map(|(_, hash)| hash);
        let stale: Vec<String> = stale.collect();
        let hooks_path = self.hooks.display().to_string();
        Ok(trust::carry(&self.trust, config, &hooks_path, (before, after), &stale)?)
    }

    fn server_values(&self) -> Vec<(&'static str, Scalar)> {
        let args = Scalar::Texts(server_args(AGENT, self.install.home()));
        vec![("command", Scalar::Text(self.install.baton().to_owned())), ("args", args)]
    }

    fn add_server(&self, bytes: &[u8]) -> Result<(Vec<u8>, &'static str), InstallError> {
        let toml = Toml::parse(bytes, &self.servers)?;
        match owner(&toml, self.install.home()) {
            Owner::Nobody => {
                let block = Block { table: server_name(), values: self.server_values() };
                Ok((toml.append(&[block])?, "add the MCP server `baton`"))
            }
            Owner::Us => {
                let values = self.server_values().into_iter().filter_map(|(key, value)| {
                    let name = [server_name(), vec![key.to_owned()]].concat();
                    let same = toml.get(&name).is_some_and(|item| value.is(item));
                    (!same).then_some(Change::Set(name, value))
                });
                let changes: Vec<Change> = values.collect();
                let what = if changes.is_empty() { "" } else { "update the MCP server `baton`" };
                Ok((toml.change(&changes)?, what))
            }
            Owner::OtherHome(home) => {
                Err(InstallError::OtherHome { place: toml.place(&server_name()), home })
            }
            Owner::Stranger => Err(InstallError::NameTaken {
                place: toml.place(&server_name()),
                key: server_name().join("."),
            }),
        }
    }

    fn cut_server(&self, bytes: &[u8]) -> Result<(Vec<u8>, &'static str), InstallError> {
        let toml = Toml::parse(bytes, &self.servers)?;
        match owner(&toml, self.install.home()) {
            Owner::Us => Ok((toml.change(&[Change::Cut(server_name())])?, "remove the MCP server `baton`")),
            Owner::Nobody | Owner::OtherHome(_) | Owner::Stranger => Ok((bytes.to_vec(), "")),
        }
    }
}

impl Codex {
    /// Whether Codex reads these files: those of a project only if the user trusts it.
    fn reads_project(&self, now: &Current) -> bool {
        let Scope::Project(_) = self.install.scope() else { return true };
        let project = self.hooks.ancestors().nth(2).map(|dir| dir.display().to_string()).unwrap_or_default();
        let config = Toml::parse(now.bytes(&self.trust).unwrap_or_default(), &self.trust).ok();
        let level = config.as_ref().and_then(|c| c.get(&["projects", &project, "trust_level"])?.as_str());
        level == Some("trusted")
    }

    fn setup_command(&self) -> String {
        let project = matches!(self.install.scope(), Scope::Project(_));
        format!("baton setup {AGENT}{}", if project { " --project" } else { "" })
    }
}

impl Target for Codex {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn install(&self) -> &Install {
        &self.install
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.hooks.clone(), self.servers.clone(), self.trust.clone()];
        files.dedup();
        files.extend(delegation::paths(&self.parts));
        files
    }

    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError> {
        let hooks_now = now.bytes(&self.hooks);
        let (servers, server_what) = self.add_server(now.bytes(&self.servers).unwrap_or_default())?;
        let edited = self.hook_set().install(&self.hooks, hooks_now.unwrap_or_default())?;
        let before = self.positions(hooks_now.unwrap_or_default(), Server::Ours)?;
        let after = self.positions(&edited.bytes, Server::Ours)?;
        let config =
            if self.trust == self.servers { &servers } else { now.bytes(&self.trust).unwrap_or_default() };
        let (trust, touched) = self.carry_trust(config, &before, &after)?;
        let trust_what = match touched {
            0 => String::new(),
            n => format!("trust {n} {}", if n == 1 { "hook" } else { "hooks" }),
        };

        let what = summary(&edited, "1 hook", "hooks");
        let mut edits = vec![FileEdit::write(&self.hooks, hooks_now, edited.bytes, what, edited.made)];
        if self.trust == self.servers {
            let what = joined(&[server_what, &trust_what]);
            edits.push(FileEdit::write(&self.trust, now.bytes(&self.trust), trust, what, Vec::new()));
        } else {
            for (path, after, what) in
                [(&self.servers, servers, server_what), (&self.trust, trust, &*trust_what)]
            {
                edits.push(FileEdit::write(path, now.bytes(path), after, what.to_owned(), Vec::new()));
            }
        }
        edits.extend(delegation::write(&self.parts, now)?);
        Ok(edits)
    }

    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError> {
        let mut edits = Vec::new();
        let mut add = |path: &Path, after: Option<Vec<u8>>, what: String| {
            if let Some(before) = now.bytes(path).filter(|before| Some(*before) != after.as_deref()) {
                edits.push(FileEdit::take_out(path, before, after, what));
            }
        };
        let servers_now = now.bytes(&self.servers).unwrap_or_default();
        let server = match owner(&Toml::parse(servers_now, &self.servers)?, self.install.home()) {
            Owner::Us | Owner::Nobody => Server::Ours,
            Owner::OtherHome(_) | Owner::Stranger => Server::Others,
        };
        let (servers, server_what) = self.cut_server(servers_now)?;

        let hooks_now = now.bytes(&self.hooks).unwrap_or_default();
        let before = self.positions(hooks_now, server)?;
        let (hooks, n) = self.hook_set().remove(&self.hooks, hooks_now, records.made(&self.hooks), server)?;
        let after = self.positions(hooks.as_deref().unwrap_or_default(), server)?;
        add(&self.hooks, hooks, format!("remove {n} {}", if n == 1 { "hook" } else { "hooks" }));

        let config =
            if self.trust == self.servers { &servers } else { now.bytes(&self.trust).unwrap_or_default() };
        let (trust, touched) = self.carry_trust(config, &before, &after)?;
        let trust_what = if touched == 0 { "" } else { "remove their trust" };
        if self.trust == self.servers {
            add(
                &self.trust,
                unless_blank(trust, records.made(&self.trust)),
                joined(&[server_what, trust_what]),
            );
        } else {
            let servers = unless_blank(servers, records.made(&self.servers));
            add(&self.servers, servers, server_what.to_owned());
            add(&self.trust, unless_blank(trust, records.made(&self.trust)), trust_what.to_owned());
        }
        edits.extend(delegation::remove(&self.parts, now));
        Ok(edits)
    }

    fn notes(&self, now: &Current) -> Vec<String> {
        if self.reads_project(now) {
            return Vec::new();
        }
        vec![format!("{UNTRUSTED_PROJECT}: {TRUST_HINT}")]
    }

    fn trust(&self, now: &Current) -> Result<Trust, InstallError> {
        let positions = self.positions(now.bytes(&self.hooks).unwrap_or_default(), Server::Ours)?;
        let config = now.bytes(&self.trust).unwrap_or_default();
        let hooks_path = self.hooks.display().to_string();
        let (untrusted, off) = trust::skipped(&self.trust, config, &hooks_path, &positions)?;
        let all = positions.ours.len();
        Ok(if untrusted > 0 {
            let what = format!("{untrusted} of {all} hooks are not trusted: Codex skips them silently");
            Trust::Missing { what, hint: self.setup_command() }
        } else if off > 0 {
            let what = format!("{off} of {all} hooks are switched off by `enabled = false`");
            Trust::Missing { what, hint: format!("switch them on in {}", self.trust.display()) }
        } else if !self.reads_project(now) {
            Trust::Missing { what: UNTRUSTED_PROJECT.to_owned(), hint: TRUST_HINT.to_owned() }
        } else {
            Trust::Given
        })
    }
}

/// Who owns the MCP server called `baton`.
enum Owner {
    Nobody,
    Us,
    OtherHome(String),
    Stranger,
}

fn owner(toml: &Toml<'_>, home: &str) -> Owner {
    if toml.get(&server_name()).is_none() {
        return Owner::Nobody;
    }
    let args = toml.get(&[SERVERS, SERVER, "args"]).and_then(|item| item.as_array());
    let args: Option<Vec<&str>> = args.and_then(|args| args.iter().map(|arg| arg.as_str()).collect());
    match args.and_then(|args| home_in_args(AGENT, &args)) {
        Some(found) if found == home => Owner::Us,
        Some(found) => Owner::OtherHome(found),
        None => Owner::Stranger,
    }
}

fn server_name() -> Vec<String> {
    vec![SERVERS.to_owned(), SERVER.to_owned()]
}

/// If we made the file and nothing is left in it, it is removed.
fn unless_blank(bytes: Vec<u8>, made: Made<'_>) -> Option<Vec<u8>> {
    let ours = matches!(made, Made::Known(made) if made.iter().any(|c| c.was == Was::Absent));
    (!ours || !bytes.trim_ascii().is_empty()).then_some(bytes)
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
}
