//! The table of agents, and what an adapter implements.
//!
//! | trait | when it is used | a minimal agent implements |
//! |---|---|---|
//! | [`Profile`] | everywhere | `facts` |
//! | [`Setup`] | `baton setup`, `baton doctor` | `target` |
//! | [`HookCodec`] | each hook and each event of a plugin | `parse`, `render`, `context_limit`, `render_ruling` |
//! | [`Identity`] | each command and MCP call | `shell`, `is_process` |
//! | [`Transcript`] | proof that mail was shown | nothing |
//! | [`PastCalls`] | `baton guard replay` | nothing |
//! | [`Questions`] | approvals | nothing |
//! | [`Waking`] | mail for idle sessions | nothing |
//!
//! The last four are capabilities that an agent may lack: then their implementation is empty.
//! [`Agent`] is the sum of all traits; the rest of the program uses only that. Yes-or-no
//! differences between agents are fields of [`Quirks`](crate::facts::Quirks), not methods.

mod hook_codec;
mod identity;
mod past_calls;
mod profile;
mod questions;
mod setup;
mod transcript;
mod waking;

pub use hook_codec::{ContextLimit, HookCodec};
pub(crate) use hook_codec::{with_glance, with_system_message};
pub use identity::{Identity, McpCaller, Shell};
pub use past_calls::PastCalls;
pub use profile::Profile;
pub use questions::Questions;
pub use setup::Setup;
pub use transcript::{Transcript, TranscriptReader};
pub use waking::{Push, Waking};

use baton_core::{Code, Error};
use std::ffi::OsString;

/// Every agent that baton supports. CONTRIBUTING.md lists what a new row needs.
pub const ALL: &[&dyn Agent] = &[
    &crate::claude::Claude,
    &crate::codex::Codex,
    &crate::opencode::OpenCode,
    &crate::gemini::Gemini,
    &crate::copilot::Copilot,
    &crate::cursor::Cursor,
    &crate::pi::Pi,
];

/// Reads the environment. Callers pass it in, because libraries don't read it themselves.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// One agent CLI: everything that baton knows about it.
pub trait Agent:
    Profile + Setup + HookCodec + Identity + Transcript + PastCalls + Questions + Waking
{
}

impl<T> Agent for T where
    T: Profile + Setup + HookCodec + Identity + Transcript + PastCalls + Questions + Waking
{
}

/// The agent of that name.
pub fn by_name(name: &str) -> Result<&'static dyn Agent, Error> {
    ALL.iter().copied().find(|agent| agent.name() == name).ok_or_else(|| {
        Error::new(Code::UnknownAgent, format!("no agent {}", baton_core::frame::shown(name, 40)))
            .hint(format!("known agents: {}", names()))
    })
}

/// The names of all agents, for a text: `claude, codex, pi`.
pub fn names() -> String {
    let names: Vec<_> = ALL.iter().map(|agent| agent.name()).collect();
    names.join(", ")
}

/// The same for a choice: `claude, codex or pi`.
pub fn names_to_choose() -> String {
    let names = names();
    match names.rsplit_once(", ") {
        Some((others, last)) => format!("{others} or {last}"),
        None => names,
    }
}

#[cfg(test)]
mod tests;
