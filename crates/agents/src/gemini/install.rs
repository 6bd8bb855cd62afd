//! What baton puts into Gemini CLI's configuration: hooks and an MCP server, both in
//! `settings.json`; for the user in `~/.gemini` (below `$GEMINI_CLI_HOME`, if that is set), for a
//! project in its `.gemini`. `hook_rows` is the table to change when the set of hooks changes.
//! Pure: bytes in, edits out.

use std::path::{Path, PathBuf};

use crate::config::json::{Bom, Dialect, Json, Reader, Step};
use crate::install::hooks::{HELD_SECONDS, HookSet};
use crate::install::plugin::{self, PluginFile};
use crate::install::server::JsonServer;
use crate::install::{
    Current, FileEdit, Form, GuardHooks, HookRow, Install, InstallError, Records, SERVER, Scope, Server,
    Target, Trust, plain, summary,
};

const AGENT: &str = "gemini";
const TRUST_HINT: &str = "Gemini CLI uses a project's settings only in a folder that the user trusts: run `gemini` in the project and trust it";
/// The timeout of a hook, in milliseconds.
const HOOK_TIMEOUT_MILLIS: u32 = 10_000;
/// The same for a hook that may wait for a person's answer.
const HELD_TIMEOUT_MILLIS: u32 = HELD_SECONDS * 1000;

/// The reader of `settings.json`, as seen with 0.61.0.
const SETTINGS: Reader = Reader {
    malformed: "Gemini CLI does not start with it",
    bom: Bom::Malformed,
    dialect: Dialect::Comments,
};

/// The hooks that setup installs. All are commands, because Gemini CLI has no other form. None runs
/// before requests, which can't carry mail. Before a tool only the guard has one. After a tool, one
/// hook serves both the guard and the mail.
pub fn hook_rows(guard: GuardHooks) -> Vec<HookRow> {
    let command =
        |event| HookRow { event, matcher: None, form: Form::Command { timeout: HOOK_TIMEOUT_MILLIS } };
    let mut rows = vec![
        command("SessionStart"),
        command("SessionEnd"),
        command("BeforeAgent"),
        command("AfterAgent"),
        command("AfterTool"),
        command("Notification"),
    ];
    if guard != GuardHooks::Off {
        let form = Form::Guard { timeout: HELD_TIMEOUT_MILLIS, more: Vec::new(), holds: true };
        rows.push(HookRow { event: "BeforeTool", matcher: None, form });
    }
    rows
}

/// The extension.
pub fn plugin() -> Result<Vec<PluginFile>, InstallError> {
    let mut manifest = plugin::manifest();
    manifest["mcpServers"] = plugin::servers(AGENT);
    Ok(vec![
        PluginFile::json("gemini/gemini-extension.json", &manifest),
        PluginFile::hooks(
            "gemini/hooks/hooks.json",
            AGENT,
            Some(SERVER),
            &hook_rows(GuardHooks::On),
            &SETTINGS,
        )?,
    ])
}

#[derive(Clone, Debug)]
pub struct Gemini {
    install: Install,
    rows: Vec<HookRow>,
    settings: PathBuf,
}

impl Gemini {
    /// `home` is the user's home, or `$GEMINI_CLI_HOME`.
    pub fn new(install: Install, home: &Path) -> Result<Self, InstallError> {
        let rows = hook_rows(install.guard());
        Self::with_rows(install, home, rows)
    }

    /// The same with another set of hooks.
    pub fn with_rows(install: Install, home: &Path, rows: Vec<HookRow>) -> Result<Self, InstallError> {
        let dir = match install.scope() {
            Scope::Project(dir) => dir,
            Scope::User => home,
        };
        let settings = dir.join(".gemini/settings.json");
        plain(&settings)?;
        Ok(Self { install, rows, settings })
    }

    pub fn settings_path(&self) -> &Path {
        &self.settings
    }

    fn hooks(&self) -> HookSet<'_> {
        let (baton, home) = (self.install.baton(), Some(self.install.home()));
        HookSet { agent: AGENT, baton, home, title: Some(SERVER), rows: &self.rows, reader: &SETTINGS }
    }

    /// Whether the user has allowed our tools permanently. That is the user's decision, so setup
    /// does not do it.
    fn tools_are_allowed(&self, now: &Current) -> bool {
        let bytes = now.bytes(&self.settings).unwrap_or_default();
        let way = ["mcpServers", SERVER, "trust"].map(|key| Step::Key(key.to_owned()));
        Json::parse(bytes, &self.settings, &SETTINGS).is_ok_and(|json| json.get(&way) == Some(true.into()))
    }

    fn server(&self) -> JsonServer<'_> {
        let (baton, home) = (self.install.baton(), self.install.home());
        JsonServer { agent: Some(AGENT), baton, home, reader: &SETTINGS }
    }
}

impl Target for Gemini {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn install(&self) -> &Install {
        &self.install
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.settings.clone()]
    }

    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError> {
        let before = now.bytes(&self.settings);
        let hooks = self.hooks().install(&self.settings, before.unwrap_or_default())?;
        let server = self.server().install(&self.settings, &hooks.bytes)?;
        let parts =
            [summary(&hooks, "1 hook", "hooks"), summary(&server, "the MCP server `baton`", "MCP servers")];
        let what = parts.join("; ");
        let made = [hooks.made, server.made].concat();
        Ok(vec![FileEdit::write(&self.settings, before, server.bytes, what, made)])
    }

    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError> {
        let Some(before) = now.bytes(&self.settings) else { return Ok(Vec::new()) };
        let made = records.made(&self.settings);
        // In reverse order, because each step removes what the last one added.
        let (without, servers) = self.server().remove(&self.settings, before, made)?;
        let (after, hooks) = match &without {
            Some(bytes) => self.hooks().remove(&self.settings, bytes, made, Server::Ours)?,
            None => (None, 0),
        };
        if servers + hooks == 0 {
            return Ok(Vec::new());
        }
        let mut parts = Vec::new();
        if hooks > 0 {
            parts.push(format!("remove {hooks} {}", if hooks == 1 { "hook" } else { "hooks" }));
        }
        if servers > 0 {
            parts.push("remove the MCP server `baton`".to_owned());
        }
        Ok(vec![FileEdit::take_out(&self.settings, before, after, parts.join("; "))])
    }

    fn notes(&self, now: &Current) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.tools_are_allowed(now) {
            notes.push("Gemini CLI asks before each call of baton's tools, and without a terminal it has none of them; \"trust\": true in mcpServers.baton allows them".to_owned());
        }
        if matches!(self.install.scope(), Scope::Project(_)) {
            notes.push(TRUST_HINT.to_owned());
        }
        notes
    }

    fn trust(&self, _now: &Current) -> Result<Trust, InstallError> {
        Ok(match self.install.scope() {
            Scope::User => Trust::NotAsked,
            Scope::Project(_) => Trust::Hidden(TRUST_HINT.to_owned()),
        })
    }
}
