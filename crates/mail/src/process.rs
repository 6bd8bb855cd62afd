//! Processes: who runs, since when, below whom. What differs between systems lies in one module each.

use baton_store::Process;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as os;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as os;

/// How far up the process tree we look.
const ANCESTORS: usize = 32;

/// This process.
pub fn this() -> Process {
    let pid = std::process::id().cast_signed();
    Process { pid, start: os::status(pid).map_or(0, |status| status.start) }
}

/// Whether that very process is running; another one with its number is not.
pub fn is_alive(process: Process) -> bool {
    os::status(process.pid).is_some_and(|status| status.start == process.start && !status.zombie)
}

/// A running process by its number.
pub fn find(pid: i32) -> Option<Process> {
    os::status(pid).map(|status| Process { pid, start: status.start })
}

/// The processes above this one, the nearest first. Each is read once: this is on the path of every send.
pub fn ancestors() -> Vec<Process> {
    above(std::process::id().cast_signed())
}

/// A process and those above it, by their numbers, the nearest first.
pub fn lineage(pid: i32) -> Vec<i32> {
    std::iter::once(pid).chain(above(pid).iter().map(|process| process.pid)).collect()
}

fn above(pid: i32) -> Vec<Process> {
    let mut above = Vec::new();
    let mut next = os::status(pid).map(|status| status.parent);
    while let Some(pid) = next.filter(|pid| *pid > 1 && above.len() < ANCESTORS) {
        let Some(status) = os::status(pid) else { break };
        above.push(Process { pid, start: status.start });
        next = Some(status.parent);
    }
    above
}

/// The arguments of a process.
pub fn arguments(pid: i32) -> Vec<String> {
    os::arguments(pid)
}

/// Something that becomes readable when that very process ends; `None` where there is no such thing, or it has ended.
pub fn ending(process: Process) -> Option<OwnedFd> {
    // Looked at after it was opened: until then the number may have become another's.
    os::ending(process.pid).filter(|_| is_alive(process))
}

/// The processes that have a terminal and work in that folder.
pub fn at_terminals(folder: &Path) -> Vec<i32> {
    // The kernel names folders without links.
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

/// How many of the kernel's counts, in which starts are told, a second has; `None` where starts can only be compared for being the same.
pub fn starts_per_second() -> Option<u64> {
    os::starts_per_second()
}

/// Now, in the kernel's count in which starts are told.
pub fn now_as_start() -> Option<u64> {
    os::now_as_start()
}

/// Whether a process is in the foreground of that terminal, so that it gets the keys which are typed there.
pub fn is_foreground(pid: i32, terminal: &Path) -> bool {
    os::is_foreground(pid, terminal)
}

/// Whether what a process reads as its input is a terminal; no where that can't be found out.
pub fn reads_a_terminal(pid: i32) -> bool {
    os::reads_a_terminal(pid)
}

/// What the kernel says about a process.
struct Status {
    parent: i32,
    start: u64,
    zombie: bool,
}
