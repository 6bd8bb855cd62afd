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
    runs: "hooks: a process at start, prompt, stop and end; a call of our MCP server between tools",
    proof: "its transcript, with a record of each request",
    session: "hooks say it; `CLAUDE_CODE_SESSION_ID` in shells; MCP by the process that its hooks name",
    subagents: "`agent_id` in hooks",
    failing: "open; closed for hooks with `onFailure: block`",
    deny: "yes",
    ask: "yes; without a terminal it is a refusal",
    rewrite: "yes",
    redact: "yes",
    holes: &[
        "a hook that fails or takes too long is passed over: the tool runs, and the mail waits for the next event",
        "Esc at a permission dialog runs no hook; what the session does is then known from its own registry only",
    ],
};
