//! Whatever bytes come in the place of its hook payloads (pi): no panic, no damage.
#![no_main]

#[path = "../bodies.rs"]
#[expect(dead_code, reason = "each target has one of them")]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::payload("pi", data));
