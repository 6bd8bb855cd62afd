//! Positions in a text and edits of it by byte range. All edits of one pass refer to the same
//! original text and must not overlap, so a pass can be planned from one parse. Lines and columns
//! are for people: they start at 1 and count characters.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The UTF-8 byte order mark, which some editors put before the first character.
pub(crate) const BOM: &str = "\u{feff}";

/// A line and a column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// The position of byte `offset` of `text`, or of its end if the text is shorter.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |nl| nl + 1);
        // Bytes that continue a character don't count.
        let column = before[line_start..].iter().filter(|&&b| b & 0xC0 != 0x80).count();
        Self { line: before.iter().filter(|&&b| b == b'\n').count() + 1, column: column + 1 }
    }
}

/// A position in a named file; prints as `file:line:column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    path: PathBuf,
    position: Position,
}

impl Place {
    /// The place of byte `offset` of `text`, the content of `path`.
    pub fn new(path: &Path, text: &str, offset: usize) -> Self {
        Self { path: path.to_owned(), position: Position::of(text, offset) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn position(&self) -> Position {
        self.position
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.position.line, self.position.column)
    }
}

/// Replace one byte range by a text.
#[derive(Clone, Debug)]
pub(crate) struct Splice {
    pub range: Range<usize>,
    pub with: String,
}

impl Splice {
    pub fn insert(at: usize, with: String) -> Self {
        Self { range: at..at, with }
    }

    pub fn cut(range: Range<usize>) -> Self {
        Self { range, with: String::new() }
    }
}

/// Applies all splices to `text`. Their order does not matter; overlapping ones are a bug of the
/// caller.
pub(crate) fn splice(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|s| (s.range.start, s.range.end));
    let mut out = String::with_capacity(text.len() + splices.iter().map(|s| s.with.len()).sum::<usize>());
    let mut at = 0;
    for s in &splices {
        assert!(s.range.start >= at, "splices overlap at byte {at}");
        out.push_str(&text[at..s.range.start]);
        out.push_str(&s.with);
        at = s.range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The line break that the text uses first; `\n` if it has none.
pub(crate) fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(i) if text[..i].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Where the line of byte `offset` begins.
pub(crate) fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |nl| nl + 1)
}

/// The position after the line break of the line of byte `offset`, or the end of the text.
pub(crate) fn line_end(text: &str, offset: usize) -> usize {
    text[offset..].find('\n').map_or(text.len(), |nl| offset + nl + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        assert_eq!(Position::of("", 0), Position { line: 1, column: 1 });
        assert_eq!(Position::of("ab\r\nçé!", 8), Position { line: 2, column: 3 });
        assert_eq!(Position::of("a\n", 99), Position { line: 2, column: 1 });
    }

    #[test]
    fn splices_apply_in_any_order() {
        let edits = vec![Splice::cut(3..4), Splice::insert(0, "<".into()), Splice::insert(4, ">".into())];
        assert_eq!(splice("abcd", edits), "<abc>");
    }
}
