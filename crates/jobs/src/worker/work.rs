//! A job at work: one thread owns the picture of its backend, records what changes, and lets the
//! judges decide.

use super::{Ending, head, log, recall};
use crate::answers::Open;
use crate::backend::{self, Task, Turn};
use crate::place::Place;
use crate::request::Request;
use crate::{Runtime, answers, asker_mail, processes};
use baton_core::Code;
use baton_core::approval::{Answer, Question, QuestionKind};
use baton_core::job::judge::{self, JobVerdict, Now, Patience};
use baton_core::job::watch::Watch;
use baton_core::job::{Channel, Fault, Observation, Snapshot, Status, ToolState};
use baton_core::process::Process;
use baton_core::time::Span;
use baton_guard_runtime::approvals::{Access, Opinion};
use baton_machine::bell::{self, Bell};
use baton_store::{Activity, JobRow, Jobs, NewAnswer, Progress};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// The time before the first look, and between two.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How long the backend may take to accept the task.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a turn may take to stop.
const ABORT_TIMEOUT: Duration = Duration::from_secs(4);
/// How long what is left of it may take to end after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_millis(1500);
/// The shortest time between two recorded breadcrumbs.
const CRUMB_INTERVAL: Duration = Duration::from_secs(1);

/// What reaches the worker's one thread.
enum Signal {
    Seen(Observation),
    Started(Result<Arc<dyn Turn>, Fault>),
    Looked(Option<Result<Snapshot, String>>),
    Rung,
}

/// A job at work.
pub(super) struct Work<'a> {
    runtime: &'a Runtime,
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
    /// The open questions, each under its own key.
    open: Vec<Open>,
    /// The key that was given last.
    last_key: u32,
    /// The keys of the questions that were checked against the user's rules.
    ruled: HashSet<String>,
    /// The keys of the questions that a rule has answered.
    by_rule: HashSet<String>,
}

