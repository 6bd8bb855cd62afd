//! The link: one long-lived process below an agent that has a plugin instead of hooks.
//!
//! The plugin forwards events as JSON lines and acts on the answers. The decisions are made here,
//! by the same code as for a hook ([`baton_events`]). Besides the answers to events there
//! are pushes: mail for an idle session, as soon as it is sent.
//!
//! ```text
//! plugin → baton   {"id": 7, "payload": {"hook_event_name": …, "session_id": …, …}}
//! baton → plugin   {"id": 7, "answer": …}          null: no answer. For a tool call: the guard's ruling, or a hold
//! baton → plugin   {"push": {…}}                    mail or a wake, at any time
//! baton → plugin   {"reply": {…}}                   the answer to a question; its outcome comes as an event
//! ```
//!
//! One thread waits for the plugin and for the bells of its sessions. It does not poll: a sweep
//! every few seconds only covers a missed bell. When the plugin's end of the pipe closes, its agent
//! is gone, and so are the sessions.

mod lines;
mod questions;
mod sessions;

use baton_agents::asked::AgentQuestion;
use baton_agents::{Agent, Push, ToolCall};
use baton_approvals::ask::{self, Asker, Rules};
use baton_core::event::{Event, EventKind};
use baton_core::limits::{self, Limits};
use baton_core::rights::{self, Surface};
use baton_core::time::Span;
use baton_core::wake::line;
use baton_core::{Code, Error};
use baton_events::{QuestionUpdate, Reached};
use baton_guard_runtime::Guard;
use baton_mail::hook_event::push::{self, Pushed};
use baton_mail::hook_event::{self, Caller, OpenJobs, Outcome};
use baton_store::{Role, Store};
use lines::Lines;
use questions::{QuestionEvent, Questions, ReportedQuestion, TakenReplies};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sessions::Sessions;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the link runs with.
pub struct Options {
    /// Where baton keeps its state.
    pub home: PathBuf,
    /// The agent whose plugin it serves.
    pub agent: &'static dyn Agent,
    /// The baton program, which notifies people of questions.
    pub program: Option<PathBuf>,
    pub env: fn(&str) -> Option<OsString>,
    /// Reads the limits that apply in a folder.
    pub limits: Box<dyn Fn(&Path) -> Limits>,
    /// Opens the guard. Called for each tool call, so that the present rules apply.
    pub guard: Box<dyn Fn() -> Guard>,
    pub jobs: Box<dyn Fn(OpenJobs)>,
    /// Writes a line to the log.
    pub log: Box<dyn Fn(&str)>,
}

/// A line from the plugin.
#[derive(Deserialize)]
struct PluginCall<'a> {
    id: u64,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Serves a plugin until it closes its end.
pub fn serve<I: io::Read + AsFd, O: Write>(options: Options, input: I, output: O) -> Result<(), Error> {
    baton_mail::identity::mark_agent(options.agent);
    let mut link =
        Link { options, store: None, sessions: Sessions::default(), questions: Questions::default(), output };
    let served = link.run(input);
    link.end();
    served
}

/// What ended a wait.
struct Ready {
    plugin_spoke: bool,
    /// The sessions whose bells rang.
    rung: Vec<String>,
}

struct Link<O> {
    options: Options,
    store: Option<Store>,
    sessions: Sessions,
    questions: Questions,
    output: O,
}

impl<O: Write> Link<O> {
    fn run<I: io::Read + AsFd>(&mut self, mut input: I) -> Result<(), Error> {
        let mut lines = Lines::default();
        let mut sweep = Instant::now() + limits::SWEEP_INTERVAL.to_std();
        loop {
            let tries = [self.sessions.next_try(), self.questions.next_try()];
            let until = tries.into_iter().flatten().fold(sweep, Instant::min);
            let Ready { plugin_spoke, mut rung } = self.wait(&input, until);
            if plugin_spoke {
                if !lines.read(&mut input).map_err(|error| gone(&error))? {
                    return Ok(());
                }
                while let Some(line) = lines.next() {
                    match line {
                        Ok(line) => rung.extend(self.answer(&line)?),
                        Err(length) => self.log(&format!("a line of {length} bytes is too long")),
                    }
                }
            }
            if Instant::now() >= sweep {
                sweep = Instant::now() + limits::SWEEP_INTERVAL.to_std();
                rung = self.sessions.names();
                self.sessions.renew_attendance();
                self.questions.bell_rang();
            }
            self.write_questions_and_replies()?;
            rung.extend(self.sessions.due());
            rung.sort_unstable();
            rung.dedup();
            for session in rung {
                self.push(&session)?;
            }
        }
    }

