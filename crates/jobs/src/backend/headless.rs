//! A program that takes its prompt on its input, tells its turn in lines, and ends: nothing can be said to it in between.
//!
//! So no question can be answered, and what would be asked is refused by the program itself. It is aborted by ending it, with the commands that it
//! runs.

use super::child::{Child, Ended};
use super::lock;
use super::{Report, Task, Turn, tree};
use baton_core::approval::Answer;
use baton_core::job::{Fault, Finish, Observation, Said, Snapshot};
use baton_core::time::Moment;
use baton_core::{Code, Error};
use baton_store::Process;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long it may take to end when it is asked to.
const POLITELY: Duration = Duration::from_millis(700);
/// How long it may take to end by itself after its last word.
const LEAVE: Duration = Duration::from_secs(2);

/// Understands what one program says.
pub(super) trait Listener: Send {
    /// A line of its output.
    fn line(&mut self, line: &str, now: Moment) -> Vec<Observation>;

    /// A line of its errors.
    fn error_line(&mut self, _line: &str, _now: Moment) -> Vec<Observation> {
        Vec::new()
    }

    /// What its end means, if it did not tell the end of the turn before: a fault, or only that it is gone.
    fn ended(&mut self, _ended: &Ended, _now: Moment) -> Option<Fault> {
        None
    }
}

struct Ear<L> {
    listener: L,
    report: Report,
    aborting: bool,
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
            // What a program says while it is being ended is not its own end.
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
        let fault = self.listener.ended(ended, baton_mail::now());
        (self.report)(fault.map_or_else(|| Observation::Gone(ended.in_words()), Observation::Fault));
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
    // Of another turn, if there is one.
    fs::remove_file(task.folder.join(END)).ok();
    let ear =
        Arc::new(Mutex::new(Ear { listener, report: Arc::clone(&report), aborting: false, over: false }));
    let (of_lines, of_errors, of_end) = (Arc::clone(&ear), Arc::clone(&ear), Arc::clone(&ear));
    // Before there is anybody who could say that he is done.
    report(Observation::Busy);
    let child = Child::start_listening(
        command,
        &task.folder.join("stderr"),
        move |line| lock(&of_lines).hear(|listener| listener.line(line, baton_mail::now())),
        move |line| lock(&of_errors).hear(|listener| listener.error_line(line, baton_mail::now())),
        move |ended| lock(&of_end).ended(&ended),
    );
    let child = child.map_err(|error| {
        Fault::new(Code::BackendStart, format!("{}: {error}", task.program.display()))
            .hint("check that the program works in a terminal")
    })?;
    // It may take a while until it reads, and a pipe does not hold much.
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
        if !self.child.wait(POLITELY) {
            self.child.end(Duration::ZERO);
        }
        tree::kill(&below);
    }
}

impl<L: Listener> Turn for Running<L> {
    fn look(&self) -> Option<Result<Snapshot, String>> {
        None
    }

    fn answer(&self, _question: &str, _answer: &Answer) -> Result<(), Error> {
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
        // After its last word it writes its files and goes.
        let left = self.child.is_over() || told && self.child.wait(LEAVE);
        if !left {
            self.end();
        }
    }
}

/// The file in a job's folder that keeps the end of its turn, for programs whose own transcripts don't show it.
const END: &str = "end.json";

/// Keeps the end of a turn, so that it is known when everything that watched is gone.
pub(super) fn keep_end(folder: &Path, session: &str, said: &Said) {
    let end = serde_json::json!({"session": session, "text": said.text, "finish": word(said.finish)});
    let file = folder.join(format!("{END}.new"));
    // Without it the turn only counts as unfinished after a crash.
    fs::write(&file, end.to_string()).and_then(|()| fs::rename(&file, folder.join(END))).ok();
}

/// The end of a turn that was kept.
pub(super) fn kept_end(folder: &Path, session: &str) -> Option<Snapshot> {
    let end: Value = serde_json::from_slice(&fs::read(folder.join(END)).ok()?).ok()?;
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
