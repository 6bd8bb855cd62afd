//! Times for people, by the clock on their wall. Programs get RFC 3339 in UTC.

use baton_core::time::Moment;
use baton_machine::clock::{self, Local};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `14:05:31` today, `Nov 17 14:05` this year, else `2025-11-17 14:05`.
pub fn when(moment: Moment) -> String {
    shown(clock::local(moment), clock::local(clock::now()))
}

fn shown(then: Local, now: Local) -> String {
    let Local { year, month, day, hour, minute, second } = then;
    if (year, month, day) == (now.year, now.month, now.day) {
        return format!("{hour:02}:{minute:02}:{second:02}");
    }
    let name = usize::from(month).checked_sub(1).and_then(|at| MONTHS.get(at)).copied().unwrap_or("?");
    if year == now.year {
        return format!("{name} {day:2} {hour:02}:{minute:02}");
    }
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_says_as_much_as_is_needed_to_know_it() {
        let now = Local { year: 2026, month: 11, day: 18, hour: 9, minute: 5, second: 7 };
        assert_eq!(shown(now, now), "09:05:07");
        assert_eq!(shown(Local { day: 7, ..now }, now), "Nov  7 09:05");
        assert_eq!(shown(Local { year: 2025, month: 1, ..now }, now), "2025-01-18 09:05");
    }
}
