//! What the machine did meanwhile: how much of it other programs used, and what a program wrote to
//! the store.

use crate::Outcome;
use crate::child::Shot;
use crate::table::Machine;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Above this share of all cores, wall times say little.
const QUIET_SHARE: f64 = 0.1;

/// Measures how much other programs use the machine.
pub struct Watch {
    start: Instant,
    busy: Option<Duration>,
    own: Duration,
}

impl Watch {
    pub fn new() -> Self {
        Self { start: Instant::now(), busy: busy(), own: own() }
    }

    /// The share of all cores that other programs used; `None` if the system does not say.
    pub fn others(&self, children: Duration) -> Option<f64> {
        let busy = busy()?.saturating_sub(self.busy?);
        let ours = own().saturating_sub(self.own) + children;
        let all = self.start.elapsed() * u32::try_from(cores()).unwrap_or(1);
        Some(busy.saturating_sub(ours).as_secs_f64() / all.as_secs_f64())
    }
}

/// What the share of other programs means for wall times.
pub fn judge(others: Option<f64>) -> Machine {
    if others.is_some_and(|share| share > QUIET_SHARE) { Machine::Busy } else { Machine::Quiet }
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// All time that all cores spent on anything. The kernel counts in hundredths of a second.
fn busy() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> = stat
        .lines()
        .next()?
        .split_ascii_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal
    let spent: u64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|at| fields.get(*at)).sum();
    Some(Duration::from_millis(spent * 10))
}

fn own() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.cast_unsigned(), u32::try_from(spent.tv_nsec).unwrap_or(0))
}

/// Write system calls of one run to files of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    pub store: usize,
    /// To SQLite's index of the WAL, which is shared memory and is never kept.
    pub index: usize,
}

pub fn writes(shot: &Shot, scratch: &Path) -> Outcome<Writes> {
    let trace = scratch.join("strace.out");
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-y",
        "-e",
        "trace=write,writev,pwrite64,pwritev,pwritev2,ftruncate,fallocate,truncate,unlink,rename",
        "-o",
    ]);
    command.arg(&trace).arg(&shot.program).args(&shot.arguments).env_clear().current_dir(&shot.folder);
    command.envs(shot.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("strace can't be started: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&shot.input)?;
    }
    if !child.wait()?.success() {
        return Err("strace is not allowed to trace here".into());
    }
    Ok(count(&fs::read_to_string(&trace)?))
}

fn count(trace: &str) -> Writes {
    let calls = trace.lines().filter(|line| line.contains("baton.db"));
    let (index, store): (Vec<_>, Vec<_>) = calls.partition(|line| line.contains("baton.db-shm"));
    Writes { store: store.len(), index: index.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_told_apart_by_file() {
        let trace = "7 pwrite64(4</h/baton.db-wal>, \"..\", 4096, 0) = 4096\n7 ftruncate(5</h/baton.db-shm>, 3) = 0\n\
            7 write(1<pipe:[9]>, \"x\", 1) = 1\n7 pwrite64(3</h/baton.db>, \"\", 1, 0) = 1\n7 +++ exited with 0 +++\n";
        assert_eq!(count(trace), Writes { store: 2, index: 1 });
    }
}
