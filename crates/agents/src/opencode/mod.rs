//! OpenCode.

mod adapter;
pub mod install;
pub mod tools;

pub use adapter::OpenCode;
