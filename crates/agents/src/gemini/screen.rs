//! Gemini CLI's screen: a rule, a line with the mode, and the input after `>` on a coloured
//! background. It draws into the scrolling screen and may leave remains of earlier drawings above
//! and below. So only the last box counts, with the lines next to it.

use crate::screen::{Row, Screen, by_words, offers_choice, rows, says, words};

/// Lines from the rule to the input: the line with the mode, and the box's upper edge.
const MAX_LINES_FROM_RULE: usize = 6;

/// Lines directly above the rule that show a running turn.
const TURN_LINES: usize = 3;

/// The most lines below the input: its lower edge, the status, and remains of it.
const MAX_LINES_BELOW: usize = 20;

/// The text of an empty box.
const EMPTY_BOX_TEXT: &str = "Type your message or @path/to/file";

pub(super) fn screen(capture: &str) -> Screen {
    let rows = rows(capture);
    let Some((rule, at)) = input(&rows) else {
        let asks = offers_choice(&rows, &['●']) || says(&rows, &["Esc to close", "esc to close"]);
        return if asks { Screen::Dialog } else { Screen::Unknown };
    };
    if says(&rows[rule.saturating_sub(TURN_LINES)..rule], &["esc to cancel"]) {
        return Screen::Busy;
    }
    let written: Vec<Row> = rows[at..].iter().take_while(|row| row.grounded).cloned().collect();
    // `*` if it asks for nothing (YOLO).
    if ![" >", " *"].iter().any(|sign| rows[at].text().starts_with(sign)) {
        // In shell mode and in a search, a line means something else.
        return Screen::Draft(words(&written, 0));
    }
    match by_words(words(&written, 3)) {
        Screen::Draft(text) if text == EMPTY_BOX_TEXT => Screen::Ready,
        // Without its hint, the box is not drawn completely yet.
        Screen::Ready => Screen::Unknown,
        known => known,
    }
}

/// The last rule and the input line below it; `None` if something else is drawn further down.
fn input(rows: &[Row]) -> Option<(usize, usize)> {
    let rule = rows.iter().rposition(Row::is_rule)?;
    let below = |at: &usize| at - rule <= MAX_LINES_FROM_RULE;
    let at = (rule + 1..rows.len()).take_while(below).find(|at| {
        let text = rows[*at].text();
        [" > ", " ! ", " (r:) ", " * "].iter().any(|sign| format!("{text} ").starts_with(sign))
    })?;
    let rest = &rows[at + 1..];
    let framed = says(rest, &["│", "╭", "╰", "●"]);
    (rows[at].grounded && rest.len() <= MAX_LINES_BELOW && !framed).then_some((rule, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_asks_for_nothing_has_another_sign() {
        let ready = include_str!("../../tests/screens/gemini-ready-160.screen");
        let (above, below) = ready.rsplit_once('>').unwrap();
        assert_eq!(screen(ready), Screen::Ready);
        assert_eq!(screen(&format!("{above}*{below}")), Screen::Ready);
    }
}
