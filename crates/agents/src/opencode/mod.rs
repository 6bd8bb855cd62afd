//! OpenCode.

mod adapter;
mod facts;
pub mod install;
pub mod tools;

pub use adapter::OpenCode;
