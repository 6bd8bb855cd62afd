//! Printing: data to stdout, words about it to stderr, colours only for people, JSON when asked.
//!
//! The only place that writes to the standard streams, hooks and protocols apart: `clippy.toml`
//! refuses the macros and streams of std everywhere else. It takes [`Text`], which no foreign
//! escape sequence gets through.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "the one place for all commands; what it prints is Text or JSON"
)]

mod progress;
mod text;

pub use progress::Progress;
pub(crate) use text::text;
pub use text::{Text, Tone};

use baton_core::Error;
use baton_core::error::{Code, Exit};
use baton_core::foreign::{self, Foreign};
use baton_core::notice::Route;
use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};
use serde_json::{Value, json};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;

/// Where output goes and how.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    json: bool,
    colour: bool,
}

impl Out {
    /// Output for this run.
    pub fn new(json: bool) -> Self {
        let colour = io::stdout().is_terminal() && crate::environment::get("NO_COLOR").is_none();
        Self { json, colour }
    }

    /// Whether JSON was asked for.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Foreign text on one line, in a tone.
    pub fn tone(self, tone: Tone, text: &str) -> Text {
        text![text.to_owned()].toned(tone)
    }

    /// Prints data: the document when JSON was asked for, else the text.
    pub fn data<T: Into<Text>>(self, document: &Value, text: impl FnOnce() -> T) -> Result<(), Error> {
        let mut shown = if self.json { json_line(document) } else { text().into().written(self.colour) };
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        write(&shown)
    }

    /// Prints mail, which counts as read afterwards. Where standard output was closed, the runtime
    /// has put the null device in its place, open for reading too; no one reads what is written
    /// there.
    pub fn mail<T: Into<Text>>(self, document: &Value, text: impl FnOnce() -> T) -> Result<(), Error> {
        if is_closed(io::stdout()) {
            return Err(
                Error::new(Code::OutputClosed, "the output is closed").hint("nothing was marked as read")
            );
        }
        self.data(document, text)
    }

    /// Prints a piece of a program's log, without its colours. It may end in the middle of a line.
    pub fn log(self, piece: &str) -> Result<(), Error> {
        if !self.json {
            return write(&Foreign::new(foreign::without_colours(piece)).lines().to_string());
        }
        let lines: String =
            piece.lines().map(|line| format!("{}\n", json_line(&json!({"line": line})))).collect();
        write(&lines)
    }

    /// Words about what happened, for people.
    pub fn say(self, text: impl Into<Text>) {
        if !self.json {
            eprintln!("{}", text.into().written(self.colour));
        }
    }

    /// Words that the person must see before an answer counts, with `--json` too.
    pub fn insist(self, text: impl Into<Text>) {
        eprintln!("{}", text.into().written(self.colour));
    }

    /// Words that the person answers on the same line.
    pub fn prompt(self, text: impl Into<Text>) {
        eprint!("{}", text.into().written(false));
        // The answer is read either way.
        io::stderr().flush().ok();
    }

    /// Takes back the last character of what the person types.
    pub fn rub_out(self) {
        eprint!("\x08 \x08");
    }

    /// Has the terminal show a notification.
    pub fn notify(self, route: Route, text: &str) {
        if stderr_is_terminal() {
            eprint!("{}", route.bytes(text));
        }
    }

    /// Rings the bell of the terminal.
    pub fn ring(self) {
        eprint!("\x07");
    }

    /// What went wrong and what to do about it, for people: one line each, and what a message has
    /// more is indented.
    pub fn trouble(self, message: &str, hint: Option<&str>) {
        eprintln!("error: {}", Text::indented(message, "  ").to_string().trim_start());
        if let Some(hint) = hint {
            eprintln!("hint: {}", Text::indented(hint, "  ").to_string().trim_start());
        }
    }

    /// The result of what was recorded after the answer. The answer is out, so a failure is only a
    /// warning.
    pub fn afterwards(self, noted: Result<(), Error>) {
        if let Err(error) = noted {
            eprintln!("warning: {}", Foreign::new(error.message()));
        }
    }

