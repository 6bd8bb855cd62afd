//! What baton puts into Copilot's configuration: a hooks file of its own, and an MCP server.
//! For the user: `hooks/baton.json` and `mcp-config.json` in `$COPILOT_HOME` (`~/.copilot`). For a project:
//! `.github/hooks/baton.json` and `.mcp.json` in its directory, which Copilot reads in trusted folders only.
//! `HOOKS` is the table to change when the set of hooks changes. Pure: bytes in, edits out.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::OUR_SERVER;
use crate::config::json::{Bom, Dialect, Reader};
use crate::install::hooks::GUARD;
use crate::install::own_file::OwnFile;
use crate::install::server::JsonServer;
use crate::install::shell::quote;
use crate::install::{
    Current, FileEdit, Guard, Install, InstallError, Records, Scope, Server, Target, Trust, plain, summary,
};

const AGENT: &str = "copilot";
const TRUST: &str = "Copilot reads a project's hooks and servers only in folders that you trust: run `copilot` in the project once and say yes";
/// Seconds that a hook may take.
const TIMEOUT: u32 = 10;

/// Who reads `mcp-config.json` and `.mcp.json`.
const SERVERS: Reader = Reader {
    malformed: "Copilot does not start the MCP servers in it",
    bom: Bom::Malformed,
    dialect: Dialect::Strict,
};

/// The events that are hooked. The command names its event, because the payloads don't.
const HOOKS: [&str; 6] =
    ["sessionStart", "userPromptSubmitted", "postToolUse", "agentStop", "notification", "sessionEnd"];
/// Before any tool: for the guard alone. After one, the same hook does both, what the guard says and the mail.
const BEFORE_TOOLS: &str = "preToolUse";
/// Before a call of our own tools: its answer makes the call say who makes it.
const BEFORE_OUR_TOOLS: &str = "preMcpToolCall";

/// Copilot's configuration in one scope.
#[derive(Clone, Debug)]
pub struct Copilot {
    install: Install,
    /// Ours alone.
    hooks: PathBuf,
    servers: PathBuf,
}

impl Copilot {
    /// `user_home` is the person's home; `copilot_home` is `$COPILOT_HOME`, if that is set.
    pub fn new(
        install: Install,
        user_home: &Path,
        copilot_home: Option<&Path>,
    ) -> Result<Self, InstallError> {
        let (hooks, servers) = match install.scope() {
            Scope::Project(dir) => (dir.join(".github/hooks/baton.json"), dir.join(".mcp.json")),
            Scope::User => {
                let folder = copilot_home.map_or_else(|| user_home.join(".copilot"), Path::to_owned);
                (folder.join("hooks/baton.json"), folder.join("mcp-config.json"))
            }
        };
        plain(&hooks)?;
        plain(&servers)?;
        Ok(Self { install, hooks, servers })
    }

    /// The file that holds the hooks.
    pub fn hooks_path(&self) -> &Path {
        &self.hooks
    }

    /// The file that holds the MCP entry.
    pub fn servers_path(&self) -> &Path {
        &self.servers
    }

    fn server(&self) -> JsonServer<'_> {
        let (baton, home) = (self.install.baton(), self.install.home());
        JsonServer { agent: AGENT, baton, home, reader: &SERVERS }
    }

    /// The command of a hook.
    fn command(&self, event: &str) -> String {
        let (baton, home) = (quote(self.install.baton()), quote(self.install.home()));
        format!("{baton} hook {AGENT} {event} --home {home}")
    }

    fn hook(&self, event: &str) -> Value {
        json!({ "type": "command", "bash": self.command(event), "timeoutSec": TIMEOUT })
    }

    /// The whole hooks file.
    fn hooks_file(&self) -> Vec<u8> {
        let mut hooks: Map<String, Value> =
            HOOKS.iter().map(|event| ((*event).to_owned(), json!([self.hook(event)]))).collect();
        let mut signing = self.hook(BEFORE_OUR_TOOLS);
        signing["matcher"] = json!(format!("{OUR_SERVER}/.*"));
        hooks.insert(BEFORE_OUR_TOOLS.to_owned(), json!([signing]));
        if self.install.guard() != Guard::Off {
            let mut judging = self.hook(BEFORE_TOOLS);
            judging["bash"] = json!(self.command(&format!("{BEFORE_TOOLS} {GUARD}")));
            hooks.insert(BEFORE_TOOLS.to_owned(), json!([judging]));
        }
        format!("{:#}\n", json!({ "version": 1, "hooks": hooks })).into_bytes()
    }

    /// What our hooks file has in it and no other file does: the end of its first command, as JSON writes it.
    fn mark(&self) -> String {
        let end = format!(" hook {AGENT} {} --home {}", HOOKS[0], quote(self.install.home()));
        let text = json!(end).to_string();
        text[1..text.len() - 1].to_owned()
    }

    fn with_hooks_file<T>(&self, use_it: impl FnOnce(OwnFile<'_>) -> T) -> T {
        let (bytes, mark) = (self.hooks_file(), self.mark());
        use_it(OwnFile { path: &self.hooks, what: "the hooks of baton", bytes: &bytes, mark: &mark })
    }

    /// In a project, the server called `baton` may be the one of another agent that reads the same file.
    fn leaves_server(&self, bytes: &[u8]) -> Result<bool, InstallError> {
        let project = matches!(self.install.scope(), Scope::Project(_));
        Ok(project && self.server().owner(&self.servers, bytes)? == Server::Others)
    }
}

impl Target for Copilot {
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
        let servers = now.bytes(&self.servers);
        let mut edits = vec![self.with_hooks_file(|file| file.write(now))?];
        if !self.leaves_server(servers.unwrap_or_default())? {
            let server = self.server().install(&self.servers, servers.unwrap_or_default())?;
            let what = summary(&server, "the MCP server `baton`", "MCP servers");
            edits.push(FileEdit::write(&self.servers, servers, server.bytes, what, server.made));
        }
        Ok(edits)
    }

    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError> {
        let mut edits: Vec<FileEdit> = self.with_hooks_file(|file| file.remove(now)).into_iter().collect();
        if let Some(bytes) = now.bytes(&self.servers) {
            let (after, n) = self.server().remove(&self.servers, bytes, records.made(&self.servers))?;
            if n > 0 {
                let what = "remove the MCP server `baton`".to_owned();
                edits.push(FileEdit::take_out(&self.servers, bytes, after, what));
            }
        }
        Ok(edits)
    }

    fn notes(&self, now: &Current) -> Vec<String> {
        if *self.install.scope() == Scope::User {
            return Vec::new();
        }
        let taken = "Copilot's sessions have no tools of baton's here, because the server `baton` in .mcp.json is another agent's; run `baton setup copilot` for them";
        let leaves = self.leaves_server(now.bytes(&self.servers).unwrap_or_default()).unwrap_or(false);
        [Some(TRUST), leaves.then_some(taken)].into_iter().flatten().map(str::to_owned).collect()
    }

    fn trust(&self, _now: &Current) -> Result<Trust, InstallError> {
        Ok(match self.install.scope() {
            Scope::User => Trust::NotAsked,
            Scope::Project(_) => Trust::Hidden(TRUST.to_owned()),
        })
    }
}
