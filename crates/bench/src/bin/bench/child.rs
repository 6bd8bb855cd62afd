//! One run of one program: how long it took, what it used, what it printed.
//!
//! Every program is started in the same way: a cleared environment, its whole input in a pipe
//! before it starts, its output into a pipe that is read when it has ended. So no program waits for
//! the driver while the clock runs.

use crate::Outcome;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much a pipe holds until it is read.
const PIPE_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, Default)]
pub struct Shot {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    pub input: Vec<u8>,
}

impl Shot {
    pub fn new(program: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), folder: folder.into(), ..Self::default() }
    }

    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn args<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.arguments.extend(arguments.map(OsString::from));
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// The command, without its streams.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().current_dir(&self.folder);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Its input. If a pipe can't hold all of it, a feeder would be timed too. So a long input is
    /// in an unlinked file.
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

    /// Runs it to its end. An exit code other than 0 is an error that quotes its output.
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

#[derive(Clone, Debug)]
pub struct Spent {
    /// From before its start to after its end.
    pub wall: Duration,
    /// User and system time of the process.
    pub cpu: Duration,
    /// The most resident memory in bytes. The kernel includes the driver's own, which is kept small
    /// for that.
    pub peak: u64,
    /// How often it touched a page that the kernel had not given it yet: most of the cost of a
    /// short program.
    pub faults: u64,
    pub output: Vec<u8>,
}

/// Waits for a child, and returns what the kernel knows about it.
#[expect(unsafe_code, reason = "neither std nor rustix hands out what a child used")]
fn wait(pid: u32) -> io::Result<(libc::c_int, libc::rusage)> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values of the types that wait4 fills; the child is ours
        // and no other thread waits for it.
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
    // The types differ between systems; the values are never negative.
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
