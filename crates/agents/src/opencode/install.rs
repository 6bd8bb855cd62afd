//! What baton puts into OpenCode's configuration: our plugin beside it, and entries for the plugin
//! and for the MCP server in it.
//!
//! The configuration is JSON with comments. If `opencode.json` and `opencode.jsonc` both exist,
//! OpenCode merges them. With any plugin, OpenCode installs a package beside its configuration
//! before the first request, once. Without a network it tries that for a minute at each start.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

use crate::config::json::{Bom, Dialect, Json, Reader, Step, Tree};
use crate::install::delegation::{self, Part};
use crate::install::own_file::OwnFile;
use crate::install::server::{home_in_args, server_args};
use crate::install::{Current, FileEdit, Install, InstallError, Records, SERVER, Scope, Target, plain};

const AGENT: &str = "opencode";
const PLUGIN: &str = include_str!("plugin.js");

/// The reader of the configuration.
const CONFIG: Reader = Reader {
    malformed: "OpenCode does not start with it",
    bom: Bom::Skipped,
    dialect: Dialect::CommentsAndTrailingCommas,
};

#[derive(Clone, Debug)]
pub struct OpenCode {
    install: Install,
    configs: [PathBuf; 2],
    plugin: PathBuf,
    source: String,
    /// A text that only the plugin of this home contains.
    mark: String,
    /// The files that tell the agent how to hand a task to another agent.
    parts: Vec<Part>,
}

impl OpenCode {
    /// `user_home` is the user's home; `config_home` is `$XDG_CONFIG_HOME`, if that is set.
    pub fn new(install: Install, user_home: &Path, config_home: Option<&Path>) -> Result<Self, InstallError> {
        let (configs, plugins) = match install.scope() {
            Scope::User => {
                let folder =
                    config_home.map_or_else(|| user_home.join(".config"), Path::to_owned).join("opencode");
                (folder.clone(), folder)
            }
            Scope::Project(dir) => (dir.clone(), dir.join(".opencode")),
        };
        plain(&configs)?;
        let mark = format!("const HOME = {}\n", json!(install.home()));
        let source = PLUGIN
            .replace("const BATON = __BATON__\n", &format!("const BATON = {}\n", json!(install.baton())))
            .replace("const HOME = __HOME__\n", &mark)
            .replace("const GUARD = __GUARD__\n", &format!("const GUARD = \"{}\"\n", install.guard().word()));
        let parts = match install.scope() {
            Scope::Project(_) => Vec::new(),
            Scope::User => vec![Part::skill(&install, configs.join("skills/baton-jobs/SKILL.md"))],
        };
        Ok(Self {
            configs: ["opencode.jsonc", "opencode.json"].map(|name| configs.join(name)),
            plugin: plugins.join("baton.js"),
            install,
            source,
            mark,
            parts,
        })
    }

    /// The files that may hold the configuration. Setup edits the first that exists, or makes the
    /// last.
    pub fn config_paths(&self) -> &[PathBuf; 2] {
        &self.configs
    }

    pub fn plugin_path(&self) -> &Path {
        &self.plugin
    }

