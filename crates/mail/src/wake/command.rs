//! A command of the agent's own, run to its end within a bounded time.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// `codex queue` takes a quarter of a second; a loaded machine makes it seconds.
const LIMIT: Duration = Duration::from_secs(10);
/// Of what it complains, so much is read.
const HEARD: u64 = 64 << 10;
/// And so much is kept.
const COMPLAINT: usize = 300;

/// Runs the command; the error is what it said.
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
    let shown = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("{shown} can't be started: {error}"))?;
    let Some(complaint) = heard(&mut child) else {
        child.kill().ok();
        child.wait().ok();
        return Err(format!("{shown} took more than {} seconds", LIMIT.as_secs()));
    };
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(format!("{shown}: {status}: {}", baton_core::frame::shown(complaint.trim(), COMPLAINT)))
        }
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// What it wrote to its standard error until it closed that; `None` if it did not in time.
fn heard(child: &mut Child) -> Option<String> {
    let Some(mut stderr) = child.stderr.take() else { return Some(String::new()) };
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        stderr.by_ref().take(HEARD).read_to_end(&mut said).ok();
        // Whoever waited may have given up.
        ended.send(String::from_utf8_lossy(&said).into_owned()).ok();
    });
    end.recv_timeout(LIMIT).ok()
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
