//! OpenCode's screen: lines after a `┃`, the last of which names agent and model, closed by `╹▀▀▀`,
//! as wide as the box. A panel may be beside the box. A list may be above it, which leaves the box
//! visible but takes the keys.

use crate::screen::{Row, Screen, by_words, rows, says};

/// The text of an empty box before the first prompt.
const EMPTY_BOX_TEXT: &str = "Ask anything…";

/// The most lines below the box, on the first screen.
const MAX_LINES_BELOW: usize = 26;

pub(super) fn screen(capture: &str) -> Screen {
    let rows = rows(capture);
    if says(&rows, &["△ Permission required", "△ Always allow", "△ Reject permission"]) {
        return Screen::Dialog;
    }
    let Some((at, left, width)) = lower_edge(&rows) else {
        let asks = says(&rows, &["enter confirm", "enter submit", "esc dismiss"]);
        return if asks { Screen::Dialog } else { Screen::Unknown };
    };
    let inside = lines_of(&rows[..at], left, width);
    let Some((label, written)) = inside.split_last() else { return Screen::Unknown };
    let below = &rows[at + 1..];
    if below.len() > MAX_LINES_BELOW || has_list(&rows[..at]) {
        return Screen::Unknown;
    }
    if says(below, &["esc interrupt"]) {
        return Screen::Busy;
    }
    let written = written.join("\n").trim().to_owned();
    match by_words(written) {
        // There a line is a command.
        Screen::Ready | Screen::Draft(_) if label.trim() == "Shell" => Screen::Draft("!".to_owned()),
        Screen::Draft(text) if is_hint(&text) => Screen::Ready,
        Screen::Ready if !label.contains('·') || !says(below, &["ctrl+p commands"]) => Screen::Unknown,
        known => known,
    }
}

fn is_hint(text: &str) -> bool {
    text.strip_prefix(EMPTY_BOX_TEXT)
        .is_some_and(|example| example.trim().starts_with('"') && example.ends_with('"'))
}

/// The row of the last `╹▀▀▀`, its column, and the box's width.
fn lower_edge(rows: &[Row]) -> Option<(usize, usize, usize)> {
    rows.iter().enumerate().rev().find_map(|(at, row)| {
        let left = row.cells.iter().position(|cell| cell.sign != ' ')?;
        let edge = &row.cells[left..];
        let width = edge.iter().skip(1).take_while(|cell| cell.sign == '▀').count();
        (edge[0].sign == '╹' && width >= 10).then_some((at, left, width))
    })
}

/// The lines in the box, from the top.
fn lines_of(above: &[Row], left: usize, width: usize) -> Vec<String> {
    let in_box = |row: &&Row| row.cells.get(left).is_some_and(|cell| cell.sign == '┃');
    let mut lines: Vec<String> = above
        .iter()
        .rev()
        .take_while(in_box)
        .map(|row| row.cells.iter().skip(left + 1).take(width).map(|cell| cell.sign).collect::<String>())
        .map(|line| line.trim().to_owned())
        .collect();
    lines.reverse();
    lines
}

/// A list over the screen has a title with `esc` at its right end.
fn has_list(above: &[Row]) -> bool {
    above.iter().any(|row| row.text().split("    ").any(|part| part.trim() == "esc"))
}
