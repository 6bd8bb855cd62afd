//! Gemini CLI in `docs/agents.md`.

use crate::facts::{Facts, Verified};

/// The facts.
pub const FACTS: Facts = Facts {
    verified: Verified::Program,
    runs: "hooks: a process each",
    proof: "its transcript",
    session: "hooks say it; shells and MCP by the process tree",
    subagents: "the folder that they write into",
    failing: "open",
    deny: "yes",
    ask: "no: without a terminal the run ends",
    rewrite: "yes",
    redact: "yes, by a refusal after the tool",
    holes: "ACP mode runs no hooks",
};
