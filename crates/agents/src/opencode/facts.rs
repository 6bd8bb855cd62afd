//! OpenCode in constants.

use crate::facts::{Facts, Quirks};
use crate::versions;
use baton_core::guard::HookSwitch;

pub const FACTS: Facts = Facts {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    verified: Some(versions::pinned("opencode")),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    quirks: Quirks {
        shows_requests: true,
        reports_held_stops: false,
        // It makes its folders, and a log.
        writes_when_asked_for_version: true,
        ..Quirks::USUAL
    },
    wakeable: "`baton setup opencode`, and start it again: its plugin is not connected",
    after_setup: "a session has it once OpenCode is started again",
    runs: "a plugin and one `baton link` per process",
    shows: "a toast: for ten seconds, and not in `run` and `serve`",
    proof: "each request to the model, as the plugin sees it",
    session: "the plugin names it, in events, shells and MCP calls",
    subagents: "sessions with a parent",
    failing: "open; closed with `guard.on_failure = deny`; a plugin that does not load is skipped silently",
    deny: "yes",
    ask: "in the inbox, if no person is at the terminal or `baton approvals --watch` runs; else the guard refuses, and tells the model that a person has to decide",
    rewrite: "yes",
    redact: "yes",
    variables: &["AGENT", "OPENCODE", "OPENCODE_PID", "BATON_SESSION_ID", "BATON_CALL_ID", "BATON_SUBAGENT"],
    logins: &[".local/share/opencode/auth.json"],
    switch: HookSwitch {
        program: "opencode",
        files: &["opencode.json", "opencode.jsonc"],
        words: &[],
        options: &["--pure"],
        sources: &[],
        homes: &["OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG"],
    },
    holes: &[
        "a plugin that can't be loaded is skipped silently: then there is no mail and no guard",
        "without a network, its first start with any plugin takes a minute",
    ],
};
