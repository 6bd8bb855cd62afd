//! Pi in short: who it is, and its column in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    name: "pi",
    title: "Pi",
    program: "pi",
    verified: Some("0.87.1"),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    wakeable: "`baton setup pi`, and start it again: its extension is not connected",
    runs: "an extension and one `baton link` per process",
    proof: "each request to the model, as the extension sees it",
    session: "the extension says it; `PI_SESSION_ID` in shells",
    subagents: "it has none",
    failing: "open; closed with `guard.on_failure = deny`; without a terminal Pi does not start with an extension that does not load",
    deny: "yes",
    ask: "at the inbox, where nobody sits at the terminal; else refused, and the model is told that a person has to decide",
    rewrite: "yes",
    redact: "yes",
    variables: &["PI_CODING_AGENT", "PI_SESSION_ID", "PI_SESSION_FILE", "AI_AGENT"],
    holes: &[
        "it has no MCP: its models use the `baton` command in their shell",
        "extensions of a project are skipped without a word where the person has not trusted it",
    ],
};
