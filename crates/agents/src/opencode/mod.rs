//! OpenCode.

mod adapter;
pub mod asked;
mod facts;
mod history;
pub mod install;
mod screen;
pub mod tools;

pub use adapter::OpenCode;
