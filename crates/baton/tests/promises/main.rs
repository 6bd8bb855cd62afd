//! The promises of mail, each with tests that try to break it, against the real program.
//!
//! A test is named after its promise (`m1_…` to `m25_…`, see `docs/promises.md`). Two variables make them stricter: `BATON_ROUNDS=N` repeats
//! what races or is random N times, and `BATON_ALL_POINTS=1` kills at every system call instead of a sample.

#[cfg(test)]
mod moments;
#[cfg(test)]
mod paper;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod puppet;
#[cfg(test)]
mod world;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod approvals;
mod approvals_rules;
#[cfg(test)]
mod asks;
#[cfg(test)]
mod budget;
#[cfg(test)]
mod chaos;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod frame;
#[cfg(test)]
mod guard;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod identity;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod jobs_mcp;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod killed;
#[cfg(test)]
mod life;
#[cfg(test)]
mod loops;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod output;
#[cfg(test)]
mod parallel;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod review;
#[cfg(test)]
mod senders;
#[cfg(test)]
mod unknown;
#[cfg(test)]
mod upkeep;
#[cfg(test)]
mod wake;
