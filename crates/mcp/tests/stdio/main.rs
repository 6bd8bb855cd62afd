//! The real server as a process. The tests talk to it over stdin and stdout, as the agents do.

#![expect(clippy::disallowed_macros, reason = "a test says why it was skipped")]

mod agents;
mod asks;
mod binding;
mod client;
mod faults;
mod hooks;
mod mail;
mod protocol;
mod world;
