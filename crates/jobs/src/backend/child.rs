//! A program that belongs to one job, controlled over its standard streams.
//!
//! It runs in its own process group. A thread reads its output line by line, so it never has to
//! wait. Its stderr goes to a file of the job, and its end is reported with the last part of that.
//! It is never signalled by a stale number: the number is free only after this module has waited
//! for its end.

use super::Task;
use super::lock;
use baton_core::process::Process;
use baton_machine::process;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The longest line that is read whole. A longer one is cut, and is no JSON then.
const LINE_BYTES: u64 = 64 << 20;
/// The longest line of stderr that is read at once.
const ERROR_LINE_BYTES: u64 = 64 << 10;
/// How much of its stderr is reported with its end.
const LAST_WORDS_BYTES: usize = 4096;
/// How long nothing may come from an output that stays open after the program's end, because a
/// process that it started holds it.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(700);
/// How long the last of its output may take to be read and understood, on a busy machine.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(30);

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// The end of its stderr.
    pub last_words: String,
}

impl Ended {
    /// `exit code 1`, `signal 9`, with the end of its stderr.
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

    /// Starts it. `line` gets each line of its output, in order. `ended` is called once, after the
    /// last line (but see [`DRAIN_TIMEOUT`]).
    pub fn start(
        command: &mut Command,
        stderr: &std::path::Path,
        line: impl FnMut(&str) + Send + 'static,
        ended: impl FnOnce(Ended) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        Self::start_listening(command, stderr, line, |_| (), ended)
    }

    /// The same, and `error_line` gets each line of its stderr.
    pub fn start_listening(
        command: &mut Command,
        stderr: &std::path::Path,
        mut line: impl FnMut(&str) + Send + 'static,
        mut error_line: impl FnMut(&str) + Send + 'static,
        ended: impl FnOnce(Ended) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let log = baton_machine::own::append(stderr)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut running = command.spawn()?;
        let pid = running.id().cast_signed();
        let (input, output, errors) = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        // It can't leave the process table before it is waited for.
        let process = process::find(pid).unwrap_or(Process { pid, start: 0 });
        let child = Arc::new(Self {
            process,
            input: Mutex::new(input),
            over: Mutex::new(false),
            told: Condvar::new(),
        });
        let words = Arc::new(Mutex::new(Vec::new()));
        let (drained, both_drained) = mpsc::channel();
        let steps = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
        if let Some(output) = output {
            let drained = drained.clone();
            let output = Watched { stream: output, steps: Arc::clone(&steps[0]) };
            thread::spawn(move || {
                each_line(output, &mut line);
                drained.send(0).ok();
            });
        }
        if let Some(errors) = errors {
            let words = Arc::clone(&words);
            let errors = Watched { stream: errors, steps: Arc::clone(&steps[1]) };
            thread::spawn(move || {
                keep_words(errors, log, &words, &mut error_line);
                drained.send(1).ok();
            });
        }
        let its = Arc::clone(&child);
        thread::spawn(move || {
            wait_for_end(pid);
            // From here on it gets no signals: its number is free once it is waited for.
            *lock(&its.over) = true;
            // A launcher that is killed leaves its program behind, which ends when its input does.
            its.close_input();
            let status = running.wait().unwrap_or_default();
            drain(&both_drained, &steps);
            let last_words = String::from_utf8_lossy(&lock(&words)).into_owned();
            ended(Ended { status, last_words });
            its.told.notify_all();
        });
        Ok(child)
    }

    pub fn process(&self) -> Process {
        self.process
    }

    pub fn write_line(&self, text: &str) -> io::Result<()> {
        let mut input = lock(&self.input);
        let pipe = input.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        pipe.write_all(format!("{text}\n").as_bytes())?;
        pipe.flush()
    }

    /// Writes text to it as it is, and closes its input.
    pub fn write_all_and_close(&self, text: &str) -> io::Result<()> {
        let mut pipe = lock(&self.input).take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        pipe.write_all(text.as_bytes())
    }

