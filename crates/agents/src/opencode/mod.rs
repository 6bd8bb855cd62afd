//! OpenCode, as found by experiment with the version in `versions.tsv`. It has no hooks, so our
//! plugin forwards its events to `baton link opencode`.

mod adapter;
pub mod asked;
mod facts;
mod history;
pub mod install;
mod screen;
pub mod tools;

pub use adapter::OpenCode;
