//! The processes of a job, found by a mark in their environment and below its program.
//!
//! Everything that a job starts has the mark in its environment. So the mark also finds processes
//! that have left their group, their session and their parent. A process that has cleared its
//! environment is found only below the program.

use baton_core::id::JobId;
use baton_core::job::watch::Life;
use baton_core::process::Process;
use baton_machine::process;
use baton_store::JobRow;
use rustix::process::{Pid, Signal};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// Names the job that a process belongs to.
pub const JOB_VARIABLE: &str = baton_core::job::JOB_MARKS[0];
/// How many jobs a process is nested in.
pub const DEPTH_VARIABLE: &str = "BATON_JOB_DEPTH";
/// Names the server that a process belongs to, if jobs share one.
pub const SERVER_VARIABLE: &str = baton_core::job::JOB_MARKS[1];

/// Set for the guard if a job may only read.
pub const READ_ONLY_VARIABLE: &str = baton_guard_runtime::READ_ONLY_VARIABLE;

/// By how much a tool's process may be older than the report about the tool.
const NEWS_DELAY: Duration = Duration::from_secs(2);

/// Every running process of a job: marked, or below its program.
pub fn of(id: &JobId, root: Option<Process>) -> Vec<Process> {
    let all = process::all();
    let below = below(&all, root);
    all.into_iter()
        .map(|(process, _)| process)
        .filter(|process| !is_this(*process) && Some(*process) != root)
        .filter(|process| below.contains(&process.pid) || is_marked(*process, JOB_VARIABLE, id.as_str()))
        .collect()
}

/// A process and everything below it.
pub fn tree(root: Process) -> HashSet<i32> {
    below(&process::all(), Some(root))
}

fn below(all: &[(Process, i32)], root: Option<Process>) -> HashSet<i32> {
    let mut below: HashSet<i32> = root.iter().map(|root| root.pid).collect();
    // A child may be listed before its parent. A few rounds find all of any real tree.
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
    below
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

/// Whether a process of a tool call lives: one that is no older than the call, and did not run
/// before it.
pub fn life(running: &[Process], before: &HashSet<i32>, since_start: Duration) -> Life {
    let (Some(per_second), Some(now)) = (process::starts_per_second(), process::now_as_start()) else {
        return Life::Unknown;
    };
    let ago = (since_start + NEWS_DELAY).as_millis() * u128::from(per_second) / 1000;
    let oldest = now.saturating_sub(u64::try_from(ago).unwrap_or(u64::MAX));
    let its = |process: &&Process| process.start >= oldest && !before.contains(&process.pid);
    if running.iter().any(|process| its(&process)) { Life::Alive } else { Life::Absent }
}

/// Ends all processes of a job: first with SIGTERM, and after `politely` with SIGKILL. Returns how
/// many there were.
pub fn end_all(id: &JobId, root: Option<Process>, politely: Duration) -> usize {
    end(&|| of(id, root).into_iter().chain(root).collect(), politely)
}

/// Ends all processes of a server that is gone itself.
pub fn end_of_server(name: &str, politely: Duration) -> usize {
    end(&|| marked(SERVER_VARIABLE, name), politely)
}

fn end(find: &dyn Fn() -> Vec<Process>, politely: Duration) -> usize {
    let found = find();
    signal(&found, Signal::TERM);
    let deadline = Instant::now() + politely;
    // A process can't wait for processes that are not its children. This runs at the end of a job
    // only.
    while found.iter().any(|process| process::is_alive(*process)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Including what they have started in the meantime.
    let left: Vec<Process> = find().into_iter().filter(|process| process::is_alive(*process)).collect();
    signal(&left, Signal::KILL);
    found.len()
}

fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        let Some(pid) = Pid::from_raw(process.pid) else { continue };
        // The pidfd is opened first and the process compared then. So the signal goes to the
        // process that was checked, even if its number is used again.
        #[cfg(target_os = "linux")]
        if let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            if process::is_alive(*process) {
                // An error means that it is gone already.
                rustix::process::pidfd_send_signal(&fd, signal).ok();
            }
            continue;
        }
        if process::is_alive(*process) {
            rustix::process::kill_process(pid, signal).ok();
        }
    }
}

/// How many jobs this process is nested in, by its own environment and that of the processes above
/// it: some agents hide the environment from what they start.
pub fn depth(own: Option<&OsStr>) -> u32 {
    let number = |value: &OsStr| value.to_str().and_then(|text| text.parse().ok());
    let above =
        process::ancestors().into_iter().filter_map(|process| process::variable(process.pid, DEPTH_VARIABLE));
    above.filter_map(|value| number(&value)).chain(own.and_then(number)).max().unwrap_or(0)
}

/// The jobs that this process belongs to, by its own environment and that of the processes above
/// it.
pub fn jobs_above(own: Option<&OsStr>) -> Vec<JobId> {
    let above =
        process::ancestors().into_iter().filter_map(|process| process::variable(process.pid, JOB_VARIABLE));
    let mut found: Vec<JobId> = Vec::new();
    for value in above.chain(own.map(OsStr::to_owned)) {
        if let Some(id) = value.to_str().and_then(JobId::parse).filter(|id| !found.contains(id)) {
            found.push(id);
        }
    }
    found
}

/// The jobs that run this process, for certain: the kernel says that a recorded process of theirs
/// is above it. There are several if they share a server. `None` means that it started below a job,
/// and it is not certain which one.
pub fn running_above(open: Vec<JobRow>) -> Option<Vec<JobRow>> {
    let above = process::ancestors();
    let is_above = |process: &Option<Process>| process.is_some_and(|process| above.contains(&process));
    let found: Vec<JobRow> =
        open.into_iter().filter(|row| is_above(&row.worker) || is_above(&row.backend)).collect();
    (!found.is_empty() || !process::mark::is_below_a_job()).then_some(found)
}

/// Whether this process runs inside a read-only job. A process can clear its own environment, but
/// not that of the processes above it.
pub fn only_reads(own: bool) -> bool {
    own || process::ancestors()
        .into_iter()
        .any(|above| process::variable(above.pid, READ_ONLY_VARIABLE).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_has_left_its_group_and_its_parent_is_found_by_its_mark() {
        let id = JobId::from_random(baton_machine::random::id());
        let mut shell = Command::new("sh")
            .args(["-c", "setsid sleep 600 & sleep 600 & wait"])
            .env(JOB_VARIABLE, id.as_str())
            .spawn()
            .unwrap();
        let all = || of(&id, None).len();
        while all() < 3 {
            std::thread::sleep(Duration::from_millis(10));
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(all(), 2, "its children have lost their parent");
        assert_eq!(of(&JobId::from_random(baton_machine::random::id()), None), []);
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
