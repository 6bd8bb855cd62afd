//! The link: one long-lived process below an agent that has a plugin instead of hooks.
//!
//! The plugin forwards what happens as JSON lines and does what it is told; every decision is made here, on the same line as a hook's
//! ([`baton_mail::line`]). Beside the answers to events there are pushes: mail for a session that is idle, as soon as it is sent.
//!
//! ```text
//! plugin → baton   {"id": 7, "payload": {"hook_event_name": …, "session_id": …, …}}
//! baton → plugin   {"id": 7, "answer": …}          null: nothing to say; about a tool call: what the guard says, and whether to hold it for a person
//! baton → plugin   {"push": {…}}                    unasked
//! baton → plugin   {"reply": {…}}                   the answer to a question of its agent; what became of it comes as an event
//! ```
//!
//! One thread waits for the plugin and for the doorbells of its sessions. It polls nothing: a sweep every few seconds only covers a bell that could
//! not be heard. When the plugin's end of the pipe closes, its agent is gone, and so are the sessions.

mod lines;
mod questions;
mod sessions;

use baton_agents::{Agent, Call as ToolCall, Push, Ruling};
use baton_approvals::ask::{self, Asker, Rules};
use baton_approvals::settle;
use baton_core::event::{Event, EventKind, Reply};
use baton_core::id::ParticipantId;
use baton_core::limits::{self, Limits};
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_gate::Gate;
use baton_mail::line::{self, Caller, Pushed};
use baton_mail::unknown;
use baton_store::{Role, Store};
use lines::Lines;
use questions::{News, Questions, Told};
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
    /// Where the store lies.
    pub home: PathBuf,
    /// Whose plugin it serves.
    pub agent: &'static dyn Agent,
    /// Baton's own program, which tells people that something is asked.
    pub program: Option<PathBuf>,
    /// Reads the environment.
    pub env: fn(&str) -> Option<OsString>,
    /// The limits that hold in a folder.
    pub limits: Box<dyn Fn(&Path) -> Limits>,
    /// Judges tool calls; made anew for each, so that it goes by the rules of that moment.
    pub gate: Box<dyn Fn() -> Gate>,
    /// Looks after the jobs that a participant asked for, with the number that its events were told.
    pub jobs: Box<dyn Fn(ParticipantId, i64)>,
    /// Writes a line to the log.
    pub log: Box<dyn Fn(&str)>,
}

/// A line of the plugin.
#[derive(Deserialize)]
struct Call<'a> {
    id: u64,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Serves a plugin until it closes its end.
