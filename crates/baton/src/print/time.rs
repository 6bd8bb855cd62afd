//! Times for people, by the clock on their wall. Programs get RFC 3339 in UTC.

use baton_core::time::{Civil, Moment};
use baton_machine::clock;

/// `14:05:31` today, `Nov 17 14:05` this year, else with the year.
pub fn when(moment: Moment) -> String {
    shown(&clock::local(moment), &clock::local(clock::now()))
}

fn shown(then: &Civil, now: &Civil) -> String {
    if then.is_day_of(now) { then.clock() } else { then.short(now) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_says_as_much_as_is_needed_to_know_it() {
        let now = Civil { year: 2026, month: 11, day: 18, hour: 9, minute: 5, second: 7 };
        assert_eq!(shown(&now, &now), "09:05:07");
        assert_eq!(shown(&Civil { day: 7, ..now }, &now), "Nov  7 09:05");
        assert_eq!(shown(&Civil { year: 2025, month: 1, ..now }, &now), "Jan 18 2025 09:05");
    }
}
