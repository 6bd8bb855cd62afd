//! What an agent's terminal shows, as far as it matters for typing into it.
//!
//! Pure: a captured screen in, a [`Screen`] out. `screen.rs` in each agent's folder knows its input
//! box. This module has what they share: it reads a capture with its colours and finds boxes
//! between two rules. Only a box that is recognised for certain is [`Screen::Ready`]. Everything
//! else is [`Screen::Unknown`], and baton never types into it.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Screen {
    /// An empty input box, and no question.
    Ready,
    /// The user has typed something, or the box is in a mode in which a line means something else.
    /// With the text of the box.
    Draft(String),
    /// A question that a single key may answer.
    Dialog,
    /// A turn is running.
    Busy,
    /// Not recognised.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) sign: char,
    /// Faint, like the hints in an empty box.
    pub(crate) faint: bool,
    /// With swapped colours, like a drawn cursor or a selected row.
    pub(crate) inverse: bool,
}

/// One line of a screen, without trailing blanks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// It begins on a coloured background, like a box without a frame.
    pub(crate) grounded: bool,
}

impl Row {
    fn with(&self, cells: Vec<Cell>) -> Row {
        Row { cells, grounded: self.grounded }
    }

    pub(crate) fn text(&self) -> String {
        self.cells.iter().map(|cell| cell.sign).collect()
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.cells.iter().all(|cell| cell.sign.is_whitespace())
    }

    pub(crate) fn first(&self) -> Option<Cell> {
        self.cells.first().copied()
    }

    /// Whether it is a horizontal rule. A rule may contain a few words.
    pub(crate) fn is_rule(&self) -> bool {
        let drawn = self.cells.iter().filter(|cell| cell.sign == '─').count();
        self.cells.first().is_some_and(|cell| cell.sign == '─') && drawn >= 10 && drawn * 2 > self.cells.len()
    }

    /// The characters from this column on.
    pub(crate) fn from(&self, column: usize) -> Row {
        self.with(self.cells.iter().skip(column).copied().collect())
    }

    /// The same without hints: faint characters, and the drawn cursor on the first of them.
    pub(crate) fn without_hints(&self) -> Row {
        let has_cursor = self.first().is_some_and(|cell| cell.inverse);
        let on_hint = has_cursor && self.cells.get(1).is_some_and(|cell| cell.faint);
        self.with(self.cells.iter().skip(usize::from(on_hint)).filter(|cell| !cell.faint).copied().collect())
    }
}

/// Reads the output of `tmux capture-pane -e -p`, without the blank lines at the end.
pub(crate) fn rows(capture: &str) -> Vec<Row> {
    // Colours continue from line to line.
    let mut ink = Ink::default();
    let mut rows: Vec<Row> = capture.lines().map(|line| row(line, &mut ink)).collect();
    while rows.last().is_some_and(Row::is_blank) {
        rows.pop();
    }
    rows
}

#[derive(Default)]
struct Ink {
    faint: bool,
    inverse: bool,
    ground: bool,
}

fn row(line: &str, ink: &mut Ink) -> Row {
    let mut cells = Vec::new();
    let mut grounded = None;
    let mut rest = line;
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        match sign {
            '\u{1b}' => rest = escape(rest, ink),
            _ if sign.is_control() => {}
            _ => {
                grounded.get_or_insert(ink.ground);
                cells.push(Cell { sign, faint: ink.faint, inverse: ink.inverse });
            }
        }
    }
    // No-break spaces are content.
    while cells.last().is_some_and(|cell| cell.sign == ' ') {
        cells.pop();
    }
    Row { cells, grounded: grounded.unwrap_or(ink.ground) }
}

/// Reads one escape sequence, and returns the text after it.
fn escape<'a>(rest: &'a str, ink: &mut Ink) -> &'a str {
    if let Some(sequence) = rest.strip_prefix('[') {
        let end = sequence.find(|sign: char| ('@'..='~').contains(&sign)).unwrap_or(sequence.len());
        if sequence[end..].starts_with('m') {
            style(&sequence[..end], ink);
        }
        return sequence.get(end + 1..).unwrap_or_default();
    }
    if let Some(command) = rest.strip_prefix(']') {
        // A hyperlink, up to its terminator.
        let end =
            command.find("\u{1b}\\").map(|at| at + 2).or_else(|| command.find('\u{7}').map(|at| at + 1));
        return end.map_or("", |end| &command[end..]);
    }
    // A change of the character set has one more character.
    let taken: usize = rest.chars().take(2).map(char::len_utf8).sum();
    if rest.starts_with(['(', ')']) { &rest[taken..] } else { rest }
}

