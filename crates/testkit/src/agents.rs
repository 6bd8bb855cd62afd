//! Where the pinned agent CLIs are.
//!
//! `scripts/test` installs them once into a cache outside the repository:
//! `<cache>/agents/<name>-<version>/node_modules/.bin/<name>`. The versions are pinned here, because a
//! new version of an agent is a change to verify, not something that happens to a test run.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

/// An agent CLI that tests drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
}

impl Agent {
    /// The command's name.
    pub const fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
        }
    }

    /// The version that the tests were written against.
    pub const fn version(self) -> &'static str {
        match self {
            Agent::Claude => "2.1.325",
            Agent::Codex => "0.166.0",
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

/// `$BATON_TEST_CACHE`, else `baton-test` in the user's cache folder.
fn cache_dir() -> PathBuf {
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
        assert!(error.contains("agents/codex-0.166.0"), "{error}");
    }

    #[test]
    fn an_installed_agent_is_found() {
        let cache = tempfile::tempdir().unwrap();
        let bin = cache.path().join("agents/claude-2.1.325/node_modules/.bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("claude"), "").unwrap();
        assert_eq!(Agent::Claude.locate_in(cache.path()).unwrap(), bin.join("claude"));
    }
}
