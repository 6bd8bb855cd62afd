//! Where the pinned agent CLIs are.
//!
//! `scripts/test` installs them once into a cache outside the repository:
//! `<cache>/agents/<name>-<version>/node_modules/.bin/<name>`. `crates/agents/versions.tsv` pins
//! the versions, because a new version of an agent is a change to verify, not something that
//! happens to a test run: `scripts/drift` verifies it.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::claude::Claude;
use crate::codex::Codex;
use crate::copilot::Copilot;
use crate::gemini::Gemini;
use crate::model::{Model, Part};
use crate::opencode::OpenCode;
use crate::pi::Pi;
use crate::process::Finished;
use crate::sandbox::Sandbox;
use crate::tmux::Tmux;

/// The pinned versions, a row each: name, npm package, version.
const VERSIONS: &str = include_str!("../../agents/versions.tsv");

/// The pinned version of an agent, or of `node`.
fn pinned(name: &str) -> &'static str {
    let row = VERSIONS.lines().find_map(|row| row.strip_prefix(name)?.strip_prefix('\t'));
    let version = row.and_then(|row| row.split('\t').nth(1));
    version.unwrap_or_else(|| panic!("crates/agents/versions.tsv has no version of {name}"))
}

/// An agent CLI that tests drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// OpenCode.
    OpenCode,
    /// Gemini CLI.
    Gemini,
    /// GitHub Copilot CLI.
    Copilot,
    /// Pi.
    Pi,
}

impl Agent {
    /// All of them.
    pub const ALL: [Agent; 6] =
        [Agent::Claude, Agent::Codex, Agent::OpenCode, Agent::Gemini, Agent::Copilot, Agent::Pi];

    /// The command's name.
    pub const fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::OpenCode => "opencode",
            Agent::Gemini => "gemini",
            Agent::Copilot => "copilot",
            Agent::Pi => "pi",
        }
    }

    /// The agent of that name.
    pub fn by_name(name: &str) -> Option<Agent> {
        Agent::ALL.into_iter().find(|agent| agent.name() == name)
    }

    /// The version under test: the pinned one, or that in `BATON_TEST_<NAME>`, which
    /// `scripts/drift` sets.
    pub fn version(self) -> String {
        let named = env::var(format!("BATON_TEST_{}", self.name().to_uppercase()));
        named.unwrap_or_else(|_| self.pinned().to_owned())
    }

    /// The version that the tests were written against.
    pub fn pinned(self) -> &'static str {
        pinned(self.name())
    }

    /// How this agent wants a call to be written: the tool's name and its input.
    pub(crate) fn tool_call(self, part: &Part) -> (String, Value) {
        match part {
            Part::Tool { name, input } => (name.clone(), input.clone()),
            Part::Mcp { server, tool, input } => {
                let name = match self {
                    Agent::Claude | Agent::Codex | Agent::Pi => format!("mcp__{server}__{tool}"),
                    Agent::OpenCode => format!("{server}_{tool}"),
                    Agent::Gemini => format!("mcp_{server}_{tool}"),
                    Agent::Copilot => format!("{server}-{tool}"),
                };
                (name, input.clone())
            }
            Part::Shell(command) => {
                let described = json!({"command": command, "description": "Scripted command"});
                match self {
                    Agent::Claude => ("Bash".to_owned(), described),
                    Agent::Codex => ("exec_command".to_owned(), json!({"cmd": command})),
                    Agent::OpenCode | Agent::Copilot => ("bash".to_owned(), described),
                    Agent::Gemini => ("run_shell_command".to_owned(), described),
                    Agent::Pi => ("bash".to_owned(), json!({"command": command})),
                }
            }
            Part::Read(path) => match self {
                Agent::Claude => ("Read".to_owned(), json!({"file_path": path})),
                // It has no tool for that, and reads by its shell.
                Agent::Codex => self.tool_call(&Part::Shell(format!("cat '{path}'"))),
                Agent::OpenCode => ("read".to_owned(), json!({"filePath": path})),
                Agent::Gemini => ("read_file".to_owned(), json!({"file_path": path})),
                Agent::Copilot => ("view".to_owned(), json!({"path": path})),
                Agent::Pi => ("read".to_owned(), json!({"path": path})),
            },
            Part::Write { path, content } => match self {
                Agent::Claude => ("Write".to_owned(), json!({"file_path": path, "content": content})),
                // It writes by patches, and takes this command for one.
                Agent::Codex => self.tool_call(&Part::Shell(format!(
                    "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path}\n+{content}\n*** End Patch\nEOF"
                ))),
                Agent::OpenCode => ("write".to_owned(), json!({"filePath": path, "content": content})),
                Agent::Gemini => ("write_file".to_owned(), json!({"file_path": path, "content": content})),
                Agent::Copilot => ("create".to_owned(), json!({"path": path, "file_text": content})),
                Agent::Pi => ("write".to_owned(), json!({"path": path, "content": content})),
            },
            Part::Text(_) | Part::Pause(_) | Part::Tokens(_) => panic!("no tool call: {part:?}"),
        }
    }

    /// The launcher in the cache, as npm installed it.
    pub fn locate(self) -> Result<PathBuf, MissingAgent> {
        self.locate_in(&cache_dir())
    }

    fn locate_in(self, cache: &Path) -> Result<PathBuf, MissingAgent> {
        let folder = format!("{}-{}", self.name(), self.version());
        let path = cache.join("agents").join(folder).join("node_modules/.bin").join(self.name());
        if path.exists() { Ok(path) } else { Err(MissingAgent { agent: self, path }) }
    }
}

