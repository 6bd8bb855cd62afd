//! Moments and durations. The caller reads the clock and passes the time in.

use crate::{Code, Error};

/// Milliseconds since 1970, by the wall clock. For showing, expiry and trimming; never for deciding
/// a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub i64);

impl Moment {
    /// The moment `millis` later.
    pub fn plus(self, duration: Span) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// How long after `earlier` this is; zero when the clock went back.
    pub fn since(self, earlier: Self) -> Span {
        Span((self.0 - earlier.0).max(0))
    }

    /// `2026-11-15T21:31:48Z`.
    pub fn to_rfc3339(self) -> String {
        let seconds = self.0.div_euclid(1000);
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
    }
}

/// A moment by a calendar and a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Civil {
    /// `18:00:07`.
    pub fn clock(&self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
    }

    /// `Nov 20`, with the year if it is not the year of `now`.
    pub fn date(&self, now: &Civil) -> String {
        let month = usize::try_from(self.month - 1).ok().and_then(|month| MONTHS.get(month)).unwrap_or(&"?");
        let year = if self.year == now.year { String::new() } else { format!(" {}", self.year) };
        format!("{month} {:>2}{year}", self.day)
    }

    pub fn is_day_of(&self, other: &Civil) -> bool {
        (self.year, self.month, self.day) == (other.year, other.month, other.day)
    }

    /// `18:00` on the day of `now`, else `Nov 20 18:00`.
    pub fn short(&self, now: &Civil) -> String {
        let clock = format!("{:02}:{:02}", self.hour, self.minute);
        if self.is_day_of(now) { clock } else { format!("{} {clock}", self.date(now)) }
    }
}

impl Moment {
    /// By the clocks of a place that is so far ahead of UTC.
    pub fn civil(self, ahead: Span) -> Civil {
        let seconds = (self.0.saturating_add(ahead.0)).div_euclid(1000);
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        Civil { year, month, day, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60 }
    }

    /// Reads what [`to_rfc3339`](Self::to_rfc3339) writes; seconds may be left out.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let numbers = |text: &str, by| -> Option<Vec<i64>> {
            let parts = text
                .split(by)
                .map(|part| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?);
            parts.collect()
        };
        let [year, month, day] = <[i64; 3]>::try_from(numbers(date, '-')?).ok()?;
        let (hour, minute, second) = match numbers(time, ':')?[..] {
            [hour, minute] => (hour, minute, 0),
            [hour, minute, second] => (hour, minute, second),
            _ => return None,
        };
        if !(1970..=9999).contains(&year) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        // Finds the day by its number: there is only one calendar function, and it goes the other
        // way.
        let about = (year - 1970) * 146_097 / 400 + (month - 1) * 30 + day - 1;
        let days = (about - 40..about + 40).find(|days| civil(*days) == (year, month, day))?;
        Some(Self((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000))
    }
}

/// Days since 1970-01-01 as year, month, day (proleptic Gregorian).
fn civil(days: i64) -> (i64, i64, i64) {
    // Years start in March here, so that the leap day is the last day of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A length of time in milliseconds, written `45s`, `8m`, `4h`, `7d` (and `250ms`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub i64);

impl Span {
    pub const fn seconds(n: i64) -> Self {
        Self(n * 1000)
    }

    pub const fn minutes(n: i64) -> Self {
        Self::seconds(n * 60)
    }

    pub const fn days(n: i64) -> Self {
        Self::minutes(n * 60 * 24)
    }

    /// Reads a duration as a person writes it. Zero and negative ones are refused.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::new(Code::BadDuration, format!("{} is not a duration", crate::frame::shown(text, 40)))
                .hint("write it like 45s, 8m, 4h or 7d")
        };
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let count: i64 = text[..digits].parse().map_err(|_| wrong())?;
        let unit = match &text[digits..] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        match count.checked_mul(unit) {
            Some(millis) if millis > 0 => Ok(Self(millis)),
            _ => Err(wrong()),
        }
    }

    /// As the standard library wants it.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(self.0).unwrap_or(0))
    }

    /// Exactly, as [`parse`](Self::parse) reads it: `90s`, `4h`, `7d`.
    pub fn exact(self) -> String {
        const UNITS: [(i64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")];
        match UNITS.into_iter().find(|(unit, _)| self.0 % unit == 0) {
            Some((unit, name)) => format!("{}{name}", self.0 / unit),
            None => format!("{}ms", self.0),
        }
    }

    /// The largest whole unit: `3m`, `2h`, `5d`.
    pub fn coarse(self) -> String {
        let seconds = self.0 / 1000;
        match seconds {
            0..60 => format!("{seconds}s"),
            60..3600 => format!("{}m", seconds / 60),
            3600..86_400 => format!("{}h", seconds / 3600),
            _ => format!("{}d", seconds / 86_400),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_back() {
        for text in
            ["1970-01-01T00:00:00Z", "2026-11-20T08:00:00Z", "2024-02-29T23:59:59Z", "9999-12-31T00:00:01Z"]
        {
            assert_eq!(Moment::parse(text).map(Moment::to_rfc3339).as_deref(), Some(text));
        }
        assert_eq!(Moment::parse("2026-11-20T08:00Z"), Moment::parse("2026-11-20T08:00:00Z"));
        for text in [
            "",
            "17:30",
            "2026-02-30T00:00:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T08:00:00",
            "T",
            "-1-1-1T0:0Z",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn moments_print_as_utc() {
        assert_eq!(Moment(0).to_rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(Moment(951_826_199_999).to_rfc3339(), "2000-02-29T12:09:59Z");
        assert_eq!(Moment(1_794_778_308_000).to_rfc3339(), "2026-11-15T21:31:48Z");
        assert_eq!(Moment(-1).to_rfc3339(), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn moments_read_by_the_clocks_of_a_place() {
        let now = Moment::parse("2026-11-15T21:31:48Z").unwrap();
        let (here, there) = (now.civil(Span(0)), now.civil(Span::minutes(180)));
        assert_eq!((here.clock().as_str(), here.short(&here).as_str()), ("21:31:48", "21:31"));
        assert_eq!((there.clock().as_str(), there.short(&here).as_str()), ("00:31:48", "Nov 16 00:31"));
        let west = Moment(0).civil(Span::minutes(-60));
        assert_eq!(west.short(&here), "Dec 31 1969 23:00");
    }

    #[test]
    fn an_exact_duration_reads_back() {
        for (text, shown) in
            [("90s", "90s"), ("120s", "2m"), ("24h", "1d"), ("36h", "36h"), ("250ms", "250ms")]
        {
            let span = Span::parse(text).unwrap();
            assert_eq!(span.exact(), shown);
            assert_eq!(Span::parse(shown).unwrap(), span);
        }
    }

    #[test]
    fn durations_are_strict() {
        assert_eq!(Span::parse("45s").unwrap(), Span(45_000));
        assert_eq!(Span::parse("7d").unwrap(), Span::days(7));
        for bad in
            ["", "5", "s", "0s", "-1s", "1.5h", "5 s", "99999999999999999999s", "9223372036854775807d", "1y"]
        {
            assert_eq!(Span::parse(bad).unwrap_err().code(), Code::BadDuration, "{bad}");
        }
    }
}
