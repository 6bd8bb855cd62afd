//! Any bytes as a command, an output or a rule file: a decision, in time.
#![no_main]

#[path = "../guard.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::judged(data));
