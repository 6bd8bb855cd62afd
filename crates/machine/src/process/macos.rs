//! Processes by ps: slower than a system call, but without unsafe code, and not on the path of a
//! quiet hook. Not verified with a real machine yet.

use super::Status;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

fn ps(pid: i32, columns: &str) -> Option<String> {
    let output = Command::new("/bin/ps")
        .args(["-o", columns, "-p", &pid.to_string()])
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(super) fn status(pid: i32) -> Option<Status> {
    let text = ps(pid, "ppid=,state=,lstart=")?;
    let mut fields = text.split_ascii_whitespace();
    let parent = fields.next()?.parse().ok()?;
    let zombie = fields.next()?.starts_with('Z');
    // The start as text, folded into a number: it is only ever compared.
    let start = fields.collect::<String>().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Some(Status { parent, start: start >> 1, zombie })
}

pub(super) fn is_foreground(pid: i32, terminal: &Path) -> bool {
    let Some(text) = ps(pid, "pgid=,tpgid=,state=,tty=") else { return false };
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let &[group, foreground, state, tty] = fields.as_slice() else { return false };
    group == foreground
        && !state.starts_with(['T', 'Z'])
        && terminal.file_name().is_some_and(|name| name == tty)
}

pub(super) fn reads_a_terminal(_pid: i32) -> bool {
    false
}

pub(super) fn variable(pid: i32, name: &str) -> Option<OsString> {
    // The environment follows the arguments. A value is cut at its first blank, and then names
    // nothing.
    let text =
        Command::new("/bin/ps").args(["-Eww", "-o", "command=", "-p", &pid.to_string()]).output().ok()?;
    let text = String::from_utf8(text.stdout).ok()?;
    let value = |word: &str| word.strip_prefix(name)?.strip_prefix('=').map(OsString::from);
    text.split_ascii_whitespace().rev().find_map(value)
}

pub(super) fn arguments(pid: i32) -> Vec<String> {
    ps(pid, "args=")
        .map(|text| text.split_ascii_whitespace().map(str::to_owned).collect())
        .unwrap_or_default()
}

pub(super) fn sees_itself() -> bool {
    true
}

pub(super) fn ending(_pid: i32) -> Option<OwnedFd> {
    None
}

pub(super) fn pids() -> Vec<i32> {
    let Ok(output) = Command::new("/bin/ps").args(["-ax", "-o", "pid="]).output() else { return Vec::new() };
    String::from_utf8_lossy(&output.stdout)
        .split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

pub(super) fn starts_per_second() -> Option<u64> {
    None
}

pub(super) fn now_as_start() -> Option<u64> {
    None
}

pub(super) fn at_terminals(_folder: &Path) -> Vec<i32> {
    // Only unsafe code could tell. So no person counts as present, and no session is woken that
    // might run unattended.
    Vec::new()
}
