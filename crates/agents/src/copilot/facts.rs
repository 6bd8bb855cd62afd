//! GitHub Copilot CLI in constants.

use crate::facts::{Facts, Quirks};
use crate::versions;
use baton_core::guard::HookSwitch;

pub const FACTS: Facts = Facts {
    name: "copilot",
    title: "GitHub Copilot CLI",
    program: "copilot",
    verified: Some(versions::pinned("copilot")),
    tools: &super::tools::TOOLS,
    calls: &super::tools::CALLS,
    quirks: Quirks {
        // `preCompact` comes before the summary is made, which may fail.
        writes_summaries: true,
        ends_with_plugin: false,
        ..Quirks::USUAL
    },
    wakeable: "turn its extensions on (`copilot --experimental` once)",
    after_setup: "a session has it once Copilot is started again",
    runs: "hooks: a process each; to be woken, an extension and one `baton link` per session",
    shows: "in the conversation: since version 1.0.55",
    proof: "its transcript",
    session: "hooks name it; the hook before an MCP call adds it to the call",
    subagents: "`agentId` in hooks",
    failing: "open on a timeout or garbage, closed on exit 1",
    deny: "yes",
    ask: "yes; without a terminal, the question waits in the inbox",
    rewrite: "yes",
    redact: "yes, except for a tool that failed",
    variables: &[
        "COPILOT_CLI",
        "COPILOT_AGENT_SESSION_ID",
        "COPILOT_PROJECT_DIR",
        "COPILOT_HOOK_DIR",
        "SESSION_ID",
    ],
    logins: &[".copilot/config.json", ".config/github-copilot"],
    switch: HookSwitch {
        program: "copilot",
        files: &[
            ".copilot/settings.json",
            ".github/copilot/settings.json",
            ".github/copilot/settings.local.json",
            ".copilot/config.json",
        ],
        words: &[("disableAllHooks", &[":false", "=false"])],
        options: &[],
        sources: &[],
        homes: &["COPILOT_HOME"],
    },
    holes: &[
        "a hook that takes too long or prints nonsense is skipped: the tool runs, and the mail waits",
        "the output of a failed MCP tool can't be replaced, and no hook sees it",
        "mail never comes at the start of a session, only from its first prompt on",
        "an idle session gets its mail at once only in a terminal, and only with its experimental extensions turned on",
    ],
};
