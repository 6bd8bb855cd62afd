//! Pi in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    runs: "an extension and one `baton link` per process",
    proof: "each request to the model, as the extension sees it",
    session: "the extension says it; `PI_SESSION_ID` in shells",
    subagents: "it has none",
    failing: "open; an extension that does not load is skipped",
    deny: "yes",
    ask: "it has no permissions of its own",
    rewrite: "yes",
    redact: "yes",
    holes: &[
        "it has no MCP: its models use the `baton` command in their shell",
        "extensions of a project are skipped without a word where the person has not trusted it",
    ],
};
