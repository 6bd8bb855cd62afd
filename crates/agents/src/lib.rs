//! What baton knows about each agent CLI: one folder per CLI, and the only place where one is named.
//!
//! [`Agent`] is what the rest of the program sees: native payload in, canonical event out; reply in, native answer out; lines of
//! the agent's transcript in, items for proof out; and the facts about it that were found by experiment. All of that is pure.
//! [`tools`] turns native tool calls into canonical ones, by each agent's table.
//! `config` edits other people's JSON and TOML files without disturbing a byte of theirs; `install` turns an agent's wishes into a
//! plan of such edits, applies it, and takes it back.

pub mod agent;
pub mod asked;
pub mod call;
pub mod claude;
pub mod codex;
pub mod config;
pub mod copilot;
pub mod cursor;
pub mod facts;
pub mod gemini;
pub mod history;
pub mod install;
pub mod opencode;
mod payload;
pub mod pi;
pub mod screen;
mod surrogates;
pub mod tools;
pub mod wake;

pub use agent::{ALL, Agent, McpCaller, Push, Shell, TranscriptReader, by_name};
pub use call::{Call, Ruling};
pub use screen::Screen;
