//! Kill points: a program is run again and again, and killed before each of its system calls in
//! turn.
//!
//! `strace` counts the calls of one undisturbed run, then delivers `SIGKILL` at the entry of the
//! n-th call of a kind, which is then not executed. It can't hit what happens between two calls
//! (writes to shared memory). The test restores the world before each run and checks it afterwards.
//!
//! Counts are per thread or process of the program; it should be a short one that does the same
//! each time, such as a hook or a send.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::process::signal_group;
use crate::sandbox::find_in_path;
use crate::wait;

/// A traced run of a short program.
const FAULT_LIMIT: Duration = Duration::from_secs(30);

/// An instant in a program's life: before the `nth` call of `syscall`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KillPoint {
    /// The system call's name.
    pub syscall: String,
    /// Which of its calls, from 1.
    pub nth: usize,
}

impl fmt::Display for KillPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.syscall, self.nth)
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Whether it was killed, or ended by itself before the point was reached.
    pub killed: bool,
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// What it wrote to standard output until then.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error until then.
    pub stderr: Vec<u8>,
}

/// Runs the program undisturbed and lists its kill points, sorted by system call.
///
/// `command` must name its whole environment, as [`crate::Sandbox::command`] does: it is cleared.
pub fn kill_points(command: &Command, input: &[u8]) -> Vec<KillPoint> {
    let trace = tempfile::NamedTempFile::new().expect("a file for the trace");
    let outcome = run_traced(command, input, &["-o".as_ref(), trace.path().as_os_str()]);
    assert!(!outcome.killed, "the undisturbed run was killed: {outcome:?}");
    let text = fs::read_to_string(trace.path()).expect("strace writes the trace");
    points_in(&text)
}

/// Runs the program until the kill point.
pub fn run_killed_at(command: &Command, input: &[u8], point: &KillPoint) -> Outcome {
    let inject = format!("inject={}:signal=KILL:when={}", point.syscall, point.nth);
    run_traced(command, input, &["-o".as_ref(), "/dev/null".as_ref(), "-e".as_ref(), inject.as_ref()])
}

fn run_traced(command: &Command, input: &[u8], options: &[&std::ffi::OsStr]) -> Outcome {
    let strace = find_in_path("strace").expect("strace is installed (hint: `scripts/test` installs it)");
    let mut traced = Command::new(strace);
    traced.args(["-f", "-qq"]).args(options).arg("--").arg(command.get_program()).args(command.get_args());
    traced.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        traced.current_dir(folder);
    }
    let (mut stdin, stdout, stderr) = (scratch(), scratch(), scratch());
    stdin.write_all(input).and_then(|()| stdin.rewind()).expect("write the input");
    let files = [&stdout, &stderr].map(|file| Stdio::from(file.try_clone().expect("a second handle")));
    let [out, err] = files;
    let mut child =
        traced.stdin(stdin).stdout(out).stderr(err).process_group(0).spawn().expect("start strace");
    let ended = wait::poll(FAULT_LIMIT, || child.try_wait().ok().flatten());
    signal_group(child.id(), Signal::KILL);
    let status =
        ended.unwrap_or_else(|| panic!("{command:?} is still running after {FAULT_LIMIT:?} under strace"));
    // strace ends the way its program ended.
    let killed = status.signal() == Some(Signal::KILL.as_raw());
    Outcome { killed, code: status.code(), stdout: content(stdout), stderr: content(stderr) }
}

fn scratch() -> File {
    tempfile::tempfile().expect("a scratch file")
}

fn content(mut file: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| std::io::Read::read_to_end(&mut file, &mut bytes))
        .expect("read a scratch file");
    bytes
}

/// The most calls of each kind that one process of the trace made. What a second thread of it does
/// depends on how far it comes before the process ends, so its calls are no points.
fn points_in(trace: &str) -> Vec<KillPoint> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let threads: Vec<&str> = trace
        .lines()
        .filter_map(|line| Some(line.split_once("parent_tid=[")?.1.split_once(']')?.0))
        .collect();
    for line in trace.lines() {
        let (process, rest) = match line.split_once(char::is_whitespace) {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                (number, rest.trim_start())
            }
            _ => ("", line),
        };
        if threads.contains(&process) {
            continue;
        }
        // Signals and ends start with other characters; a resumed call was counted at its start.
        if let Some((name, _)) = rest.split_once('(')
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            *counts.entry((name, process)).or_default() += 1;
        }
    }
    let mut most: BTreeMap<&str, usize> = BTreeMap::new();
    for ((name, _), count) in counts {
        let entry = most.entry(name).or_default();
        *entry = count.max(*entry);
    }
    // The first execve is strace's own start of the program.
    most.into_iter()
        .flat_map(|(name, count)| {
            let first = if name == "execve" { 2 } else { 1 };
            (first..=count).map(move |nth| KillPoint { syscall: name.to_owned(), nth })
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Sandbox;

    #[test]
    fn a_trace_becomes_points() {
        let trace = "10 execve(\"/bin/x\", ...) = 0\n10 write(1, \"a\", 1) = 1\n10 clone(...) = 11\n\
                     11 write(1, \"b\", 1 <unfinished ...>\n10 write(1, \"c\", 1) = 1\n\
                     11 <... write resumed>) = 1\n11 +++ exited with 0 +++\n10 --- SIGCHLD {...} ---\n";
        let points: Vec<_> = points_in(trace).iter().map(ToString::to_string).collect();
        assert_eq!(points, ["clone#1", "write#1", "write#2"]);
        assert_eq!(points_in("write(1, \"a\", 1) = 1\n").len(), 1);
        let thread = "10 clone3({flags=CLONE_THREAD, parent_tid=0x7f}  => {parent_tid=[11]}, 88) = 11\n11 munmap(0x1, 8) = 0\n";
        assert_eq!(points_in(thread).len(), 1, "the thread's own calls are left out");
    }

    /// Two files are written in order, so after any kill the second is never there without the
    /// first.
    #[test]
    fn each_point_of_a_program_is_reached_and_nothing_after_it_happens() {
        let sandbox = Sandbox::new();
        let mut shell = sandbox.command("/bin/sh");
        shell.args(["-c", "read line; echo $line > one; echo $line > two; echo done"]);
        let points = kill_points(&shell, b"x\n");
        assert!(points.iter().any(|point| point.syscall == "write" && point.nth == 3), "{points:?}");
        let exists = |name: &str| Path::new(&sandbox.project()).join(name).exists();
        let mut states = std::collections::BTreeSet::new();
        for point in
            points.iter().filter(|point| ["openat", "write", "exit_group"].contains(&&*point.syscall))
        {
            for name in ["one", "two"] {
                fs::remove_file(sandbox.project().join(name)).ok();
            }
            let outcome = run_killed_at(&shell, b"x\n", point);
            assert!(outcome.killed, "{point}: {outcome:?}");
            assert!(exists("one") || !exists("two"), "{point}");
            states.insert((exists("one"), exists("two"), outcome.stdout == b"done\n"));
        }
        assert_eq!(states.len(), 4, "nothing, one file, two files, all: {states:?}");
    }

    #[test]
    fn a_point_that_is_never_reached_lets_the_program_end() {
        let sandbox = Sandbox::new();
        let mut shell = sandbox.command("/bin/sh");
        shell.args(["-c", "cat; exit 3"]);
        let point = KillPoint { syscall: "write".to_owned(), nth: 1_000 };
        let outcome = run_killed_at(&shell, b"in", &point);
        assert_eq!((outcome.killed, outcome.code, &outcome.stdout[..]), (false, Some(3), &b"in"[..]));
    }
}
