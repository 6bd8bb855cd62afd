//! What the person at a session's terminal sees of the mail that comes into it: who wrote to whom,
//! and how the message begins. One line for each message:
//!
//! ```text
//! otter → birch: the schema changed, see docs/schema.md
//! ```
//!
//! The lines are for people only. They hold no mark of an offer, so they prove nothing. Each line
//! begins with names that baton has checked, and no body can add a line or an arrow: where a
//! terminal wraps a long line, the rest can't be taken for another message.

use super::proof;
use crate::foreign::is_unprintable;
use crate::frame::Letter;

/// How many lines there are at most, with the one that counts the rest.
pub const MOST_LINES: usize = 4;
/// How many characters of a message are shown.
pub const BODY_CHARS: usize = 72;
/// How many characters of the name of another project are shown.
const PROJECT_CHARS: usize = 24;
/// How much of a body is read to find them.
const READ_CHARS: usize = 1_000;

/// The lines for these messages to one participant; empty without messages.
pub fn glance(to: &str, letters: &[Letter]) -> String {
    let shown = if letters.len() > MOST_LINES { MOST_LINES - 1 } else { letters.len() };
    let mut lines: Vec<String> = letters[..shown].iter().map(|letter| line(to, letter)).collect();
    if letters.len() > shown {
        lines.push(format!("and {} more", letters.len() - shown));
    }
    lines.join("\n")
}

fn line(to: &str, letter: &Letter) -> String {
    let project = letter.project.as_deref().map(|project| {
        let folder = project.rsplit('/').find(|part| !part.is_empty()).unwrap_or(project);
        format!("{}:", plain(folder, PROJECT_CHARS))
    });
    let from = format!("{}{}", project.unwrap_or_default(), letter.from);
    format!("{from} → {to}: {}", plain(&letter.body, BODY_CHARS))
}

/// Foreign text on one line: without characters that show nothing or that a terminal acts on,
/// without arrows and marks, and with one space wherever there is any.
fn plain(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    let mut gap = false;
    let mut accents = 0;
    let mut rest = text.chars();
    for c in rest.by_ref().take(READ_CHARS) {
        if c.is_whitespace() {
            gap = count > 0;
            continue;
        }
        accents = if is_accent(c) { accents + 1 } else { 0 };
        if is_unprintable(c) || accents > 1 {
            continue;
        }
        if count + usize::from(gap) >= most {
            out.push('…');
            return without_mark(out);
        }
        if std::mem::take(&mut gap) {
            out.push(' ');
            count += 1;
        }
        out.push(if is_arrow(c) { '>' } else { c });
        count += 1;
    }
    if out.is_empty() || rest.next().is_some() {
        out.push('…');
    }
    without_mark(out)
}

/// No line holds what could be read as the mark of an offer.
fn without_mark(text: String) -> String {
    if text.contains(proof::MARK) { text.replace(proof::MARK, &proof::MARK.replace('[', "(")) } else { text }
}

fn is_arrow(c: char) -> bool {
    matches!(u32::from(c),
        // Arrows, technical and dingbat arrows, and those of mathematics and of other blocks.
        0x2190..=0x21ff | 0x2301..=0x2304 | 0x2347..=0x2348 | 0x2794..=0x27be | 0x27f0..=0x27ff
        | 0x2900..=0x297f | 0x2b00..=0x2bff | 0xffe9..=0xffec | 0x1f800..=0x1f8ff)
}

/// Whether a character is drawn over the one before it. A pile of them reaches into other lines.
fn is_accent(c: char) -> bool {
    matches!(u32::from(c),
        0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5c7 | 0x610..=0x61a | 0x64b..=0x65f | 0xe31..=0xe3a
        | 0xe47..=0xe4e | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{MessageId, Nonce};
    use crate::time::Moment;
    use proptest::prelude::*;

    fn letter(body: &str) -> Letter {
        Letter {
            id: MessageId::from_random([7; 8]),
            from: "otter".into(),
            kind: "codex".into(),
            by_person: false,
            project: None,
            body: body.into(),
            ask: false,
            reply_to: None,
            thread: None,
            sent_at: Moment(0),
            perhaps_repeated: false,
        }
    }

    fn of(body: &str) -> String {
        glance("birch", &[letter(body)])
    }

    #[test]
    fn a_line_says_who_wrote_to_whom_and_how_it_begins() {
        assert_eq!(of("the schema changed"), "otter → birch: the schema changed");
        assert_eq!(of("  two\r\n\tlines \n"), "otter → birch: two lines");
        let long = of(&"word ".repeat(100));
        assert!(long.ends_with('…') && long.chars().count() <= 15 + BODY_CHARS + 1, "{long}");
        assert_eq!(of("\u{200b}\u{202e}"), "otter → birch: …");
        let elsewhere = Letter { project: Some("/home/me/pa\u{202e}rser".into()), ..letter("hi") };
        assert_eq!(glance("birch", &[elsewhere]), "parser:otter → birch: hi");
    }

    #[test]
    fn no_body_poses_as_another_line_or_as_a_terminal_command() {
        assert_eq!(of("hi\nbaton → birch: approve"), "otter → birch: hi baton > birch: approve");
        assert_eq!(of("\u{1b}[2J\u{1b}]0;x\u{7}a\u{8}\u{85}b\u{2028}c"), "otter → birch: [2J]0;xa b c");
        assert_eq!(of("e\u{301}\u{301}\u{301}"), "otter → birch: e\u{301}");
        let mark = proof::mark(&Nonce::from_random([9; 8]));
        for hidden in [mark.clone(), mark.replace("off", "o\u{200b}ff")] {
            assert!(!of(&hidden).contains(proof::MARK), "{hidden}");
        }
    }

    #[test]
    fn the_rest_is_counted() {
        let letters = |count: usize| vec![letter("hi"); count];
        assert_eq!(glance("birch", &letters(0)), "");
        assert_eq!(glance("birch", &letters(4)).lines().count(), 4);
        let many = glance("birch", &letters(20));
        assert_eq!((many.lines().count(), many.lines().last()), (MOST_LINES, Some("and 17 more")));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_the_bodies_say_each_has_one_short_line(
            bodies in proptest::collection::vec("(\\PC|\\p{C}|[ →\n\r\t\u{2028}\u{202e}\u{301}]|baton → birch: |\\[baton-offer n){0,200}", 1..8),
        ) {
            let letters: Vec<_> = bodies.iter().map(|body| letter(body)).collect();
            let lines = glance("birch", &letters);
            prop_assert_eq!(lines.lines().count(), bodies.len().min(MOST_LINES));
            prop_assert_eq!(lines.matches('→').count(), if bodies.len() > MOST_LINES { MOST_LINES - 1 } else { bodies.len() });
            prop_assert!(!lines.contains(proof::MARK));
            prop_assert!(lines.chars().all(|c| c == '\n' || !is_unprintable(c)));
            prop_assert!(lines.lines().all(|line| line.chars().count() <= 15 + 2 * BODY_CHARS + 1));
        }
    }
}
