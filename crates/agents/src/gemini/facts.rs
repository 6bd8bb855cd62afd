//! Gemini CLI in constants.

use crate::facts::{Facts, Quirks};
use crate::versions;
use baton_core::guard::HookSwitch;

pub const FACTS: Facts = Facts {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    verified: Some(versions::pinned("gemini")),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    quirks: Quirks {
        hears_at_start: false,
        names_turns: false,
        // Not in a terminal.
        reports_held_stops: false,
        stops_when_interrupted: true,
        // It leaves temporary files there.
        writes_when_asked_for_version: true,
        ..Quirks::USUAL
    },
    wakeable: "run it in tmux",
    after_setup: "a session has it once Gemini CLI is started again",
    runs: "hooks: a process each",
    shows: "in the conversation: `ℹ … [baton]`",
    proof: "its transcript",
    session: "hooks name it; shells and MCP by the process tree",
    subagents: "the folder that they write to",
    failing: "open",
    deny: "yes",
    ask: "yes; without a terminal, the question waits in the inbox",
    rewrite: "yes",
    redact: "yes: ours replaces it, as a blocked result",
    variables: &["GEMINI_CLI", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD", "GEMINI_PLANS_DIR"],
    logins: &[".gemini/oauth_creds.json", ".gemini/google_accounts.json"],
    switch: HookSwitch {
        program: "gemini",
        files: &[".gemini/settings.json"],
        words: &[("hooksConfig", &[":{enabled:true", ".enabled=true"])],
        options: &["--acp", "--experimental-acp"],
        sources: &[],
        homes: &["GEMINI_CLI_HOME"],
    },
    holes: &[
        "a hook that fails or takes too long is skipped: the tool runs, and the mail waits for the next event",
        "`gemini --acp` runs no hooks at the start and around tools: mail comes late, and nothing is judged",
        "before a tool it takes no note for the model: the note comes with the result",
        "it asks about MCP tools at each call until the user allows them",
    ],
};
