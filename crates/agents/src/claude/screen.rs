//! Claude Code's screen: an input box between two rules, its sign `❯` with a no-break space after it, which no line of the conversation has.

use crate::screen::{Row, Screen, by_words, framed, offers_choice, rows, says, words};

/// Status lines that may stand below the box; a person's own may have several.
const BELOW: usize = 8;

/// How far above the box the sign of a running turn may stand, with its tip.
const SPINNER: usize = 6;

pub(super) fn screen(capture: &str) -> Screen {
    let rows = rows(capture);
    match framed(&rows, BELOW) {
        Some(shown) if says(shown.below, &["Esc to cancel", "Enter to "]) => Screen::Dialog,
        Some(shown) if is_box(shown.inside) => {
            if says(shown.below, &["esc to interrupt"]) || is_working(shown.above) {
                return Screen::Busy;
            }
            by_words(words(typed(shown.inside), 2))
        }
        // In the shell's mode a line is a command.
        Some(shown) if shown.inside[0].text().starts_with('!') => Screen::Draft(words(shown.inside, 0)),
        _ if offers_choice(&rows, &['❯']) || says(&rows, &["Esc to cancel"]) => Screen::Dialog,
        _ => Screen::Unknown,
    }
}

fn is_box(inside: &[Row]) -> bool {
    inside[0].text().starts_with("❯\u{a0}")
}

/// The lines of the box, unless all of them are a hint.
fn typed(inside: &[Row]) -> &[Row] {
    let hint = inside.iter().all(|row| row.from(2).without_hints().is_blank());
    if hint { &[] } else { inside }
}

/// A word with an ellipsis behind one of the signs that take turns.
fn is_working(above: &[Row]) -> bool {
    above.iter().rev().take(SPINNER).any(|row| {
        let text = row.text();
        text.starts_with(['·', '✢', '✳', '✶', '✻', '✽', '*']) && text.contains('…')
    })
}
