//! Processes by /proc.

use super::Status;
use rustix::process::{Pid, PidfdFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The first buffer for the arguments of a process. Most fit.
const ARGUMENTS_CAPACITY: usize = 4096;

pub(super) fn status(pid: i32) -> Option<Status> {
    let mut text = [0; 1024];
    let mut fields = stat(pid, &mut text)?.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Status { parent, start, zombie })
}

/// The fields from the third on.
fn stat(pid: i32, text: &mut [u8; 1024]) -> Option<&str> {
    // The kernel gives the whole text to the first read that has room. It is shorter than this
    // buffer. A send reads one for each process above it.
    let length = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(text)).ok()?;
    // The name may hold blanks, parentheses and any byte. Fields 3 and on follow its last
    // parenthesis.
    let name_ends = text.get(..length)?.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(&text[name_ends + 1..length]).ok()
}

pub(super) fn is_foreground(pid: i32, terminal: &Path) -> bool {
    let mut text = [0; 1024];
    let Some(fields) = stat(pid, &mut text) else { return false };
    // state ppid pgrp session tty_nr tpgid
    let fields: Vec<&str> = fields.split_ascii_whitespace().take(6).collect();
    let &[state, _, group, _, tty, foreground] = fields.as_slice() else { return false };
    let device = rustix::fs::stat(terminal).map(|status| status.st_rdev);
    let is_its = tty.parse::<u64>().is_ok_and(|tty| tty != 0 && device == Ok(tty));
    is_its && group == foreground && !matches!(state, "T" | "t" | "Z" | "X")
}

pub(super) fn reads_a_terminal(pid: i32) -> bool {
    let input = std::fs::read_link(format!("/proc/{pid}/fd/0"));
    input.is_ok_and(|input| input.starts_with("/dev/pts") || input.to_string_lossy().starts_with("/dev/tty"))
}

pub(super) fn variable(pid: i32, name: &str) -> Option<OsString> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |pair: &[u8]| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    bytes.split(|byte| *byte == 0).find_map(value).map(|value| OsStr::from_bytes(&value).to_owned())
}

pub(super) fn arguments(pid: i32) -> Vec<String> {
    // The size of this file is 0, so `std::fs::read` would begin with reads of 32 bytes.
    let mut bytes = Vec::with_capacity(ARGUMENTS_CAPACITY);
    // What can't be read has no arguments.
    File::open(format!("/proc/{pid}/cmdline")).and_then(|mut file| file.read_to_end(&mut bytes)).ok();
    bytes
        .split(|byte| *byte == 0)
        .filter(|arg| !arg.is_empty())
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect()
}

/// Whether /proc belongs to the kernel and to this process's own namespace. Elsewhere its numbers
/// mean other processes.
pub(super) fn sees_itself() -> bool {
    let kernels = rustix::fs::statfs("/proc").is_ok_and(|proc| proc.f_type == rustix::fs::PROC_SUPER_MAGIC);
    let this = std::fs::read_link("/proc/self");
    kernels && this.is_ok_and(|this| this.to_str() == Some(&std::process::id().to_string()))
}

pub(super) fn ending(pid: i32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

pub(super) fn pids() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(super) fn starts_per_second() -> Option<u64> {
    Some(rustix::param::clock_ticks_per_second())
}

pub(super) fn now_as_start() -> Option<u64> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = starts_per_second()?;
    Some(now.tv_sec.cast_unsigned() * per_second + now.tv_nsec.cast_unsigned() * per_second / 1_000_000_000)
}

pub(super) fn at_terminals(folder: &Path) -> Vec<i32> {
    let there = |pid: &i32| {
        has_terminal(*pid) && std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder)
    };
    pids().into_iter().filter(there).collect()
}

fn has_terminal(pid: i32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // Behind the name: state, parent, group, session, terminal.
    let fields = text.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace());
    fields.and_then(|mut fields| fields.nth(4)).is_some_and(|terminal| terminal != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent_a_start_and_arguments() {
        let status = status(std::process::id().cast_signed()).unwrap();
        assert!(status.parent > 0 && status.start > 0 && !status.zombie);
        assert!(!arguments(std::process::id().cast_signed()).is_empty());
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let mut sleep = std::process::Command::new("sleep");
        let mut child =
            sleep.arg("60").env_clear().env("TMUX_PANE", "%1").env("TMUX", "a,1,0").spawn().unwrap();
        let pid = child.id().cast_signed();
        assert_eq!(variable(pid, "TMUX"), Some(OsString::from("a,1,0")));
        assert_eq!(variable(pid, "TMU"), None);
        // It has no such terminal.
        assert!(!is_foreground(pid, Path::new("/dev/null")));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
