//! OpenCode in short: who it is, and its column in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    verified: Some("1.18.33"),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    wakeable: "`baton setup opencode`, and start it again: its plugin is not connected",
    runs: "a plugin and one `baton link` per process",
    proof: "each request to the model, as the plugin sees it",
    session: "the plugin says it, in events, shells and MCP calls",
    subagents: "sessions with a parent",
    failing: "open; closed with `guard.on_failure = deny`; a plugin that does not load is skipped silently",
    deny: "yes",
    ask: "at the inbox, where nobody sits at the terminal or somebody watches; else refused, and the model is told that a person has to decide",
    rewrite: "yes",
    redact: "yes",
    variables: &["AGENT", "OPENCODE", "OPENCODE_PID", "BATON_SESSION_ID", "BATON_CALL_ID", "BATON_SUBAGENT"],
    holes: &[
        "a plugin that can't be loaded is skipped without a word: no mail then, and nobody judges",
        "without a network its first start with any plugin takes a minute",
    ],
};
