//! Pi, as found by experiment with 0.87.1. It has neither hooks nor MCP, so an extension of ours forwards its events to `baton link pi`.

mod adapter;
mod facts;
mod history;
pub mod install;
mod screen;
pub mod tools;

pub use adapter::Pi;
