//! A job at work: one thread owns the picture of its backend, writes down what changes, and lets the judges decide.

use super::{Ending, head, log, recall};
use crate::backend::{self, Task, Turn};
use crate::place::Place;
use crate::request::Request;
use crate::{Host, answers, processes, tell};
use baton_core::Code;
use baton_core::approval::{Answer, Question, QuestionKind};
use baton_core::job::judge::{self, Now, Patience, Verdict};
use baton_core::job::watch::Watch;
use baton_core::job::{Channel, Fault, Observation, Snapshot, Status};
use baton_core::time::Span;
use baton_gate::approvals::Access;
use baton_mail::bell::{self, Bell};
use baton_store::{JobRow, Jobs, Process, Progress};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// The first look, and the time between two.
const LOOK: Duration = Duration::from_secs(5);
/// The backend must have taken the task by then.
const START: Duration = Duration::from_secs(60);
/// A turn that is asked to stop has so long for it.
const ABORT: Duration = Duration::from_secs(4);
/// What is left of it then has so long to go by itself.
const POLITE: Duration = Duration::from_millis(1500);
/// A breadcrumb is written down this often at most.
const CRUMBS: Duration = Duration::from_secs(1);

/// What reaches the worker's one thread.
enum Signal {
    Seen(Observation),
    Started(Result<Arc<dyn Turn>, Fault>),
    Looked(Option<Result<Snapshot, String>>),
    Rung,
}

/// A job at work.
pub(super) struct Work<'a> {
    host: &'a Host,
    row: &'a JobRow,
    task: Task,
    patience: Patience,
    place: Place,
    began: Instant,
    pub(super) jobs: Jobs,
    watch: Watch,
    turn: Option<Arc<dyn Turn>>,
    to_me: Sender<Signal>,
    signals: Receiver<Signal>,
    looking: bool,
    looks: bool,
    next_look: Instant,
    before_tools: HashSet<i32>,
    noted: Noted,
    logged: Option<String>,
    stopping: Option<(Fault, Instant)>,
    cancelled: bool,
    /// The questions that were held against the person's rules.
    ruled: HashSet<String>,
    /// Those of them that a rule has answered.
    by_rule: HashSet<String>,
}

