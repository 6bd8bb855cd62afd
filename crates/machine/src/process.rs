//! Processes: which run, since when, and below which. Each system has its own module.

pub mod mark;

use baton_core::process::Process;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as os;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as os;

/// How far up the process tree baton looks. No person or agent makes a deeper tree.
const MAX_ANCESTORS: usize = 4096;
/// How often the walk starts again when a process ends in the middle of it.
const MAX_WALKS: usize = 3;

/// The processes above one.
#[derive(Clone, Debug, Default)]
pub struct Above {
    /// The nearest first.
    pub processes: Vec<Process>,
    /// Whether they reach the first process of the system or container. Otherwise some are hidden,
    /// and any of those may be an agent.
    pub whole: bool,
}

/// This process.
pub fn this() -> Process {
    let pid = std::process::id().cast_signed();
    Process { pid, start: os::status(pid).map_or(0, |status| status.start) }
}

/// The path of this process's program. If an upgrade has replaced the file since, it is the path of
/// the new one: Linux puts a word behind the path of a file that is gone.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe().map(without_deleted)
}

fn without_deleted(program: PathBuf) -> PathBuf {
    match program.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) if !program.exists() => PathBuf::from(OsStr::from_bytes(path)),
        _ => program,
    }
}

/// Whether exactly that process is running, and not a later one with its number.
pub fn is_alive(process: Process) -> bool {
    os::status(process.pid).is_some_and(|status| status.start == process.start && !status.zombie)
}

/// A running process by its number.
pub fn find(pid: i32) -> Option<Process> {
    os::status(pid).map(|status| Process { pid, start: status.start })
}

/// The processes above this one, the nearest first. Each is read when it is asked for, because
/// every send does this.
pub fn upwards() -> impl Iterator<Item = Process> {
    Upwards { next: parent() }.take(MAX_ANCESTORS)
}

/// All processes above this one, the nearest first.
pub fn ancestors() -> Vec<Process> {
    upwards().collect()
}

/// The processes above this one, and whether the list is complete.
pub fn above_us() -> Above {
    let mut above = Above::default();
    for _ in 0..MAX_WALKS {
        // What enters a container has no parent that is seen there.
        above = walk(Some(parent().unwrap_or(0)));
        if above.whole {
            break;
        }
    }
    above.whole &= os::sees_itself();
    above
}

/// The number of the process that started this one: one system call.
pub fn parent() -> Option<i32> {
    rustix::process::getppid().map(rustix::process::Pid::as_raw_pid)
}

/// A process and those above it, by their numbers, the nearest first.
pub fn lineage(pid: i32) -> Vec<i32> {
    let above = walk(os::status(pid).map(|status| status.parent)).processes;
    std::iter::once(pid).chain(above.iter().map(|process| process.pid).filter(|pid| *pid > 1)).collect()
}

fn walk(first: Option<i32>) -> Above {
    let mut upwards = Upwards { next: first };
    let processes = upwards.by_ref().take(MAX_ANCESTORS).collect();
    Above { processes, whole: upwards.next.is_some_and(|pid| pid <= 0) }
}

/// Goes from a process to its parent, and so on. At the top, `next` is not the number of a process.
struct Upwards {
    next: Option<i32>,
}

impl Iterator for Upwards {
    type Item = Process;

    fn next(&mut self) -> Option<Process> {
        let pid = self.next.filter(|pid| *pid > 0)?;
        let status = os::status(pid);
        self.next = status.as_ref().map(|status| status.parent);
        Some(Process { pid, start: status?.start })
    }
}

/// The process that leads this one's terminal session; `None` if it is gone or can't be found.
pub fn session_leader() -> Option<Process> {
    let leader = rustix::process::getsid(None).ok()?;
    find(leader.as_raw_pid())
}

/// The arguments of a process.
pub fn arguments(pid: i32) -> Vec<String> {
    os::arguments(pid)
}

/// A descriptor that becomes readable when exactly that process ends; `None` if the system has
/// none, or the process has ended.
pub fn ending(process: Process) -> Option<OwnedFd> {
    // Checked after the open: before it, the number could have passed to another process.
    os::ending(process.pid).filter(|_| is_alive(process))
}

/// The processes that have a terminal and work in that folder.
pub fn at_terminals(folder: &Path) -> Vec<i32> {
    // The kernel shows folders with their links resolved.
    os::at_terminals(&folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
}

/// A variable of the environment that a process was started with.
pub fn variable(pid: i32, name: &str) -> Option<OsString> {
    os::variable(pid, name)
}

/// Every running process, with the number of the one that started it.
pub fn all() -> Vec<(Process, i32)> {
    let status = |pid| os::status(pid).filter(|status| !status.zombie);
    os::pids()
        .into_iter()
        .filter_map(|pid| status(pid).map(|s| (Process { pid, start: s.start }, s.parent)))
        .collect()
}

/// How many ticks of the start times a second has; `None` if start times can only be compared for
/// equality.
pub fn starts_per_second() -> Option<u64> {
    os::starts_per_second()
}

/// The current time in the ticks of the start times.
pub fn now_as_start() -> Option<u64> {
    os::now_as_start()
}

/// Whether a process is in the foreground of that terminal, so that it gets the keys typed there.
pub fn is_foreground(pid: i32, terminal: &Path) -> bool {
    os::is_foreground(pid, terminal)
}

/// Whether a process's standard input is a terminal; false if that is not known.
pub fn reads_a_terminal(pid: i32) -> bool {
    os::reads_a_terminal(pid)
}

/// What the kernel says about a process.
struct Status {
    parent: i32,
    start: u64,
    zombie: bool,
}
