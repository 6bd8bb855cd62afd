//! Codex in short: who it is, and its column in `docs/agents.md`.

use crate::facts::Facts;

/// The facts.
pub const FACTS: Facts = Facts {
    name: "codex",
    title: "Codex",
    program: "codex",
    verified: Some("0.166.0"),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    wakeable: "keep its terminal open (or set wake_unattended = \"on\"), and have `codex` on the PATH of whoever sends",
    runs: "hooks: a process at start, prompt, stop and end, and around each tool for the guard; a call of our MCP server after each tool for mail",
    proof: "its transcript",
    session: "hooks say it; `CODEX_SESSION_ID` in shells; `_meta` of each MCP call",
    subagents: "`agent_id` in hooks, another thread in MCP calls",
    failing: "open; untrusted hooks are skipped silently",
    deny: "yes",
    ask: "at the inbox, where nobody sits at the terminal or somebody watches; else refused, and the model is told that a person has to decide",
    rewrite: "yes",
    redact: "yes: ours takes its place",
    variables: &[
        "CODEX_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_TOOL_CALL_ID",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
    ],
    holes: &[
        "a hook that fails or takes too long is passed over: the tool runs, and the mail waits for the next event",
        "what is typed into a shell that runs already (write_stdin) runs no hook: nobody judges it",
        "hooks that are not trusted are skipped without a word",
        "with its daemon, /new is a new participant, and quitting the terminal ends no session",
    ],
};
