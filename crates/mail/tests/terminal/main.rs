//! Types into a terminal with a scripted program that looks like an agent and logs every key that
//! does harm.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod program;
mod typing;
