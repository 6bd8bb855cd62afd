//! OpenCode.

mod adapter;
mod install;

pub use adapter::OpenCode;
