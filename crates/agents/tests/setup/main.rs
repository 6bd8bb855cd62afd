//! The crate as its users see it: setup and removal on documents in memory, on disk, and with the
//! real agent programs; and the adapters. One binary, because each one links the whole program
//! again.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod adapters;
mod agent_plugins;
mod changed;
mod disk;
mod documents;
mod fuzzed;
#[cfg(test)]
mod guarding;
#[cfg(test)]
mod hostile;
mod matrix;
mod opencode;
mod pi;
mod plugin;
mod programs;
mod real_claude;
mod real_codex;
mod refused;
mod round_trip;
mod screens;
#[cfg(test)]
mod shared;
mod world;
