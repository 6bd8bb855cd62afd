//! Pi in constants.

use crate::facts::{Facts, Quirks};
use crate::versions;
use baton_core::frame::Answers;
use baton_core::guard::HookSwitch;

pub const FACTS: Facts = Facts {
    name: "pi",
    title: "Pi",
    program: "pi",
    verified: Some(versions::pinned("pi")),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    quirks: Quirks {
        // It has no MCP.
        answers: Answers::ByCommand,
        shows_requests: true,
        reports_held_stops: false,
        ..Quirks::USUAL
    },
    wakeable: "`baton setup pi`, and start it again: its extension is not connected",
    after_setup: "a session has it once Pi is started again, or after `/reload`",
    runs: "an extension and one `baton link` per process",
    shows: "a notice in the conversation: not in `-p`",
    proof: "each request to the model, as the extension sees it",
    session: "the extension names it; `PI_SESSION_ID` in shells",
    subagents: "it has none",
    failing: "open; closed with `guard.on_failure = deny`; without a terminal, Pi does not start if an extension does not load",
    deny: "yes",
    ask: "in the inbox, if no person is at the terminal or `baton approvals --watch` runs; else the guard refuses, and tells the model that a person has to decide",
    rewrite: "yes",
    redact: "yes",
    variables: &["PI_CODING_AGENT", "PI_SESSION_ID", "PI_SESSION_FILE", "AI_AGENT"],
    logins: &[".pi/agent/auth.json"],
    switch: HookSwitch {
        program: "pi",
        files: &[".pi/agent/settings.json", ".pi/settings.json"],
        words: &[],
        options: &["--no-extensions", "-ne"],
        sources: &[],
        homes: &["PI_CODING_AGENT_DIR"],
    },
    holes: &[
        "it has no MCP: its models use the `baton` command in their shell",
        "a project's extensions are skipped silently if the user has not trusted it",
    ],
};
