//! Copilot's screen: an input box between two rules, and one line below it that explains the keys.

use crate::screen::{Screen, by_words, framed, offers_choice, rows, says, words};

/// Lines below the box.
const MAX_LINES_BELOW: usize = 2;

/// What that line names when nothing runs. A narrow terminal shows only this.
const MODES: [&str; 3] = ["Interactive", "Plan", "Autopilot"];

pub(super) fn screen(capture: &str) -> Screen {
    let rows = rows(capture);
    let Some(shown) = framed(&rows, MAX_LINES_BELOW) else {
        let asks = offers_choice(&rows, &['❯']) || says(&rows, &["to select · esc to cancel"]);
        return if asks { Screen::Dialog } else { Screen::Unknown };
    };
    if says(shown.below, &["enter to select", "esc to cancel"]) {
        return Screen::Dialog;
    }
    if says(shown.below, &["Working", "esc esc"]) {
        return Screen::Busy;
    }
    let first = shown.inside[0].text();
    match by_words(words(shown.inside, 2)) {
        // In shell mode a line is a command.
        _ if first.starts_with('!') => Screen::Draft(words(shown.inside, 0)),
        _ if !(first == "❯" || first.starts_with("❯ ")) => Screen::Unknown,
        Screen::Ready if !says(shown.below, &MODES) => Screen::Unknown,
        known => known,
    }
}
