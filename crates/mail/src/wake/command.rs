//! Runs a command of the agent to its end, within a time limit.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// `codex queue` takes a quarter of a second, and seconds on a loaded machine.
const RUN_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of the standard error that are read.
const MAX_STDERR_BYTES: u64 = 64 << 10;
/// Characters of it that an error shows.
const MAX_SHOWN_STDERR: usize = 300;

/// Runs the command. The error has what the command wrote to its standard error.
pub fn run(
    program: &OsString,
    arguments: &[OsString],
    environment: &[(&'static str, PathBuf)],
    cwd: Option<&Path>,
) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    for (name, value) in environment {
        command.env(name, value);
    }
    if let Some(cwd) = cwd.filter(|cwd| cwd.is_dir()) {
        command.current_dir(cwd);
    }
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("{name} can't be started: {error}"))?;
    let Some(stderr) = read_stderr(&mut child) else {
        child.kill().ok();
        child.wait().ok();
        return Err(format!("{name} took more than {} seconds", RUN_TIMEOUT.as_secs()));
    };
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(format!("{name}: {status}: {}", baton_core::frame::shown(stderr.trim(), MAX_SHOWN_STDERR)))
        }
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// All that the command writes to its standard error. `None` if it does not close it in time.
fn read_stderr(child: &mut Child) -> Option<String> {
    let Some(mut stderr) = child.stderr.take() else { return Some(String::new()) };
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        stderr.by_ref().take(MAX_STDERR_BYTES).read_to_end(&mut said).ok();
        // The receiver may have timed out.
        ended.send(String::from_utf8_lossy(&said).into_owned()).ok();
    });
    end.recv_timeout(RUN_TIMEOUT).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_says_why() {
        let sh = |script: &str| run(&"sh".into(), &["-c".into(), script.into()], &[], None);
        assert_eq!(sh("exit 0"), Ok(()));
        assert!(sh("echo no such thread >&2; exit 3").unwrap_err().contains("no such thread"));
        assert!(run(&"/nowhere/codex".into(), &[], &[], None).unwrap_err().contains("can't be started"));
        let environment = [("BATON_TEST_WORD", PathBuf::from("here"))];
        let check =
            run(&"sh".into(), &["-c".into(), "[ \"$BATON_TEST_WORD\" = here ]".into()], &environment, None);
        assert_eq!(check, Ok(()));
    }
}
