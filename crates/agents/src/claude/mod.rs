//! Claude Code, as found by experiment with 2.1.325: its payloads, answers and transcripts, and what baton puts into its files.

mod adapter;
mod asked;
mod facts;
mod history;
pub mod install;
mod requests;
mod screen;
pub mod tools;
mod transcript;
mod wake;

pub use adapter::Claude;
