//! The entry point of the program.
//!
//! We define `main` ourselves and skip Rust's runtime start-up, which costs about 2.5 % of a hook:
//! it reads the process map and makes a second stack, to report a stack overflow. The other steps
//! of the start-up are done here.

#[cfg(not(test))]
use core::ffi::{c_char, c_int};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::stdio::{stderr, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

/// This program was started without a standard output, so its output is lost.
static NO_OUTPUT: AtomicBool = AtomicBool::new(false);

pub fn has_output() -> bool {
    !NO_OUTPUT.load(Ordering::Relaxed)
}

#[cfg(not(test))]
#[unsafe(no_mangle)]
#[expect(
    unsafe_code,
    reason = "the name by which the C library finds it; there is no other main in this program"
)]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    begin().into()
}

/// Prepares the process, and runs what the arguments say. Returns the exit code.
pub fn begin() -> u8 {
    open_missing_streams();
    ignore_broken_pipes();
    crate::run()
}

#[expect(clippy::disallowed_methods, reason = "asks which streams are there, and writes nothing")]
/// If a standard stream is missing, the next opened file would get its number, and output would go
/// into that file.
fn open_missing_streams() {
    let mut streams =
        [stdin(), stdout(), stderr()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty()));
    if poll(&mut streams, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_err() {
        return;
    }
    NO_OUTPUT.store(streams[1].revents().contains(PollFlags::NVAL), Ordering::Relaxed);
    // Each open takes the lowest free number: that of the first missing stream, then of the next.
    for _ in streams.iter().filter(|stream| stream.revents().contains(PollFlags::NVAL)) {
        if let Ok(nothing) = openat(CWD, "/dev/null", OFlags::RDWR, Mode::empty()) {
            std::mem::forget(nothing);
        }
    }
}

/// A write to a closed pipe must be an error that the program handles, and not a signal that kills
/// it.
#[expect(unsafe_code, reason = "neither std nor rustix ignores a signal")]
fn ignore_broken_pipes() {
    // SAFETY: no handler is installed, and no thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