    /// Waits for the plugin, for a bell, or until a time.
    fn wait(&mut self, input: &impl AsFd, until: Instant) -> Ready {
        let left = until.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds = vec![PollFd::new(input, PollFlags::IN)];
        fds.extend(
            self.sessions.bells().map(|(_, bell)| PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)),
        );
        let sessions = fds.len();
        fds.extend(self.questions.bell().map(|bell| PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)));
        // The flags show what is ready, even after an interruption.
        poll(&mut fds, Some(&timeout)).ok();
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let rung = self.sessions.bells().zip(&ready[1..sessions]).filter(|(_, ready)| **ready);
        let rung: Vec<String> = rung.map(|((name, _), _)| name.to_owned()).collect();
        self.sessions.drain_bells(&rung);
        if ready[sessions..].contains(&true) {
            self.questions.bell_rang();
        }
        Ready { plugin_spoke: ready[0], rung }
    }

    /// Answers one line. Returns the session for which a push may be due now.
    fn answer(&mut self, line: &[u8]) -> Result<Option<String>, Error> {
        let Ok(PluginCall { id, payload }) = serde_json::from_slice(line) else {
            self.log("a line is not a valid call");
            return Ok(None);
        };
        let mut event = match self.options.agent.parse(payload.get().as_bytes(), None) {
            Ok(event) => event,
            Err(error) => {
                self.log(&error.to_string());
                return self.write(&json!({"id": id, "answer": null})).map(|()| None);
            }
        };
        if rights::of(Surface::Link, rights::event_name(event.kind), None).is_none() {
            self.log(&format!("{}: a plugin may not send this event", event.native));
            return self.write(&json!({"id": id, "answer": null})).map(|()| None);
        }
        let mut exchange = Exchange { link: self, id, answered: false };
        let handled = baton_events::handle(&mut exchange, &mut event, payload.get().as_bytes());
        let answered = exchange.answered;
        match handled {
            // The plugin is gone.
            Err(error) if error.code() == Code::OutputClosed => return Err(error),
            Err(error) => {
                self.log(&format!("{}: {}: {error}", event.native, error.code()));
                if !answered {
                    return self.write(&json!({"id": id, "answer": null})).map(|()| None);
                }
            }
            Ok(Reached::Guard) => return Ok(None),
            Ok(Reached::End) => {}
        }
        self.follow(&event);
        Ok(event.subagent.is_none().then_some(event.session_id))
    }

    /// Writes new questions and their outcomes to the store.
    fn write_questions(&mut self) {
        if self.questions.next_try().is_none_or(|next| next > Instant::now()) {
            return;
        }
        let Options { agent, env, .. } = self.options;
        let home = self.options.home.clone();
        let asker = Asker { home: &home, agent, env: &env, hold: Span(0), rules: Rules::default() };
        let mut questions = std::mem::take(&mut self.questions);
        let event = Event::new(EventKind::Other, "");
        let written = self.with_store(&event, |store, _| questions.write(store, &asker));
        self.questions = questions;
        if let Err(error) = written {
            self.log(&format!("questions: {}: {error}", error.code()));
        }
    }

    /// Writes what happened to questions, then sends the plugin the answers to the questions of its
    /// agent.
    fn write_questions_and_replies(&mut self) -> Result<(), Error> {
        self.write_questions();
        let TakenReplies { replies, result } = self.questions.take(&self.options.home, self.options.agent);
        if let Err(error) = result {
            self.log(&format!("answers: {}: {error}", error.code()));
        }
        replies.iter().try_for_each(|reply| self.write(&json!({"reply": reply})))
    }

    /// The answer that makes the plugin hold a call for the person. `None` if the call is refused
    /// at once.
    fn hold(&mut self, guard: &Guard, event: &Event, call: &ToolCall, why: &str) -> Option<String> {
        let Options { agent, env, .. } = self.options;
        let hold = (self.options.limits)(event.cwd.as_deref().unwrap_or(Path::new("/"))).approval_hold;
        let held = agent.render_hold(call, why, hold)?;
        let home = self.options.home.clone();
        let asker = Asker { home: &home, agent, env: &env, hold, rules: Rules::of_call(guard, why, None) };
        let may = self.with_store(event, |store, _| Ok(ask::may_hold_call(store, &asker, event)));
        let may = may.unwrap_or_else(|error| {
            self.log(&format!("{}: {}: {error}", event.native, error.code()));
            false
        });
        may.then_some(held)
    }

    /// Listens to the bell of the event's session, and stops at the session's end.
    fn follow(&mut self, event: &Event) {
        if event.subagent.is_some() {
            return;
        }
        match event.kind {
            EventKind::End => self.sessions.forget(&event.session_id),
            EventKind::PushFailed => self.sessions.record_failed_push(&event.session_id),
            EventKind::Request => self.sessions.reset_retry(&event.session_id),
            _ => {}
        }
        if event.kind == EventKind::End || self.sessions.knows(&event.session_id) {
            return;
        }
        let agent = self.options.agent.name();
        let found = self.with_store(event, |store, _| store.participant_of(Some(agent), &event.session_id));
        match found {
            Ok(Some((participant, _))) => {
                if let Err(error) = self.sessions.listen(&self.options.home, event, participant.id) {
                    self.log(&error.to_string());
                }
            }
            Ok(None) => {}
            Err(error) => self.log(&error.to_string()),
        }
    }

    fn push(&mut self, session: &str) -> Result<(), Error> {
        let Some(event) = self.sessions.may_try(session) else { return Ok(()) };
        if self.options.agent.wake(session, line::PLAIN).is_some() {
            return self.wake(session, &event);
        }
        let pushed = match self.with_store(&event, |store, caller| push::offer_mail(store, caller, session)) {
            Ok(Some(pushed)) => pushed,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.log(&format!("push: {}: {error}", error.code()));
                return Ok(());
            }
        };
        let Pushed { offer, nonce, text, glance, made_at, again } = pushed;
        let push =
            Push { session_id: session, text: &text, glance: glance.as_deref(), nonce: &nonce, made_at };
        let Some(push) = self.options.agent.push(&push) else {
            self.give_back(&event, offer);
            return Ok(());
        };
        self.sessions.record_push(session);
        let written = self.write(&json!({"push": push}));
        if written.is_err() && !again {
            self.give_back(&event, offer);
        }
        written
    }

    /// Wakes a session that is idle and has mail. Its prompt hook brings the mail.
    fn wake(&mut self, session: &str, event: &Event) -> Result<(), Error> {
        match self.with_store(event, |store, caller| push::wake_line(store, caller, session)) {
            Ok(Some(line)) => {
                self.sessions.record_push(session);
                self.write(&json!({"push": self.options.agent.wake(session, &line)}))
            }
            Ok(None) => Ok(()),
            Err(error) => {
                self.log(&format!("wake: {}: {error}", error.code()));
                Ok(())
            }
        }
    }

    /// Ends all sessions of the agent, which is gone, unless hooks report their end.
    fn end(&mut self) {
        if let Err(error) = self.questions.end(&self.options.home) {
            self.log(&format!("end: {}: {error}", error.code()));
        }
        if !self.options.agent.quirks().ends_with_plugin {
            self.sessions = Sessions::default();
        }
        for session in self.sessions.names() {
            let event = Event::new(EventKind::End, session.clone());
            if let Err(error) =
                self.with_store(&event, |store, caller| hook_event::handle(store, caller, &event))
            {
                self.log(&format!("end of {session}: {error}"));
            }
        }
        if let Some(store) = &mut self.store {
            store.tidy();
        }
    }

    /// Works with the store. The first use opens it, and so does the next use after a failure.
    fn with_store<T>(
        &mut self,
        event: &Event,
        work: impl FnOnce(&mut Store, &Caller<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut store = match self.store.take() {
            Some(store) => store,
            None => Store::open(&self.options.home, Role::Hook)?,
        };
        store.set_deadline(
            Instant::now() + limits::HOOK_BUDGET.to_std().saturating_sub(Duration::from_millis(100)),
        );
        let cwd = event.cwd.clone().unwrap_or_else(|| PathBuf::from("/"));
        let limits = || (self.options.limits)(&cwd);
        let caller = Caller { agent: self.options.agent, env: &self.options.env, limits: &limits };
        let done = work(&mut store, &caller)?;
        store.tidy();
        self.store = Some(store);
        Ok(done)
    }

    fn give_back(&mut self, event: &Event, offer: baton_core::id::OfferId) {
        if let Err(error) = self.with_store(event, |store, _| hook_event::give_back(store, offer)) {
            self.log(&format!("an offer could not be given back: {error}"));
        }
    }

    fn write(&mut self, line: &Value) -> Result<(), Error> {
        let line = format!("{line}\n");
        self.output
            .write_all(line.as_bytes())
            .and_then(|()| self.output.flush())
            .map_err(|error| gone(&error))
    }

    fn log(&self, what: &str) {
        (self.options.log)(&format!("link {}: {what}", self.options.agent.name()));
    }
}

