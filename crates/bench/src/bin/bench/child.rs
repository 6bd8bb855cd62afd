//! One run of one program: how long it took, what it used, what it said.
//!
//! Every program is started in the same way: a cleared environment, its whole input in a pipe before it starts, its output into a pipe
//! that is read when it has ended. So nobody waits for the driver while the clock runs.

use crate::Outcome;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a pipe takes before somebody reads.
const PIPE_BYTES: usize = 64 << 10;

/// A program with everything that it gets.
#[derive(Clone, Debug, Default)]
pub struct Shot {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it runs.
    pub folder: PathBuf,
    /// What stands on its standard input.
    pub input: Vec<u8>,
}

impl Shot {
    /// A program to be run in a folder.
    pub fn new(program: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), folder: folder.into(), ..Self::default() }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds several.
    pub fn args<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.arguments.extend(arguments.map(OsString::from));
        self
    }

    /// Adds a variable.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the input.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// The command, with nothing said about its streams yet.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().current_dir(&self.folder);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Its input. One that a pipe does not hold would need somebody who feeds it, and would be timed with them: it is in a file that has no name.
    fn stdin(&self) -> Outcome<Stdio> {
        if self.input.len() < PIPE_BYTES {
            let (stdin, mut feed) = io::pipe()?;
            feed.write_all(&self.input)?;
            return Ok(stdin.into());
        }
        let name = self.folder.join("bench-input");
        fs::write(&name, &self.input)?;
        let file = File::open(&name)?;
        fs::remove_file(&name)?;
        Ok(file.into())
    }

    /// Runs it to its end. An exit code other than 0 is an error that quotes what it said.
    pub fn fire(&self) -> Outcome<Spent> {
        let mut command = self.command();
        let stdin = self.stdin()?;
        let (mut said, stdout) = io::pipe()?;
        command.stdin(stdin).stderr(stdout.try_clone()?).stdout(stdout);
        let start = Instant::now();
        let child = command.spawn()?;
        let (status, usage) = wait(child.id())?;
        let wall = start.elapsed();
        drop(command);
        let mut output = Vec::new();
        said.read_to_end(&mut output)?;
        if status != 0 {
            let shown = String::from_utf8_lossy(&output);
            return Err(
                format!("{} ended with status {status}: {}", self.program.display(), shown.trim()).into()
            );
        }
        Ok(Spent {
            wall,
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
            peak: peak(&usage),
            faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
            output,
        })
    }
}

/// What one run took.
#[derive(Clone, Debug)]
pub struct Spent {
    /// From before its start to after its end.
    pub wall: Duration,
    /// User and system time of the process.
    pub cpu: Duration,
    /// The most memory it had resident, in bytes. The kernel counts the driver's own into it, which is kept small for that.
    pub peak: u64,
    /// How often it touched a page that the kernel had yet to give it: most of what a short-lived program costs.
    pub faults: u64,
    /// All that it printed.
    pub output: Vec<u8>,
}

/// Waits for a child and takes what the kernel knows about it.
#[expect(unsafe_code, reason = "neither std nor rustix hands out what a child used")]
fn wait(pid: u32) -> io::Result<(libc::c_int, libc::rusage)> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values of the types that wait4 fills; the child is ours and nobody else waits for it.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } == pid {
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    // Not the same types everywhere; never negative.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

fn peak(usage: &libc::rusage) -> u64 {
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    usage.ru_maxrss.cast_unsigned() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_arrives_output_is_kept_and_the_use_is_known() {
        let spent = Shot::new("/bin/cat", "/").input("baton").fire().unwrap();
        assert_eq!(spent.output, b"baton");
        assert!(spent.wall > Duration::ZERO && spent.cpu <= spent.wall * 8 && spent.peak > 0);
    }

    #[test]
    fn a_failure_is_quoted() {
        let error = Shot::new("/bin/sh", "/").arg("-c").arg("echo no >&2; exit 3").fire().unwrap_err();
        assert!(error.to_string().contains("no"), "{error}");
    }
}
