//! The layout of a JSON document (line breaks, indentation, whether everything is on one line), and
//! new values in the same layout. Only looks at the text; `json` decides what is inserted where.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io;

use super::super::text::{line_start, newline_of};

#[derive(Clone, Debug)]
pub(super) struct Style {
    newline: &'static str,
    unit: String,
    /// The whole document is on one line.
    one_line: bool,
    /// One-line parts have no space after `:` and `,`.
    tight: bool,
}

impl Style {
    /// Reads the layout from a text. `root` is the range of the root value, `first` of its first
    /// child.
    pub fn of(text: &str, root: std::ops::Range<usize>, first: Option<usize>) -> Self {
        let one_line = first.is_some() && !text[root.clone()].contains('\n');
        let unit = first.and_then(|first| own_line_indent(text, first)).filter(|i| !i.is_empty());
        let tight = one_line && !text[root].contains("\": ");
        Self { newline: newline_of(text), unit: unit.unwrap_or("  ").to_owned(), one_line, tight }
    }

    pub fn newline(&self) -> &'static str {
        self.newline
    }

    pub fn one_line(&self) -> bool {
        self.one_line
    }

    /// One step of indentation deeper than `indent`.
    pub fn deeper(&self, indent: &str) -> String {
        format!("{indent}{}", self.unit)
    }

    /// The text between two values on the same line.
    pub fn comma(&self) -> &'static str {
        if self.tight { "," } else { ", " }
    }

    /// `"key": `, or without the space.
    pub fn key(&self, key: &str) -> String {
        let key = Value::from(key);
        if self.tight { format!("{key}:") } else { format!("{key}: ") }
    }

    /// The value on one line.
    pub fn flat(&self, value: &Value) -> String {
        if self.tight { value.to_string() } else { render(value, Spaced) }
    }

    /// The value over several lines. Its first line is already at `indent`.
    pub fn tall(&self, value: &Value, indent: &str) -> String {
        let text = render(value, PrettyFormatter::with_indent(self.unit.as_bytes()));
        text.replace('\n', &format!("{}{indent}", self.newline))
    }
}

/// The white space before byte `offset` on its line, if there is nothing else before it.
pub(super) fn own_line_indent(text: &str, offset: usize) -> Option<&str> {
    let before = &text[line_start(text, offset)..offset];
    let has_break = line_start(text, offset) > 0;
    (has_break && before.bytes().all(|b| b == b' ' || b == b'\t')).then_some(before)
}

/// The white space that begins the line of byte `offset`.
pub(super) fn line_indent(text: &str, offset: usize) -> &str {
    let line = &text[line_start(text, offset)..offset];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn render(value: &Value, formatter: impl Formatter) -> String {
    let mut out = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    written.expect("a JSON value can be written to memory");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// One line, with a space after `:` and `,`.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
