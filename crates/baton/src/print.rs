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

mod colour;
mod progress;
mod table;
mod text;
mod time;
mod width;

pub use colour::Colour;
pub use progress::Progress;
pub use table::{table, table_of_sentences};
pub(crate) use text::text;
pub use text::{Text, Tone};
pub use time::when;
pub use width::columns;

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
    /// Colours on standard output.
    colour: bool,
    /// Colours on standard error.
    colour_words: bool,
}

impl Out {
    /// Output for this run.
    pub fn new(json: bool, colour: Colour) -> Self {
        let is_terminal = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self { json, colour: colour.is_for(is_terminal.0), colour_words: colour.is_for(is_terminal.1) }
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
        let unread =
            |error: Error| Error::new(Code::OutputClosed, error.message()).hint("nothing was marked as read");
        self.data(document, text).map_err(unread)
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
            eprintln!("{}", text.into().written(self.colour_words));
        }
    }

    /// Words that the person must see before an answer counts, with `--json` too.
    pub fn insist(self, text: impl Into<Text>) {
        eprintln!("{}", text.into().written(self.colour_words));
    }

    /// Words that the person answers on the same line.
    pub fn prompt(self, text: impl Into<Text>) {
        eprint!("{}", text.into().written(false));
        // The answer is read either way.
        io::stderr().flush().ok();
    }

    /// Asks the person; `None` where there is no terminal to ask in.
    pub fn agrees(self, question: impl Into<Text>) -> Option<bool> {
        if !io::stdin().is_terminal() || !stderr_is_terminal() {
            return None;
        }
        self.prompt(question);
        let mut line = String::new();
        Some(io::stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "Y" | "yes"))
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
        self.worded("error:", Tone::Bad, message);
        if let Some(hint) = hint {
            self.worded("hint:", Tone::Dim, hint);
        }
    }

    /// A word about what follows, and the rest.
    fn worded(self, word: &'static str, tone: Tone, rest: &str) {
        let word = Text::from(word).toned(tone).written(self.colour_words);
        eprintln!("{word} {}", Text::indented(rest, "  ").to_string().trim_start());
    }

    /// A mistake that did not stop the command, with `--json` too.
    pub fn warn(self, error: &Error) {
        self.worded("warning:", Tone::Warn, error.message());
        if let Some(hint) = error.hint_text() {
            self.worded("hint:", Tone::Dim, hint);
        }
    }

    /// The result of what was recorded after the answer. The answer is out, so a failure is only a
    /// warning.
    pub fn afterwards(self, noted: Result<(), Error>) {
        if let Err(error) = noted {
            self.worded("warning:", Tone::Warn, error.message());
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

    /// Help of the command line. Its headings are toned.
    pub fn help(self, document: &Value, text: String) {
        let mut shown = Text::default();
        for line in text.lines() {
            let is_heading = line.ends_with(':') && !line.starts_with(' ');
            let line = Text::from(line.to_owned());
            shown.push(if is_heading { line.toned(Tone::Bold) } else { line });
            shown.push("\n");
        }
        // No one is left to tell if the output is closed.
        self.data(document, || shown).ok();
    }

    /// Prints a failure: `error:` and `hint:` on stderr, and with `--json` a document on stdout.
    pub fn fail(self, error: &Error) -> u8 {
        if error.code() == Code::ReaderGone {
            return error.code().exit() as u8;
        }
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

/// Whether a person sees the data.
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person sees the words about it.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether a line on stderr can be drawn again and again.
fn stderr_can_redraw() -> bool {
    stderr_is_terminal() && crate::environment::get("TERM").is_none_or(|terminal| terminal != "dumb")
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
        let is_gone = error.kind() == io::ErrorKind::BrokenPipe;
        let code = if is_gone { Code::ReaderGone } else { Code::OutputClosed };
        Error::new(code, format!("the output could not be written: {error}"))
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
}
