//! A program of one job alone, spoken to over its standard streams.
//!
//! It runs in a process group of its own. Its output is read line by line in a thread, so that it never has to wait for us; what it says on
//! stderr goes to a file beside the job, and its end is told with the last of it. It is never ended by its number alone: its number can't be
//! given away before we have taken note of its end.

use super::Task;
use super::lock;
use baton_mail::process;
use baton_store::Process;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The longest line that is read whole; what is longer is cut, and is then no JSON any more.
const LINE_BYTES: u64 = 64 << 20;
/// The longest line of its errors that is read at once.
const ERROR_BYTES: u64 = 64 << 10;
/// How much of its last words is told with its end.
const LAST_WORDS: usize = 4096;
/// How long its output may stay open after its end, because something that it started holds it.
const DRAIN: Duration = Duration::from_millis(700);

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// The last that it said on stderr.
    pub last_words: String,
}

impl Ended {
    /// `exit code 1`, `signal 9`, with its last words.
    pub fn in_words(&self) -> String {
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown status".to_owned(),
        };
        match self.last_words.trim() {
            "" => how,
            words => format!("{how}: {words}"),
        }
    }
}

/// A running program.
#[derive(Debug)]
pub struct Child {
    process: Process,
    input: Mutex<Option<ChildStdin>>,
    over: Mutex<bool>,
    told: Condvar,
}

impl Child {
    /// A command for the task's program, with its environment and folder and nothing else.
    pub fn command(task: &Task) -> Command {
        let mut command = Command::new(&task.program);
        command.env_clear().envs(task.environment.iter().cloned()).current_dir(&task.cwd);
        command
    }

    /// Starts it. `line` gets each line of its output, in order; `ended` is called once, after the last of them (but see [`DRAIN`]).
    pub fn start(
        command: &mut Command,
        stderr: &std::path::Path,
        line: impl FnMut(&str) + Send + 'static,
        ended: impl FnOnce(Ended) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        Self::start_listening(command, stderr, line, |_| (), ended)
    }

    /// The same, and `error_line` gets each line of what it says on stderr.
    pub fn start_listening(
        command: &mut Command,
        stderr: &std::path::Path,
        mut line: impl FnMut(&str) + Send + 'static,
        mut error_line: impl FnMut(&str) + Send + 'static,
        ended: impl FnOnce(Ended) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(stderr)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut running = command.spawn()?;
        let pid = running.id().cast_signed();
        let (input, output, errors) = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        // It can't be gone from the table before we have waited for it.
        let process = process::find(pid).unwrap_or(Process { pid, start: 0 });
        let child = Arc::new(Self {
            process,
            input: Mutex::new(input),
            over: Mutex::new(false),
            told: Condvar::new(),
        });
        let words = Arc::new(Mutex::new(Vec::new()));
        let (drained, both_drained) = mpsc::channel();
        if let Some(output) = output {
            let drained = drained.clone();
            thread::spawn(move || {
                each_line(output, &mut line);
                drained.send(()).ok();
            });
        }
        if let Some(errors) = errors {
            let words = Arc::clone(&words);
            thread::spawn(move || {
                keep_words(errors, log, &words, &mut error_line);
                drained.send(()).ok();
            });
        }
        let its = Arc::clone(&child);
        thread::spawn(move || {
            wait_for_end(pid);
            // From here on nobody signals it: its number is free once it is waited for.
            *lock(&its.over) = true;
            // A launcher that is killed leaves its program behind, which goes when its input ends.
            its.close_input();
            let status = running.wait().unwrap_or_default();
            let end = Instant::now() + DRAIN;
            for _ in 0..2 {
                both_drained.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
            }
            let last_words = String::from_utf8_lossy(&lock(&words)).into_owned();
            ended(Ended { status, last_words });
            its.told.notify_all();
        });
        Ok(child)
    }

    /// Who it is.
    pub fn process(&self) -> Process {
        self.process
    }

    /// Writes one line to it.
    pub fn write_line(&self, text: &str) -> io::Result<()> {
        let mut input = lock(&self.input);
        let pipe = input.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        pipe.write_all(format!("{text}\n").as_bytes())?;
        pipe.flush()
    }

