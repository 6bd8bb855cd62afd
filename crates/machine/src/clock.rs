//! The wall clock, and what it shows here.

use baton_core::time::{Civil, Moment, Span};
use std::time::{SystemTime, UNIX_EPOCH};

/// The current time, by the wall clock.
pub fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A moment by the clocks here.
pub fn local(moment: Moment) -> Civil {
    moment.civil(ahead_of_utc(moment))
}

#[expect(unsafe_code, reason = "only the C library knows the rules of the time zone")]
fn ahead_of_utc(moment: Moment) -> Span {
    let seconds: libc::time_t = moment.0.div_euclid(1000);
    let mut found = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call, and a zeroed tm is a tm. It reads the
    // environment, which no thread of baton changes.
    let found = unsafe {
        if libc::localtime_r(&raw const seconds, found.as_mut_ptr()).is_null() {
            return Span(0);
        }
        found.assume_init()
    };
    Span::seconds(found.tm_gmtoff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_time_is_less_than_a_day_from_utc() {
        let now = now();
        assert!(ahead_of_utc(now).0.abs() < Span::days(1).0);
        assert!((0..24).contains(&local(now).hour));
    }
}