/// Which conversation an agent starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Session<'a> {
    /// A new one.
    New,
    /// An earlier one, continued under its id.
    Resume(&'a str),
    /// A copy of an earlier one, under a new id.
    Fork(&'a str),
}

/// An agent that is prepared in a sandbox, ready to start.
pub trait Program<'a> {
    /// The command of a headless run with this prompt.
    fn headless(&self, session: Session<'_>, prompt: &str) -> Command;

    /// Opens it in a terminal, and waits until it takes input.
    fn open(&self, session: Session<'_>) -> Tmux<'a>;

    /// The agent's own id of the session of a headless run.
    fn session_id(&self, run: &Finished) -> Option<String>;
}

/// Prepares an agent's home in a sandbox, unless that is done already. Panics when it is not
/// installed.
pub fn program<'a>(agent: Agent, sandbox: &'a Sandbox, model: &Model) -> Box<dyn Program<'a> + 'a> {
    match agent {
        Agent::Claude => Box::new(Claude::new(sandbox, model)),
        Agent::Codex => Box::new(Codex::new(sandbox, model)),
        Agent::OpenCode => Box::new(OpenCode::new(sandbox, model)),
        Agent::Gemini => Box::new(Gemini::new(sandbox, model)),
        Agent::Copilot => Box::new(Copilot::new(sandbox, model)),
        Agent::Pi => Box::new(Pi::new(sandbox, model)),
    }
}

/// The `node` in the cache, for agents that need a newer one than the machine may have.
pub(crate) fn cached_node() -> PathBuf {
    let node = cache_dir().join(format!("agents/node-{}/node_modules/.bin/node", pinned("node")));
    assert!(node.exists(), "no {}\nhint: run `scripts/test` once, it fills the cache", node.display());
    node
}

/// `$BATON_TEST_CACHE`, else `baton-test` in the user's cache folder.
pub(crate) fn cache_dir() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("BATON_TEST_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("baton-test")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/baton-test")))
        .unwrap_or_else(|| PathBuf::from(".cache/baton-test"))
}

/// A pinned agent is not in the cache.
#[derive(Debug)]
pub struct MissingAgent {
    agent: Agent,
    path: PathBuf,
}

impl fmt::Display for MissingAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} is not installed (looked for {})\nhint: run `scripts/test` once, it fills the cache",
            self.agent.name(),
            self.agent.version(),
            self.path.display()
        )
    }
}

impl std::error::Error for MissingAgent {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_agent_names_the_script_that_installs_it() {
        let cache = tempfile::tempdir().unwrap();
        let error = Agent::Codex.locate_in(cache.path()).unwrap_err().to_string();
        assert!(error.contains("scripts/test"), "{error}");
        assert!(error.contains(&format!("agents/codex-{}", Agent::Codex.pinned())), "{error}");
    }

    #[test]
    fn an_installed_agent_is_found() {
        let cache = tempfile::tempdir().unwrap();
        let bin = cache.path().join(format!("agents/claude-{}/node_modules/.bin", Agent::Claude.pinned()));
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("claude"), "").unwrap();
        assert_eq!(Agent::Claude.locate_in(cache.path()).unwrap(), bin.join("claude"));
    }
}