/// What stands in the record.
#[derive(Default)]
struct Noted {
    status: Option<Status>,
    session: Option<String>,
    backend: Option<Process>,
    questions: String,
    crumb: Option<String>,
    crumb_at: Option<Instant>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        host: &'a Host,
        row: &'a JobRow,
        task: Task,
        request: &Request,
        place: Place,
        began: Instant,
        jobs: Jobs,
    ) -> Self {
        let (to_me, signals) = mpsc::channel();
        let patience = Patience {
            cap: request.timeout,
            idle: request.idle,
            retry: request.retry,
            ..Patience::default()
        };
        Self {
            host,
            row,
            task,
            patience,
            place,
            began,
            jobs,
            watch: Watch::default(),
            turn: None,
            to_me,
            signals,
            looking: false,
            looks: false,
            next_look: began + LOOK,
            before_tools: HashSet::new(),
            noted: Noted::default(),
            logged: None,
            stopping: None,
            cancelled: false,
            ruled: HashSet::new(),
            by_rule: HashSet::new(),
        }
    }

    pub(super) fn carry_out(&mut self) -> Ending {
        self.listen();
        self.start();
        // Somebody may have cancelled it before we listened.
        self.rung();
        loop {
            match self.signals.recv_timeout(self.until_next()) {
                Ok(signal) => {
                    self.take(signal);
                    while let Ok(more) = self.signals.try_recv() {
                        self.take(more);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if Instant::now() >= self.next_look {
                self.look();
            }
            self.answer_by_rule();
            self.note();
            if let Some(ending) = self.judge() {
                // The last thing that it did, however short ago the one before was.
                self.noted.crumb_at = None;
                self.note();
                return ending;
            }
        }
    }

    /// Hears the bell in a thread of its own.
    fn listen(&self) {
        let (to_me, file) = (self.to_me.clone(), self.place.bell());
        thread::spawn(move || {
            let Ok(mut bell) = Bell::listen_at(&file) else { return };
            // Every so often even without a ring: one may be lost.
            while bell.wait(Instant::now() + Duration::from_secs(3600)) {
                if to_me.send(Signal::Rung).is_err() {
                    return;
                }
            }
        });
    }

    fn start(&self) {
        let (to_me, task, agent) = (self.to_me.clone(), self.task.clone(), self.row.agent.clone());
        thread::spawn(move || {
            let report = {
                let to_me = to_me.clone();
                Arc::new(move |seen| to_me.send(Signal::Seen(seen)).unwrap_or(()))
            };
            let started = backend::of(&agent)
                .ok_or_else(|| Fault::new(Code::UnknownAgent, format!("{agent} has no backend")))
                .and_then(|backend| backend.start(&task, report));
            to_me.send(Signal::Started(started.map(Arc::from))).ok();
        });
    }

    fn take(&mut self, signal: Signal) {
        let at = self.since();
        match signal {
            Signal::Seen(seen) => {
                if let Some(words) = in_words(&seen).filter(|words| self.logged.as_ref() != Some(words)) {
                    log(self.began.elapsed(), self.watch.status().as_str(), &words);
                    self.logged = Some(words);
                }
                self.watch.observe(seen, at);
            }
            Signal::Started(Ok(turn)) => {
                self.turn = Some(turn);
                self.watch.changed_at = at;
            }
            Signal::Started(Err(fault)) => self.watch.observe(Observation::Fault(fault), at),
            Signal::Looked(answer) => {
                self.looking = false;
                match answer {
                    Some(Ok(snapshot)) => {
                        self.looks = true;
                        self.watch.observe(Observation::Looked(snapshot), at);
                    }
                    Some(Err(why)) => {
                        self.looks = true;
                        self.watch.observe(Observation::Lost(Channel::Look, why), at);
                    }
                    None => {}
                }
            }
            Signal::Rung => self.rung(),
        }
    }

    /// Looks at the backend in a thread of its own, one at a time, and at the processes of its tools.
    fn look(&mut self) {
        self.next_look = Instant::now() + LOOK;
        self.see_processes();
        if let Some(turn) = self.turn.clone().filter(|_| !self.looking) {
            self.looking = true;
            let to_me = self.to_me.clone();
            thread::spawn(move || to_me.send(Signal::Looked(turn.look())).unwrap_or(()));
        }
    }

    fn see_processes(&mut self) {
        let root = self.turn.as_ref().and_then(|turn| turn.root());
        let running = processes::of(&self.row.id, root);
        let shells: Vec<(String, Span)> =
            self.watch.shells().map(|(call, since)| (call.to_owned(), since)).collect();
        if shells.is_empty() {
            // Whatever runs now belongs to no tool: servers of the agent, and what earlier tools left behind.
            self.before_tools = running.iter().map(|process| process.pid).collect();
            return;
        }
        let now = self.since();
        let lives: Vec<_> = shells
            .into_iter()
            .map(|(call, since)| {
                let ago = Span(now.0 - since.0).to_std();
                // Where there is no program to look below, nothing is known.
                let life = match root {
                    Some(_) => processes::life(&running, &self.before_tools, ago),
                    None => baton_core::job::watch::Life::Unknown,
                };
                (call, life)
            })
            .collect();
        self.watch.vitals(&lives);
    }

    /// Somebody rang: is it to be cancelled, or are there answers?
    fn rung(&mut self) {
        let Ok(Some(row)) = self.jobs.get(&self.row.id) else { return };
        if row.cancel && !self.cancelled {
            self.cancelled = true;
            log(self.began.elapsed(), "cancelling", "");
            self.stop(Fault::new(Code::JobCancelled, "the job was cancelled"));
        }
        if let Some(turn) = self.turn.clone() {
            answers::deliver(&mut self.jobs, &self.row.id, &*turn, &self.watch.questions);
        }
    }

    /// Answers what needs no person, by the person's own rules; each use stands in the record.
    fn answer_by_rule(&mut self) {
        if self.stopping.is_some() || self.watch.questions.iter().all(|one| self.ruled.contains(&one.id)) {
            return;
        }
        let Some(turn) = self.turn.clone() else { return };
        for question in self.watch.questions.clone() {
            if !self.ruled.insert(question.id.clone()) {
                continue;
            }
            let Some(rule) = self.rule_for(&question) else { continue };
            let (id, by) = (&self.row.id, format!("rule: {rule}"));
            let (word, words) = Answer::Allow.in_words();
            let Ok(left) = self.jobs.answer(id, &question.id, word, words, &by, baton_mail::now()) else {
                continue;
            };
            answers::deliver(&mut self.jobs, id, &*turn, &self.watch.questions);
            let outcome = self.jobs.outcome_of(left).ok().flatten();
            log(self.began.elapsed(), "by rule", &format!("{rule}: {}", head(&question.what, 200)));
            if outcome.as_deref() == Some(answers::DELIVERED) {
                self.by_rule.insert(question.id.clone());
            }
            tell::answered(self.host, self.row, &question, &by);
        }
    }

    /// The rule of the person's by which a question needs no answer of his.
    fn rule_for(&self, question: &Question) -> Option<String> {
        let tool = question.tool_use.as_deref().filter(|_| question.kind == QuestionKind::Permission)?;
        let agent = baton_agents::by_name(&self.row.agent).ok()?;
        let access = if self.task.read_only { Access::ReadOnly } else { Access::Any };
        self.host.gate().opinion_of_tool(agent, &self.task.cwd, tool, access).by_rule
    }

    /// Asks the turn to stop; what it does then is judged, but not for longer than that.
    fn stop(&mut self, fault: Fault) {
        if self.stopping.is_none() {
            self.stopping = Some((fault, Instant::now() + ABORT));
            if let Some(turn) = self.turn.clone() {
                thread::spawn(move || turn.abort().unwrap_or_else(|why| log(Duration::ZERO, "abort", &why)));
            }
        }
    }

    fn judge(&mut self) -> Option<Ending> {
        let now = Now { since: self.since(), wall: baton_mail::now(), looks: self.looks };
        if self.turn.is_none() && self.watch.fault.is_none() && self.began.elapsed() > START {
            let why = format!("{} did not take the task within {} s", self.row.agent, START.as_secs());
            self.stop(
                Fault::new(Code::BackendStart, why)
                    .hint("`baton job logs` has its words; `baton doctor` looks at it"),
            );
        }
        let mut patience = self.patience;
        if self.turn.is_none() {
            // The start has a limit of its own.
            patience.idle = patience.cap;
        }
        let verdict = judge::all(&self.watch, &patience, now);
        if let Some((fault, deadline)) = &self.stopping {
            let over = matches!(
                verdict,
                Some(Verdict::Completed(_) | Verdict::Failed(_) | Verdict::Aborted | Verdict::Lost(_))
            );
            if over || self.turn.is_none() || Instant::now() >= *deadline {
                let fault = fault.clone();
                return Some(self.stopped(fault, verdict));
            }
            return None;
        }
        match verdict? {
            Verdict::Completed(text) => {
                self.close();
                Some(Ending { status: Status::Completed, result: Some(text), fault: None, exit: None })
            }
            Verdict::Failed(fault) => Some(self.failed(fault)),
            Verdict::Aborted => {
                let exit = self.clean_up();
                let fault = Fault::new(Code::JobCancelled, "its turn was aborted in the agent itself");
                let said = self.said();
                Some(Ending { status: Status::Cancelled, result: said, fault: Some(fault), exit: Some(exit) })
            }
            Verdict::Lost(fault) => Some(self.lost(fault)),
            Verdict::Stop(fault) => {
                log(self.began.elapsed(), "stopping", fault.error.message());
                self.stop(fault);
                None
            }
            Verdict::Extend => {
                self.watch.extensions += 1;
                let times = format!(
                    "its tool lives: extended {} of {} times",
                    self.watch.extensions, self.patience.extensions
                );
                log(self.began.elapsed(), "quiet", &times);
                None
            }
        }
    }

    /// The end of a turn that was asked to stop. One that finished in the same moment has finished.
    fn stopped(&mut self, fault: Fault, verdict: Option<Verdict>) -> Ending {
        if let Some(Verdict::Completed(text)) = verdict {
            self.close();
            return Ending { status: Status::Completed, result: Some(text), fault: None, exit: None };
        }
        let heard = verdict.is_some();
        let exit = self.clean_up();
        let exit = format!(
            "{}; {exit}",
            if heard { "its turn was stopped" } else { "its turn did not stop by itself" }
        );
        let status = if self.cancelled { Status::Cancelled } else { Status::Failed };
        Ending { status, result: self.said(), fault: Some(fault), exit: Some(exit) }
    }

    fn failed(&mut self, fault: Fault) -> Ending {
        let exit = self.clean_up();
        Ending { exit: Some(exit), ..Ending::failed(fault, self.said()) }
    }

    /// It can't be heard any more: one look at what it has written down.
    fn lost(&mut self, fault: Fault) -> Ending {
        let exit = self.clean_up();
        let session = self.watch.session.clone();
        let recalled = session.and_then(|session| recall(&self.task, &self.row.agent, &session));
        match recalled {
            Some(Verdict::Completed(text)) => {
                Ending { status: Status::Completed, result: Some(text), fault: None, exit: Some(exit) }
            }
            Some(Verdict::Failed(told)) => Ending { exit: Some(exit), ..Ending::failed(told, self.said()) },
            _ => Ending { exit: Some(exit), ..Ending::failed(fault, self.said()) },
        }
    }

    /// Lets go of the backend; what a tool left running on purpose goes on.
    fn close(&mut self) {
        if let Some(turn) = self.turn.take() {
            let (closed, wait) = mpsc::channel();
            thread::spawn(move || {
                turn.close();
                closed.send(()).ok();
            });
            wait.recv_timeout(Duration::from_secs(5)).ok();
        }
    }

    /// Lets go of the backend and ends everything that is left of the job. In words what was done.
    fn clean_up(&mut self) -> String {
        let root = self.turn.as_ref().and_then(|turn| turn.root()).filter(|_| self.noted.backend.is_some());
        self.close();
        match processes::end_all(&self.row.id, root.filter(|root| self.is_ours(*root)), POLITE) {
            0 => "none of its processes was left".to_owned(),
            count => format!("{count} of its processes were ended"),
        }
    }

    /// A server that several jobs share carries no job's mark, and is not ended with one of them.
    fn is_ours(&self, process: Process) -> bool {
        processes::is_marked(process, processes::JOB, self.row.id.as_str())
    }

    /// Writes down what has changed.
    fn note(&mut self) {
        let status = self.watch.status();
        let questions = answers::to_json(&self.watch.questions);
        let backend = self.turn.as_ref().and_then(|turn| turn.root());
        let crumb = self.watch.crumb.as_ref().map(|crumb| crumb.what.clone());
        let crumb_due =
            crumb != self.noted.crumb && self.noted.crumb_at.is_none_or(|at| at.elapsed() >= CRUMBS);
        let changed = self.noted.status != Some(status)
            || self.noted.questions != questions
            || self.noted.backend != backend
            || self.noted.session != self.watch.session;
        if !changed && !crumb_due {
            return;
        }
        let progress = Progress {
            status: Some(status),
            phase: Some(phase(&self.watch)),
            backend,
            session: self.watch.session.as_deref(),
            activity: crumb.as_deref().map(|what| (what, baton_mail::now())),
            questions: Some(&questions),
            worktree: None,
        };
        // A record that can't be written now is written at the next change; the end is tried for longer.
        if self.jobs.note(&self.row.id, &progress).is_ok() {
            let asked = status == Status::Blocked && self.noted.questions != questions;
            self.noted = Noted {
                status: Some(status),
                session: self.watch.session.clone(),
                backend,
                questions,
                crumb,
                crumb_at: Some(Instant::now()),
            };
            bell::ring_at(&self.place.bell());
            let waits: Vec<Question> =
                self.watch.questions.iter().filter(|one| !self.by_rule.contains(&one.id)).cloned().collect();
            if asked && !waits.is_empty() {
                tell::blocked(self.host, self.row, &waits);
            }
        }
    }

    fn said(&self) -> Option<String> {
        self.watch.said.as_ref().map(|said| said.text.clone()).filter(|text| !text.is_empty())
    }

    fn since(&self) -> Span {
        Span(i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn until_next(&self) -> Duration {
        let mut next = self.next_look;
        if let Some((_, deadline)) = &self.stopping {
            next = next.min(*deadline);
        }
        if self.watch.crumb.as_ref().map(|crumb| &crumb.what) != self.noted.crumb.as_ref() {
            next = next.min(Instant::now() + CRUMBS);
        }
        next.saturating_duration_since(Instant::now())
    }
}

/// What it is about to do, in a word or two.
fn phase(watch: &Watch) -> &'static str {
    if !watch.questions.is_empty() {
        "waiting for an answer"
    } else if watch.retry.is_some() {
        "waiting for its model"
    } else if watch.open_tools().next().is_some() {
        "running a tool"
    } else if watch.status() == Status::Starting {
        "starting"
    } else {
        "thinking"
    }
}

/// What of an observation belongs into the log.
fn in_words(seen: &Observation) -> Option<String> {
    match seen {
        Observation::Session(id) => Some(format!("session {id}")),
        Observation::Tool(tool) => Some(format!("{:?} {}", tool.state, head(&tool.what, 200)).to_lowercase()),
        Observation::Said(said) => Some(format!("said: {}", head(&said.text, 200))),
        Observation::Asked(question) => Some(format!("asks: {}", head(&question.what, 200))),
        Observation::Settled(_) => Some("answered".to_owned()),
        Observation::Retrying { message, .. } => Some(format!("retries: {}", head(message, 200))),
        Observation::Fault(fault) => Some(format!("fault: {}", head(fault.error.message(), 400))),
        Observation::Aborted => Some("aborted".to_owned()),
        Observation::Lost(channel, why) => {
            Some(format!("{channel:?} lost: {}", head(why, 200)).to_lowercase())
        }
        Observation::Found(channel) => Some(format!("{channel:?} is back").to_lowercase()),
        Observation::Gone(how) => Some(format!("gone: {}", head(how, 400))),
        Observation::Busy | Observation::Idle | Observation::Progress(_) | Observation::Looked(_) => None,
    }
}
