//! What baton puts into Cursor's configuration: hooks and an MCP server. For the user: `hooks.json`
//! and `mcp.json` in `~/.cursor`. For a project: the same in its own `.cursor`. `HOOKS` is the
//! table to change when the set of hooks changes. Pure: bytes in, edits out.
//!
//! The format is flat: `{"version": 1, "hooks": {event: [{"command": …}]}}`. Our entries go to the
//! end of each event's array. They are recognised by their command.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::config::json::{Bom, Dialect, Json, Made, Reader, Step, Tree};
use crate::install::hooks::{Edited, GUARD, events, is_our_command};
use crate::install::server::JsonServer;
use crate::install::shell;
use crate::install::{
    Current, FileEdit, GuardHooks, Install, InstallError, Records, Scope, Target, plain, summary,
};

const AGENT: &str = "cursor";
/// The timeout of a hook, in seconds.
const HOOK_TIMEOUT_SECONDS: u32 = 10;

/// The events with a hook.
const HOOKS: [&str; 5] = ["sessionStart", "beforeSubmitPrompt", "postToolUse", "stop", "sessionEnd"];

/// Before any tool, for the guard only.
const BEFORE_TOOLS: &str = "preToolUse";

const VERSION_KEY: &str = "version";

/// The reader of `hooks.json` and `mcp.json`.
const FILES: Reader =
    Reader { malformed: "Cursor uses nothing of it", bom: Bom::Malformed, dialect: Dialect::Strict };

#[derive(Clone, Debug)]
pub struct Cursor {
    install: Install,
    hooks: PathBuf,
    servers: PathBuf,
}

impl Cursor {
    pub fn new(install: Install, user_home: &Path) -> Result<Self, InstallError> {
        let folder = match install.scope() {
            Scope::Project(dir) => dir.join(".cursor"),
            Scope::User => user_home.join(".cursor"),
        };
        let (hooks, servers) = (folder.join("hooks.json"), folder.join("mcp.json"));
        plain(&hooks)?;
        plain(&servers)?;
        Ok(Self { install, hooks, servers })
    }

    pub fn hooks_path(&self) -> &Path {
        &self.hooks
    }

    pub fn servers_path(&self) -> &Path {
        &self.servers
    }