    fn own_file(&self) -> OwnFile<'_> {
        OwnFile {
            path: &self.plugin,
            what: "the plugin of baton",
            bytes: self.source.as_bytes(),
            mark: &self.mark,
        }
    }

    /// The plugin as the configuration names it.
    fn spec(&self) -> String {
        format!("file://{}", self.plugin.display())
    }

    fn server(&self) -> Value {
        let command =
            [vec![self.install.baton().to_owned()], server_args(AGENT, self.install.home())].concat();
        json!({"type": "local", "command": command, "enabled": true})
    }

    /// The file to edit: the first that exists.
    fn config(&self, now: &Current) -> &Path {
        let [first, last] = &self.configs;
        if now.bytes(first).is_some() { first } else { last }
    }

    fn add_entries(
        &self,
        path: &Path,
        bytes: &[u8],
    ) -> Result<(Vec<u8>, Vec<crate::config::json::Container>, String), InstallError> {
        let json = Json::parse(bytes, path, &CONFIG)?;
        json.unique(&["mcp", SERVER])?;
        json.unique(&["plugin"])?;
        let mut tree = Vec::new();
        let mut updates = Vec::new();
        let listed = json
            .get(&plugins())
            .is_some_and(|list| list.as_array().is_some_and(|list| list.contains(&json!(self.spec()))));
        if !listed {
            tree.push(("plugin".to_owned(), Tree::Append(vec![json!(self.spec())])));
        }
        match json.get(&server()) {
            None => {
                let entry = Tree::Keys(vec![(SERVER.to_owned(), Tree::Value(self.server()))]);
                tree.push(("mcp".to_owned(), entry));
            }
            Some(old) => {
                match home_of(&old) {
                    Some(home) if home == self.install.home() => {}
                    Some(home) => return Err(InstallError::OtherHome { place: json.place(&server()), home }),
                    None => {
                        let key = format!("mcp.{SERVER}");
                        return Err(InstallError::NameTaken { place: json.place(&server()), key });
                    }
                }
                let command = self.server()["command"].clone();
                if old.get("command") != Some(&command) {
                    updates.push(([server(), vec![Step::Key("command".to_owned())]].concat(), command));
                }
            }
        }
        let what = match (tree.is_empty(), updates.is_empty()) {
            (true, true) => "nothing to do",
            (false, _) => "add the plugin and the MCP server `baton`",
            (true, false) => "update the MCP server `baton`",
        };
        let bytes = json.replace(&updates);
        let (bytes, made) = Json::parse(&bytes, path, &CONFIG)?.add(&Tree::Keys(tree))?;
        Ok((bytes, made, what.to_owned()))
    }

    /// Where our entries are in a document.
    fn ours(&self, json: &Json<'_>) -> Vec<Vec<Step>> {
        let mut ways = Vec::new();
        let list = json.get(&plugins()).unwrap_or_default();
        let listed = list.as_array().into_iter().flatten();
        for (index, _) in listed.enumerate().filter(|(_, spec)| **spec == json!(self.spec())) {
            ways.push([plugins(), vec![Step::Index(index)]].concat());
        }
        if json.get(&server()).and_then(|entry| home_of(&entry)).as_deref() == Some(self.install.home()) {
            ways.push(server());
        }
        ways
    }
}

impl Target for OpenCode {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn install(&self) -> &Install {
        &self.install
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = self.configs.iter().chain([&self.plugin]).cloned();
        files.chain(delegation::paths(&self.parts)).collect()
    }

    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError> {
        let path = self.config(now);
        let before = now.bytes(path);
        let (after, made, what) = self.add_entries(path, before.unwrap_or_default())?;
        let mut edits = vec![self.own_file().write(now)?, FileEdit::write(path, before, after, what, made)];
        edits.extend(delegation::write(&self.parts, now)?);
        Ok(edits)
    }

    fn take_out(&self, now: &Current, records: &Records) -> Result<Vec<FileEdit>, InstallError> {
        let mut edits: Vec<FileEdit> = self.own_file().remove(now).into_iter().collect();
        for path in &self.configs {
            let Some(bytes) = now.bytes(path) else { continue };
            let json = Json::parse(bytes, path, &CONFIG)?;
            let ways = self.ours(&json);
            if !ways.is_empty() {
                let what = "remove the plugin and the MCP server `baton`".to_owned();
                edits.push(FileEdit::take_out(path, bytes, json.cut(&ways, records.made(path)), what));
            }
        }
        edits.extend(delegation::remove(&self.parts, now));
        Ok(edits)
    }

    fn notes(&self, _now: &Current) -> Vec<String> {
        vec![
            "OpenCode installs a package when it first runs with a plugin; without a network that can take a minute (npm_config_offline=true shortens it)".to_owned(),
            "OpenCode reads its configuration when it starts: restart running ones".to_owned(),
        ]
    }

    fn loaded(&self) -> Option<&Path> {
        Some(&self.plugin)
    }
}

fn plugins() -> Vec<Step> {
    vec![Step::Key("plugin".to_owned())]
}

fn server() -> Vec<Step> {
    vec![Step::Key("mcp".to_owned()), Step::Key(SERVER.to_owned())]
}

/// The home in one of our entries.
fn home_of(entry: &Value) -> Option<String> {
    let words: Option<Vec<&str>> = entry.get("command")?.as_array()?.iter().map(Value::as_str).collect();
    home_in_args(AGENT, words?.get(1..)?)
}
