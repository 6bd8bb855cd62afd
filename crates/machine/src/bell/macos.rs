//! Watches a file by kqueue. Not verified with a real machine yet.

use rustix::event::kqueue::{Event, EventFilter, EventFlags, VnodeEvents, kevent, kqueue};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

/// A watch on one file. It becomes readable when the file was written.
#[derive(Debug)]
pub struct Watch {
    queue: OwnedFd,
    file: File,
}

impl Watch {
    /// Watches a file that exists.
    pub fn new(file: &Path) -> io::Result<Self> {
        let watch = Self { queue: kqueue()?, file: File::open(file)? };
        let filter = EventFilter::Vnode {
            vnode: watch.file.as_raw_fd(),
            flags: VnodeEvents::WRITE | VnodeEvents::EXTEND,
        };
        let change = Event::new(filter, EventFlags::ADD | EventFlags::CLEAR, std::ptr::null_mut());
        let mut none: Vec<Event> = Vec::new();
        #[expect(
            unsafe_code,
            reason = "kevent is unsafe in rustix because a file may be closed while it is watched; ours is owned by the watch"
        )]
        unsafe {
            kevent(&watch.queue, &[change], &mut none, Some(Duration::ZERO))?;
        }
        Ok(watch)
    }

    /// Waits for a write; false when time ran out.
    pub fn wait(&mut self, longest: Duration) -> bool {
        let mut events: Vec<Event> = Vec::with_capacity(4);
        #[expect(unsafe_code, reason = "see new")]
        let count = unsafe { kevent(&self.queue, &[], &mut events, Some(longest)) };
        count.is_ok_and(|count| count > 0)
    }

    /// Forgets what was heard so far.
    pub fn drain(&mut self) {
        while self.wait(Duration::ZERO) {}
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        self.queue.as_raw_fd()
    }
}