    fn server(&self) -> JsonServer<'_> {
        let (baton, home) = (self.install.baton(), self.install.home());
        JsonServer { agent: Some(AGENT), baton, home, reader: &FILES }
    }

    /// The hook of an event as the file has it.
    fn hook(&self, event: &str) -> Value {
        let (baton, home) = (shell::quote(self.install.baton()), shell::quote(self.install.home()));
        let judges = if event == BEFORE_TOOLS { format!(" {event} {GUARD}") } else { String::new() };
        let mut hook = json!({ "command": format!("{baton} hook {AGENT}{judges} --home {home}"), "timeout": HOOK_TIMEOUT_SECONDS });
        if event == BEFORE_TOOLS && self.install.guard() == GuardHooks::Closed {
            hook["failClosed"] = json!(true);
        }
        hook
    }

    /// The events with a hook.
    fn events(&self) -> Vec<&'static str> {
        let judged = (self.install.guard() != GuardHooks::Off).then_some(BEFORE_TOOLS);
        HOOKS.into_iter().chain(judged).collect()
    }

    fn is_ours(&self, hook: &Value) -> bool {
        let words = hook.get("command").and_then(Value::as_str).and_then(shell::words).unwrap_or_default();
        is_our_command(&words, AGENT, self.install.home())
    }

    /// Where our entries are, each with its content.
    fn find(&self, json: &Json<'_>) -> Vec<(Vec<Step>, String, Value)> {
        let mut found = Vec::new();
        for (event, hooks) in events(json) {
            for (at, hook) in hooks.into_iter().enumerate().filter(|(_, hook)| self.is_ours(hook)) {
                let way = vec![Step::Key("hooks".to_owned()), Step::Key(event.clone()), Step::Index(at)];
                found.push((way, event.clone(), hook));
            }
        }
        found
    }

    fn parse<'t>(&self, bytes: &'t [u8]) -> Result<Json<'t>, InstallError> {
        let json = Json::parse(bytes, &self.hooks, &FILES)?;
        json.unique(&[VERSION_KEY])?;
        for event in events(&json).into_iter().map(|(event, _)| event).chain(HOOKS.map(str::to_owned)) {
            json.unique(&["hooks", &event])?;
        }
        Ok(json)
    }

    fn add_hooks(&self, bytes: &[u8]) -> Result<Edited, InstallError> {
        let json = self.parse(bytes)?;
        let (wanted, found) = (self.events(), self.find(&json));
        let stale: Vec<(Vec<Step>, Value)> = found
            .iter()
            .filter(|(_, event, _)| wanted.contains(&event.as_str()))
            .map(|(way, event, hook)| (way.clone(), self.hook(event), hook))
            .filter(|(_, new, old)| new != *old)
            .map(|(way, new, _)| (way, new))
            .collect();
        let missing: Vec<&str> = wanted
            .iter()
            .copied()
            .filter(|event| !found.iter().any(|(_, there, _)| there == event))
            .collect();
        let unwanted = |event: &str| !wanted.contains(&event);
        let dropped: Vec<Vec<Step>> =
            found.iter().filter(|(_, event, _)| unwanted(event)).map(|(way, _, _)| way.clone()).collect();
        let (added, updated, dropped_count) = (missing.len(), stale.len(), dropped.len());
        let mut bytes = json.replace(&stale);
        if dropped_count > 0 {
            bytes = self.parse(&bytes)?.cut(&dropped, Made::Unknown).unwrap_or_default();
        }
        if added == 0 {
            return Ok(Edited { bytes, made: Vec::new(), added, updated, dropped: dropped_count });
        }
        let hooks = missing
            .into_iter()
            .map(|event| (event.to_owned(), Tree::Append(vec![self.hook(event)])))
            .collect();
        let json = self.parse(&bytes)?;
        let mut keys = vec![("hooks".to_owned(), Tree::Keys(hooks))];
        // Only if we begin the file: a removal can't tell our version from another program's.
        if json.get(&[]).is_none_or(|root| root.as_object().is_some_and(Map::is_empty)) {
            keys.insert(0, (VERSION_KEY.to_owned(), Tree::Value(json!(1))));
        }
        let (bytes, made) = json.add(&Tree::Keys(keys))?;
        Ok(Edited { bytes, made, added, updated, dropped: dropped_count })
    }

    fn cut_hooks(&self, bytes: &[u8], made: Made<'_>) -> Result<(Option<Vec<u8>>, usize), InstallError> {
        let json = self.parse(bytes)?;
        let mut ways: Vec<Vec<Step>> = self.find(&json).into_iter().map(|(way, _, _)| way).collect();
        let count = ways.len();
        if count == 0 {
            return Ok((Some(bytes.to_vec()), 0));
        }
        if matches!(made, Made::Known(made) if made.iter().any(|container| container.at.is_empty())) {
            ways.push(vec![Step::Key(VERSION_KEY.to_owned())]);
        }
        Ok((json.cut(&ways, made), count))
    }
}

impl Target for Cursor {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn install(&self) -> &Install {
        &self.install
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.hooks.clone(), self.servers.clone()]
    }

    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError> {
        let (hooks, servers) = (now.bytes(&self.hooks), now.bytes(&self.servers));
        // The server goes first: if its name is taken, the hooks must not be added either.
        let server = self.server().install(&self.servers, servers.unwrap_or_default())?;
        let edited = self.add_hooks(hooks.unwrap_or_default())?;
        let what = summary(&edited, "1 hook", "hooks");
        let edit = FileEdit::write(&self.hooks, hooks, edited.bytes, what, edited.made);
        let what = summary(&server, "the MCP server `baton`", "MCP servers");
        Ok(vec![edit, FileEdit::write(&self.servers, servers, server.bytes, what, server.made)])
    }

    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError> {
        let mut edits = Vec::new();
        if let Some(bytes) = now.bytes(&self.servers) {
            let (after, n) = self.server().remove(&self.servers, bytes, records.made(&self.servers))?;
            if n > 0 {
                let what = "remove the MCP server `baton`".to_owned();
                edits.push(FileEdit::take_out(&self.servers, bytes, after, what));
            }
        }
        if let Some(bytes) = now.bytes(&self.hooks) {
            let (after, n) = self.cut_hooks(bytes, records.made(&self.hooks))?;
            if n > 0 {
                let what = format!("remove {n} {}", if n == 1 { "hook" } else { "hooks" });
                edits.push(FileEdit::take_out(&self.hooks, bytes, after, what));
            }
        }
        Ok(edits)
    }

    fn notes(&self, _now: &Current) -> Vec<String> {
        vec!["baton's support of Cursor follows the documentation and was not tested with the program; mail may come twice, marked so".to_owned()]
    }
}
