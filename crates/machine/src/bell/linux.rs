//! Watches a file by inotify, or by a timer if the kernel gives no more watches.
//!
//! A user may have a limited number of watches, and other programs use many. Without one, a timer
//! takes its place: it becomes readable at intervals, and the waiting process reads the store, as
//! after a ring.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

/// How often the timer makes a process look at the store.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A watch on one file. It becomes readable when the file was written, or may have been.
#[derive(Debug)]
pub struct Watch {
    fd: OwnedFd,
    by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Notice,
    Clock,
}

impl Watch {
    /// Watches a file that exists.
    pub fn new(file: &Path) -> io::Result<Self> {
        match notices(file) {
            Ok(fd) => Ok(Self { fd, by: By::Notice }),
            // There are no more instances, watches or memory for them, or the kernel or sandbox has
            // none.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOSPC | Errno::NOMEM | Errno::NOSYS | Errno::PERM) => {
                Ok(Self { fd: ticks()?, by: By::Clock })
            }
            Err(error) => Err(error.into()),
        }
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
        if self.by == By::Clock {
            // Nothing to read: the timer has not fired.
            rustix::io::read(&self.fd, &mut [0; 8]).ok();
            return;
        }
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        while reader.next().is_ok() {}
    }
}

fn notices(file: &Path) -> rustix::io::Result<OwnedFd> {
    let fd = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&fd, file, inotify::WatchFlags::MODIFY)?;
    Ok(fd)
}

fn ticks() -> rustix::io::Result<OwnedFd> {
    let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    let each = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL_INTERVAL.subsec_nanos()) };
    let timer = Itimerspec { it_interval: each, it_value: each };
    timerfd_settime(&fd, TimerfdTimerFlags::empty(), &timer)?;
    Ok(fd)
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