/// One line of the plugin and its answer, as the surface of one event.
struct Exchange<'a, O> {
    link: &'a mut Link<O>,
    id: u64,
    answered: bool,
}

impl<O: Write> baton_events::Surface for Exchange<'_, O> {
    fn home(&self) -> &Path {
        &self.link.options.home
    }

    fn agent(&self) -> &'static dyn Agent {
        self.link.options.agent
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        (self.link.options.env)(name)
    }

    fn guards(&self, kind: EventKind) -> bool {
        matches!(kind, EventKind::BeforeTool | EventKind::AfterTool | EventKind::Stop)
    }

    fn guard(&self) -> Guard {
        (self.link.options.guard)()
    }

    fn with_store<T>(
        &mut self,
        event: &Event,
        work: impl FnOnce(&mut Store, &Caller<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.link.with_store(event, work)
    }

    fn answer(&mut self, answer: Option<&str>) -> Result<(), Error> {
        let answer = answer.and_then(|answer| serde_json::from_str(answer).ok()).unwrap_or(Value::Null);
        self.answered = true;
        self.link.write(&json!({"id": self.id, "answer": answer}))
    }

    /// This link holds the questions of its agent: it takes each answer once. It ignores questions
    /// in a job, because the job's worker gets them from the backend.
    fn ask(&mut self, event: &Event, payload: &[u8], asked: AgentQuestion) -> Result<(), Error> {
        let Options { agent, env, .. } = self.link.options;
        if !ask::is_a_jobs(&env) {
            let cwd = event.cwd.as_deref().unwrap_or(Path::new("/"));
            let program = self.link.options.program.clone();
            let rules = Rules::of_asked(&self.guard(), agent, cwd, &asked, program);
            let reported = ReportedQuestion { event: event.clone(), payload: payload.to_vec(), asked, rules };
            self.link.questions.add(QuestionEvent::Asked(Box::new(reported)));
        }
        Ok(())
    }

    fn look_after(&mut self, _event: &Event, jobs: OpenJobs) {
        (self.link.options.jobs)(jobs);
    }

    fn log(&self, what: &str) {
        self.link.log(what);
    }

    fn hold_call(&mut self, guard: &Guard, event: &Event, call: &ToolCall, why: &str) -> Option<String> {
        self.link.hold(guard, event, call, why)
    }

    fn holds_questions(&self, session_id: &str) -> bool {
        self.link.questions.holds(session_id)
    }

    fn update_question(&mut self, update: QuestionUpdate) {
        self.link.questions.add(match update {
            QuestionUpdate::Settled(settled) => QuestionEvent::Settled(settled),
            QuestionUpdate::Ran(calls) => QuestionEvent::Ran(calls),
        });
    }

    /// A plugin's report about a question counts even while the store is locked. An event of
    /// another process does not count.
    fn without_mail(&mut self, event: &Event, error: Error) -> Result<Outcome, Error> {
        if error.code() == Code::NotYourSession {
            return Err(error);
        }
        self.log(&format!("{}: {}: {error}", event.native, error.code()));
        Ok(Outcome::silent())
    }
}

fn gone(error: &io::Error) -> Error {
    Error::new(Code::OutputClosed, format!("the plugin is gone: {error}"))
}
