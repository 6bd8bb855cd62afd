//! Claude Code, as found by experiment with the version in `versions.tsv`: its payloads, answers
//! and transcripts, and what baton puts into its files.

mod activity;
mod adapter;
pub mod asked;
mod facts;
mod history;
pub mod install;
mod requests;
mod screen;
pub mod tools;
mod transcript;
mod wake;

pub use adapter::Claude;
