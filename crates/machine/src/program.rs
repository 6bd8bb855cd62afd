//! Runs another program to ask it something. At the deadline it is ended, with everything that it
//! has started.
//!
//! It gets only the variables that the caller names. So what a repository or a model sets in an
//! agent's environment does not reach it by accident.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Bytes of standard error that are kept. The beginning of an error message is enough.
const COMPLAINT_BYTES: usize = 64 << 10;

/// A program's output, and whether it succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Standard output.
    pub said: Vec<u8>,
    /// The beginning of standard error.
    pub complaint: Vec<u8>,
    /// Whether it exited with 0.
    pub succeeded: bool,
    /// Whether there was more output than was read.
    pub cut: bool,
}

/// A search path without relative folders, and without those inside a folder that holds foreign
/// code.
pub fn search_path(path: &OsStr, foreign: &[&Path]) -> OsString {
    let is_foreign = |folder: &Path| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        foreign.iter().any(|foreign| {
            let own = foreign.canonicalize().unwrap_or_else(|_| (*foreign).to_owned());
            own.parent().is_some() && (real.starts_with(&own) || folder.starts_with(foreign))
        })
    };
    let kept = std::env::split_paths(path).filter(|folder| folder.is_absolute() && !is_foreign(folder));
    // `split_paths` splits at colons, so no part has one.
    std::env::join_paths(kept).unwrap_or_default()
}

/// The program's path in such a search path.
pub fn find(name: &str, search_path: &OsStr) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(search_path).map(|folder| folder.join(name)).find(is_program)
}

/// Those of these variables that are set.
pub fn variables(names: &[&str], variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    names.iter().filter_map(|name| Some(((*name).into(), variable(name)?))).collect()
}

/// Runs a program until it ends, the deadline comes, or it has written `most` bytes. `None` if it
/// did not answer in time.
pub fn ask(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    environment: &[(OsString, OsString)],
    most: usize,
    deadline: Instant,
) -> Option<Answer> {
    let mut said = Vec::new();
    let mut take = |piece: &[u8]| {
        said.extend_from_slice(piece);
        said.len() <= most
    };
    let answer = pass_on(program, arguments, folder, environment, &mut take, deadline)?;
    said.truncate(most);
    Some(Answer { said, ..answer })
}

/// Runs a program whose output may have any length. `take` gets it piece by piece, and says whether
/// it wants more.
pub fn pass_on(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    environment: &[(OsString, OsString)],
    take: &mut dyn FnMut(&[u8]) -> bool,
    deadline: Instant,
) -> Option<Answer> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().envs(environment.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().ok()?;
    let answer = listen(&mut child, take, deadline);
    let succeeded = match &answer {
        // The program has closed its output, but may still run.
        Some(answer) if !answer.cut => ended(&mut child, deadline),
        _ => None,
    };
    if succeeded.is_none() {
        end(&mut child);
    }
    let answer = answer?;
    let succeeded = if answer.cut { true } else { succeeded? };
    Some(Answer { succeeded, ..answer })
}

fn listen(child: &mut Child, take: &mut dyn FnMut(&[u8]) -> bool, deadline: Instant) -> Option<Answer> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let mut answer = Answer::default();
    let mut piece = vec![0; 16 << 10];
    while out.is_some() || err.is_some() {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        fds.extend(out.as_ref().map(|out| PollFd::new(out, PollFlags::IN)));
        fds.extend(err.as_ref().map(|err| PollFd::new(err, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return None,
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>().into_iter();
        let out_ready = out.is_some() && ready.next() == Some(true);
        let err_ready = err.is_some() && ready.next() == Some(true);
        if out_ready {
            let count = out.as_mut()?.read(&mut piece).ok()?;
            if count == 0 {
                out = None;
            }
            if !take(&piece[..count]) {
                answer.cut = true;
                return Some(answer);
            }
        }
        if err_ready {
            let count = err.as_mut()?.read(&mut piece).ok()?;
            if count == 0 {
                err = None;
            }
            let room = COMPLAINT_BYTES.saturating_sub(answer.complaint.len());
            answer.complaint.extend_from_slice(&piece[..count.min(room)]);
        }
    }
    Some(answer)
}

/// Whether it succeeded; `None` if it has not ended by the deadline.
fn ended(child: &mut Child, deadline: Instant) -> Option<bool> {
    loop {
        if let Some(status) = child.try_wait().ok()? {
            return Some(status.success());
        }
        if Instant::now() >= deadline {
            return None;
        }
        // A program that has closed its output ends within microseconds.
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}

/// Ends the program and its process group.
fn end(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        kill_process_group(group, Signal::KILL).ok();
    }
    child.kill().ok();
    child.wait().ok();
}
