//! A person at a terminal who sees what is shown and presses keys: `script`, with a pipe to its
//! keyboard.

use crate::world::{LIMIT, World, program, quoted};
use baton_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How often a key is pressed again until something happens. A person does that too.
const PRESS_INTERVAL: Duration = Duration::from_millis(900);

/// A command that runs on a pseudo-terminal.
pub struct Terminal {
    child: Child,
    keyboard: Option<ChildStdin>,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Runs baton there.
    pub fn baton(world: &World, arguments: &[&str], dress: &dyn Fn(&mut Command)) -> Self {
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        Self::line(world, &format!("exec {} {}", quoted(program()), words.join(" ")), dress)
    }

    /// Runs a shell command line there.
    pub fn line(world: &World, line: &str, dress: &dyn Fn(&mut Command)) -> Self {
        let mut command = world.command("script");
        command.args(["--quiet", "--return", "--flush", "--command", line, "/dev/null"]);
        dress(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("script starts");
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut shown, seen) = (child.stdout.take().expect("a pipe"), Arc::clone(&screen));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = shown.read(&mut piece) {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        });
        let keyboard = child.stdin.take();
        Self { child, keyboard, screen }
    }

    /// Everything that was shown so far.
    pub fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    pub fn shows(&self, text: &str) -> bool {
        self.screen().contains(text)
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        assert!(wait::until(wait::HANG, || self.shows(text)), "no {text:?} in:\n{}", self.screen());
    }

    /// Waits until a text was shown so many times.
    #[track_caller]
    pub fn wait_for_times(&self, text: &str, times: usize) {
        let shown = wait::until(wait::HANG, || self.screen().matches(text).count() >= times);
        assert!(shown, "not {times} times {text:?} in:\n{}", self.screen());
    }

    /// Presses keys, once.
    pub fn press(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().expect("it runs");
        // It may have ended just now.
        keyboard.write_all(keys.as_bytes()).and_then(|()| keyboard.flush()).ok();
    }

    /// Presses a key again and again until the screen shows something.
    #[track_caller]
    pub fn press_until(&mut self, key: &str, text: &str) {
        let deadline = std::time::Instant::now() + wait::HANG;
        loop {
            self.press(key);
            if wait::until(PRESS_INTERVAL, || self.shows(text)) {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "no {text:?} in:\n{}", self.screen());
        }
    }

    /// The process that runs in the terminal.
    pub fn pid(&self) -> Pid {
        let script = self.child.id();
        let found = wait::poll(wait::HANG, || {
            let below = std::fs::read_to_string(format!("/proc/{script}/task/{script}/children")).ok()?;
            below.split_whitespace().next()?.parse().ok().and_then(Pid::from_raw)
        });
        found.expect("it runs")
    }

    /// The first process below that one.
    pub fn below(&self) -> Pid {
        let pid = self.pid().as_raw_nonzero();
        let found = wait::poll(wait::HANG, || {
            let below = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            below.split_whitespace().next()?.parse().ok().and_then(Pid::from_raw)
        });
        found.expect("it runs something")
    }

    /// Waits for its end; gives the exit code. `None` if it was killed.
    #[track_caller]
    pub fn end(&mut self) -> Option<i32> {
        let ended = wait::poll(LIMIT, || self.child.try_wait().expect("a status"));
        let status = ended.unwrap_or_else(|| panic!("it goes on:\n{}", self.screen()));
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            kill_process(Pid::from_child(&self.child), Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}
