//! A program that takes its prompt on its input, reports its turn in lines, and ends. It takes no
//! other input.
//!
//! So no question can be answered, and the program itself refuses what it would ask. It is aborted
//! by ending it, with the commands that it runs.

use super::child::{Child, Ended};
use super::lock;
use super::{Report, Task, Turn, tree};
use baton_core::approval::{Answer, Question};
use baton_core::job::{Fault, Finish, Observation, Said, Snapshot};
use baton_core::process::Process;
use baton_core::time::Moment;
use baton_core::{Code, Error, limits};
use baton_machine::own;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long it may take to end after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_millis(700);
/// How long it may take to exit after its last line.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the output of one program.
pub(super) trait Listener: Send {
    fn line(&mut self, line: &str, now: Moment) -> Vec<Observation>;

    /// A line of stderr.
    fn error_line(&mut self, _line: &str, _now: Moment) -> Vec<Observation> {
        Vec::new()
    }

    /// The turn has failed, but the reason may still come on stderr: the two streams have no common
    /// order. The fault is reported with the end of the program, when both were read.
    fn failure(&self, _now: Moment) -> Option<Fault> {
        None
    }

    /// What the program's end means if it did not report the end of the turn before: a fault, or
    /// only that it is gone.
    fn ended(&mut self, _ended: &Ended, _now: Moment) -> Option<Fault> {
        None
    }
}

struct Ear<L> {
    listener: L,
    report: Report,
    aborting: bool,
    /// The turn has failed, and the fault will be reported with the program's end.
    leaving: bool,
    /// The turn has ended, and nothing that follows matters.
    over: bool,
}

impl<L: Listener> Ear<L> {
    fn hear(&mut self, understand: impl FnOnce(&mut L) -> Vec<Observation>) {
        if self.over {
            return;
        }
        for observation in understand(&mut self.listener) {
            let last =
                matches!(observation, Observation::Idle | Observation::Fault(_) | Observation::Aborted);
            // What a program says while it is being ended is not the end of its turn.
            if last && self.aborting {
                continue;
            }
            (self.report)(observation);
            if last {
                self.over = true;
                return;
            }
        }
    }

    fn ended(&mut self, ended: &Ended) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        if self.aborting {
            (self.report)(Observation::Aborted);
            return;
        }
        let now = baton_machine::clock::now();
        let fault = self.listener.failure(now).or_else(|| self.listener.ended(ended, now));
        (self.report)(fault.map_or_else(|| Observation::Gone(ended.in_words()), Observation::Fault));
    }

    /// Whether the turn has just failed, so that the program's end is now expected. True once.
    fn begins_to_leave(&mut self) -> bool {
        let failed = !self.over && self.listener.failure(baton_machine::clock::now()).is_some();
        failed && !std::mem::replace(&mut self.leaving, true)
    }

    /// Reports the failure of a program that stays after its last line.
    fn stays(&mut self) {
        let failure =
            self.listener.failure(baton_machine::clock::now()).filter(|_| !self.over && !self.aborting);
        if let Some(fault) = failure {
            self.over = true;
            (self.report)(Observation::Fault(fault));
        }
    }
}

/// Starts it, and hands the prompt over.
pub(super) fn start<L: Listener + 'static>(
    command: &mut Command,
    task: &Task,
    prompt: &str,
    listener: L,
    report: Report,
) -> Result<Box<dyn Turn>, Fault> {
    // From an earlier turn, if there was one.
    fs::remove_file(task.folder.join(END_FILE)).ok();
    let ear = Arc::new(Mutex::new(Ear {
        listener,
        report: Arc::clone(&report),
        aborting: false,
        leaving: false,
        over: false,
    }));
    let (of_lines, of_errors, of_end) = (Arc::clone(&ear), Arc::clone(&ear), Arc::clone(&ear));
    // Before the program could report its end.
    report(Observation::Busy);
    let child = Child::start_listening(
        command,
        &task.folder.join("stderr"),
        move |line| {
            lock(&of_lines).hear(|listener| listener.line(line, baton_machine::clock::now()));
            if lock(&of_lines).begins_to_leave() {
                let ear = Arc::clone(&of_lines);
                // The last resort, for a program that stays.
                std::thread::spawn(move || {
                    std::thread::sleep(EXIT_TIMEOUT);
                    lock(&ear).stays();
                });
            }
        },
        move |line| lock(&of_errors).hear(|listener| listener.error_line(line, baton_machine::clock::now())),
        move |ended| lock(&of_end).ended(&ended),
    );
    let child = child.map_err(|error| {
        Fault::new(Code::BackendStart, format!("{}: {error}", task.program.display()))
            .hint("check that the program works in a terminal")
    })?;
    // It may read late, and a pipe does not hold much.
    let (writer, prompt) = (Arc::clone(&child), prompt.to_owned());
    std::thread::spawn(move || writer.write_all_and_close(&prompt).ok());
    Ok(Box::new(Running { child, ear }))
}

