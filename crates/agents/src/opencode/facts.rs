//! OpenCode in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    runs: "a plugin and one `baton link` per process",
    proof: "each request to the model, as the plugin sees it",
    session: "the plugin says it, in events, shells and MCP calls",
    subagents: "sessions with a parent",
    failing: "open; a plugin that does not load is skipped silently",
    deny: "yes",
    ask: "by its own permissions only",
    rewrite: "yes",
    redact: "yes",
    holes: &[
        "a plugin that can't be loaded is skipped without a word",
        "without a network its first start with any plugin takes a minute",
    ],
};
