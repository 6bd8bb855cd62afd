//! What baton puts into Copilot's configuration: its own hooks file, its own extension, and an MCP
//! server. For the user: `hooks/baton.json`, `extensions/baton/extension.mjs` and `mcp-config.json`
//! in `$COPILOT_HOME` (`~/.copilot`). For a project: `.github/hooks/baton.json`,
//! `.github/extensions/baton/extension.mjs` and `.mcp.json` in its directory, which Copilot reads
//! in trusted folders only. Of two extensions with one name it loads the project's. It loads
//! extensions only if the user turns them on. That is the user's decision: baton reads
//! `settings.json` in `$COPILOT_HOME` to report it, and never writes it. `HOOKS` is the table to
//! change when the set of hooks changes. Pure: bytes in, edits out.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::OUR_SERVER;
use crate::config::json::{Bom, Dialect, Json, Reader, Step};
use crate::install::hooks::{GUARD, HELD_SECONDS, HOLD};
use crate::install::own_file::OwnFile;
use crate::install::server::JsonServer;
use crate::install::shell::quote;
use crate::install::{
    Current, FileEdit, GuardHooks, Install, InstallError, Records, Scope, Server, Target, Trust, plain,
    summary,
};

const AGENT: &str = "copilot";
const TRUST_HINT: &str = "Copilot reads a project's hooks and servers only in folders that you trust: run `copilot` in the project once and say yes";
const EXTENSIONS_OFF_NOTE: &str = "Copilot loads no extensions until you turn them on, so mail for an idle session waits for its next prompt: start `copilot --experimental` once, which it remembers, or set \"enabledFeatureFlags\": {\"EXTENSIONS\": true} in its settings.json";

/// The extension. The program and the home are still placeholders.
const EXTENSION: &str = include_str!("extension.mjs");
/// The timeout of a hook, in seconds.
const HOOK_TIMEOUT_SECONDS: u32 = 10;

/// The reader of `mcp-config.json` and `.mcp.json`.
const SERVERS: Reader = Reader {
    malformed: "Copilot does not start the MCP servers in it",
    bom: Bom::Malformed,
    dialect: Dialect::Strict,
};

/// The reader of `settings.json`.
const SETTINGS: Reader =
    Reader { malformed: "Copilot ignores it", bom: Bom::Skipped, dialect: Dialect::Comments };

/// The events with a hook. The command names its event, because payloads don't.
const HOOKS: [&str; 6] =
    ["sessionStart", "userPromptSubmitted", "postToolUse", "agentStop", "notification", "sessionEnd"];
/// Before a permission is asked for, and also if none is needed. It may answer instead of the user.
const BEFORE_DIALOG: &str = "permissionRequest";
/// Before any tool, for the guard only. After a tool, one hook serves both the guard and the mail.
const BEFORE_TOOLS: &str = "preToolUse";
/// Before a call of baton's own tools. Its answer adds the caller to the call.
const BEFORE_OUR_TOOLS: &str = "preMcpToolCall";

#[derive(Clone, Debug)]
pub struct Copilot {
    install: Install,
    /// Owned by baton.
    hooks: PathBuf,
    /// Owned by baton.
    extension: PathBuf,
    servers: PathBuf,
    /// The user's, for all projects.
    settings: PathBuf,
}

impl Copilot {
    /// `user_home` is the user's home; `copilot_home` is `$COPILOT_HOME`, if that is set.
    pub fn new(
        install: Install,
        user_home: &Path,
        copilot_home: Option<&Path>,
    ) -> Result<Self, InstallError> {
        let home = copilot_home.map_or_else(|| user_home.join(".copilot"), Path::to_owned);
        let (folder, servers) = match install.scope() {
            Scope::Project(dir) => (dir.join(".github"), dir.join(".mcp.json")),
            Scope::User => (home.clone(), home.join("mcp-config.json")),
        };
        let hooks = folder.join("hooks/baton.json");
        let extension = folder.join("extensions/baton/extension.mjs");
        for path in [&hooks, &extension, &servers] {
            plain(path)?;
        }
        Ok(Self { install, hooks, extension, servers, settings: home.join("settings.json") })
    }

    pub fn hooks_path(&self) -> &Path {
        &self.hooks
    }

    pub fn servers_path(&self) -> &Path {
        &self.servers
    }

    /// Several agents read a project's `.mcp.json`.
    fn servers_are_shared(&self) -> bool {
        matches!(self.install.scope(), Scope::Project(_))
    }

