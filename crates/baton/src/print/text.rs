//! Text for people, made of parts that are harmless on a terminal.
//!
//! Words of the program (`&'static str`) keep their line breaks. Everything else is foreign until
//! it is shown: a `String` among the parts is one line, a whole `String` is lines, and both lose
//! every character that a terminal acts on. Colours are kept beside the words and become escape
//! sequences only where [`super::Out`] writes them, so no text brings its own.

use super::width;
use baton_core::foreign::{Foreign, LINE_CHARS, Lines, OneLine};
use std::fmt;

/// The narrowest that filled text becomes, however deep its indent.
const MIN_FILLED: usize = 20;

/// A colour for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Names.
    Bold,
    /// Side notes.
    Dim,
    /// Good.
    Good,
    /// To look at.
    Warn,
    /// Bad.
    Bad,
}

impl Tone {
    fn code(self) -> u8 {
        match self {
            Self::Bold => 1,
            Self::Dim => 2,
            Self::Good => 32,
            Self::Warn => 33,
            Self::Bad => 31,
        }
    }
}

/// Words with their colours. `Display` shows the words alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(Vec<(Option<Tone>, String)>);

impl Text {
    /// Adds a part at the end.
    pub fn push(&mut self, part: impl Part) {
        part.add_to(self);
    }

    /// All of it in one tone.
    pub fn toned(self, tone: Tone) -> Self {
        Self(self.0.into_iter().map(|(_, words)| (Some(tone), words)).collect())
    }

    /// One after another, with something between.
    pub fn join(parts: impl IntoIterator<Item = impl Part>, between: &'static str) -> Self {
        let mut text = Self::default();
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                text.push(between);
            }
            text.push(part);
        }
        text
    }

    /// Foreign text on its own lines, each behind `indent`.
    pub fn indented(foreign: &str, indent: &'static str) -> Self {
        let mut text = Self::default();
        for (at, line) in foreign.trim_end().split('\n').enumerate() {
            text.push(if at > 0 { "\n" } else { "" });
            text.push(indent);
            text.add(None, Foreign::new(line).lines().to_string());
        }
        text
    }

    /// Columns that it takes on its line.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, words)| width::of(words)).sum()
    }

    /// On one line of at most this many columns; `…` stands for what is left out.
    pub fn cut(self, most: usize) -> Self {
        if self.width() <= most {
            return self;
        }
        let mut left = most.saturating_sub(1);
        let mut cut = Self::default();
        for (tone, c) in self.characters() {
            let Some(rest) = left.checked_sub(width::of_char(c)) else { break };
            left = rest;
            cut.add_character(tone, c);
        }
        let tone = cut.0.last().and_then(|(tone, _)| *tone);
        let mut cut = cut.trim_end();
        cut.add(tone, "…".to_owned());
        cut
    }

    /// On lines of at most this many columns, broken at blanks where that is possible.
    pub fn wrapped(self, most: usize) -> Vec<Self> {
        let (mut lines, mut line, mut word) = (Vec::new(), Self::default(), Self::default());
        let most = most.max(1);
        for (tone, c) in self.characters() {
            let word_width = word.width();
            match c {
                ' ' | '\n' => {
                    if line.width() + word_width > most {
                        lines.push(std::mem::take(&mut line).trim_end());
                    }
                    line.push(std::mem::take(&mut word));
                    match c {
                        '\n' => lines.push(std::mem::take(&mut line).trim_end()),
                        _ => line.add_character(tone, c),
                    }
                }
                c => {
                    // A word that is longer than a line is broken.
                    if word_width + width::of_char(c) > most {
                        if line.width() > 0 {
                            lines.push(std::mem::take(&mut line).trim_end());
                        }
                        lines.push(std::mem::take(&mut word));
                    }
                    word.add_character(tone, c);
                }
            }
        }
        if line.width() + word.width() > most {
            lines.push(std::mem::take(&mut line).trim_end());
        }
        line.push(word);
        lines.push(line.trim_end());
        lines
    }

    /// Behind an indent, with further lines behind the same one where a terminal is too narrow.
    pub fn filled(self, indent: usize, columns: Option<usize>) -> Self {
        let Some(columns) = columns else { return self };
        let mut text = Self::default();
        for (at, line) in self.wrapped(columns.saturating_sub(indent).max(MIN_FILLED)).into_iter().enumerate()
        {
            if at > 0 {
                text.add(None, format!("\n{:indent$}", ""));
            }
            text.push(line);
        }
        text
    }

    fn characters(&self) -> impl Iterator<Item = (Option<Tone>, char)> {
        self.0.iter().flat_map(|(tone, words)| words.chars().map(|c| (*tone, c)))
    }

    fn add_character(&mut self, tone: Option<Tone>, c: char) {
        match self.0.last_mut() {
            Some((last, words)) if *last == tone => words.push(c),
            _ => self.0.push((tone, c.to_string())),
        }
    }

    /// Lines that it takes on a terminal with so many columns.
    pub fn height(&self, columns: usize) -> usize {
        let lines = self.to_string();
        lines.lines().map(|line| 1 + line.chars().count().saturating_sub(1) / columns.max(1)).sum()
    }

    /// Without blanks at its end.
    pub fn trim_end(mut self) -> Self {
        while let Some((_, last)) = self.0.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }

    /// What is written: whatever is in the words, the only sequences are those of the tones.
    pub(super) fn written(&self, colour: bool) -> String {
        let mut out = String::new();
        for (tone, words) in &self.0 {
            let words = Foreign::new(words.as_str());
            match tone.filter(|_| colour) {
                Some(tone) => out.push_str(&format!("\u{1b}[{}m{}\u{1b}[0m", tone.code(), words.lines())),
                None => out.push_str(&words.lines().to_string()),
            }
        }
        out
    }

    fn add(&mut self, tone: Option<Tone>, words: String) {
        if !words.is_empty() {
            self.0.push((tone, words));
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(false))
    }
}

