//! The wall clock.

use baton_core::time::Moment;
use std::time::{SystemTime, UNIX_EPOCH};

/// The current time, by the wall clock.
pub fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
