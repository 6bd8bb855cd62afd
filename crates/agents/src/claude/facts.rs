//! Claude Code in constants.

use crate::facts::{Facts, Quirks};
use crate::versions;
use baton_core::guard::HookSwitch;
use baton_core::time::Span;

pub const FACTS: Facts = Facts {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    verified: Some(versions::pinned("claude")),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    quirks: Quirks {
        // The limit is more than a day, unless MCP_TOOL_TIMEOUT is set. The model should see now
        // and then that time passes.
        mcp_tool_time: Span::minutes(8),
        holds_typed_ahead: true,
        ..Quirks::USUAL
    },
    wakeable: "`baton setup claude`, and start the session again; or run it in tmux",
    after_setup: "sessions that run now have its hooks already; restart them to give them baton's tools",
    runs: "hooks: a process at start, prompt, stop and end, and around each tool for the guard; a call of the MCP server between tools for mail",
    shows: "below the prompt or the tools: `UserPromptSubmit says: …`",
    proof: "its transcript, with a record of each request",
    session: "hooks name it; `CLAUDE_CODE_SESSION_ID` in shells; MCP by the process that its hooks name",
    subagents: "`agent_id` in hooks",
    failing: "open; closed with `guard.on_failure = deny`",
    deny: "yes",
    ask: "yes; without a terminal, the question waits in the inbox",
    rewrite: "yes",
    redact: "yes, except for a tool that failed: the model is told not to use it",
    variables: &[
        "CLAUDECODE",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_PID",
        "CLAUDE_PROJECT_DIR",
        "CLAUDE_ENV_FILE",
        "CLAUDE_EFFORT",
        "AI_AGENT",
    ],
    logins: &[".claude/.credentials.json", ".claude.json"],
    switch: HookSwitch {
        program: "claude",
        files: &[".claude/settings.json", ".claude/settings.local.json", "managed-settings.json"],
        words: &[("disableAllHooks", &[":false", "=false"])],
        options: &["--bare"],
        sources: &[("--setting-sources", "user")],
        homes: &["CLAUDE_CONFIG_DIR"],
    },
    holes: &[
        "a hook that fails or takes too long is skipped: the tool runs unless closed, and the mail waits",
        "the output of a failed command can't be replaced: the model is told not to use a secret in it",
        "Esc at a permission dialog runs no hook; only its own registry then shows what the session does",
    ],
};
