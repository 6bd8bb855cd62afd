//! Codex in `docs/agents.md`.

use crate::facts::{Facts, Verified};

/// The facts.
pub const FACTS: Facts = Facts {
    verified: Verified::Program,
    runs: "hooks: a process at start, prompt, stop and end; a call of our MCP server after each tool",
    proof: "its transcript",
    session: "hooks say it; `CODEX_SESSION_ID` in shells; `_meta` of each MCP call",
    subagents: "`agent_id` in hooks, another thread in MCP calls",
    failing: "open; untrusted hooks are skipped silently",
    deny: "yes",
    ask: "no: the tool runs",
    rewrite: "yes",
    redact: "yes, by a refusal after the tool",
    holes: "input typed into a running shell",
};
