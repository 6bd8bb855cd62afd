//! The person's terminal, for single keys: which one it is, and its modes.
//!
//! While keys are read one at a time, the terminal is in another mode than before. The mode is put
//! back however the process ends: [`Tty::end`], a panic and a signal call [`put_back`]. Only
//! `kill -9` leaves it to the shell.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, isatty, tcflush, tcgetattr,
    tcgetpgrp, tcgetwinsize, tcsetattr,
};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most that is read at once.
const PIECE_BYTES: usize = 4096;

/// What a terminal is set back to; empty while no keys are read.
static BEFORE: Mutex<Option<(File, Termios)>> = Mutex::new(None);

/// The terminal that standard error is shown on, if it controls this process. Only one process at a
/// time has it: of two, each would take some of the keys.
#[derive(Debug)]
pub struct Tty {
    file: File,
    /// A kernel lock on the terminal's own device; `None` where that can't be opened.
    _lock: Option<File>,
}

impl Tty {
    /// `None` if standard error is no terminal, if this process does not belong to it or is in the
    /// background, or if another process has the terminal.
    #[expect(clippy::disallowed_methods, reason = "it is asked what it is, and nothing is written to it")]
    pub fn of_stderr() -> Option<Self> {
        let stderr = rustix::stdio::stderr();
        // This fails for a terminal that does not control this process, so both are the same one.
        if !isatty(stderr) || tcgetpgrp(stderr).ok() != Some(getpgrp()) {
            return None;
        }
        let mut options = File::options();
        let flags = (rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
        let file = options.read(true).write(true).custom_flags(flags).open("/dev/tty").ok()?;
        // `/dev/tty` is one file for all terminals.
        let device = std::fs::read_link("/proc/self/fd/2").ok();
        let lock = device.and_then(|device| {
            File::options().read(true).custom_flags(flags).open(device).ok().filter(|file| isatty(file))
        });
        if let Some(lock) = &lock
            && flock(lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
        {
            return None;
        }
        Some(Self { file, _lock: lock })
    }

    /// Whether what is typed goes to this process.
    pub fn is_ours(&self) -> bool {
        tcgetpgrp(&self.file).ok() == Some(getpgrp())
    }

    /// Lines and columns; a terminal that does not say it has 24 and 80.
    pub fn size(&self) -> (usize, usize) {
        let or = |size: u16, usual: usize| if size == 0 { usual } else { usize::from(size) };
        tcgetwinsize(&self.file).map_or((24, 80), |size| (or(size.ws_row, 24), or(size.ws_col, 80)))
    }

    /// From now on keys come one at a time and are not shown. What was typed before is dropped.
    /// Ctrl-C stays a signal.
    pub fn begin(&self) -> io::Result<()> {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut modes = tcgetattr(&self.file)?;
        if before.is_none() {
            *before = Some((self.file.try_clone()?, modes.clone()));
        }
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(&self.file, OptionalActions::Flush, &modes)?)
    }

    /// The terminal is as it was before. What was typed and not read is dropped, so it reaches no
    /// shell as a command.
    pub fn end(&self) {
        self.forget_typed();
        put_back();
    }

    /// Drops what was typed and not read.
    pub fn forget_typed(&self) {
        // If that fails, the terminal is gone.
        tcflush(&self.file, QueueSelector::IFlush).ok();
    }

    /// What was typed, without waiting. `None` if the terminal is gone.
    pub fn read(&self) -> Option<Vec<u8>> {
        let mut piece = vec![0; PIECE_BYTES];
        match (&self.file).read(&mut piece) {
            Ok(0) => None,
            Ok(length) => {
                piece.truncate(length);
                Some(piece)
            }
            Err(error) if error.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) => Some(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// Whether something is typed within this time.
    pub fn is_typed_within(&self, longest: Duration) -> bool {
        readable(&[self.file.as_fd()], longest)
    }
}

impl AsFd for Tty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Waits until one of these can be read, up to this long; whether one can.
pub fn readable(fds: &[BorrowedFd<'_>], longest: Duration) -> bool {
    let timeout =
        Timespec { tv_sec: longest.as_secs().cast_signed(), tv_nsec: i64::from(longest.subsec_nanos()) };
    let mut fds: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// Puts the terminal back, if keys are read from it. For every end of the process.
pub fn put_back() {
    // A thread that panics while it holds this is about to put it back itself.
    let Ok(mut before) = BEFORE.try_lock() else { return };
    if let Some((tty, modes)) = before.take()
        // In the background, the shell has set its own modes; to set ours would stop this process.
        && tcgetpgrp(&tty).ok() == Some(getpgrp())
    {
        tcsetattr(&tty, OptionalActions::Now, &modes).ok();
    }
}
