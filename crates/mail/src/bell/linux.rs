//! Watching a file by inotify.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

/// A watch on one file: readable when somebody wrote to it.
#[derive(Debug)]
pub struct Watch {
    fd: OwnedFd,
}

impl Watch {
    /// Watches a file that exists.
    pub fn new(file: &Path) -> io::Result<Self> {
        let fd = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(&fd, file, inotify::WatchFlags::MODIFY)?;
        Ok(Self { fd })
    }

    /// Waits for a write; false when time ran out.
    pub fn wait(&mut self, longest: Duration) -> bool {
        let timeout =
            Timespec { tv_sec: longest.as_secs().cast_signed(), tv_nsec: i64::from(longest.subsec_nanos()) };
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let heard = poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0);
        if heard {
            self.drain();
        }
        heard
    }

    /// Forgets what was heard so far.
    pub fn drain(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        while reader.next().is_ok() {}
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
