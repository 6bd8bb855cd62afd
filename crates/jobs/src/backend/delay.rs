//! How long to wait, as a model's server or an agent says it in words.

use baton_core::time::Span;

/// What stands before the time.
const MARKS: &[&str] =
    &["try again in ", "retry after ", "retry in ", "retry-after: ", "resets in ", "reset after "];

/// The wait that a message names, such as `Please try again in 1m3.5s`.
pub fn in_words(message: &str) -> Option<Span> {
    let message = message.to_lowercase();
    MARKS.iter().find_map(|mark| spoken(message.split_once(mark)?.1))
}

/// `7s`, `1h2m3s`, `250ms`, `7.5 seconds`, `2 days 3 hours`, and a bare number of seconds.
fn spoken(text: &str) -> Option<Span> {
    let mut rest = text.trim_start();
    let mut total = None;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..end].trim_end_matches('.').parse::<f64>() else { break };
        rest = rest[end..].trim_start();
        let word_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..word_end] {
            "ms" => 1.0,
            word if word.starts_with('m') => 60_000.0,
            word if word.starts_with('h') => 3_600_000.0,
            word if word.starts_with('d') => 86_400_000.0,
            _ => 1000.0,
        };
        #[expect(clippy::cast_possible_truncation, reason = "a time that somebody waits for")]
        let millis = (number * unit) as i64;
        total = Some(total.unwrap_or(0) + millis);
        rest = rest[word_end..].trim_start_matches([',', ' ']);
    }
    total.map(Span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_from_words() {
        for (words, millis) in [
            ("Rate limit reached. Please try again in 20s.", Some(20_000)),
            ("try again in 3.5s.", Some(3500)),
            ("Try again in 1m3s", Some(63_000)),
            ("try again in 250ms", Some(250)),
            ("Try again in 2 days 3 hours.", Some(183_600_000)),
            ("retry after 7", Some(7000)),
            ("try again in a while", None),
            ("try again at 7:58 AM", None),
            ("", None),
        ] {
            assert_eq!(in_words(words), millis.map(Span), "{words}");
        }
    }
}
