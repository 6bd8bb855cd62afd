//! How the demo looks: chapters, commands, what they print, and proofs, on 80 columns, with pauses
//! for a person.

use super::broken;
use crate::print::{Out, Text, Tone, stdout_is_terminal, text};
use baton_core::Error;
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// What a line may take on a terminal.
const COLUMNS: usize = 80;
/// All pauses together: the whole demo takes less than twenty seconds.
const PAUSE_LIMIT: Duration = Duration::from_secs(17);

/// Prints the demo.
#[derive(Debug)]
pub struct Show {
    out: Out,
    /// What is left of the pauses.
    pauses: Duration,
    chapter: &'static str,
    chapters: u32,
}

impl Show {
    /// With pauses, if a person watches and does not want it fast.
    pub fn new(out: Out, is_fast: bool) -> Self {
        let paused = !is_fast && !out.is_json() && stdout_is_terminal();
        let pauses = if paused { PAUSE_LIMIT } else { Duration::ZERO };
        Self { out, pauses, chapter: "the start", chapters: 0 }
    }

    /// The chapter that runs.
    pub fn chapter_name(&self) -> &'static str {
        self.chapter
    }

    fn pause(&mut self, length: Duration) {
        let length = length.min(self.pauses);
        self.pauses -= length;
        thread::sleep(length);
    }

    fn print(&self, text: Text) -> Result<(), Error> {
        self.out.data(&Value::String(text.to_string()), || text)
    }

    /// A chapter begins.
    pub fn chapter(&mut self, title: &'static str) -> Result<(), Error> {
        self.pause(Duration::from_millis(400));
        self.chapters += 1;
        self.chapter = title;
        self.print(text!["\n", text![format_args!("{}. {title}", self.chapters)].toned(Tone::Bold)])?;
        self.pause(Duration::from_millis(100));
        Ok(())
    }

    /// What happens, in words.
    pub fn tell(&mut self, words: &str) -> Result<(), Error> {
        let lines = wrapped(words, COLUMNS - 3);
        self.print(Text::indented(&lines.join("\n"), "   "))?;
        self.pause(Duration::from_millis(150));
        Ok(())
    }

    /// What to do after the demo.
    pub fn last_words(&mut self, words: &str) -> Result<(), Error> {
        self.print(Text::from("\n"))?;
        self.tell(words)
    }

    /// What an agent or the person runs.
    pub fn types(&mut self, who: &str, line: &str) -> Result<(), Error> {
        let prompt = text![format_args!("{who} $ ")].toned(Tone::Dim);
        self.print(text!["   ", prompt, text![line.to_owned()].toned(Tone::Bold)])?;
        self.pause(Duration::from_millis(200));
        Ok(())
    }

    /// What was printed, as it is but for line breaks.
    pub fn shows(&mut self, printed: &str) -> Result<(), Error> {
        let lines = printed.trim_end().lines().flat_map(|line| wrapped(line, COLUMNS - 5));
        let bar = || text!["│ "].toned(Tone::Dim);
        self.print(Text::join(lines.map(|line| text!["   ", bar(), line]), "\n"))?;
        self.pause(Duration::from_millis(250));
        Ok(())
    }

    /// What this chapter promises, and whether it held.
    pub fn proves(&mut self, held: bool, promise: &str) -> Result<(), Error> {
        if !held {
            let error = broken("show that a promise holds", format_args!("this was not so: {promise}"));
            return Err(error.hint("this is a bug; please report it with the output above"));
        }
        let words = Text::join(wrapped(promise, COLUMNS - 5), "\n     ");
        self.print(text!["   ", text!["✓ ", words].toned(Tone::Good)])?;
        self.pause(Duration::from_millis(250));
        Ok(())
    }
}

/// A line broken between its words, so that no piece is longer than `columns`. A word that is
/// longer has a line of its own.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= columns => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_indent() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("  a b", 80), ["  a b"]);
        assert_eq!(wrapped("a  b", 80), ["a  b"]);
        assert_eq!(wrapped("averylongword b", 5), ["averylongword", "b"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
