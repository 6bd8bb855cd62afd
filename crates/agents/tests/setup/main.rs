//! Setting up and taking out, as a user of the crate sees it: on documents in memory, on disk, and with
//! the real agent programs. One binary, because each one links the world again.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod changed;
mod disk;
mod documents;
mod programs;
mod real_claude;
mod real_codex;
mod refused;
mod round_trip;
mod world;
