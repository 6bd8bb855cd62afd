//! Claude Code in short: who it is, and its column in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    verified: Some("2.1.325"),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    wakeable: "`baton setup claude`, and start the session again; or run it in tmux",
    runs: "hooks: a process at start, prompt, stop and end, and around each tool for the guard; a call of our MCP server between tools for mail",
    proof: "its transcript, with a record of each request",
    session: "hooks say it; `CLAUDE_CODE_SESSION_ID` in shells; MCP by the process that its hooks name",
    subagents: "`agent_id` in hooks",
    failing: "open; closed with `guard.on_failure = deny`",
    deny: "yes",
    ask: "yes; without a terminal it waits at the inbox",
    rewrite: "yes",
    redact: "yes, but for a tool that failed: there the model is told not to use it",
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
    holes: &[
        "a hook that fails or takes too long is passed over: the tool runs unless closed, and the mail waits",
        "what a command prints that fails can't be replaced: the model is told not to use a secret in it",
        "Esc at a permission dialog runs no hook; what the session does is then known from its own registry only",
    ],
};
