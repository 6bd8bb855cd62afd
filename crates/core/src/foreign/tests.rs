//! What a terminal never gets, and what stays as it is.

use super::*;
use proptest::prelude::*;

const HOSTILE: &str = "a\u{1b}]52;c;cm0=\u{7}b\u{1b}]0;t\u{1b}\\\u{9b}2J\u{202e}c\u{2066}\u{200b}\u{e0041}\u{2028}\u{7f}\r\nd\te";

#[test]
fn s17_one_line_shows_codes_and_nothing_that_acts() {
    let shown = Foreign::new(HOSTILE).to_string();
    assert_eq!(
        shown,
        r"a\x1b]52;c;cm0=\x07b\x1b]0;t\x1b\\u{9b}2J\u{202e}c\u{2066}\u{200b}\u{e0041}\u{2028}\x7f\r\nd\te"
    );
    assert_eq!(format!("{:?}", Foreign::new("\u{1b}c")), r"Foreign(\x1bc)");
}

#[test]
fn s17_lines_keep_line_breaks_and_tabs_alone() {
    assert_eq!(Foreign::new("a\r\nb\tc\u{b}\u{85}\rd").lines().to_string(), "a\nb\tc\\x0b\\u{85}\\rd");
}

#[test]
fn s17_what_is_cut_says_how_much() {
    assert_eq!(Foreign::new("abcdef").line(4).to_string(), "abcd… (2 more characters)");
    assert_eq!(Foreign::new("abcd").line(4).to_string(), "abcd");
    assert_eq!(Foreign::new("").to_string(), "\"\"");
}

#[test]
fn what_people_write_stays() {
    for text in ["naïve", "Straße", "日本語", "שלום", "⚠\u{fe0f} 👍🏽", "a\\b", "α → β", "\u{e0b0}"]
    {
        assert_eq!(Foreign::new(text).to_string(), text);
    }
}

/// Each looks like a space, shows nothing, or breaks a line in some programs.
const AMBIGUOUS: &str = "\u{a0}\u{ad}\u{34f}\u{85}\u{b}\u{c}\u{115f}\u{1160}\u{1680}\u{2000}\u{2007}\u{200a}\u{200b}\u{2028}\u{2029}\u{202e}\u{202f}\u{205f}\u{2800}\u{3000}\u{3164}\u{fe00}\u{fe0e}\u{fe0f}\u{feff}\u{ffa0}\u{e0041}\u{e0100}";

#[test]
fn s17_exact_text_shows_what_looks_like_a_space_or_like_nothing() {
    assert_eq!(exact("rm -rf a\u{a0}b"), "rm -rf a<U+00A0>b");
    assert_eq!(exact("\u{2028}\u{e0100}\u{2800}\u{fe0f}\u{b}"), "<U+2028><U+E0100><U+2800><U+FE0F><U+000B>");
    for c in AMBIGUOUS.chars() {
        assert_eq!(exact(&format!("a{c}b")), format!("a<U+{:04X}>b", u32::from(c)));
    }
    for plain in ["ls -l\n\tx", "naïve 日本語 α → β", "<U+00A0>"] {
        assert!(matches!(exact(plain), Cow::Borrowed(_)), "{plain}");
    }
}

#[test]
fn s17_json_gets_its_own_escapes() {
    assert_eq!(
        json("{\"a\":\"\u{9b}\u{202e}\u{e0041}é\u{7f}\"}\n"),
        "{\"a\":\"\\u009b\\u202e\\udb40\\udc41é\\u007f\"}\n"
    );
    assert!(matches!(json("{\"a\":\"é\"}"), Cow::Borrowed(_)));
}

#[test]
fn colours_of_a_log_go_and_the_rest_stays() {
    assert_eq!(without_colours("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2Jx\u{1b}[m"), "red \u{1b}[2Jx");
    assert_eq!(without_colours("plain"), "plain");
    assert_eq!(without_colours("\u{1b}["), "\u{1b}[");
}

proptest! {
    #[test]
    fn s17_no_text_gets_a_control_through(text in any::<String>()) {
        let foreign = Foreign::new(&*text);
        prop_assert!(!foreign.to_string().contains(is_unprintable));
        prop_assert!(!foreign.lines().to_string().contains(|c| c != '\n' && c != '\t' && is_unprintable(c)));
        prop_assert_eq!(foreign.raw_for_json(), &*text);
    }
}
