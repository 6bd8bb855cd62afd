//! What baton knows about each agent CLI: one folder per CLI, and the only place where one is named.
//!
//! [`Agent`] is what the rest of the program sees: native payload in, canonical event out; reply in, native answer out; lines of
//! the agent's transcript in, items for proof out; and the facts about it that were found by experiment. All of that is pure.

pub mod agent;
pub mod claude;
pub mod codex;
mod payload;

pub use agent::{ALL, Agent, Shell, TranscriptReader, by_name};
