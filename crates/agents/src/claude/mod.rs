//! Claude Code, as found by experiment with 2.1.325.

mod adapter;
mod transcript;

pub use adapter::Claude;
