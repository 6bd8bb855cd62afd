//! Claude Code's screen: an input box between two rules. Its sign is `❯` with a no-break space,
//! which no line of the conversation has.

use crate::screen::{Row, Screen, by_words, framed, offers_choice, rows, says, words};

/// The most status lines below the box. A user's own status may have several.
const MAX_LINES_BELOW: usize = 8;

/// How far above the box the sign of a running turn may be, with its tip.
const MAX_LINES_TO_SPINNER: usize = 6;

pub(super) fn screen(capture: &str) -> Screen {
    let rows = rows(capture);
    match framed(&rows, MAX_LINES_BELOW) {
        Some(shown) if says(shown.below, &["Esc to cancel", "Enter to "]) => Screen::Dialog,
        Some(shown) if is_box(shown.inside) => {
            if says(shown.below, &["esc to interrupt"]) || is_working(shown.above) {
                return Screen::Busy;
            }
            by_words(words(typed(shown.inside), 2))
        }
        // In shell mode a line is a command.
        Some(shown) if shown.inside[0].text().starts_with('!') => Screen::Draft(words(shown.inside, 0)),
        _ if offers_choice(&rows, &['❯']) || says(&rows, &["Esc to cancel"]) => Screen::Dialog,
        _ => Screen::Unknown,
    }
}

fn is_box(inside: &[Row]) -> bool {
    inside[0].text().starts_with("❯\u{a0}")
}

/// The lines of the box; none if all of them are a hint.
fn typed(inside: &[Row]) -> &[Row] {
    let hint = inside.iter().all(|row| row.from(2).without_hints().is_blank());
    if hint { &[] } else { inside }
}

/// A word with an ellipsis after one of the animated signs.
fn is_working(above: &[Row]) -> bool {
    above.iter().rev().take(MAX_LINES_TO_SPINNER).any(|row| {
        let text = row.text();
        text.starts_with(['·', '✢', '✳', '✶', '✻', '✽', '*']) && text.contains('…')
    })
}
