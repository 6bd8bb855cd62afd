//! The files of a plugin or an extension: another way to set an agent up, through the agent's own
//! installer. They are made from the same hooks as setup's entries. A test compares them with
//! `plugins/` in the tree.
//!
//! A plugin is the same for everyone, so it finds `baton` on the search path, and baton's home by
//! itself. Its entries say `--plugin`: they do nothing where setup has entries of its own.

use super::delegation;
use super::hooks::HookSet;
use super::{HookRow, InstallError, SERVER};
use crate::config::json::Reader;
use memchr::memmem;
use serde_json::{Value, json};
use std::path::Path;

/// Marks a hook and a server that a plugin installs.
pub const PLUGIN: &str = "--plugin";
/// The program, as a plugin calls it.
pub(crate) const PROGRAM: &str = "baton";
pub(crate) const SUMMARY: &str = "Mail, jobs and approvals between coding agents; nothing is lost or doubled";

/// One file of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFile {
    /// Its path below `plugins/`.
    pub path: String,
    pub text: String,
}

impl PluginFile {
    pub(crate) fn json(path: &str, value: &Value) -> Self {
        Self { path: path.to_owned(), text: format!("{value:#}\n") }
    }

    /// The hooks, in the form of setup's file.
    pub(crate) fn hooks(
        path: &str,
        agent: &'static str,
        title: Option<&'static str>,
        rows: &[HookRow],
        reader: &Reader,
    ) -> Result<Self, InstallError> {
        let hooks = HookSet { agent, baton: PROGRAM, home: None, title, rows, reader };
        let bytes = hooks.install(Path::new(path), b"")?.bytes;
        Ok(Self { path: path.to_owned(), text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// A file that tells the agent how to hand a task to another agent.
    pub(crate) fn instructions(path: &str, text: fn(&str) -> delegation::Instructions) -> Self {
        let text = text(PROGRAM);
        Self { path: path.to_owned(), text: format!("---\n{}---\n\n{}", text.head, text.body) }
    }
}

/// The MCP servers of a plugin.
pub(crate) fn servers(agent: &str) -> Value {
    json!({ SERVER: { "type": "stdio", "command": PROGRAM, "args": ["mcp", "--agent", agent, PLUGIN] } })
}

/// What every manifest says.
pub(crate) fn manifest() -> Value {
    json!({ "name": PROGRAM, "version": env!("CARGO_PKG_VERSION"), "description": SUMMARY })
}

/// Whether a file of an agent holds hooks that setup wrote for this agent and home.
pub fn holds_setup(file: &[u8], agent: &str, home: &str) -> bool {
    let command = format!(" hook {agent} ");
    memmem::find(file, command.as_bytes()).is_some()
        && memmem::find(file, b"--home").is_some()
        && memmem::find_iter(file, home.as_bytes()).any(|at| {
            // The whole word: the name of another home may begin with that of this one.
            let ends = |byte: Option<&u8>| byte.is_none_or(|byte| b"'\"\\ \n".contains(byte));
            ends(at.checked_sub(1).and_then(|before| file.get(before))) && ends(file.get(at + home.len()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_setups_own_hooks_for_this_agent_and_home_count() {
        let file = br#"{"hooks":{"Stop":[{"hooks":[{"command":"'/b' hook claude --home '/h'"}]}]}}"#;
        assert!(holds_setup(file, "claude", "/h"));
        assert!(!holds_setup(file, "codex", "/h"));
        assert!(!holds_setup(file, "claude", "/other"));
        assert!(!holds_setup(br#"'/b' hook claude --home '/h2'"#, "claude", "/h"));
        assert!(!holds_setup(br#"'/b' hook claude --home '/x/h'"#, "claude", "/h"));
        assert!(!holds_setup(br#"{"command":"'baton' hook claude --plugin"}"#, "claude", "/h"));
    }
}