pub fn serve<I: io::Read + AsFd, O: Write>(options: Options, input: I, output: O) -> Result<(), Error> {
    let mut link =
        Link { options, store: None, sessions: Sessions::default(), questions: Questions::default(), output };
    let served = link.run(input);
    link.end();
    served
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
        let mut sweep = Instant::now() + limits::SWEEP.to_std();
        loop {
            let tries = [self.sessions.next_try(), self.questions.next_try()];
            let until = tries.into_iter().flatten().fold(sweep, Instant::min);
            let (spoke, mut rung) = self.wait(&input, until);
            if spoke {
                if !lines.read(&mut input).map_err(|error| gone(&error))? {
                    return Ok(());
                }
                while let Some(line) = lines.next() {
                    match line {
                        Ok(line) => rung.extend(self.answer(&line)?),
                        Err(length) => self.note(&format!("a line of {length} bytes is too long")),
                    }
                }
            }
            if Instant::now() >= sweep {
                sweep = Instant::now() + limits::SWEEP.to_std();
                rung = self.sessions.names();
                self.sessions.attend();
                self.questions.rang();
            }
            self.hand_over()?;
            rung.extend(self.sessions.due());
            rung.sort_unstable();
            rung.dedup();
            for session in rung {
                self.push(&session)?;
            }
        }
    }

    /// Waits for the plugin, for a bell, or until a time. Says whether the plugin spoke, and for which sessions it rang.
    fn wait(&mut self, input: &impl AsFd, until: Instant) -> (bool, Vec<String>) {
        let left = until.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds = vec![PollFd::new(input, PollFlags::IN)];
        fds.extend(
            self.sessions.bells().map(|(_, bell)| PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)),
        );
        let sessions = fds.len();
        fds.extend(self.questions.bell().map(|bell| PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)));
        // Interrupted or not: what is ready is in the flags.
        poll(&mut fds, Some(&timeout)).ok();
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let rung = self.sessions.bells().zip(&ready[1..sessions]).filter(|(_, ready)| **ready);
        let rung: Vec<String> = rung.map(|((name, _), _)| name.to_owned()).collect();
        self.sessions.silence(&rung);
        if ready[sessions..].contains(&true) {
            self.questions.rang();
        }
        (ready[0], rung)
    }

    /// Answers one line; gives the session for which a push may be due now.
    fn answer(&mut self, line: &[u8]) -> Result<Option<String>, Error> {
        let Ok(Call { id, payload }) = serde_json::from_slice(line) else {
            self.note("a line that is no call");
            return Ok(None);
        };
        let event = match self.options.agent.parse(payload.get().as_bytes(), None) {
            Ok(mut event) => {
                if event.transcript.is_none() {
                    event.transcript =
                        self.options.agent.transcript_path(&event.session_id, &self.options.env);
                }
                event
            }
            Err(error) => {
                self.note(&error.to_string());
                return self.write(&json!({"id": id, "answer": null})).map(|()| None);
            }
        };
        unknown::note(&self.options.home, self.options.agent, &event);
        let judged = match event.kind {
            EventKind::BeforeTool | EventKind::AfterTool => self.judged(&event, payload.get().as_bytes()),
            EventKind::Stop => self.held(&event),
            _ => None,
        };
        // Before a tool nothing else is to be said. After one, mail waits for the next event where something is said about its output.
        if judged.is_some() || self.options.agent.facts().calls.before.contains(&event.native.as_str()) {
            let answer = judged.and_then(|judged| serde_json::from_str(&judged).ok()).unwrap_or(Value::Null);
            return self.write(&json!({"id": id, "answer": answer})).map(|()| None);
        }
        let outcome = self.with_store(&event, |store, caller| line::handle(store, caller, &event));
        let outcome = outcome.unwrap_or_else(|error| {
            self.note(&format!("{}: {}: {error}", event.native, error.code()));
            line::Outcome { reply: Reply::Silent, offer: None, rings: None, jobs: None }
        });
        let rendered = self.options.agent.render(&event, &outcome.reply);
        let answer = serde_json::from_str(&rendered).unwrap_or(Value::Null);
        let written = self.write(&json!({"id": id, "answer": answer}));
        if written.is_err()
            && let Some(offer) = outcome.offer
        {
            self.give_back(&event, offer);
        }
        written?;
        if let Some((asker, seen)) = outcome.jobs {
            (self.options.jobs)(asker, seen);
        }
        self.follow(&event);
        let pushed = event.subagent.is_none().then(|| event.session_id.clone());
        if let Err(error) = self.see_questions(event, payload.get().as_bytes()) {
            self.note(&format!("questions: {}: {error}", error.code()));
        }
        Ok(pushed)
    }

    /// What an event says about what its agent asks.
    fn see_questions(&mut self, event: Event, payload: &[u8]) -> Result<(), Error> {
        let Options { agent, env, .. } = self.options;
        let holds = self.questions.holds(&event.session_id);
        if let Some(settled) = agent.settled(payload, &event) {
            self.questions.hear(News::Settled(settled));
        } else if event.kind == EventKind::Blocked && !ask::is_a_jobs(&env) {
            if let Some(asked) = agent.asked(payload, &event) {
                let cwd = event.cwd.clone().unwrap_or_else(|| PathBuf::from("/"));
                let program = self.options.program.clone();
                let rules = Rules::of_asked(&(self.options.gate)(), agent, &cwd, &asked, program);
                let told = Told { event, payload: payload.to_vec(), asked, rules };
                self.questions.hear(News::Asked(Box::new(told)));
            }
        } else if event.kind == EventKind::AfterTool && holds {
            self.questions.hear(News::Ran(event.calls));
        } else if !holds {
            // Of what this link holds the plugin says everything else.
            settle::by_event(&self.options.home, agent.name(), &event)?;
        }
        Ok(())
    }

    /// Writes down what was asked and what became of it.
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
            self.note(&format!("questions: {}: {error}", error.code()));
        }
    }

    /// Hands the plugin the answers to what its agent asks.
    fn hand_over(&mut self) -> Result<(), Error> {
        self.write_questions();
        let (replies, taken) = self.questions.take(&self.options.home, self.options.agent);
        if let Err(error) = taken {
            self.note(&format!("answers: {}: {error}", error.code()));
        }
        replies.iter().try_for_each(|reply| self.write(&json!({"reply": reply})))
    }

    /// What the guard says about the tool call of an event.
    fn judged(&mut self, event: &Event, payload: &[u8]) -> Option<String> {
        let (gate, agent) = ((self.options.gate)(), self.options.agent);
        let (call, ruling) = match gate.ruling(agent, payload, None) {
            Ok(ruled) => ruled?,
            Err(error) => {
                self.note(&format!("{}: {}: {error}", event.native, error.code()));
                return gate.unjudged(agent, &event.native);
            }
        };
        let held = match &ruling {
            Ruling::Ask(why) => self.hold(&gate, event, &call, why),
            _ => None,
        };
        let said = held.unwrap_or_else(|| agent.render_ruling(&call, &ruling));
        (!said.is_empty()).then_some(said)
    }

    /// What makes the plugin hold a call for the person; `None` where it is refused at once.
    fn hold(&mut self, gate: &Gate, event: &Event, call: &ToolCall, why: &str) -> Option<String> {
        let Options { agent, env, .. } = self.options;
        let hold = (self.options.limits)(event.cwd.as_deref().unwrap_or(Path::new("/"))).approval_hold;
        let held = agent.render_hold(call, why, hold)?;
        let home = self.options.home.clone();
        let asker = Asker { home: &home, agent, env: &env, hold, rules: Rules::of_call(gate, why, None) };
        let may = self.with_store(event, |store, _| Ok(ask::may_hold_call(store, &asker, event)));
        let may = may.unwrap_or_else(|error| {
            self.note(&format!("{}: {}: {error}", event.native, error.code()));
            false
        });
        may.then_some(held)
    }

    /// What keeps a turn from ending, in the words of the plugin. What can't be found out holds nothing.
    fn held(&self, event: &Event) -> Option<String> {
        match (self.options.gate)().holds(self.options.agent, event) {
            Ok(why) => why.map(|why| self.options.agent.render(event, &Reply::Continue(why))),
            Err(error) => {
                self.note(&format!("{}: {}: {error}", event.native, error.code()));
                None
            }
        }
    }

    /// Listens at the door of a session that has spoken, and stops at its end.
    fn follow(&mut self, event: &Event) {
        if event.subagent.is_some() {
            return;
        }
        match event.kind {
            EventKind::End => self.sessions.forget(&event.session_id),
            EventKind::PushFailed => self.sessions.failed(&event.session_id),
            EventKind::Request => self.sessions.went_on(&event.session_id),
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
                    self.note(&error.to_string());
                }
            }
            Ok(None) => {}
            Err(error) => self.note(&error.to_string()),
        }
    }

    fn push(&mut self, session: &str) -> Result<(), Error> {
        let Some(event) = self.sessions.may_try(session) else { return Ok(()) };
        if let Some(wake) = self.options.agent.wake(session) {
            return self.wake(session, &event, &wake);
        }
        let pushed = match self.with_store(&event, |store, caller| line::push(store, caller, session)) {
            Ok(Some(pushed)) => pushed,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.note(&format!("push: {}: {error}", error.code()));
                return Ok(());
            }
        };
        let Pushed { offer, nonce, text, made_at, again } = pushed;
        let push = Push { session_id: session, text: &text, nonce: &nonce, made_at };
        let Some(push) = self.options.agent.push(&push) else {
            self.give_back(&event, offer);
            return Ok(());
        };
        self.sessions.tried(session);
        let written = self.write(&json!({"push": push}));
        if written.is_err() && !again {
            self.give_back(&event, offer);
        }
        written
    }

    /// Wakes a session that is idle and has mail; its prompt hook brings it.
    fn wake(&mut self, session: &str, event: &Event, wake: &Value) -> Result<(), Error> {
        match self.with_store(event, |store, caller| line::may_wake(store, caller, session)) {
            Ok(true) => {
                self.sessions.tried(session);
                self.write(&json!({"push": wake}))
            }
            Ok(false) => Ok(()),
            Err(error) => {
                self.note(&format!("wake: {}: {error}", error.code()));
                Ok(())
            }
        }
    }

    /// The agent is gone, and with it all sessions that it ran; unless hooks tell of their end.
    fn end(&mut self) {
        if let Err(error) = self.questions.end(&self.options.home) {
            self.note(&format!("end: {}: {error}", error.code()));
        }
        if !self.options.agent.ends_with_plugin() {
            self.sessions = Sessions::default();
        }
        for session in self.sessions.names() {
            let event = Event::new(EventKind::End, session.clone());
            if let Err(error) = self.with_store(&event, |store, caller| line::handle(store, caller, &event)) {
                self.note(&format!("end of {session}: {error}"));
            }
        }
        if let Some(store) = &mut self.store {
            store.tidy();
        }
    }

    /// Does something with the store, which is opened when it is first needed and again after a failure.
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
        if let Err(error) = self.with_store(event, |store, _| line::give_back(store, offer)) {
            self.note(&format!("an offer could not be given back: {error}"));
        }
    }

    fn write(&mut self, line: &Value) -> Result<(), Error> {
        let line = format!("{line}\n");
        self.output
            .write_all(line.as_bytes())
            .and_then(|()| self.output.flush())
            .map_err(|error| gone(&error))
    }

    fn note(&self, what: &str) {
        (self.options.log)(&format!("link {}: {what}", self.options.agent.name()));
    }
}

fn gone(error: &io::Error) -> Error {
    Error::new(Code::OutputClosed, format!("the plugin is gone: {error}"))
}