    fn server(&self) -> JsonServer<'_> {
        let (baton, home) = (self.install.baton(), self.install.home());
        let agent = (!self.servers_are_shared()).then_some(AGENT);
        JsonServer { agent, baton, home, reader: &SERVERS }
    }

    fn command(&self, event: &str) -> String {
        let (baton, home) = (quote(self.install.baton()), quote(self.install.home()));
        format!("{baton} hook {AGENT} {event} --home {home}")
    }

    fn hook(&self, event: &str) -> Value {
        json!({ "type": "command", "bash": self.command(event), "timeoutSec": HOOK_TIMEOUT_SECONDS })
    }

    fn hooks_file(&self) -> Vec<u8> {
        let mut hooks: Map<String, Value> =
            HOOKS.iter().map(|event| ((*event).to_owned(), json!([self.hook(event)]))).collect();
        let mut held = self.hook(BEFORE_DIALOG);
        held["timeoutSec"] = json!(HELD_SECONDS);
        hooks.insert(BEFORE_DIALOG.to_owned(), json!([held]));
        let mut signing = self.hook(BEFORE_OUR_TOOLS);
        signing["matcher"] = json!(format!("{OUR_SERVER}/.*"));
        hooks.insert(BEFORE_OUR_TOOLS.to_owned(), json!([signing]));
        if self.install.guard() != GuardHooks::Off {
            let mut judging = self.hook(BEFORE_TOOLS);
            judging["bash"] = json!(self.command(&format!("{BEFORE_TOOLS} {GUARD} {HOLD}")));
            judging["timeoutSec"] = json!(HELD_SECONDS);
            hooks.insert(BEFORE_TOOLS.to_owned(), json!([judging]));
        }
        format!("{:#}\n", json!({ "version": 1, "hooks": hooks })).into_bytes()
    }

    /// A text that only our hooks file contains: the end of its first command, as JSON writes it.
    fn mark(&self) -> String {
        let end = format!(" hook {AGENT} {} --home {}", HOOKS[0], quote(self.install.home()));
        let text = json!(end).to_string();
        text[1..text.len() - 1].to_owned()
    }

    fn with_hooks_file<T>(&self, use_it: impl FnOnce(OwnFile<'_>) -> T) -> T {
        let (bytes, mark) = (self.hooks_file(), self.mark());
        use_it(OwnFile { path: &self.hooks, what: "the hooks of baton", bytes: &bytes, mark: &mark })
    }

    fn with_extension<T>(&self, use_it: impl FnOnce(OwnFile<'_>) -> T) -> T {
        let mark = format!("const HOME = {};", Value::from(self.install.home()));
        let program = format!("const BATON = {};", Value::from(self.install.baton()));
        let text = EXTENSION
            .replace("const BATON = \"{baton}\";", &program)
            .replace("const HOME = \"{home}\";", &mark);
        let what = "the extension of baton";
        use_it(OwnFile { path: &self.extension, what, bytes: text.as_bytes(), mark: &mark })
    }

    /// Whether the user's settings let Copilot load extensions.
    fn loads_extensions(&self, now: &Current) -> bool {
        let settings = now.bytes(&self.settings).unwrap_or_default();
        let Ok(settings) = Json::parse(settings, &self.settings, &SETTINGS) else { return false };
        let on = |way: &[&str]| {
            let way: Vec<Step> = way.iter().map(|key| Step::Key((*key).to_owned())).collect();
            settings.get(&way) == Some(Value::Bool(true))
        };
        on(&["experimental"]) || on(&["enabledFeatureFlags", "EXTENSIONS"])
    }

    /// In a project, the server called `baton` may belong to another agent that reads the same
    /// file.
    fn leaves_server(&self, bytes: &[u8]) -> Result<bool, InstallError> {
        Ok(self.servers_are_shared() && self.server().owner(&self.servers, bytes)? == Server::Others)
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
        vec![self.hooks.clone(), self.extension.clone(), self.servers.clone(), self.settings.clone()]
    }

    fn shared(&self) -> Vec<PathBuf> {
        self.servers_are_shared().then(|| self.servers.clone()).into_iter().collect()
    }

    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError> {
        let servers = now.bytes(&self.servers);
        let mut edits =
            vec![self.with_hooks_file(|file| file.write(now))?, self.with_extension(|file| file.write(now))?];
        if !self.leaves_server(servers.unwrap_or_default())? {
            let server = self.server().install(&self.servers, servers.unwrap_or_default())?;
            let what = summary(&server, "the MCP server `baton`", "MCP servers");
            edits.push(FileEdit::write(&self.servers, servers, server.bytes, what, server.made));
        }
        Ok(edits)
    }

    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError> {
        let own =
            [self.with_hooks_file(|file| file.remove(now)), self.with_extension(|file| file.remove(now))];
        let mut edits: Vec<FileEdit> = own.into_iter().flatten().collect();
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
        let off = (!self.loads_extensions(now)).then_some(EXTENSIONS_OFF_NOTE);
        if *self.install.scope() == Scope::User {
            return off.map(str::to_owned).into_iter().collect();
        }
        let taken = "Copilot's sessions lack baton's tools here, because the server `baton` in .mcp.json belongs to another baton; run `baton setup copilot` to add them";
        let leaves = self.leaves_server(now.bytes(&self.servers).unwrap_or_default()).unwrap_or(false);
        [Some(TRUST_HINT), leaves.then_some(taken), off].into_iter().flatten().map(str::to_owned).collect()
    }

    fn trust(&self, now: &Current) -> Result<Trust, InstallError> {
        let off = !self.loads_extensions(now);
        Ok(match self.install.scope() {
            Scope::User if off => Trust::Hidden(EXTENSIONS_OFF_NOTE.to_owned()),
            Scope::User => Trust::NotAsked,
            Scope::Project(_) => Trust::Hidden(TRUST_HINT.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(home: &str, scope: Scope) -> Copilot {
        let install = Install::new(Path::new("/opt/a \"b\"/baton"), Path::new(home), scope).unwrap();
        Copilot::new(install, Path::new("/home/dev"), None).unwrap()
    }

    fn settings(text: &str) -> Current {
        let path = target("/h", Scope::User).settings;
        [(path, Some(text.as_bytes().to_vec()))].into_iter().collect()
    }

    #[test]
    fn the_program_and_the_home_are_filled_in() {
        let copilot = target("/home/dev/{baton}", Scope::User);
        assert_eq!(copilot.extension, Path::new("/home/dev/.copilot/extensions/baton/extension.mjs"));
        let text = copilot.with_extension(|file| String::from_utf8(file.bytes.to_vec()).unwrap());
        assert!(text.contains(r#"const BATON = "/opt/a \"b\"/baton";"#), "{text}");
        assert!(text.contains(r#"const HOME = "/home/dev/{baton}";"#));
        assert!(!text.contains("\"{baton}\"") && !text.contains("\"{home}\""));
        let project = target("/h", Scope::Project("/p".into()));
        assert_eq!(project.extension, Path::new("/p/.github/extensions/baton/extension.mjs"));
    }

    #[test]
    fn another_homes_extension_is_not_ours() {
        let (ours, theirs) = (target("/h", Scope::User), target("/other", Scope::User));
        let text = theirs.with_extension(|file| file.bytes.to_vec());
        let now = [(ours.extension.clone(), Some(text))].into_iter().collect();
        assert_eq!(ours.add(&now).unwrap_err().code(), "setup-file-taken");
        assert!(ours.take_out(&now, &Records::default()).unwrap().is_empty());
        assert_eq!(theirs.take_out(&now, &Records::default()).unwrap().len(), 1);
    }

    #[test]
    fn a_note_says_that_extensions_are_off() {
        let copilot = target("/h", Scope::User);
        let on = [
            r#"{"experimental": true}"#,
            r#"{"enabledFeatureFlags": {"EXTENSIONS": true}}"#,
            "{ // on\n \"experimental\": true }",
        ];
        for text in on {
            assert!(copilot.notes(&settings(text)).is_empty(), "{text}");
            assert_eq!(copilot.trust(&settings(text)).unwrap(), Trust::NotAsked, "{text}");
        }
        let off = [
            "",
            "{",
            "{}",
            "[true]",
            r#"{"experimental": false}"#,
            r#"{"enabledFeatureFlags": ["EXTENSIONS"]}"#,
        ];
        for text in off {
            assert_eq!(copilot.notes(&settings(text)), [EXTENSIONS_OFF_NOTE], "{text}");
            assert_eq!(
                copilot.trust(&settings(text)).unwrap(),
                Trust::Hidden(EXTENSIONS_OFF_NOTE.to_owned()),
                "{text}"
            );
        }
        assert_eq!(
            target("/h", Scope::Project("/p".into())).notes(&settings("{}")),
            [TRUST_HINT, EXTENSIONS_OFF_NOTE]
        );
    }
}