impl From<&'static str> for Text {
    fn from(words: &'static str) -> Self {
        Self(vec![(None, words.to_owned())])
    }
}

impl From<String> for Text {
    fn from(foreign: String) -> Self {
        Self(vec![(None, Foreign::new(foreign).lines().to_string())])
    }
}

/// What text is made of.
pub trait Part {
    /// Adds itself at the end of a text.
    fn add_to(self, text: &mut Text);
}

/// Words of the program, with their line breaks.
impl Part for &'static str {
    fn add_to(self, text: &mut Text) {
        text.add(None, self.to_owned());
    }
}

impl Part for Text {
    fn add_to(self, text: &mut Text) {
        text.0.extend(self.0);
    }
}

/// Foreign, on one line.
impl Part for String {
    fn add_to(self, text: &mut Text) {
        (&self).add_to(text);
    }
}

/// Foreign, on one line.
impl Part for &String {
    fn add_to(self, text: &mut Text) {
        if !self.is_empty() {
            Foreign::new(self).line(LINE_CHARS).add_to(text);
        }
    }
}

/// Foreign, on one line: `format_args!` of ids, numbers and names.
impl Part for fmt::Arguments<'_> {
    fn add_to(self, text: &mut Text) {
        self.to_string().add_to(text);
    }
}

impl Part for Foreign<'_> {
    fn add_to(self, text: &mut Text) {
        text.add(None, self.to_string());
    }
}

impl Part for OneLine<'_> {
    fn add_to(self, text: &mut Text) {
        text.add(None, self.to_string());
    }
}

impl Part for Lines<'_> {
    fn add_to(self, text: &mut Text) {
        text.add(None, self.to_string());
    }
}

/// Text of its parts, one after another.
macro_rules! text {
    ($($part:expr),* $(,)?) => {{
        let mut text = $crate::print::Text::default();
        $(text.push($part);)*
        text
    }};
}
pub(crate) use text;

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::foreign::is_unprintable;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\nrow\u{202e}";

    #[test]
    fn s17_every_kind_of_part_is_harmless_with_colours_too() {
        let owned = HOSTILE.to_owned();
        let mut all = text![&owned, owned.clone(), format_args!("{HOSTILE}"), Foreign::new(HOSTILE)];
        all.push(Foreign::new(HOSTILE).line(3));
        assert!(!all.written(false).contains(is_unprintable), "{all}");
        all.push(Foreign::new(HOSTILE).lines());
        all.push(Text::from(owned.clone()));
        all.push(Text::indented(HOSTILE, "  "));
        all.push(text![owned].toned(Tone::Bad));
        let mut shown = all.written(true);
        for own in ["\u{1b}[31m", "\u{1b}[0m", "\n"] {
            assert!(shown.contains(own));
            shown = shown.replace(own, "");
        }
        assert!(!shown.contains(is_unprintable), "{shown}");
    }

    #[test]
    fn words_that_hold_a_sequence_are_written_without_it() {
        assert_eq!(Text::from("a\u{1b}[31m").written(true), "a\\x1b[31m");
    }

    #[test]
    fn blanks_at_the_end_go_wherever_they_are() {
        let text = text!["a ", text!["b"].toned(Tone::Dim), "  ", " "].trim_end();
        assert_eq!((text.to_string(), text.width()), ("a b".to_owned(), 3));
    }

    #[test]
    fn text_is_cut_and_wrapped_by_columns_and_keeps_its_tones() {
        let text = || text![text!["one two"].toned(Tone::Bold), " three"];
        assert_eq!(text().cut(13), text());
        assert_eq!(text().cut(9).written(true), "\u{1b}[1mone two\u{1b}[0m…");
        assert_eq!(Text::from("東京都").cut(5).to_string(), "東京…");
        let lines = |text: Text, most| text.wrapped(most).iter().map(Text::to_string).collect::<Vec<_>>();
        assert_eq!(lines(text(), 8), ["one two", "three"]);
        assert_eq!(lines(Text::from("a\n\nlongerthan x"), 6), ["a", "", "longer", "than x"]);
        assert_eq!(lines(Text::default(), 6), [""]);
        assert_eq!(text().filled(2, Some(22)).to_string(), "one two three");
        assert_eq!(
            Text::from("aaaaaaaaaa bbbbbbbbbbbbb").filled(2, Some(22)).to_string(),
            "aaaaaaaaaa\n  bbbbbbbbbbbbb"
        );
    }
}
