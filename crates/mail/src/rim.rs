//! The clock and the dice.

use baton_core::id::ID_BYTES;
use baton_core::time::Moment;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, by the wall clock.
pub fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Fresh random bytes for one id.
pub fn random() -> [u8; ID_BYTES] {
    let mut bytes = [0; ID_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            // Kernels without the call are older than anything that we run on; an id that repeats is refused by the store.
            Err(_) => break,
        }
    }
    bytes
}
