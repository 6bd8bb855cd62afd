//! Cursor, by its documentation of hooks (version 1 of `hooks.json`): its payloads and answers, and
//! what baton puts into its files.
//!
//! Nothing here was verified with the real program, which can't run without its own service. Its
//! transcript is not documented, so nothing proves that mail was taken. baton offers mail that may
//! have been taken once more, and marks it.

mod adapter;
mod facts;
pub mod install;
pub mod tools;

pub use adapter::Cursor;