    /// Writes text to it as it is, and ends its input.
    pub fn write_all_and_close(&self, text: &str) -> io::Result<()> {
        let mut pipe = lock(&self.input).take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        pipe.write_all(text.as_bytes())
    }

    /// Ends its input.
    pub fn close_input(&self) {
        lock(&self.input).take();
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        *lock(&self.over)
    }

    /// Sends a signal to it alone, unless it is over.
    pub fn signal(&self, signal: Signal) {
        let over = lock(&self.over);
        if let Some(pid) = Pid::from_raw(self.process.pid).filter(|_| !*over) {
            // Gone already is what we want.
            rustix::process::kill_process(pid, signal).ok();
        }
    }

    /// Ends it and its group: politely, and after that long by force. Returns when it is over.
    pub fn end(&self, politely: Duration) {
        self.close_input();
        self.signal_group(Signal::TERM);
        if !self.wait(politely) {
            self.signal_group(Signal::KILL);
            self.wait(Duration::from_secs(2));
        }
    }

    /// Waits so long for its end; whether it came.
    pub fn wait(&self, limit: Duration) -> bool {
        let over = lock(&self.over);
        let waited = self.told.wait_timeout_while(over, limit, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn signal_group(&self, signal: Signal) {
        let over = lock(&self.over);
        if let Some(pid) = Pid::from_raw(self.process.pid).filter(|_| !*over) {
            rustix::process::kill_process_group(pid, signal).ok();
        }
    }
}

/// Blocks until that child has ended, and leaves it to be waited for.
fn wait_for_end(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
}

fn each_line(output: impl Read, line: &mut impl FnMut(&str)) {
    let mut reader = BufReader::with_capacity(64 << 10, output);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match (&mut reader).take(LINE_BYTES).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r'])),
        }
    }
}

fn keep_words(errors: impl Read, mut log: File, words: &Mutex<Vec<u8>>, line: &mut impl FnMut(&str)) {
    let mut reader = BufReader::new(errors);
    let mut piece = Vec::new();
    while let Ok(count) = (&mut reader).take(ERROR_BYTES).read_until(b'\n', &mut piece) {
        if count == 0 {
            return;
        }
        // A full disk must not stop the program.
        log.write_all(&piece).ok();
        {
            let mut words = lock(words);
            words.extend_from_slice(&piece);
            let surplus = words.len().saturating_sub(LAST_WORDS);
            words.drain(..surplus);
        }
        line(String::from_utf8_lossy(&piece).trim_end_matches(['\n', '\r']));
        piece.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LIMIT: Duration = Duration::from_secs(30);

    fn start(script: &str) -> (Arc<Child>, mpsc::Receiver<String>, mpsc::Receiver<Ended>) {
        let folder = tempfile::tempdir().unwrap();
        let (lines, got) = channel();
        let (over, ended) = channel();
        let child = Child::start(
            Command::new("sh").args(["-c", script]),
            &folder.path().join("stderr"),
            move |line| lines.send(line.to_owned()).unwrap_or(()),
            move |end| over.send(end).unwrap_or(()),
        )
        .unwrap();
        (child, got, ended)
    }

    #[test]
    fn lines_come_in_order_and_the_end_with_its_last_words() {
        let (child, lines, ended) = start("read x; echo \"got $x\"; echo two; echo why >&2; exit 3");
        child.write_line("one").unwrap();
        let end = ended.recv_timeout(LIMIT).unwrap();
        assert_eq!(end.in_words(), "exit code 3: why");
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["got one", "two"]);
        assert!(child.is_over() && child.write_line("x").is_err());
    }

    #[test]
    fn what_holds_its_output_open_does_not_hold_its_end() {
        let (_child, lines, ended) = start("sleep 600 & echo $!");
        let end = ended.recv_timeout(LIMIT).unwrap();
        assert!(end.status.success());
        let left: i32 = lines.recv().unwrap().parse().unwrap();
        rustix::process::kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn one_that_will_not_go_is_made_to() {
        let (child, lines, ended) = start("trap '' TERM; echo ready; while :; do sleep 1; done");
        assert_eq!(lines.recv_timeout(LIMIT).unwrap(), "ready");
        child.end(Duration::from_millis(50));
        assert_eq!(ended.recv_timeout(LIMIT).unwrap().status.signal(), Some(9));
    }
}
