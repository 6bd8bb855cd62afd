//! GitHub Copilot CLI, as found by experiment with the version in `versions.tsv`: its payloads,
//! answers and transcripts, and what baton puts into its files.

mod activity;
mod adapter;
mod asked;

mod facts;
mod history;
pub mod install;
mod screen;
pub mod tools;
mod transcript;
mod will_prompt;

use serde_json::Value;

pub use adapter::Copilot;

/// Copilot's name for our MCP server and its tools, in hooks: `server/tool`.
const OUR_SERVER: &str = crate::install::SERVER;

/// The key of a hook call: its payload has no id, but a time in milliseconds, which the transcript
/// repeats.
fn moment(timestamp: &Value) -> Option<String> {
    timestamp.as_u64().map(|milliseconds| format!("hook-{milliseconds}"))
}

/// Whether a prompt does not come from the user. Our text at a stop comes back as a prompt. So does
/// a note about a background task, for which Copilot drops the text of hooks.
fn is_continuation(prompt: &str) -> bool {
    prompt.contains(baton_core::mail::proof::MARK) || prompt.starts_with("<system_notification>")
}
