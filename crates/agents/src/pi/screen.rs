//! Pi's screen: an input box without a sign between two rules, with the folder and the model below
//! it. The upper rule names a running turn.

use crate::screen::{Screen, by_words, framed, rows, says, words};

/// The most lines below the box: folder, model, and texts of extensions. A menu has more.
const MAX_LINES_BELOW: usize = 4;

pub(super) fn screen(capture: &str) -> Screen {
    let rows = rows(capture);
    let Some(shown) = framed(&rows, 16) else { return Screen::Unknown };
    if says(shown.inside, &["to select", "to cancel", "to confirm"]) {
        return Screen::Dialog;
    }
    if shown.rule.cells.iter().any(|cell| ('⠀'..='⣿').contains(&cell.sign)) {
        return Screen::Busy;
    }
    match by_words(words(shown.inside, 0)) {
        Screen::Ready if !is_input(&shown) => Screen::Unknown,
        known => known,
    }
}

/// An empty box is one blank line, with the model's line below it.
fn is_input(shown: &crate::screen::Framed<'_>) -> bool {
    shown.inside.len() == 1
        && shown.below.len() <= MAX_LINES_BELOW
        && shown.below.iter().any(|row| row.text().contains("(auto)") || row.text().contains('%'))
}
