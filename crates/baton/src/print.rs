//! Printing: data to stdout, words about it to stderr, colours only for people, JSON when asked.

use baton_core::Error;
use baton_core::error::{Code, Exit};
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

/// A colour for people.
#[derive(Clone, Copy, Debug)]
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

    /// Text in a tone, where colours are shown.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Bold => 1,
            Tone::Dim => 2,
            Tone::Good => 32,
            Tone::Warn => 33,
            Tone::Bad => 31,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Prints data: the document when JSON was asked for, else the text.
    pub fn data(self, document: &Value, text: impl FnOnce() -> String) -> Result<(), Error> {
        let mut shown = if self.json { document.to_string() } else { text() };
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| {
            Error::new(Code::OutputClosed, format!("the output could not be written: {error}"))
                .hint("nothing was marked as read")
        })
    }

    /// Prints mail, which counts as read afterwards. Where standard output was closed, the runtime has put the null device in its place, open for
    /// reading too; what is written there was read by nobody.
    pub fn mail(self, document: &Value, text: impl FnOnce() -> String) -> Result<(), Error> {
        if is_closed(io::stdout()) {
            return Err(
                Error::new(Code::OutputClosed, "the output is closed").hint("nothing was marked as read")
            );
        }
        self.data(document, text)
    }

    /// Words about what happened, for people.
    pub fn say(self, text: &str) {
        if !self.json {
            eprintln!("{text}");
        }
    }

    /// Prints a failure the way cli.md says.
    pub fn fail(self, error: &Error) -> u8 {
        eprintln!("error: {}", error.message());
        if let Some(hint) = error.hint_text() {
            eprintln!("hint: {hint}");
        }
        if self.json {
            let document = json!({"error": {"code": error.code().as_str(), "message": error.message(), "hint": error.hint_text()}});
            // If stdout is closed, stderr has said it already.
            writeln!(io::stdout(), "{document}").ok();
        }
        error.code().exit() as u8
    }
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

/// A table with aligned columns; the first row is its head. Widths are of the text without colours, so cells are toned by column.
pub fn table(out: Out, head: &[&str], rows: &[Vec<String>], tones: &[Option<Tone>]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<(String, Option<Tone>)>| -> String {
        let last = cells.len() - 1;
        let parts: Vec<_> = cells
            .into_iter()
            .enumerate()
            .map(|(at, (cell, tone))| {
                let padding = if at == last { 0 } else { widths[at].saturating_sub(cell.chars().count()) };
                let shown = tone.map_or_else(|| cell.clone(), |tone| out.tone(tone, &cell));
                format!("{shown}{}", " ".repeat(padding))
            })
            .collect();
        parts.join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(head.iter().map(|cell| ((*cell).to_owned(), Some(Tone::Dim))).collect());
    for row in rows {
        text.push_str(&line(
            row.iter().cloned().zip(tones.iter().copied().chain(std::iter::repeat(None))).collect(),
        ));
    }
    text
}
