//! Where the program begins.
//!
//! Rust's own beginning reads the map of the process and makes a second stack, so that it finds words for a stack that overflows: a fortieth of all that a
//! hook costs. So the C library calls `main` here, and what else Rust does at its beginning is done here too.

#[cfg(not(test))]
use core::ffi::{c_char, c_int};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::stdio::{stderr, stdin, stdout};

#[cfg(not(test))]
#[unsafe(no_mangle)]
#[expect(
    unsafe_code,
    reason = "the name by which the C library finds it; there is no other main in this program"
)]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    begin().into()
}

/// Does what the arguments say; gives the exit code.
pub fn begin() -> u8 {
    open_missing_streams();
    ignore_broken_pipes();
    crate::run()
}

/// Whoever was started without a standard stream must not get its number for a file: what is printed would go there.
fn open_missing_streams() {
    let mut streams =
        [stdin(), stdout(), stderr()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty()));
    if poll(&mut streams, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_err() {
        return;
    }
    // The lowest number that is free is taken: that of the first that is missing, then of the next.
    for _ in streams.iter().filter(|stream| stream.revents().contains(PollFlags::NVAL)) {
        if let Ok(nothing) = openat(CWD, "/dev/null", OFlags::RDWR, Mode::empty()) {
            std::mem::forget(nothing);
        }
    }
}

/// Printing to nobody is an error that is handled, not an end.
#[expect(unsafe_code, reason = "neither std nor rustix ignores a signal")]
fn ignore_broken_pipes() {
    // SAFETY: no handler is installed, and no thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
