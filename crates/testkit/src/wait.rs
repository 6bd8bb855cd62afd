//! Bounded waiting: ask again and again until a thing is so, or the limit is over.
//!
//! For what another program does in its own time (a screen, a file, a process). Never a bare sleep
//! in a test, never a wait without an end.

use std::thread;
use std::time::{Duration, Instant};

/// What takes longer than this hangs. A machine under load may need ten seconds to end a killed
/// process whose write waits for the disk, so a test that looks for a hang allows far more.
pub const HANG: Duration = Duration::from_secs(90);

/// How often a condition is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Calls `probe` until it returns `Some`, for at most `limit`. It is called at least once.
pub fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Whether `condition` came true within `limit`.
pub fn until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    poll(limit, || condition().then_some(())).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_asked_at_least_once_and_not_forever() {
        assert!(until(Duration::ZERO, || true));
        let start = Instant::now();
        assert!(!until(Duration::from_millis(30), || false));
        assert!(start.elapsed() < HANG);
    }
}
