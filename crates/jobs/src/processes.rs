//! The processes of a job: found by a mark in their environment, and below its program.
//!
//! The mark is in the environment of everything that a job starts, so it finds what has left its group, its session and its parent too. What has
//! also cleared its environment is found below the program only.

use baton_core::id::JobId;
use baton_core::job::watch::Life;
use baton_mail::process;
use baton_store::Process;
use rustix::process::{Pid, Signal};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// Names the job that a process belongs to.
pub const JOB: &str = baton_mail::line::JOB_MARKS[0];
/// How many jobs stand above a process.
pub const DEPTH: &str = "BATON_JOB_DEPTH";
/// Names the server that a process belongs to, where jobs share one.
pub const SERVER: &str = baton_mail::line::JOB_MARKS[1];

/// Set for the guard where a job may only read.
pub const READ_ONLY: &str = baton_gate::READ_ONLY;

/// A tool's process may be older than the news about the tool.
const NEWS_BEHIND: Duration = Duration::from_secs(2);

/// Every process of a job that runs now: marked, or below its program.
pub fn of(id: &JobId, root: Option<Process>) -> Vec<Process> {
    let all = process::all();
    let mut below: HashSet<i32> = root.iter().map(|root| root.pid).collect();
    // A child is listed after its parent or not; a few rounds find all of any tree that people make.
    for _ in 0..64 {
        let children: Vec<i32> = all
            .iter()
            .filter(|(process, parent)| below.contains(parent) && !below.contains(&process.pid))
            .map(|(process, _)| process.pid)
            .collect();
        if children.is_empty() {
            break;
        }
        below.extend(children);
    }
    all.into_iter()
        .map(|(process, _)| process)
        .filter(|process| !is_this(*process) && Some(*process) != root)
        .filter(|process| below.contains(&process.pid) || is_marked(*process, JOB, id.as_str()))
        .collect()
}

/// Every process that carries a mark.
fn marked(name: &str, value: &str) -> Vec<Process> {
    let all = process::all().into_iter().map(|(process, _)| process);
    all.filter(|process| !is_this(*process) && is_marked(*process, name, value)).collect()
}

/// Whether a process carries a mark.
pub fn is_marked(process: Process, name: &str, value: &str) -> bool {
    process::variable(process.pid, name).is_some_and(|found| found == OsStr::new(value))
}

fn is_this(process: Process) -> bool {
    process.pid == std::process::id().cast_signed()
}

/// Whether a process of a tool call is there: one that is no older than the call, and was not there before it.
pub fn life(running: &[Process], before: &HashSet<i32>, since_start: Duration) -> Life {
    let (Some(per_second), Some(now)) = (process::starts_per_second(), process::now_as_start()) else {
        return Life::Unknown;
    };
    let ago = (since_start + NEWS_BEHIND).as_millis() * u128::from(per_second) / 1000;
    let oldest = now.saturating_sub(u64::try_from(ago).unwrap_or(u64::MAX));
    let its = |process: &&Process| process.start >= oldest && !before.contains(&process.pid);
    if running.iter().any(|process| its(&process)) { Life::Alive } else { Life::Absent }
}

/// Ends all processes of a job: politely, and what is left after that long by force. How many there were.
pub fn end_all(id: &JobId, root: Option<Process>, politely: Duration) -> usize {
    end(&|| of(id, root).into_iter().chain(root).collect(), politely)
}

/// Ends all processes of a server that is gone itself.
pub fn end_of_server(name: &str, politely: Duration) -> usize {
    end(&|| marked(SERVER, name), politely)
}

fn end(find: &dyn Fn() -> Vec<Process>, politely: Duration) -> usize {
    let found = find();
    signal(&found, Signal::TERM);
    let deadline = Instant::now() + politely;
    // There is no way to wait for processes that are not our children; this is the end of a job, not its course.
    while found.iter().any(|process| process::is_alive(*process)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    // What they have started in the meantime too.
    let left: Vec<Process> = find().into_iter().filter(|process| process::is_alive(*process)).collect();
    signal(&left, Signal::KILL);
    found.len()
}

fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        let Some(pid) = Pid::from_raw(process.pid) else { continue };
        // Opened first, then compared: what we signal is what we looked at, whatever becomes of its number.
        #[cfg(target_os = "linux")]
        if let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            if process::is_alive(*process) {
                // Gone already is what we want.
                rustix::process::pidfd_send_signal(&fd, signal).ok();
            }
            continue;
        }
        if process::is_alive(*process) {
            rustix::process::kill_process(pid, signal).ok();
        }
    }
}

/// How many jobs stand above this process, by its own environment or that of any process above it: some agents hide the environment from what they
/// start.
pub fn depth(own: Option<&OsStr>) -> u32 {
    let number = |value: &OsStr| value.to_str().and_then(|text| text.parse().ok());
    let above = process::ancestors().into_iter().filter_map(|process| process::variable(process.pid, DEPTH));
    above.filter_map(|value| number(&value)).chain(own.and_then(number)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_has_left_its_group_and_its_parent_is_found_by_its_mark() {
        let id = JobId::from_random(baton_mail::random());
        let mut shell = Command::new("sh")
            .args(["-c", "setsid sleep 600 & sleep 600 & wait"])
            .env(JOB, id.as_str())
            .spawn()
            .unwrap();
        let all = || of(&id, None).len();
        while all() < 3 {
            std::thread::sleep(Duration::from_millis(10));
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(all(), 2, "its children have lost their parent");
        assert_eq!(of(&JobId::from_random(baton_mail::random()), None), []);
        assert_eq!(end_all(&id, None, Duration::from_secs(5)), 2);
        assert_eq!(all(), 0);
    }

    #[test]
    fn a_tool_lives_if_something_younger_than_it_does() {
        let mut old = Command::new("sleep").arg("600").spawn().unwrap();
        let process = process::find(old.id().cast_signed()).unwrap();
        let none = HashSet::new();
        assert_eq!(life(&[process], &none, Duration::from_secs(1)), Life::Alive);
        assert_eq!(life(&[], &none, Duration::from_secs(1)), Life::Absent);
        assert_eq!(life(&[process], &HashSet::from([process.pid]), Duration::from_secs(1)), Life::Absent);
        let older = Process { start: process.start.saturating_sub(100_000), ..process };
        assert_eq!(life(&[older], &none, Duration::from_secs(1)), Life::Absent, "a server of the agent");
        old.kill().unwrap();
        old.wait().unwrap();
    }
}
