//! Codex, as found by experiment with the version in `versions.tsv`: its payloads, answers and
//! rollouts, what baton puts into its files, and how its hooks become trusted.

mod activity;
mod adapter;
mod asked;
mod facts;
mod history;
pub mod install;
mod screen;
pub mod tools;
mod transcript;
mod trust;
mod wake;

pub use adapter::Codex;
