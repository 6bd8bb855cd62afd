//! Pi, as found by experiment with the version in `versions.tsv`. It has neither hooks nor MCP, so
//! our extension forwards its events to `baton link pi`.

mod activity;
mod adapter;
mod facts;
mod history;
pub mod install;
mod screen;
pub mod tools;

pub use adapter::Pi;
