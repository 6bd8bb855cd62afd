//! OpenCode.

mod adapter;
pub mod install;

pub use adapter::OpenCode;
