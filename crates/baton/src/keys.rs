//! Single keys of the person at the terminal, and Ctrl-C.
//!
//! A key counts only if the person can have pressed it in answer to what is on the screen: what was
//! typed before is dropped, and so is each key until the keyboard was quiet for [`QUIET_TIME`]. A
//! key that comes together with others is no answer: that is a paste, or the sequence of an arrow.

use baton_machine::tty::{self, Tty};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::low_level::{emulate_default_handler, pipe};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the keyboard must be quiet before a key counts.
const QUIET_TIME: Duration = Duration::from_millis(500);
/// What follows a key within this time came together with it.
const TOGETHER: Duration = Duration::from_millis(30);

/// The terminal was suspended in between, so the mode and the screen are not ours any more.
static WAS_SUSPENDED: AtomicBool = AtomicBool::new(false);

/// The keyboard. The terminal is put back when this is dropped.
#[derive(Debug)]
pub struct Keys {
    tty: Tty,
    quiet_from: Instant,
    is_gone: bool,
    /// Bytes of a character that is not complete.
    partial: Vec<u8>,
}

impl Keys {
    /// `None` if there is no terminal that shows what is asked and takes keys for it now.
    pub fn open() -> Option<Self> {
        put_back_on_signals().ok()?;
        let tty = Tty::of_stderr()?;
        tty.begin().ok()?;
        WAS_SUSPENDED.store(false, Ordering::Relaxed);
        Some(Self { tty, quiet_from: Instant::now(), is_gone: false, partial: Vec::new() })
    }

    /// Something new is on the screen. What was typed before is no answer to it.
    pub fn drawn(&mut self) {
        self.tty.forget_typed();
        self.partial.clear();
        self.quiet_from = Instant::now() + QUIET_TIME;
    }

    /// Lines and columns of the terminal.
    pub fn size(&self) -> (usize, usize) {
        self.tty.size()
    }

    /// What to wait for; `None` if no key can come any more.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_gone).then(|| self.tty.as_fd())
    }

    /// Whether the terminal is gone, or takes no keys for this process any more.
    pub fn is_lost(&self) -> bool {
        self.is_gone || !self.tty.is_ours()
    }

    /// Whether the person suspended this process and brought it back. Then the question has to be
    /// drawn again.
    pub fn was_suspended(&self) -> bool {
        if !WAS_SUSPENDED.swap(false, Ordering::Relaxed) {
            return false;
        }
        // Otherwise it is in the background, which `is_lost` tells.
        self.tty.is_ours() && self.tty.begin().is_ok()
    }

    /// The one key that was pressed in answer to what is on the screen, if there is one.
    pub fn pressed(&mut self) -> Option<char> {
        let typed = self.read();
        if typed.is_empty() {
            return None;
        }
        let is_early = Instant::now() < self.quiet_from;
        let is_alone = typed.len() == 1 && !self.tty.is_typed_within(TOGETHER);
        if is_early || !is_alone {
            self.drawn();
            return None;
        }
        Some(char::from(typed[0])).filter(char::is_ascii)
    }

    /// Everything that was typed, for a line of text. Sequences of special keys are left out.
    pub fn typed(&mut self) -> Vec<char> {
        let typed = self.read();
        if typed.len() > 1 && typed[0] == 0x1b {
            return Vec::new();
        }
        self.partial.extend(typed);
        let complete = match std::str::from_utf8(&self.partial) {
            Ok(_) => self.partial.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // No UTF-8: it is no text.
            Err(_) => {
                self.partial.clear();
                0
            }
        };
        String::from_utf8_lossy(&self.partial.drain(..complete).collect::<Vec<u8>>()).chars().collect()
    }

    fn read(&mut self) -> Vec<u8> {
        let read = self.tty.read();
        self.is_gone |= read.is_none();
        read.unwrap_or_default()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.tty.end();
    }
}

/// Ctrl-C, as something to wait for. From the first call on, it does not end the process.
#[derive(Debug)]
pub struct Interrupts(UnixStream);

impl Interrupts {
    /// `None` if the kernel has no more descriptors: then Ctrl-C ends the process as ever.
    pub fn listen() -> Option<&'static Self> {
        static INTERRUPTS: OnceLock<Option<Interrupts>> = OnceLock::new();
        INTERRUPTS.get_or_init(|| heard(SIGINT).ok().map(Self)).as_ref()
    }

    /// Whether Ctrl-C was pressed since the last call.
    pub fn take(&self) -> bool {
        let mut piece = [0; 64];
        (&self.0).read(&mut piece).is_ok_and(|length| length > 0)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A stream that can be read when the signal came.
fn heard(signal: i32) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    pipe::register(signal, writer)?;
    Ok(reader)
}

/// A signal that ends or stops the process puts the terminal back first.
fn put_back_on_signals() -> io::Result<()> {
    static STARTED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    let start = || -> io::Result<()> {
        let signals = [SIGTERM, SIGHUP, SIGQUIT, SIGTSTP];
        let streams = signals.map(heard).into_iter().collect::<io::Result<Vec<_>>>()?;
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            loop {
                let fds: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
                tty::readable(&fds, Duration::from_secs(3600));
                for (signal, mut stream) in signals.into_iter().zip(&streams) {
                    let mut piece = [0; 64];
                    if stream.read(&mut piece).is_ok_and(|length| length > 0) {
                        tty::put_back();
                        // Ends this process, or stops it until the person brings it back.
                        emulate_default_handler(signal).ok();
                        WAS_SUSPENDED.store(true, Ordering::Relaxed);
                    }
                }
            }
        })?;
        Ok(())
    };
    STARTED.get_or_init(|| start().map_err(|error| error.kind())).map_err(io::Error::from)
}
