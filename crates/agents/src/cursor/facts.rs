//! Cursor in short: who it is, and its column in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    name: "cursor",
    title: "Cursor",
    program: "cursor-agent",
    verified: None,
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    wakeable: "nothing: its mail comes when a turn ends",
    runs: "hooks: a process each",
    proof: "none: mail that may have been taken is offered once more, marked so",
    session: "hooks say it",
    subagents: "a parent conversation in hooks",
    failing: "open; closed with `guard.on_failure = deny`",
    deny: "yes",
    ask: "yes",
    rewrite: "no",
    redact: "no: the model is told not to use it",
    variables: &["CURSOR_AGENT", "CURSOR_TRACE_ID"],
    holes: &[
        "not verified with the real program: all of this follows its documentation",
        "nothing proves that mail was taken: it may come twice, marked so, and ends as unconfirmed",
    ],
};
