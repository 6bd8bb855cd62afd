//! The promises of mail, each with tests that try to break it, against the real program.
//!
//! A test is named after its promise (`m1_…` to `m25_…`, see `docs/promises.md`). Two variables make them stricter: `BATON_ROUNDS=N` repeats
//! what races or is random N times, and `BATON_ALL_POINTS=1` kills at every system call instead of a sample.

#![expect(clippy::unwrap_used, reason = "a broken stage should end the test")]

mod paper;
mod processes;
mod puppet;
mod world;

mod asks;
mod budget;
mod chaos;
mod errors;
mod failing;
mod frame;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod killed;
mod life;
mod loops;
#[cfg(target_os = "linux")]
mod output;
mod parallel;
mod reference;
mod senders;
mod upkeep;
