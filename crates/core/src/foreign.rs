//! Text that baton did not write: from agents, jobs, repositories, arguments and other programs.
//!
//! A terminal obeys what it is shown. An escape sequence sets the clipboard or the title, wipes the
//! screen or draws a row that baton never printed; a direction mark makes a command read as
//! another. [`Foreign`] keeps its text private and shows it in two ways only, both without a
//! character that a terminal acts on: one line, or lines. Programs that read JSON get the text
//! itself, through a method that says so.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::path::Path;

/// How many characters [`Foreign`] shows if a caller names no number. A longer line floods a
/// terminal.
pub const LINE_CHARS: usize = 2_000;

/// Text from outside baton. `Display` shows it on one line.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Foreign<'a>(Cow<'a, str>);

impl<'a> Foreign<'a> {
    /// Takes text as foreign.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// A path; bytes that are no UTF-8 are shown as the replacement character.
    pub fn path(path: &'a Path) -> Self {
        Self(path.to_string_lossy())
    }

    /// On one line, at most `most` characters of it. It says how many are left out. An empty text
    /// is shown as `""`.
    pub fn line(&self, most: usize) -> OneLine<'_> {
        OneLine { text: &self.0, most }
    }

    /// On as many lines as it has, with its tabs.
    pub fn lines(&self) -> Lines<'_> {
        Lines(&self.0)
    }

    /// The text itself, for a document that a program reads. [`json`] keeps that harmless on a
    /// terminal.
    pub fn raw_for_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line(LINE_CHARS).fmt(f)
    }
}

impl fmt::Debug for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({self})")
    }
}

/// Foreign text on one line.
#[derive(Clone, Copy, Debug)]
pub struct OneLine<'a> {
    text: &'a str,
    most: usize,
}

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() {
            return f.write_str("\"\"");
        }
        let mut rest = self.text.chars();
        for c in rest.by_ref().take(self.most) {
            match c {
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                c => write_visible(f, c)?,
            }
        }
        match rest.count() {
            0 => Ok(()),
            left => write!(f, "… ({left} more characters)"),
        }
    }
}

/// Foreign text on its own lines.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a>(&'a str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\n' | '\t' => f.write_char(c)?,
                '\r' if rest.peek() == Some(&'\n') => {}
                c => write_visible(f, c)?,
            }
        }
        Ok(())
    }
}

/// A character as itself, or as its code where a terminal would act on it or show nothing.
fn write_visible(f: &mut impl fmt::Write, c: char) -> fmt::Result {
    match c {
        '\r' => f.write_str("\\r"),
        c if !is_unprintable(c) => f.write_char(c),
        c if c.is_ascii() => write!(f, "\\x{:02x}", u32::from(c)),
        c => write!(f, "\\u{{{:x}}}", u32::from(c)),
    }
}

/// Whether a character is a control, changes the direction of text, or shows nothing where it is:
/// line breaks and tabs included.
pub fn is_unprintable(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control()
        || matches!(u32::from(c),
            // Soft hyphen, grapheme joiner, Arabic letter mark, invisible fillers.
            0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
            // Zero width, marks of direction, line and paragraph separators, embeddings, isolates.
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
            // A filler, variation selectors but those of text and emoji, a byte order mark,
            // annotations, what is no character.
            | 0x3164 | 0xfe00..=0xfe0d | 0xfeff | 0xffa0 | 0xfdd0..=0xfdef | 0xfff0..=0xfffb
            // Formats of hieroglyphs, shorthand and music; tags and the selectors after them.
            | 0x13430..=0x1345f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Text that a yes grants: each character that shows nothing, or looks like a space and is none, is
/// written as `<U+00A0>`. Line breaks, tabs and the control characters of ASCII stay: the code that
/// shows the text marks them.
pub fn exact(text: &str) -> Cow<'_, str> {
    if !text.contains(is_ambiguous) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 32);
    for c in text.chars() {
        match c {
            // Writing to a String can't fail.
            c if is_ambiguous(c) => _ = write!(out, "<U+{:04X}>", u32::from(c)),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether a character reads as another one, as a space, or as nothing. The usual line breaks, tabs
/// and spaces don't count.
pub fn is_ambiguous(c: char) -> bool {
    match c {
        '\u{b}' | '\u{c}' => true,
        c if c.is_ascii() => false,
        // The blank Braille pattern, and the selectors that mail may have after a sign.
        '\u{2800}' | '\u{fe0e}' | '\u{fe0f}' => true,
        c => c.is_whitespace() || is_unprintable(c),
    }
}

/// Text without the colours that programs write into their logs. Every other escape sequence stays
/// and is shown as codes.
pub fn without_colours(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(at) = rest.find("\u{1b}[") {
        let after = &rest[at + 2..];
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':');
        match end {
            Some(end) if after[end..].starts_with('m') => {
                kept.push_str(&rest[..at]);
                rest = &after[end + 1..];
            }
            _ => {
                kept.push_str(&rest[..at + 2]);
                rest = after;
            }
        }
    }
    if kept.is_empty() && rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// A JSON document in which characters that a terminal would act on are `\uXXXX`. Its meaning
/// stays: such characters are only in strings.
pub fn json(document: &str) -> Cow<'_, str> {
    let acts = |c: char| c != '\n' && is_unprintable(c);
    if !document.contains(acts) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len() + 32);
    for c in document.chars() {
        if !acts(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String can't fail.
            _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
