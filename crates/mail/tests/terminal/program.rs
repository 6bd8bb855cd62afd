//! The scripted program: this test binary, started again in a pane. It draws Claude Code's box and
//! dialog. It logs what was submitted, each key that answered the dialog, and each key that reached
//! a person's draft.
//!
//! A key belongs to the screen that the terminal showed when it sent the key. So after each new
//! screen the program asks the terminal for the cursor's position. A key that comes before that
//! answer was sent to the old screen. This makes the log exact, even on a busy machine.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Names the log; set in the pane only.
pub const LOG_VARIABLE: &str = "BATON_TEST_LOG";
/// What it shows: `ready`, `draft`, `dialog`, or a number as the seed of random changes between
/// them.
pub const SHOWS_VARIABLE: &str = "BATON_TEST_SHOWS";
/// The name of the test below.
pub const NAME: &str = "program::runs_in_a_pane";

const DRAFT: &str = "half a thought of a person";

#[test]
fn runs_in_a_pane() {
    if let (Some(log), Ok(shows)) = (std::env::var_os(LOG_VARIABLE), std::env::var(SHOWS_VARIABLE)) {
        let log = OpenOptions::new().append(true).create(true).open(log).unwrap();
        Program::new(log, &shows).run();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Ready,
    Draft,
    Dialog,
}

struct Program {
    log: File,
    shows: Shows,
    /// What is in the box.
    text: String,
    /// Inside of a bracketed paste.
    pasting: bool,
    /// The first bytes of an incomplete sequence.
    rest: Vec<u8>,
    /// What is drawn, but may not be on the screen yet.
    next: Option<Shows>,
    /// The state of the random generator, if it changes at random.
    random: Option<u64>,
    change_at: Instant,
}

impl Program {
    fn new(log: File, shows: &str) -> Self {
        let random = shows.parse::<u64>().ok().map(|seed| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let shows = match shows {
            "draft" => Shows::Draft,
            "dialog" => Shows::Dialog,
            _ => Shows::Ready,
        };
        let text = if shows == Shows::Draft { DRAFT.to_owned() } else { String::new() };
        let change_at = Instant::now();
        Self { log, shows, text, pasting: false, rest: Vec::new(), next: None, random, change_at }
    }

    fn run(&mut self) {
        let terminal = io::stdin();
        let mut modes = tcgetattr(&terminal).unwrap();
        modes.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &modes).unwrap();
        self.note(&format!("pid {}", std::process::id()));
        self.write("\x1b[?1049h\x1b[?2004h");
        self.draw(self.shows, &self.text);
        let mut input = File::open("/dev/tty").unwrap();
        loop {
            let left = self.change_at.saturating_duration_since(Instant::now());
            let timeout = self.random.is_some().then(|| Timespec::try_from(left).unwrap());
            let ready = poll(&mut [PollFd::new(&input, PollFlags::IN)], timeout.as_ref()).unwrap_or(0);
            if ready > 0 {
                let mut bytes = [0; 4096];
                let length = input.read(&mut bytes).unwrap();
                if length == 0 {
                    return;
                }
                self.take(&bytes[..length]);
            } else if self.random.is_some() && Instant::now() >= self.change_at {
                self.change();
            }
        }
    }

    /// Draws another screen, for a time between 1 and 1200 ms.
    fn change(&mut self) {
        let number = self.next_random();
        let next = [Shows::Ready, Shows::Ready, Shows::Draft, Shows::Dialog][(number % 4) as usize];
        self.next = Some(next);
        let text = self.text_at(next);
        self.draw(next, &text);
        self.write("\x1b[6n");
        let time = self.next_random() % 1200 + 1;
        self.change_at = Instant::now() + Duration::from_millis(time);
    }

    /// The terminal shows what was drawn.
    fn changed(&mut self) {
        if let Some(next) = self.next.take() {
            self.text = self.text_at(next);
            self.shows = next;
        }
    }

    /// What the box holds when the screen changes.
    fn text_at(&self, next: Shows) -> String {
        match (self.shows, next) {
            // A person starts to type after what is there.
            (Shows::Ready | Shows::Dialog, Shows::Draft) => format!("{}{DRAFT}", self.text),
            // The person is done.
            (Shows::Draft, Shows::Ready | Shows::Dialog) => String::new(),
            _ => self.text.clone(),
        }
    }

    fn next_random(&mut self) -> u64 {
        let mut state = self.random.unwrap_or(1);
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random = Some(state);
        state >> 11
    }

    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(first) = self.rest.first().copied() {
            if first != 0x1b {
                self.rest.remove(0);
                self.key(first);
                continue;
            }
            let is_end = |byte: &u8| (0x40..=0x7e).contains(byte);
            // The rest of the sequence has not come yet.
            let Some(length) = self.rest.iter().skip(2).position(is_end) else { return };
            let sequence: Vec<u8> = self.rest.drain(..length + 3).collect();
            match sequence.as_slice() {
                b"\x1b[200~" => self.pasting = true,
                b"\x1b[201~" => self.pasting = false,
                [.., b'R'] => self.changed(),
                _ => self.key(0x1b),
            }
        }
        if self.next.is_none() {
            self.draw(self.shows, &self.text.clone());
        }
    }

    fn key(&mut self, byte: u8) {
        match self.shows {
            // Dialogs of real agents ignore a paste, but take any key as an answer.
            Shows::Dialog if self.pasting => {}
            Shows::Dialog => self.note(&format!("approved {byte}")),
            Shows::Draft => self.note(&format!("touched {byte}")),
            Shows::Ready if byte == b'\r' && !self.pasting => {
                let line = format!("submitted {}", std::mem::take(&mut self.text));
                self.note(&line);
            }
            Shows::Ready => self.text.push(char::from(byte)),
        }
    }

    fn draw(&self, shows: Shows, text: &str) {
        let size = tcgetwinsize(io::stdin()).unwrap();
        let rule = "─".repeat(usize::from(size.ws_col));
        let bottom = size.ws_row;
        let screen = match shows {
            Shows::Dialog => format!(
                "{rule}\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n Esc to cancel\x1b[{};2H",
                bottom - 2
            ),
            Shows::Ready | Shows::Draft => format!(
                "{rule}\r\n❯\u{a0}{}\r\n{rule}\r\n  ? for shortcuts\r\n\x1b[{};{}H",
                text,
                bottom - 3,
                text.chars().count() + 3
            ),
        };
        self.write(&format!("\x1b[2J\x1b[H● a fine answer\x1b[{};1H{screen}", bottom - 4));
    }

    /// Writes all at once, so that the terminal never shows half a screen.
    fn write(&self, text: &str) {
        #[expect(clippy::disallowed_methods, reason = "it draws on the pane of the test")]
        let mut terminal = io::stdout().lock();
        terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush()).unwrap();
    }

    fn note(&mut self, line: &str) {
        self.log.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}
