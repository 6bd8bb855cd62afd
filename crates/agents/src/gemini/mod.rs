//! Gemini CLI, as found by experiment with the version in `versions.tsv`: its payloads, answers and
//! transcripts, and what baton puts into its files.

mod activity;
mod adapter;
mod asked;
mod facts;
mod history;
pub mod install;
mod screen;
pub mod tools;
mod transcript;

pub use adapter::Gemini;
