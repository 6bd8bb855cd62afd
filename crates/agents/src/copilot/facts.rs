//! GitHub Copilot CLI in short: who it is, and its column in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    name: "copilot",
    title: "GitHub Copilot CLI",
    program: "copilot",
    verified: Some("1.0.102"),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    wakeable: "turn its extensions on (`copilot --experimental` once)",
    runs: "hooks: a process each; to be woken, an extension and one `baton link` per session",
    proof: "its transcript",
    session: "hooks say it; MCP calls are signed by the hook before them",
    subagents: "`agentId` in hooks",
    failing: "open on time-out and garbage, closed on exit 1",
    deny: "yes",
    ask: "yes; without a terminal it waits at the inbox",
    rewrite: "yes",
    redact: "yes, but for a tool that failed",
    variables: &[
        "COPILOT_CLI",
        "COPILOT_AGENT_SESSION_ID",
        "COPILOT_PROJECT_DIR",
        "COPILOT_HOOK_DIR",
        "SESSION_ID",
    ],
    holes: &[
        "a hook that takes too long or prints nonsense is passed over: the tool runs, and the mail waits",
        "what an MCP tool says that fails can't be replaced, and no hook of ours sees it",
        "mail never comes at the start of a session, only from its first prompt on",
        "an idle session gets its mail at once only in a terminal, and only with its experimental extensions turned on",
    ],
};
