//! Programs that baton starts and waits for: the agents and its own MCP server, for doctor and
//! setup.
//!
//! Each has no shell around it, a limited time and a limited say, and a process group of its own,
//! which ends with it when it takes longer.

use crate::environment;
use baton_agents::install::OwnCommand;
use baton_core::frame;
use baton_core::time::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What is read of an answer; no version and no greeting is as long.
pub const ANSWER_BYTES: usize = 64 << 10;
/// How long an agent's own command may take.
const COMMAND_WAIT: Span = Span::seconds(30);
/// How often a program that says nothing is looked at: whether it has ended.
const GLANCE: Duration = Duration::from_millis(20);
/// The variables that every program needs. An agent's command gets no others but those that it
/// names: what a session of an agent adds for its shells is not meant for it.
const COMMON_VARIABLES: &[&str] = &[
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
];

/// Runs a command of an agent in the root folder, which is no project, and says what went wrong.
pub fn run_own(program: &Path, wanted: &OwnCommand) -> Result<(), String> {
    let mut command = Command::new(program);
    command
        .args(&wanted.args)
        .stdin(Stdio::null())
        .current_dir("/")
        .env_clear()
        .envs(wanted.env.iter().copied());
    for name in COMMON_VARIABLES.iter().chain(wanted.keeps) {
        if let Some(value) = environment::get(name) {
            command.env(name, value);
        }
    }
    let deadline = Instant::now() + COMMAND_WAIT.to_std();
    let mut started = Started::start(command).map_err(|error| format!("it can't be started: {error}"))?;
    let answer = started.hear(deadline, |answer| answer.len() == ANSWER_BYTES);
    match started.end(deadline) {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(match String::from_utf8_lossy(&answer).trim() {
            "" => format!("it failed: {status}"),
            said => format!("it failed: {}", frame::shown(said, 120)),
        }),
        None => Err(format!("it took longer than {}", COMMAND_WAIT.coarse())),
    }
}

/// A program that we started and that does not outlive us.
pub struct Started {
    /// The process.
    pub child: Child,
    stdout: Option<ChildStdout>,
}

impl Started {
    /// Starts it; its words are heard, its complaints are not.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn()?;
        Ok(Self { stdout: child.stdout.take(), child })
    }

    /// What it prints until that is enough, until it has ended, or until the deadline. A child of
    /// its own that keeps the pipe open is not waited for.
    pub fn hear(&mut self, deadline: Instant, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut heard = Vec::new();
        while !enough(&heard) && Instant::now() < deadline {
            let over = self.has_ended();
            if !self.read_some(&mut heard) && over {
                break;
            }
        }
        heard
    }

    /// Whether something came. Waits a moment for it.
    fn read_some(&mut self, heard: &mut Vec<u8>) -> bool {
        let Some(stdout) = &mut self.stdout else {
            thread::sleep(GLANCE);
            return false;
        };
        let glance = Timespec { tv_sec: 0, tv_nsec: i64::from(GLANCE.subsec_nanos()) };
        if !poll(&mut [PollFd::new(&*stdout, PollFlags::IN)], Some(&glance)).is_ok_and(|ready| ready > 0) {
            return false;
        }
        let mut piece = [0; 4096];
        let room = piece.len().min(ANSWER_BYTES - heard.len());
        match stdout.read(&mut piece[..room]) {
            Ok(length @ 1..) => heard.extend_from_slice(&piece[..length]),
            _ => self.stdout = None,
        }
        self.stdout.is_some()
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Closes its input, waits for its end until the deadline, and ends it then, with all that it
    /// has started. Gives how it ended by itself.
    pub fn end(mut self, deadline: Instant) -> Option<ExitStatus> {
        drop(self.child.stdin.take());
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(GLANCE);
        }
        let status = self.child.try_wait().ok().flatten();
        if status.is_none() {
            if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
                // It may have ended just now.
                kill_process_group(group, Signal::KILL).ok();
            }
            self.child.wait().ok();
        }
        status
    }
}
