//! GitHub Copilot CLI, as found by experiment with 1.0.102: its payloads, answers and transcripts, and what baton puts into its files.

mod adapter;
mod asked;
mod asks;
mod facts;
mod history;
pub mod install;
mod screen;
pub mod tools;
mod transcript;

use serde_json::Value;

pub use adapter::Copilot;

/// Copilot's name for our MCP server and its tools, in hooks: `server/tool`.
const OUR_SERVER: &str = crate::install::SERVER;

/// What a hook call is known by: its payload has no id, but a time in milliseconds that the transcript repeats.
fn moment(timestamp: &Value) -> Option<String> {
    timestamp.as_u64().map(|milliseconds| format!("hook-{milliseconds}"))
}

/// Whether a prompt is not the person's: what we said at a stop comes back as one, and so does a note about a background task, with which
/// Copilot passes nothing on that a hook adds.
fn is_continuation(prompt: &str) -> bool {
    prompt.contains(baton_core::mail::proof::MARK) || prompt.starts_with("<system_notification>")
}