fn style(parameters: &str, ink: &mut Ink) {
    let mut numbers = parameters.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            0 => *ink = Ink::default(),
            2 => ink.faint = true,
            7 => ink.inverse = true,
            22 => ink.faint = false,
            27 => ink.inverse = false,
            40..=47 | 100..=107 => ink.ground = true,
            49 => ink.ground = false,
            // A custom colour: one number, or three parts.
            38 | 48 | 58 => {
                ink.ground |= number == 48;
                let parts = match numbers.next() {
                    Some(5) => 1,
                    Some(2) => 3,
                    _ => 0,
                };
                numbers.by_ref().take(parts).for_each(drop);
            }
            _ => {}
        }
    }
}

/// A screen that ends with an input box between two rules.
#[derive(Debug)]
pub(crate) struct Framed<'a> {
    /// The lines above the box and its rule.
    pub(crate) above: &'a [Row],
    /// The rule above the box.
    pub(crate) rule: &'a Row,
    /// The lines in the box.
    pub(crate) inside: &'a [Row],
    /// The lines below the box and its rule.
    pub(crate) below: &'a [Row],
}

/// The box between the last two rules, with up to this many lines below it.
pub(crate) fn framed(rows: &[Row], below: usize) -> Option<Framed<'_>> {
    let lower = rows.iter().rposition(Row::is_rule)?;
    let upper = rows[..lower].iter().rposition(Row::is_rule)?;
    let framed = Framed {
        above: &rows[..upper],
        rule: &rows[upper],
        inside: &rows[upper + 1..lower],
        below: &rows[lower + 1..],
    };
    (!framed.inside.is_empty() && framed.below.len() <= below).then_some(framed)
}

/// The text of a box without the sign at its left, and without blank lines above and below.
pub(crate) fn words(inside: &[Row], indent: usize) -> String {
    let lines: Vec<String> = inside.iter().map(|row| row.from(indent).text().trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

/// Ready or a draft, by the text in a box.
pub(crate) fn by_words(words: String) -> Screen {
    if words.is_empty() { Screen::Ready } else { Screen::Draft(words) }
}

/// Whether the screen shows a list of choices. One of these signs is before the number of the
/// selected one.
pub(crate) fn offers_choice(rows: &[Row], signs: &[char]) -> bool {
    rows.iter().any(|row| {
        let text = row.text();
        let text = text.trim_start_matches(|sign: char| sign.is_whitespace() || sign == '│');
        let Some(rest) = text.strip_prefix(signs) else { return false };
        let rest = rest.trim_start();
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with('.')
    })
}

/// Whether one of these rows contains one of the texts.
pub(crate) fn says(rows: &[Row], texts: &[&str]) -> bool {
    rows.iter().any(|row| {
        let text = row.text();
        texts.iter().any(|wanted| text.contains(wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_and_left_out() {
        let rows = rows(
            "\u{1b}[1;2mhi\u{1b}[0m \u{1b}[38;5;2;7mx\u{1b}[27m\u{1b}]8;;http://a\u{1b}\\l\u{1b}]8;;\u{1b}\\\n\n  \n",
        );
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].text(), "hi xl");
        let marks: Vec<_> = rows[0].cells.iter().map(|cell| (cell.faint, cell.inverse)).collect();
        assert_eq!(marks, [(true, false), (true, false), (false, false), (false, true), (false, false)]);
    }

    #[test]
    fn a_capture_that_is_cut_anywhere_is_read_without_a_panic() {
        let capture = "─\u{1b}[38;2;1;2;3m❯\u{1b}]8;;x\u{1b}\\y\u{1b}(0";
        for end in (0..=capture.len()).filter(|end| capture.is_char_boundary(*end)) {
            rows(&capture[..end]);
        }
    }

    #[test]
    fn colours_go_on_in_the_next_line() {
        let rows = rows("\u{1b}[2ma\nb\u{1b}[22mc");
        assert!(rows[1].cells[0].faint && !rows[1].cells[1].faint);
    }

    #[test]
    fn a_hint_is_no_text_even_with_the_cursor_on_it() {
        let hint = rows("\u{1b}[7mT\u{1b}[0;2mry this\u{1b}[0m").remove(0);
        assert_eq!(hint.without_hints().text(), "");
        let typed = rows("\u{1b}[7mT\u{1b}[0mry this").remove(0);
        assert_eq!(typed.without_hints().text(), "Try this");
    }

    #[test]
    fn a_choice_has_a_sign_and_a_number() {
        assert!(offers_choice(&rows("│ ● 1. Allow once"), &['●']));
        assert!(!offers_choice(&rows("● a fine answer"), &['●']));
        assert!(!offers_choice(&rows("1. first"), &['●']));
    }
}