    pub fn close_input(&self) {
        lock(&self.input).take();
    }

    pub fn is_over(&self) -> bool {
        *lock(&self.over)
    }

    /// Sends a signal to it alone, unless it is over.
    pub fn signal(&self, signal: Signal) {
        let over = lock(&self.over);
        if let Some(pid) = Pid::from_raw(self.process.pid).filter(|_| !*over) {
            // An error means that it is gone already.
            rustix::process::kill_process(pid, signal).ok();
        }
    }

    /// Ends it and its group: first with SIGTERM, and after `politely` with SIGKILL. Returns when
    /// it is over.
    pub fn end(&self, politely: Duration) {
        self.close_input();
        self.signal_group(Signal::TERM);
        if !self.wait(politely) {
            self.signal_group(Signal::KILL);
            self.wait(Duration::from_secs(2));
        }
    }

    /// Waits for its end, and returns whether it came.
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

/// Blocks until that child has ended, without reaping it.
fn wait_for_end(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
}

/// A stream that counts its steps: an even number waits for more, an odd one works on what came.
struct Watched<R> {
    stream: R,
    steps: Arc<AtomicU64>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let worked = self.steps.load(Ordering::SeqCst) % 2;
        self.steps.fetch_add(worked, Ordering::SeqCst);
        let count = self.stream.read(buffer);
        self.steps.fetch_add(1, Ordering::SeqCst);
        count
    }
}

/// Waits until both streams of an ended program are read to their ends, or nothing more comes.
fn drain(drained: &mpsc::Receiver<usize>, steps: &[Arc<AtomicU64>; 2]) {
    let limit = Instant::now() + MAX_DRAIN_TIME;
    let mut open = vec![0, 1];
    let steps_of = |open: &[usize]| -> Vec<u64> {
        open.iter().map(|stream| steps[*stream].load(Ordering::SeqCst)).collect()
    };
    let mut last = steps_of(&open);
    while !open.is_empty() && Instant::now() < limit {
        match drained.recv_timeout(DRAIN_TIMEOUT) {
            Ok(stream) => open.retain(|other| *other != stream),
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let now = steps_of(&open);
                if now == last && now.iter().all(|steps| steps % 2 == 0) {
                    return;
                }
            }
        }
        last = steps_of(&open);
    }
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
    while let Ok(count) = (&mut reader).take(ERROR_LINE_BYTES).read_until(b'\n', &mut piece) {
        if count == 0 {
            return;
        }
        // A full disk must not stop the program.
        log.write_all(&piece).ok();
        {
            let mut words = lock(words);
            words.extend_from_slice(&piece);
            let surplus = words.len().saturating_sub(LAST_WORDS_BYTES);
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

    /// On a busy machine the last lines are understood long after the program has ended.
    #[test]
    fn the_end_waits_for_what_is_still_being_read() {
        let folder = tempfile::tempdir().unwrap();
        let (told, seen) = channel();
        let (lines, end) = (told.clone(), told);
        let slow = move |line: &str| {
            thread::sleep(DRAIN_TIMEOUT * 3 / 2);
            lines.send(line.to_owned()).unwrap_or(());
        };
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two"]);
        let over = move |_| end.send("end".to_owned()).unwrap_or(());
        let _child = Child::start(&mut command, &folder.path().join("stderr"), slow, over).unwrap();
        let all: Vec<String> = (0..3).map(|_| seen.recv_timeout(LIMIT).unwrap()).collect();
        assert_eq!(all, ["one", "two", "end"]);
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
    fn one_output_that_is_held_open_does_not_hold_its_end() {
        let begun = Instant::now();
        let (_child, lines, ended) = start("sleep 600 2>/dev/null & echo $!");
        ended.recv_timeout(LIMIT).unwrap();
        assert!(begun.elapsed() < MAX_DRAIN_TIME, "by the limit alone");
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