struct Running<L> {
    child: Arc<Child>,
    ear: Arc<Mutex<Ear<L>>>,
}

impl<L: Listener> Running<L> {
    fn end(&self) {
        let below = tree::below(self.child.process());
        self.child.signal(Signal::TERM);
        if !self.child.wait(TERM_TIMEOUT) {
            self.child.end(Duration::ZERO);
        }
        tree::kill(&below);
    }
}

impl<L: Listener> Turn for Running<L> {
    fn look(&self) -> Option<Result<Snapshot, String>> {
        None
    }

    fn answer(&self, _question: &Question, _answer: &Answer) -> Result<(), Error> {
        Err(Error::new(Code::UnsupportedOption, "this agent can't be answered while it works"))
    }

    fn abort(&self) -> Result<(), String> {
        lock(&self.ear).aborting = true;
        if !self.child.is_over() {
            self.end();
        }
        Ok(())
    }

    fn root(&self) -> Option<Process> {
        (!self.child.is_over()).then(|| self.child.process())
    }

    fn close(&self) {
        let told = std::mem::replace(&mut lock(&self.ear).over, true);
        // After its last line it writes its files and exits.
        let left = self.child.is_over() || told && self.child.wait(EXIT_TIMEOUT);
        if !left {
            self.end();
        }
    }
}

/// The file in a job's folder that keeps the end of its turn, for programs whose own transcripts
/// don't show it.
const END_FILE: &str = "end.json";

/// Keeps the end of a turn, so that it is known even if the worker is gone.
pub(super) fn keep_end(folder: &Path, session: &str, said: &Said) {
    let end = serde_json::json!({"session": session, "text": said.text, "finish": word(said.finish)});
    let file = folder.join(format!("{END_FILE}.new"));
    // Without the file the turn counts as unfinished after a crash.
    own::rewrite(&file)
        .and_then(|mut file| file.write_all(end.to_string().as_bytes()))
        .and_then(|()| fs::rename(&file, folder.join(END_FILE)))
        .ok();
}

pub(super) fn kept_end(folder: &Path, session: &str) -> Option<Snapshot> {
    let end: Value =
        serde_json::from_slice(&own::read(&folder.join(END_FILE), limits::OWN_FILE_BYTES).ok()?).ok()?;
    let finish = [Finish::End, Finish::Length].into_iter().find(|finish| end["finish"] == word(*finish))?;
    let said = Said { text: end["text"].as_str()?.to_owned(), finish };
    let snapshot = Snapshot { idle: Some(true), said: Some(said), version: 1, ..Snapshot::default() };
    (end["session"] == session).then_some(snapshot)
}

fn word(finish: Finish) -> &'static str {
    match finish {
        Finish::End => "end",
        Finish::Length => "length",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const LIMIT: Duration = Duration::from_secs(30);

    /// Fails with the last status that it read among the errors.
    struct Failing {
        failed: bool,
        status: String,
    }

    impl Listener for Failing {
        fn line(&mut self, line: &str, _now: Moment) -> Vec<Observation> {
            self.failed = line == "failed";
            Vec::new()
        }

        fn error_line(&mut self, line: &str, _now: Moment) -> Vec<Observation> {
            line.clone_into(&mut self.status);
            Vec::new()
        }

        fn failure(&self, _now: Moment) -> Option<Fault> {
            self.failed.then(|| Fault::new(Code::BackendError, self.status.clone()))
        }
    }

    /// What is reported of a program that fails like this, after `Busy`.
    fn told_of(script: &str) -> Observation {
        let folder = tempfile::tempdir().unwrap();
        let mut task = Task::with_a_secret("sh");
        task.folder = folder.path().to_owned();
        let (tell, told) = mpsc::channel();
        let report: Report = Arc::new(move |observation| tell.send(observation).unwrap_or(()));
        let listener = Failing { failed: false, status: String::new() };
        let turn = start(Command::new("sh").args(["-c", script]), &task, "", listener, report);
        let turn = turn.ok().unwrap();
        assert_eq!(told.recv_timeout(LIMIT).unwrap(), Observation::Busy);
        let last = told.recv_timeout(LIMIT).unwrap();
        turn.close();
        last
    }

    #[test]
    fn a_reason_among_the_errors_is_awaited_whichever_stream_is_read_first() {
        for script in
            ["echo failed; sleep 0.3; echo 401 >&2; exit 1", "echo 401 >&2; sleep 0.3; echo failed; exit 1"]
        {
            let Observation::Fault(fault) = told_of(script) else { panic!("no fault: {script}") };
            assert_eq!(fault.error.message(), "401", "{script}");
        }
    }

    #[test]
    fn a_failed_program_that_stays_does_not_keep_its_fault() {
        let Observation::Fault(fault) = told_of("echo 500 >&2; echo failed; exec sleep 600") else {
            panic!("no fault")
        };
        assert_eq!(fault.error.message(), "500");
    }
}
