//! Which session a shell, a process or an MCP call belongs to.

use super::{Env, Profile};
use baton_core::event::Event;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Used by every command and MCP call that needs to know which session it acts for.
///
/// A minimal agent: [`shell`](Self::shell), which may be `None`, and
/// [`is_process`](Self::is_process). Then baton finds the session by the processes above a command.
pub trait Identity: Profile {
    /// The session that this environment belongs to, if it is that of one of the agent's shells.
    fn shell(&self, env: Env<'_>) -> Option<Shell>;

    /// Whether this environment is that of one of the agent's shells but names no session. Then the
    /// process tree must.
    fn is_unnamed_shell(&self, _env: Env<'_>) -> bool {
        false
    }

    /// Whether a process is this agent's, by its arguments.
    fn is_process(&self, args: &[String]) -> bool;

    /// Whether such a process runs the sessions of several terminals, so that it identifies none of
    /// them.
    fn is_shared_process(&self, _args: &[String]) -> bool {
        false
    }

    /// Whether a process runs hooks for this agent, by its arguments. Besides the agent's own
    /// program, an editor may.
    fn runs_hooks(&self, args: &[String]) -> bool {
        self.is_process(args)
    }

    /// Whether a hook that was installed for another agent shows signs that this one runs it: some
    /// agents read each other's configuration. A repository can forge the signs, so the process
    /// that runs the hook must confirm them ([`runs_hooks`](Self::runs_hooks)).
    fn runs_foreign_hook(&self, _payload: &[u8], _env: Env<'_>) -> bool {
        false
    }

    /// The process that runs the session, if the environment of its hooks names it.
    fn hook_process(&self, _env: Env<'_>) -> Option<i32> {
        None
    }

    /// What the `_meta` of an MCP call says about its caller.
    fn mcp_caller(&self, _meta: &Map<String, Value>) -> McpCaller {
        McpCaller::default()
    }

    /// The caller of an MCP call, taken out of the call's arguments. Our plugin puts it there if
    /// the agent itself does not say who calls.
    fn caller_in_arguments(&self, _arguments: &mut Map<String, Value>) -> Option<McpCaller> {
        None
    }

    /// The answer to the hook before a call of baton's MCP tools that adds the caller to the call,
    /// as [`mcp_caller`](Self::mcp_caller) reads it; `None` if the call needs no such help.
    fn sign_call(&self, _event: &Event) -> Option<String> {
        None
    }

    /// Whether an MCP call comes from a hook, not from a model, by its `_meta`.
    fn is_hook_call(&self, _meta: &Map<String, Value>) -> bool {
        false
    }

    /// The folder that the subagents of a session write their conversations to, for an agent whose
    /// payloads and calls don't say who caused them; `None` if they do, and for a tool that no
    /// subagent has.
    fn subagent_folder(&self, _session_id: &str, _transcript: &Path, _tool: Option<&str>) -> Option<PathBuf> {
        None
    }
}

/// The session that runs a command in its shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// The agent's own session id.
    pub session_id: String,
    /// The id of the tool call, if the agent names it here and in its transcript.
    pub call: Option<String>,
    /// Whether a subagent runs the command.
    pub subagent: bool,
}

/// What an MCP call says about its caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpCaller {
    /// The agent's own session id, if calls carry it.
    pub session_id: Option<String>,
    /// The id of the tool call.
    pub call: Option<String>,
    /// Whether the call says that a subagent makes it.
    pub subagent: bool,
}
