//! Cursor in constants.

use crate::facts::{Facts, Quirks};
use baton_core::guard::HookSwitch;

pub const FACTS: Facts = Facts {
    name: "cursor",
    title: "Cursor",
    program: "cursor-agent",
    verified: None,
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    quirks: Quirks::USUAL,
    wakeable: "nothing does: its mail comes when a turn ends",
    after_setup: "a session has it once Cursor is started again",
    runs: "hooks: a process each",
    shows: "nowhere: its documentation names no text that a hook with mail shows the user",
    proof: "none: mail that may have been taken is offered again, marked so",
    session: "hooks name it",
    subagents: "a parent conversation in hooks",
    failing: "open; closed with `guard.on_failure = deny`",
    deny: "yes",
    ask: "yes",
    rewrite: "no",
    redact: "no: the model is told not to use it",
    variables: &["CURSOR_AGENT", "CURSOR_TRACE_ID"],
    logins: &[".cursor/auth.json", ".config/cursor/auth.json", ".config/Cursor/User/globalStorage"],
    switch: HookSwitch {
        program: "cursor-agent",
        files: &[".cursor/hooks.json"],
        words: &[],
        options: &[],
        sources: &[],
        homes: &["CURSOR_CONFIG_DIR"],
    },
    holes: &[
        "not verified with the real program: all of this follows the documentation",
        "nothing proves that mail was taken: it may come twice, marked so, and ends as unconfirmed",
    ],
};
