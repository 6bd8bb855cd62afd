//! What baton knows about each agent CLI: one folder per CLI, and the only place that names one.
//!
//! [`Agent`] is what the rest of the program uses: a native payload becomes a canonical event, a
//! reply becomes a native answer, and lines of the agent's transcript become items for proof. All
//! of that is pure. [`tools`] turns native tool calls into canonical ones, by each agent's table.
//!
//! `config` edits other people's JSON and TOML files without changing any other byte. `install`
//! plans such edits, applies them, and removes them.

pub mod activity;
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
mod versions;
pub mod wake;

pub use agent::{ALL, Agent, ContextLimit, McpCaller, Push, Shell, TranscriptReader, by_name};
pub use call::{Ruling, ToolCall};
pub use screen::Screen;
