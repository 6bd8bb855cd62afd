//! Gemini CLI in short: who it is, and its column in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    verified: Some("0.61.0"),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    wakeable: "run it in tmux",
    runs: "hooks: a process each",
    proof: "its transcript",
    session: "hooks say it; shells and MCP by the process tree",
    subagents: "the folder that they write into",
    failing: "open",
    deny: "yes",
    ask: "yes; without a terminal it waits at the inbox",
    rewrite: "yes",
    redact: "yes: ours takes its place, as a blocked result",
    variables: &["GEMINI_CLI", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD", "GEMINI_PLANS_DIR"],
    holes: &[
        "a hook that fails or takes too long is passed over: the tool runs, and the mail waits for the next event",
        "`gemini --acp` runs no hooks at a start and around tools: mail comes late there, and nobody judges",
        "before a tool it takes no note for the model: it comes with the result",
        "its MCP tools are asked about at each call until the person allows them",
    ],
};
