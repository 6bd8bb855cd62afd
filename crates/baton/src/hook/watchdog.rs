//! The watchdog of a hook: a thread that ends the process when its time is over, whatever it waits
//! for.
//!
//! It is a thread and not a signal: the kernel does not interrupt a read from a file system that
//! does not answer, but the end of the process ends the read. It costs 40 µs of a hook's 1.5 ms.

use super::{append_log, say_unjudged};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The hook no longer needs a watchdog: its answer is out, or it waits for a person.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// See [`extend`].
static EXTENDED: AtomicBool = AtomicBool::new(false);
/// What git and a repository's host may take together.
const EXTENSION_TIME: Duration = Duration::from_secs(3);
/// Enough for a thread that only sleeps and prints one line.
const STACK_BYTES: usize = 128 << 10;
/// The hook's own deadlines give a better message than the watchdog, so they get a moment first.
const GRACE_PERIOD: Duration = Duration::from_millis(50);
/// How long to wait for the log. A slow disk may be the cause of the timeout.
const LOG_TIMEOUT: Duration = Duration::from_millis(200);

/// The home that gets a line when the time is over.
static HOME: OnceLock<PathBuf> = OnceLock::new();

/// Sets that home, once it is known to be safe.
pub(super) fn log_to(home: &Path) {
    HOME.get_or_init(|| home.to_owned());
}

/// Starts the watchdog. If no thread can be started, only the hook's own deadlines limit it.
pub(super) fn start(agent: &str, deadline: Instant) {
    let agent = agent.to_owned();
    let watch = move || {
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()) + GRACE_PERIOD);
        if EXTENDED.load(Ordering::Relaxed) {
            std::thread::sleep(EXTENSION_TIME);
        }
        if STOPPED.load(Ordering::Relaxed) {
            return;
        }
        let code = say_unjudged(deadline);
        let (written, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let Some(home) = HOME.get() else { return };
            append_log(home, &format!("{agent}: timed-out: it took more than two seconds"));
            written.send(()).ok();
        });
        wait.recv_timeout(LOG_TIMEOUT).ok();
        std::process::exit(code);
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(watch).ok();
}

/// Gives the hook more time, once: at the end of a turn the guard may query a repository's host.
pub(super) fn extend() {
    EXTENDED.store(true, Ordering::Relaxed);
}

pub(super) fn stop() {
    STOPPED.store(true, Ordering::Relaxed);
}