    /// What was accepted goes on, but the wait for it broke off: the ids are printed, so that no
    /// retry does it twice.
    pub fn wait_failed(self, mut document: Value, error: &Error) -> Result<Exit, Error> {
        if !self.json {
            return Err(error.clone());
        }
        self.trouble(error.message(), error.hint_text());
        document["error"] = described(error);
        self.data(&document, String::new)?;
        Ok(Exit::NotYet)
    }

    /// Prints a failure: `error:` and `hint:` on stderr, and with `--json` a document on stdout.
    pub fn fail(self, error: &Error) -> u8 {
        self.trouble(error.message(), error.hint_text());
        if self.json {
            let document = json!({"error": described(error)});
            // If stdout is closed, stderr has said it already.
            write(&(json_line(&document) + "\n")).ok();
        }
        error.code().exit() as u8
    }
}

fn described(error: &Error) -> Value {
    json!({"code": error.code().as_str(), "message": error.message(), "hint": error.hint_text()})
}

/// Help of the command line.
pub fn help(text: String) {
    // Nobody is left to tell if the output is closed.
    write(&Text::from(text).written(false)).ok();
}

/// Whether a person sees the data.
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person sees the words about it.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// A bug ends the command with its message, which may quote text that is foreign.
pub fn announce_panics() {
    std::panic::set_hook(Box::new(|panic| {
        baton_machine::tty::put_back();
        eprintln!("error: baton has a bug: {}", Foreign::new(panic.to_string()));
    }));
}

fn json_line(document: &Value) -> String {
    foreign::json(&document.to_string()).into_owned()
}

fn write(shown: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| {
        Error::new(Code::OutputClosed, format!("the output could not be written: {error}"))
            .hint("nothing was marked as read")
    })
}

fn is_closed(stream: impl AsFd) -> bool {
    let both_ways = fcntl_getfl(&stream).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    both_ways
        && fstat(&stream).is_ok_and(|this| stat("/dev/null").is_ok_and(|null| this.st_rdev == null.st_rdev))
}

/// What a command that went well returns.
pub fn done() -> Result<Exit, Error> {
    Ok(Exit::Done)
}

/// A table with aligned columns; the first row is its head. Cells are foreign, each on one line,
/// and toned by column.
pub fn table(head: &[&'static str], rows: &[Vec<String>], tones: &[Option<Tone>]) -> Text {
    let rows: Vec<Vec<Text>> = rows.iter().map(|row| row.iter().map(|cell| text![cell]).collect()).collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].width()).chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<(Text, Option<Tone>)>| -> Text {
        let last = cells.len() - 1;
        let mut line = Text::default();
        for (at, (cell, tone)) in cells.into_iter().enumerate() {
            let padding = if at == last { 0 } else { widths[at].saturating_sub(cell.width()) + 2 };
            line.push(match tone {
                Some(tone) => cell.toned(tone),
                None => cell,
            });
            line.push(" ".repeat(padding));
        }
        text![line.trim_end(), "\n"]
    };
    let mut text = line(head.iter().map(|cell| (Text::from(*cell), Some(Tone::Dim))).collect());
    for row in rows {
        text.push(line(row.into_iter().zip(tones.iter().copied().chain(std::iter::repeat(None))).collect()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s17_a_document_says_the_same_without_what_a_terminal_acts_on() {
        let document = json!({"body": "\u{1b}]52;c;x\u{7}\u{9b}2J\u{202e}\u{e0041}é\u{7f}\n"});
        let shown = json_line(&document);
        assert!(!shown.contains(foreign::is_unprintable), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON"), document);
    }

    #[test]
    fn s17_a_cell_makes_no_row() {
        let rows = [vec!["a\nFAKE ROW\u{1b}[2J".to_owned(), String::new()]];
        let shown = table(&["A", "B"], &rows, &[]).to_string();
        assert_eq!(shown, format!("{:20}B\na\\nFAKE ROW\\x1b[2J\n", "A"));
    }
}
