//! Codex in constants.

use crate::facts::{Facts, Quirks};
use crate::versions;
use baton_core::guard::HookSwitch;

pub const FACTS: Facts = Facts {
    name: "codex",
    title: "Codex",
    program: "codex",
    verified: Some(versions::pinned("codex")),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    quirks: Quirks { outlives_terminals: true, ..Quirks::USUAL },
    wakeable: "keep its terminal open (or set wake_unattended = \"on\"), and have `codex` on the PATH of the sender",
    after_setup: "a new session has it, and appears in `baton who` with its first prompt",
    runs: "hooks: a process at start, prompt, stop and end, and around each tool for the guard; a call of the MCP server after each tool for mail",
    shows: "in the conversation: `↳ Hook · …`",
    proof: "its transcript",
    session: "hooks name it; `CODEX_SESSION_ID` in shells; `_meta` of each MCP call",
    subagents: "`agent_id` in hooks, another thread in MCP calls",
    failing: "open; untrusted hooks are skipped silently",
    deny: "yes",
    ask: "in the inbox, if no person is at the terminal or `baton approvals --watch` runs; else the guard refuses, and tells the model that a person has to decide",
    rewrite: "yes",
    redact: "yes: ours replaces it",
    variables: &[
        "CODEX_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_TOOL_CALL_ID",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
    ],
    logins: &[".codex/auth.json"],
    switch: HookSwitch {
        program: "codex",
        files: &[".codex/config.toml"],
        words: &[("hooks=false", &[]), ("disablehooks", &[])],
        options: &[],
        sources: &[],
        homes: &["CODEX_HOME"],
    },
    holes: &[
        "a hook that fails or takes too long is skipped: the tool runs, and the mail waits for the next event",
        "input for a running shell (write_stdin) runs no hook: it is not judged",
        "hooks that are not trusted are skipped silently",
        "with its daemon, /new is a new participant, and quitting the terminal ends no session",
    ],
};