/// What is recorded.
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
        runtime: &'a Runtime,
        row: &'a JobRow,
        task: Task,
        request: &Request,
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
            runtime,
            row,
            task,
            patience,
            place: Place::of(&runtime.home, &row.id),
            began,
            jobs,
            watch: Watch::default(),
            turn: None,
            to_me,
            signals,
            looking: false,
            looks: false,
            next_look: began + LOOK_INTERVAL,
            before_tools: HashSet::new(),
            noted: Noted::default(),
            logged: None,
            stopping: None,
            cancelled: false,
            open: Vec::new(),
            last_key: 0,
            ruled: HashSet::new(),
            by_rule: HashSet::new(),
        }
    }

    pub(super) fn carry_out(&mut self) -> Ending {
        self.listen();
        self.start();
        // It may have been cancelled before this process listened.
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
                // Records the last breadcrumb, even if the one before was just written.
                self.noted.crumb_at = None;
                self.note();
                return ending;
            }
        }
    }

    /// Listens to the bell in a thread of its own.
    fn listen(&self) {
        let (to_me, file) = (self.to_me.clone(), self.place.bell());
        thread::spawn(move || {
            let Ok(mut bell) = Bell::listen_at(&file) else { return };
            // At times without a ring too, because one may be lost.
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

    /// Asks the backend for its state, in a thread of its own and once at a time, and checks the
    /// processes of its tools.
    fn look(&mut self) {
        self.next_look = Instant::now() + LOOK_INTERVAL;
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
            // What runs now belongs to no tool: servers of the agent, and what earlier tools left
            // behind.
            self.before_tools = running.iter().map(|process| process.pid).collect();
            return;
        }
        let now = self.since();
        let lives: Vec<_> = shells
            .into_iter()
            .map(|(call, since)| {
                let ago = Span(now.0 - since.0).to_std();
                // Without a program to look below, nothing is known.
                let life = match root {
                    Some(_) => processes::life(&running, &self.before_tools, ago),
                    None => baton_core::job::watch::Life::Unknown,
                };
                (call, life)
            })
            .collect();
        self.watch.vitals(&lives);
    }

    /// The bell rang: the job is to be cancelled, or there are answers.
    fn rung(&mut self) {
        let Ok(Some(row)) = self.jobs.get(&self.row.id) else { return };
        if row.cancel && !self.cancelled {
            self.cancelled = true;
            log(self.began.elapsed(), "cancelling", "");
            self.stop(Fault::new(Code::JobCancelled, "the job was cancelled"));
        }
        if let Some(turn) = self.turn.clone() {
            answers::deliver(&mut self.jobs, self.row, &*turn, &self.watch.questions);
        }
    }

    /// Answers questions that the user's own rules allow. Each answer is recorded.
    fn answer_by_rule(&mut self) {
        self.open = Open::keyed(&self.watch.questions, &self.open, &mut self.last_key);
        if self.stopping.is_some() || self.open.iter().all(|one| self.ruled.contains(&one.key)) {
            return;
        }
        let Some(turn) = self.turn.clone() else { return };
        for Open { key, question } in self.open.clone() {
            if !self.ruled.insert(key.clone()) {
                continue;
            }
            let opinion = self.opinion_of(&question);
            for open in self.open.iter_mut().filter(|open| open.key == key) {
                open.question.why = opinion.why.clone();
            }
            let Some(rule) = opinion.by_rule else { continue };
            let (id, by) = (&self.row.id, format!("rule: {rule}"));
            let (answer, words) = Answer::Allow.in_words();
            let new = NewAnswer {
                question: &question.id,
                shown: &answers::digest(self.row, &question),
                answer,
                words,
                by: &by,
                now: baton_machine::clock::now(),
            };
            let Ok(left) = self.jobs.answer(id, &new) else { continue };
            answers::deliver(&mut self.jobs, self.row, &*turn, &self.watch.questions);
            let outcome = self.jobs.outcome_of(left).ok().flatten();
            log(self.began.elapsed(), "by rule", &format!("{rule}: {}", question.subject.head()));
            if outcome.as_deref() == Some(answers::DELIVERED) {
                self.by_rule.insert(key.clone());
            }
            answers::record_rule_answer(self.runtime, self.row, &Open { key, question }, &by);
        }
    }

    /// What the guard says about a question, and the user's auto_approve rule that answers it, if
    /// any.
    fn opinion_of(&self, question: &Question) -> Opinion {
        let tool = question.tool_use.as_deref().filter(|_| question.kind() == QuestionKind::Permission);
        let (Some(tool), Ok(agent)) = (tool, baton_agents::by_name(&self.row.agent)) else {
            return Opinion::default();
        };
        let access = if self.task.read_only { Access::ReadOnly } else { Access::Any };
        self.runtime.guard().opinion_of_tool(agent, &self.task.cwd, tool, access)
    }

    /// Asks the turn to stop, and judges what it does until [`ABORT_TIMEOUT`].
    fn stop(&mut self, fault: Fault) {
        if self.stopping.is_none() {
            self.stopping = Some((fault, Instant::now() + ABORT_TIMEOUT));
            if let Some(turn) = self.turn.clone() {
                thread::spawn(move || turn.abort().unwrap_or_else(|why| log(Duration::ZERO, "abort", &why)));
            }
        }
    }

    fn judge(&mut self) -> Option<Ending> {
        let now = Now { since: self.since(), wall: baton_machine::clock::now(), looks: self.looks };
        if self.turn.is_none() && self.watch.fault.is_none() && self.began.elapsed() > START_TIMEOUT {
            let why =
                format!("{} did not take the task within {} s", self.row.agent, START_TIMEOUT.as_secs());
            self.stop(
                Fault::new(Code::BackendStart, why)
                    .hint("`baton job logs` shows its output; `baton doctor` checks it"),
            );
        }
        let mut patience = self.patience;
        if self.turn.is_none() {
            // The start has its own limit.
            patience.idle = patience.cap;
        }
        let verdict = judge::all(&self.watch, &patience, now);
        if let Some((fault, deadline)) = &self.stopping {
            let over = matches!(
                verdict,
                Some(
                    JobVerdict::Completed(_)
                        | JobVerdict::Failed(_)
                        | JobVerdict::Aborted
                        | JobVerdict::Lost(_)
                )
            );
            if over || self.turn.is_none() || Instant::now() >= *deadline {
                let fault = fault.clone();
                return Some(self.stopped(fault, verdict));
            }
            return None;
        }
        match verdict? {
            JobVerdict::Completed(text) => {
                self.close();
                Some(Ending { status: Status::Completed, result: Some(text), fault: None, exit: None })
            }
            JobVerdict::Failed(fault) => Some(self.failed(fault)),
            JobVerdict::Aborted => {
                let exit = self.clean_up();
                let fault = Fault::new(Code::JobCancelled, "its turn was aborted in the agent itself");
                let said = self.said();
                Some(Ending { status: Status::Cancelled, result: said, fault: Some(fault), exit: Some(exit) })
            }
            JobVerdict::Lost(fault) => Some(self.lost(fault)),
            JobVerdict::Stop(fault) => {
                log(self.began.elapsed(), "stopping", fault.error.message());
                self.stop(fault);
                None
            }
            JobVerdict::Extend => {
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

    /// The end of a turn that was asked to stop. If it finished at the same moment, it has
    /// completed.
    fn stopped(&mut self, fault: Fault, verdict: Option<JobVerdict>) -> Ending {
        if let Some(JobVerdict::Completed(text)) = verdict {
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

    /// The backend can't be reached any more: one look at what it has written down.
    fn lost(&mut self, fault: Fault) -> Ending {
        let exit = self.clean_up();
        let session = self.watch.session.clone();
        let recalled = session.and_then(|session| recall(&self.task, &self.row.agent, &session));
        match recalled {
            Some(JobVerdict::Completed(text)) => {
                Ending { status: Status::Completed, result: Some(text), fault: None, exit: Some(exit) }
            }
            Some(JobVerdict::Failed(told)) => {
                Ending { exit: Some(exit), ..Ending::failed(told, self.said()) }
            }
            _ => Ending { exit: Some(exit), ..Ending::failed(fault, self.said()) },
        }
    }

    /// Closes the backend. What a tool left running on purpose goes on.
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

    /// Closes the backend and ends everything that is left of the job. Returns what was done, for
    /// people.
    fn clean_up(&mut self) -> String {
        let root = self.turn.as_ref().and_then(|turn| turn.root()).filter(|_| self.noted.backend.is_some());
        self.close();
        match processes::end_all(&self.row.id, root.filter(|root| self.is_ours(*root)), TERM_TIMEOUT) {
            0 => "none of its processes was left".to_owned(),
            count => format!("{count} of its processes were ended"),
        }
    }

    /// A server that several jobs share has no job's mark, and must not end with one of them.
    fn is_ours(&self, process: Process) -> bool {
        processes::is_marked(process, processes::JOB_VARIABLE, self.row.id.as_str())
    }

    /// Records what has changed.
    fn note(&mut self) {
        let status = self.watch.status();
        self.open = Open::keyed(&self.watch.questions, &self.open, &mut self.last_key);
        let questions = answers::to_json(&self.open);
        let backend = self.turn.as_ref().and_then(|turn| turn.root());
        let crumb = self.watch.crumb.as_ref().map(|crumb| crumb.what.clone());
        let crumb_due =
            crumb != self.noted.crumb && self.noted.crumb_at.is_none_or(|at| at.elapsed() >= CRUMB_INTERVAL);
        let changed = self.noted.status != Some(status)
            || self.noted.questions != questions
            || self.noted.backend != backend
            || self.noted.session != self.watch.session;
        if !changed && !crumb_due {
            return;
        }
        let activity = crumb.clone().map(|what| Activity { what, at: baton_machine::clock::now() });
        let progress = Progress {
            status: Some(status),
            phase: Some(phase(&self.watch)),
            backend,
            session: self.watch.session.as_deref(),
            activity: activity.as_ref(),
            questions: Some(&questions),
            worktree: None,
        };
        // If the record can't be written now, the next change writes it. The end is tried for
        // longer.
        if self.jobs.record_progress(&self.row.id, &progress).is_ok() {
            let asked = status == Status::Blocked && self.noted.questions != questions;
            let before = std::mem::take(&mut self.noted.questions);
            self.noted = Noted {
                status: Some(status),
                session: self.watch.session.clone(),
                backend,
                questions,
                crumb,
                crumb_at: Some(Instant::now()),
            };
            bell::ring_at(&self.place.bell());
            if self.noted.questions != before {
                bell::ring_at(&bell::inbox(&self.runtime.home));
                for closed in answers::parse(&before) {
                    if !self.open.iter().any(|open| open.key == closed.key) {
                        asker_mail::questions_are_over(self.runtime, self.row, Some(&closed.key));
                    }
                }
            }
            let waits: Vec<Open> =
                self.open.iter().filter(|one| !self.by_rule.contains(&one.key)).cloned().collect();
            if asked && !waits.is_empty() {
                asker_mail::send_questions(self.runtime, self.row, &waits);
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
            next = next.min(Instant::now() + CRUMB_INTERVAL);
        }
        next.saturating_duration_since(Instant::now())
    }
}

/// What it does now, in a word or two.
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

/// What an observation adds to the log.
fn in_words(seen: &Observation) -> Option<String> {
    match seen {
        Observation::Session(id) => Some(format!("session {id}")),
        Observation::Tool(tool) => {
            let what = head(&tool.what, 200).to_lowercase();
            Some(match tool.state {
                ToolState::Pending => format!("is to run {what}"),
                ToolState::Running => what,
                ToolState::Ended => format!("ended {what}"),
            })
        }
        Observation::Said(said) => Some(format!("said: {}", head(&said.text, 200))),
        Observation::Asked(question) => Some(format!("asks: {}", question.subject.head())),
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
