//! The wall clock, and the time zone of this machine.

use baton_core::time::Moment;
use std::time::{SystemTime, UNIX_EPOCH};

/// The current time, by the wall clock.
pub fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A moment as a calendar and a clock on the wall show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    pub year: i64,
    /// From 1.
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
}

/// A moment in the time zone of this process: `TZ`, else the machine's.
#[expect(unsafe_code, reason = "only the C library knows the time zone, and no other crate is here for it")]
pub fn local(moment: Moment) -> Local {
    let seconds: libc::time_t = moment.0.div_euclid(1000);
    let mut parts = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call, and a zeroed `tm` is one, so it may be read
    // also if the call fails.
    let parts = unsafe {
        libc::localtime_r(&raw const seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    let small = |number: i32| u8::try_from(number).unwrap_or_default();
    Local {
        year: i64::from(parts.tm_year) + 1900,
        month: small(parts.tm_mon + 1),
        day: small(parts.tm_mday),
        hour: small(parts.tm_hour),
        minute: small(parts.tm_min),
        second: small(parts.tm_sec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_in_local_time() {
        let utc = Local { year: 2026, month: 11, day: 15, hour: 21, minute: 31, second: 48 };
        let here = local(Moment(1_794_778_308_000));
        // Wherever this runs, no time zone is further away than a day, and seconds are the same.
        assert_eq!((here.year, here.month, here.second), (utc.year, utc.month, utc.second));
        assert!(here.day.abs_diff(utc.day) <= 1);
    }
}
