//! Codex's screen: the input after a bold `›` at the left edge, a blank line, and one or two status
//! lines at the bottom. Earlier prompts have the same sign, but faint. A selected row has it with
//! swapped colours.

use crate::screen::{Row, Screen, by_words, offers_choice, rows, says, words};

/// Status lines below the input.
const MAX_STATUS_LINES: usize = 3;

/// How far above the input the line of a running turn may be, with what is queued for it.
const MAX_LINES_TO_TURN: usize = 12;

pub(super) fn screen(capture: &str) -> Screen {
    let rows = rows(capture);
    let Some((above, input)) = input(&rows) else {
        let asks = offers_choice(&rows, &['›'])
            || says(&rows, &["to confirm or esc to cancel", "enter select · esc back"]);
        return if asks { Screen::Dialog } else { Screen::Unknown };
    };
    let nearby = &above[above.len().saturating_sub(MAX_LINES_TO_TURN)..];
    if says(nearby, &["esc to interrupt)"]) {
        return Screen::Busy;
    }
    if input[0].text().starts_with('!') {
        // In shell mode a line is a command.
        return Screen::Draft(words(input, 0));
    }
    let hint = input.len() == 1 && input[0].from(1).without_hints().is_blank();
    if hint { Screen::Ready } else { by_words(words(input, 2)) }
}

/// The lines above the input, and the input. It ends at the blank line above the status, which is
/// the last block of the screen.
fn input(rows: &[Row]) -> Option<(&[Row], &[Row])> {
    let blank = rows.iter().rposition(Row::is_blank)?;
    let status = &rows[blank + 1..];
    let is_status = |row: &Row| row.text().starts_with("  ");
    if status.len() > MAX_STATUS_LINES
        || !status.iter().all(is_status)
        || says(status, &["to confirm", "esc back"])
    {
        return None;
    }
    let is_sign = |row: &Row| {
        row.first().is_some_and(|cell| matches!(cell.sign, '›' | '!') && !cell.faint && !cell.inverse)
    };
    let from =
        rows[..blank].iter().rposition(|row| row.cells.first().is_some_and(|cell| cell.sign != ' '))?;
    is_sign(&rows[from]).then(|| (&rows[..from], &rows[from..blank]))
}
