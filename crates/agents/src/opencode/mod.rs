//! OpenCode.

mod adapter;
mod facts;
pub mod install;
mod screen;
pub mod tools;

pub use adapter::OpenCode;
