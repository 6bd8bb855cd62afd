//! Tables, and how they fit a terminal.
//!
//! Where output is piped, a table has its natural width and nothing is cut. On a terminal the
//! widest columns give way, and what is cut ends with `…`. Where that is not enough, the lines are
//! cut. The first column names the row, so it is never cut: people type what is there.

use super::text::{Text, Tone, text};
use super::width;

/// The narrowest that a column becomes.
const MIN_COLUMN: usize = 6;
/// The narrowest that a wrapped last column becomes.
const MIN_WRAPPED: usize = 20;
/// Blanks between two columns.
const GAP: usize = 2;

/// Blanks before a last column that is below its row.
const BELOW: usize = 4;

/// What becomes of a last column that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Cut,
    Wrap,
    /// It has lines of its own, this wide, below its row.
    Below(usize),
}

/// A table with aligned columns; the first row is its head. Cells are foreign, each on one line,
/// and toned by column.
pub fn table(head: &[&'static str], rows: &[Vec<String>], tones: &[Option<Tone>]) -> Text {
    laid_out(head, rows, tones, Last::Cut, width::columns())
}

/// The same with a last column of sentences, which continue on the next line.
pub fn table_of_sentences(head: &[&'static str], rows: &[Vec<String>], tones: &[Option<Tone>]) -> Text {
    laid_out(head, rows, tones, Last::Wrap, width::columns())
}

fn laid_out(
    head: &[&'static str],
    rows: &[Vec<String>],
    tones: &[Option<Tone>],
    last: Last,
    columns: Option<usize>,
) -> Text {
    let rows: Vec<Vec<Text>> = rows.iter().map(|row| row.iter().map(|cell| text![cell]).collect()).collect();
    let natural = |column: usize| {
        rows.iter().map(|row| row[column].width()).chain([head[column].len()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..head.len()).map(natural).collect();
    let fits = columns.is_none_or(|columns| fit(&mut widths, head, last, columns));
    let last = match columns.filter(|_| !fits && last == Last::Wrap) {
        Some(columns) => Last::Below(columns.saturating_sub(BELOW).max(MIN_WRAPPED)),
        None => last,
    };
    let most = columns.filter(|_| !fits && last == Last::Cut).map(|columns| columns.max(widths[0]));
    let head: Vec<Text> = head.iter().map(|cell| Text::from(*cell).toned(Tone::Dim)).collect();
    let mut text = lines(head, &widths, Last::Cut, most);
    for row in rows {
        let tones = tones.iter().copied().chain(std::iter::repeat(None));
        let cells = row.into_iter().zip(tones).map(|(cell, tone)| match tone {
            Some(tone) => cell.toned(tone),
            None => cell,
        });
        text.push(lines(cells.collect(), &widths, last, most));
    }
    text
}

/// Takes from the widest columns until all fit. `false` if none can give more.
fn fit(widths: &mut [usize], head: &[&'static str], last: Last, columns: usize) -> bool {
    let least = |at: usize| match last {
        Last::Wrap if at + 1 == head.len() => MIN_WRAPPED,
        _ => MIN_COLUMN.max(head[at].len()),
    };
    let gaps = GAP * widths.len().saturating_sub(1);
    loop {
        let total: usize = widths.iter().sum::<usize>() + gaps;
        if total <= columns {
            return true;
        }
        let can_give = (1..widths.len()).filter(|at| widths[*at] > least(*at));
        match can_give.max_by_key(|at| widths[*at]) {
            Some(widest) => widths[widest] -= 1,
            None => return false,
        }
    }
}

/// One row, on as many lines as its last cell takes; or on one line that is `most` wide.
fn lines(cells: Vec<Text>, widths: &[usize], last: Last, most: Option<usize>) -> Text {
    let indent = match last {
        Last::Below(_) => BELOW,
        _ => widths[..widths.len() - 1].iter().map(|width| width + GAP).sum::<usize>(),
    };
    let mut line = Text::default();
    let mut further = Vec::new();
    for (at, cell) in cells.into_iter().enumerate() {
        let is_last = at + 1 == widths.len();
        let cell = match (is_last, last) {
            (true, Last::Wrap) => {
                let mut wrapped = cell.wrapped(widths[at]).into_iter();
                let first = wrapped.next().unwrap_or_default();
                further = wrapped.collect();
                first
            }
            (true, Last::Below(width)) => {
                further = cell.wrapped(width);
                Text::default()
            }
            _ => cell.cut(widths[at]),
        };
        let padding = if is_last { 0 } else { widths[at].saturating_sub(cell.width()) + GAP };
        line.push(cell);
        line.push(" ".repeat(padding));
    }
    let line = match most {
        Some(most) => line.trim_end().cut(most),
        None => line.trim_end(),
    };
    let mut text = text![line.trim_end(), "\n"];
    for more in further {
        text.push(text![" ".repeat(indent), more.trim_end(), "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn s17_a_cell_makes_no_row() {
        let rows = [row(&["a\nFAKE ROW\u{1b}[2J", ""])];
        let shown = table(&["A", "B"], &rows, &[]).to_string();
        assert_eq!(shown, format!("{:20}B\na\\nFAKE ROW\\x1b[2J\n", "A"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_first_column_is_whole() {
        let long = "a sentence of many words that goes on for a while";
        let rows = [
            row(&["m1k2qx9abcd3e", "otter", long, long]),
            row(&["m2", "birch", "寛い文字もあり得る。全角は二桁を取る", "x"]),
        ];
        let head = ["ID", "WHO", "WHAT", "MEANING"];
        for last in [Last::Cut, Last::Wrap] {
            for columns in [50, 60, 72, 100, 200] {
                let shown = laid_out(&head, &rows, &[Some(Tone::Bold)], last, Some(columns)).to_string();
                for line in shown.lines() {
                    assert!(width::of(line) <= columns, "{columns}: {line}");
                }
                assert!(shown.contains("m1k2qx9abcd3e"));
            }
        }
        let piped = laid_out(&head, &rows, &[], Last::Cut, None).to_string();
        assert!(piped.contains(&format!("{long}  {long}")) && !piped.contains('…'));
        let wrapped = laid_out(&["A", "B"], &[row(&["x", long])], &[], Last::Wrap, Some(30)).to_string();
        let words: Vec<&str> = wrapped.split_whitespace().skip(3).collect();
        assert_eq!(words.join(" "), long, "nothing is lost");
        assert!(wrapped.lines().count() > 2);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = [row(&["東京", "x"]), row(&["ab", "y"])];
        let shown = table(&["A", "B"], &rows, &[]).to_string();
        assert_eq!(shown, "A     B\n東京  x\nab    y\n");
    }
}
