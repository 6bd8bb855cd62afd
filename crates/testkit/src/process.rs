//! A started program with an end: own process group, output in files, a deadline, killed on drop.
//!
//! Output goes to files, so that a test can look at it while the program runs and a full pipe never
//! stops anything. Only the group that was started here is ever signalled.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::wait;

/// Writes a program that can be run at once. Another process writes it: if a thread of ours forked
/// at this moment, its child would hold the file open for writing until it runs its own program,
/// and the kernel does not run a file that is open for writing.
#[track_caller]
pub fn write_program(file: &Path, bytes: &[u8]) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(file).stdin(Stdio::piped());
    let mut child = shell.spawn().expect("a shell");
    child.stdin.take().expect("its input").write_all(bytes).expect("it reads");
    assert!(child.wait().expect("it ends").success(), "{} could not be written", file.display());
}

/// A program that runs in its own process group.
#[derive(Debug)]
pub struct Running {
    child: Child,
    output: PathBuf,
}

/// What is left of a program that ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// All of its standard output.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
}

impl Finished {
    /// Panics with the whole output unless the program ended well.
    #[track_caller]
    pub fn expect_ok(self) -> Finished {
        assert!(
            self.status.success(),
            "ended with {}\nstdout:\n{}\nstderr:\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }

    /// The signal that ended the program.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

impl Running {
    /// Starts `command` with its output in `<output>.out` and `<output>.err`, and no input.
    pub fn start(command: &mut Command, output: &Path) -> io::Result<Running> {
        command.stdin(Stdio::null());
        Self::start_keeping_stdin(command, output)
    }

    /// Starts `command` and writes `input` to it. The input must fit into a pipe's buffer or be
    /// read.
    pub fn start_with_input(command: &mut Command, output: &Path, input: &[u8]) -> io::Result<Running> {
        command.stdin(Stdio::piped());
        let mut running = Self::start_keeping_stdin(command, output)?;
        if let Some(mut stdin) = running.child.stdin.take() {
            match stdin.write_all(input) {
                // It may end without reading all: its own decision.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(running)
    }

    fn start_keeping_stdin(command: &mut Command, output: &Path) -> io::Result<Running> {
        command.process_group(0);
        command.stdout(File::create(output.with_extension("out"))?);
        command.stderr(File::create(output.with_extension("err"))?);
        Ok(Running { child: command.spawn()?, output: output.to_owned() })
    }

    /// The process id, which is also the id of the group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The standard output until now.
    pub fn stdout(&self) -> String {
        read_lossy(&self.output.with_extension("out"))
    }

    /// The standard error until now.
    pub fn stderr(&self) -> String {
        read_lossy(&self.output.with_extension("err"))
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// `kill -9` of the whole group, at once, and waits until the leader is gone.
    pub fn kill(&mut self) {
        signal_group(self.child.id(), Signal::KILL);
        // Only fails when it was already waited for.
        self.child.wait().ok();
    }

    /// `kill -9` of the first process only. Its children live on until this value is dropped.
    pub fn kill_leader(&mut self) {
        // Only fails when it has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Waits for the end. After `limit` the group is killed and the test fails with the output.
    #[track_caller]
    pub fn finish(mut self, limit: Duration) -> Finished {
        let status = wait::poll(limit, || self.child.try_wait().ok().flatten());
        let Some(status) = status else {
            self.kill();
            panic!("still running after {limit:?}\nstdout:\n{}\nstderr:\n{}", self.stdout(), self.stderr());
        };
        Finished { status, stdout: self.stdout(), stderr: self.stderr() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Signals a process group that this process started. That it is gone already is fine.
pub(crate) fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        kill_process_group(pid, signal).ok();
    }
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_started_dies_with_its_children_when_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo $!; wait"]);
        let running = Running::start(&mut shell, &dir.path().join("sh")).unwrap();
        let child = wait::poll(wait::HANG, || running.stdout().trim().parse::<u32>().ok()).unwrap();
        drop(running);
        let stat = Path::new("/proc").join(child.to_string()).join("stat");
        let gone = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        assert!(wait::until(wait::HANG, gone));
    }

    #[test]
    fn input_is_passed_and_output_collected() {
        let dir = tempfile::tempdir().unwrap();
        let running =
            Running::start_with_input(&mut Command::new("cat"), &dir.path().join("cat"), b"baton").unwrap();
        assert_eq!(running.finish(wait::HANG).expect_ok().stdout, "baton");
    }

    #[test]
    #[should_panic(expected = "still running after")]
    fn an_endless_program_fails_the_test() {
        let dir = tempfile::tempdir().unwrap();
        let mut sleep = Command::new("sleep");
        Running::start(sleep.arg("60"), &dir.path().join("sleep")).unwrap().finish(Duration::from_millis(50));
    }
}
