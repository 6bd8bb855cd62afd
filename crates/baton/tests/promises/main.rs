//! The promises, each with tests that try to break it, against the real program.
//!
//! A test is named after its promise: `m1_…` for mail, `g1_…` for the guard, `j1_…` for jobs (see
//! `docs/promises.md`). Two variables make them stricter: `BATON_ROUNDS=N` repeats what races or is
//! random N times, and `BATON_ALL_POINTS=1` kills at every system call instead of a sample.

#![expect(clippy::disallowed_macros, reason = "a test says why it was skipped")]
#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

#[cfg(target_os = "linux")]
mod keyboard;
mod moments;
mod paper;
mod processes;
mod puppet;
mod world;

#[cfg(target_os = "linux")]
mod approvals;
mod approvals_rules;
mod asks;
mod budget;
mod chaos;
mod completions;
mod config;
mod contention;
mod crowd;
mod damaged;
mod demo;
mod docs;
mod doctor;
mod errors;
#[cfg(target_os = "linux")]
mod exits;
mod failing;
mod foreign;
mod frame;
mod guard;
#[cfg(target_os = "linux")]
mod hostile_text;
#[cfg(target_os = "linux")]
mod identity;
mod jobs;
mod jobs_mcp;
#[cfg(target_os = "linux")]
mod jobs_person;
#[cfg(target_os = "linux")]
mod killed;
mod life;
mod lists;
mod loops;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod output;
mod parallel;
#[cfg(target_os = "linux")]
mod presence;
mod reference;
mod review;
mod rights;
mod rings;
mod selfprotection;
mod senders;
mod setup;
mod status;
#[cfg(target_os = "linux")]
mod terminal;
mod unknown;
mod upkeep;
mod version;
mod wake;
mod whom;
