//! A mark that the kernel keeps on an agent's process and on every process that starts below it.
//!
//! On Linux the mark is the hard limit of file locks (`RLIMIT_LOCKS`), which the kernel has ignored
//! since 2.4 and which is unlimited by default. Any process of the same user may lower it for
//! another; no process may raise it again without `CAP_SYS_RESOURCE`. Children inherit it over
//! fork, exec, setsid, a cleared environment and new namespaces. So a process that started below an
//! agent shows that for its whole life, even when none of its ancestors is left. Other systems have
//! nothing like it, and only the ancestors count there.
//!
//! baton uses two ranges of values. An agent's mark is in the upper one. A job's worker gets a mark
//! from the lower one before it starts anything, so a process that started below a job shows that
//! too, above or below any agent. A process that lowers its value can't leave the lower range.
//!
//! The value tells which agent set it, and grows with that agent's start. A marked process can
//! lower its own value and so pretend to be below an older agent. It can't pretend to be below a
//! later one, itself included. So the value can only take rights away from a caller.

use baton_core::process::Process;

/// Every limit up to this one is a mark. A limit that an administrator sets is far lower and counts
/// as a mark too; `baton doctor` says so.
pub const HIGHEST_MARK: u64 = 1 << 61;
/// The lowest mark of an agent. Every lower limit is the mark of a process below a job.
const LOWEST_AGENT_MARK: u64 = 1 << 60;
/// The lowest mark that baton sets for a job.
const LOWEST_JOB_MARK: u64 = 1 << 59;
/// Bits of a process's number; the kernel's largest is 2^22.
const PID_BITS: u32 = 22;
/// Bits of a start: 21 years in hundredths of a second.
const START_BITS: u32 = 36;

/// The mark of the processes below this one; 0 if it is not marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// The mark that an agent's process gets.
    pub fn of(agent: Process) -> Self {
        Self(LOWEST_AGENT_MARK + number(agent))
    }

    /// The mark that the worker of a job gets.
    pub fn of_job(worker: Process) -> Self {
        Self(LOWEST_JOB_MARK + number(worker))
    }

    /// Whether a job is above the process that has this mark, or once was.
    pub fn is_below_a_job(self) -> bool {
        self.0 < LOWEST_AGENT_MARK
    }
}

/// Identifies a process, and grows with its start. It is less than a range of marks.
fn number(process: Process) -> u64 {
    let pid = process.pid.unsigned_abs() & ((1 << PID_BITS) - 1);
    let start = process.start & ((1 << START_BITS) - 1);
    (start << PID_BITS) + u64::from(pid)
}

/// Whether this process started below a job, for certain or by an administrator's limit.
pub fn is_below_a_job() -> bool {
    own().is_some_and(Mark::is_below_a_job)
}

/// The mark of this process; `None` if it did not start below an agent that baton has seen. This is
/// one system call.
#[cfg(target_os = "linux")]
pub fn own() -> Option<Mark> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Locks).maximum;
    limit.filter(|limit| *limit <= HIGHEST_MARK).map(Mark)
}

/// This system has no marks.
#[cfg(not(target_os = "linux"))]
pub fn own() -> Option<Mark> {
    None
}

/// Marks an agent's process for its whole life, and this process too. An existing mark, of the
/// outermost agent, stays.
#[cfg(target_os = "linux")]
pub fn set(agent: Process) {
    // The kernel refuses this if a lower mark exists, or if the agent runs with other rights. Then
    // only its ancestors count.
    lower(rustix::process::Pid::from_raw(agent.pid), Mark::of(agent));
    lower(None, Mark::of(agent));
}

/// Marks this process, the worker of a job, for its whole life. The mark of a job above it stays;
/// that of an agent is replaced.
#[cfg(target_os = "linux")]
pub fn set_job(worker: Process) {
    if !is_below_a_job() {
        lower(None, Mark::of_job(worker));
    }
}

#[cfg(target_os = "linux")]
fn lower(pid: Option<rustix::process::Pid>, Mark(value): Mark) {
    use rustix::process::{Resource, Rlimit, prlimit};
    prlimit(pid, Resource::Locks, Rlimit { current: Some(value), maximum: Some(value) }).ok();
}

/// This system has no marks.
#[cfg(not(target_os = "linux"))]
pub fn set(_agent: Process) {}

#[cfg(not(target_os = "linux"))]
pub fn set_job(_worker: Process) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_later_agent_has_a_higher_mark_and_all_are_marks() {
        let first = Mark::of(Process { pid: 4_194_303, start: 10 });
        let later = Mark::of(Process { pid: 1, start: 11 });
        assert!(first.0 < later.0 && later.0 < HIGHEST_MARK);
        assert!(Mark::of(Process { pid: i32::MAX, start: u64::MAX }).0 <= HIGHEST_MARK);
    }

    #[test]
    fn s4_a_jobs_mark_is_below_every_agents_and_stays_one_when_it_is_lowered() {
        let (first, last) = (Process { pid: 1, start: 0 }, Process { pid: i32::MAX, start: u64::MAX });
        assert!(Mark::of_job(last).0 < Mark::of(first).0, "an agent's mark can be lowered to a job's");
        assert!(Mark::of_job(first).is_below_a_job() && Mark::of_job(last).is_below_a_job());
        assert!(!Mark::of(first).is_below_a_job() && !Mark::of(last).is_below_a_job());
        assert!(Mark(1000).is_below_a_job() && Mark(0).is_below_a_job());
    }
}
