//! Codex, as found by experiment with 0.166.0.

mod adapter;
mod transcript;

pub use adapter::Codex;
