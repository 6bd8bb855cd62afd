//! The questions of the plugin's agent. This link is their holder: it takes each answer once, and
//! the plugin hands it over.
//!
//! After an answer was handed over, only the plugin's report of its effect closes the question. The
//! agent also reports "answered" for an answer that came too late.

use baton_agents::Agent;
use baton_agents::asked::{AgentQuestion, QuestionOutcome, QuestionReport};
use baton_approvals::ask::{self, Asker, NewQuestion, Rules};
use baton_approvals::trail::{self, Kind};
use baton_core::approval::{Answer, Digest, State, Step};
use baton_core::event::Event;
use baton_core::id::ApprovalId;
use baton_core::process::Process;
use baton_core::{Code, Error};
use baton_machine::bell::{Bell, Watch};
use baton_machine::process;
use baton_store::{ApprovalRow, Approvals, Moved, Role, Store};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time until a write that a locked store refused is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(300);

/// The questions that one link holds.
#[derive(Debug, Default)]
pub struct Questions {
    held: Vec<HeldQuestion>,
    /// Open while a question is held.
    inbox: Option<OpenInbox>,
    /// An answer may be there to hand over.
    due: bool,
    /// What has happened and is not written yet, in order.
    pending: VecDeque<QuestionEvent>,
    /// When to write next.
    next: Option<Instant>,
}

/// The open inbox, and the bell that rings when a question in it is answered.
#[derive(Debug)]
struct OpenInbox {
    approvals: Approvals,
    bell: Bell,
}

/// The answers that the inbox had.
pub struct TakenReplies {
    /// What the plugin gets, even if not every question could be checked.
    pub replies: Vec<Value>,
    pub result: Result<(), Error>,
}

/// A report of the plugin about a question.
#[derive(Debug)]
pub enum QuestionEvent {
    /// The agent asks.
    Asked(Box<ReportedQuestion>),
    /// What became of a question.
    Settled(QuestionReport),
    /// These tool calls have ended, so the questions about them are over.
    Ran(Vec<String>),
}

/// A question as the plugin reported it.
#[derive(Debug)]
pub struct ReportedQuestion {
    pub event: Event,
    pub payload: Vec<u8>,
    pub asked: AgentQuestion,
    pub rules: Rules,
}

#[derive(Debug)]
struct HeldQuestion {
    id: ApprovalId,
    reported: ReportedQuestion,
    /// The answer that was handed to the plugin.
    handed: Option<Answer>,
    /// The plugin does not know what became of the answer.
    lost: bool,
}

impl HeldQuestion {
    fn asks(&self, question: &str) -> bool {
        self.reported.asked.question.id == question
    }

    fn digest(&self, agent: &str) -> Digest {
        ask::digest(agent, &self.reported.event, &self.reported.asked)
    }
}

impl Questions {
    /// Adds an event. [`write`](Self::write) writes it.
    pub fn add(&mut self, event: QuestionEvent) {
        self.pending.push_back(event);
        self.next = self.next.or_else(|| Some(Instant::now()));
    }

    /// Whether a question of that session is held.
    pub fn holds(&self, session: &str) -> bool {
        let is_pending = |event: &QuestionEvent| matches!(event, QuestionEvent::Asked(reported) if reported.event.session_id == session);
        self.held.iter().any(|held| held.reported.event.session_id == session)
            || self.pending.iter().any(is_pending)
    }

    pub fn next_try(&self) -> Option<Instant> {
        self.next
    }

    /// Writes what has happened. If the store is locked, it tries again later.
    pub fn write(&mut self, store: &mut Store, asker: &Asker<'_>) -> Result<(), Error> {
        self.next = None;
        while let Some(event) = self.pending.pop_front() {
            let written = match &event {
                QuestionEvent::Asked(reported) => self.record(store, asker, reported),
                QuestionEvent::Settled(settled) => self.settle(asker.home, settled).map(|()| None),
                QuestionEvent::Ran(calls) => self.close_ran(asker.home, calls).map(|()| None),
            };
            match (written, event) {
                (Ok(Some(row)), QuestionEvent::Asked(reported)) => self.hold(row, *reported),
                (Ok(_), _) => {}
                (Err(error), event) => {
                    self.next = Some(Instant::now() + RETRY_DELAY);
                    if error.code() == Code::StoreLocked {
                        self.pending.push_front(event);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Records a question, with this process as the holder. If an earlier link has ended, the
    /// plugin reports its questions again. Then they are recorded as new, unless an answer was
    /// already handed over.
    fn record(
        &mut self,
        store: &mut Store,
        asker: &Asker<'_>,
        reported: &ReportedQuestion,
    ) -> Result<Option<ApprovalRow>, Error> {
        let ReportedQuestion { event, asked, rules, .. } = reported;
        let asker = &Asker { rules: rules.clone(), ..*asker };
        let agent = asker.agent.name();
        // The same question again is ignored. A different question with the same id replaces it,
        // because an answer to the first must not answer the second.
        let same = |held: &HeldQuestion| {
            held.asks(&asked.question.id) && held.digest(agent) == ask::digest(agent, event, asked)
        };
        if self.held.iter().any(same) {
            return Ok(None);
        }
        self.held.retain(|held| !held.asks(&asked.question.id));
        let OpenInbox { approvals, .. } = open(&mut self.inbox, asker.home)?;
        let (this, agent) = (process::this(), process::ancestors().first().copied());
        let new = NewQuestion { event, asked, holder: Some(this), agent_process: agent };
        let mut record = |approvals: &mut Approvals| ask::record(store, approvals, asker, &new);
        let row = record(approvals)?;
        if !is_orphaned(&row, this) {
            return Ok(Some(row));
        }
        approvals.close(&row.id, Step::Over, Some("the agent asks it again"), baton_machine::clock::now())?;
        record(approvals).map(Some)
    }

    fn hold(&mut self, row: ApprovalRow, reported: ReportedQuestion) {
        let handed = row.answer.filter(|_| row.state == State::Handed);
        self.held.push(HeldQuestion { id: row.id, reported, handed, lost: false });
        self.due = true;
    }

    /// The bell that rings when a question is answered.
    pub fn bell(&self) -> Option<&Watch> {
        self.inbox.as_ref().map(|inbox| inbox.bell.watch())
    }

    /// The bell rang, or may have.
    pub fn bell_rang(&mut self) {
        if let Some(OpenInbox { bell, .. }) = &mut self.inbox {
            bell.drain();
            self.due = true;
        }
    }

    /// Takes the answers that are there.
    pub fn take(&mut self, home: &Path, agent: &dyn Agent) -> TakenReplies {
        let mut replies = Vec::new();
        if !std::mem::take(&mut self.due) {
            return TakenReplies { replies, result: Ok(()) };
        }
        let result = self.take_each(home, agent, &mut replies);
        if result.is_err() {
            (self.due, self.next) = (true, Some(Instant::now() + RETRY_DELAY));
        }
        self.close_inbox();
        TakenReplies { replies, result }
    }

    fn take_each(&mut self, home: &Path, agent: &dyn Agent, replies: &mut Vec<Value>) -> Result<(), Error> {
        let Some(OpenInbox { approvals, .. }) = &mut self.inbox else { return Ok(()) };
        let mut over = Vec::new();
        for held in &mut self.held {
            let state = approvals.get(&held.id)?.map_or(State::Gone, |row| row.state);
            if state.is_end() {
                over.push(held.id.clone());
            }
            if state != State::Answered {
                continue;
            }
            let taken =
                match approvals.take(&held.id, &held.digest(agent.name()), baton_machine::clock::now()) {
                    // The answer is withdrawn, and the process that gave it must notice.
                    Err(error) if error.code() == Code::QuestionChanged => {
                        baton_approvals::ring(home);
                        None
                    }
                    taken => taken?.filter(|moved| moved.moved),
                };
            let Some(answer) = taken.and_then(|moved| moved.row.answer) else { continue };
            let ReportedQuestion { event, payload, asked, .. } = &held.reported;
            match agent.reply(payload, event, asked, &answer) {
                Some(reply) => {
                    replies.push(reply);
                    held.handed = Some(answer);
                }
                None => {
                    _ = approvals.record_refusal(&held.id, "its plugin can't pass on that kind of answer")?
                }
            }
            baton_approvals::ring(home);
        }
        self.held.retain(|held| !over.contains(&held.id));
        Ok(())
    }

    /// Closes or updates a question by what the plugin reports about it.
    fn settle(&mut self, home: &Path, settled: &QuestionReport) -> Result<(), Error> {
        let Some(at) = self.held.iter().position(|held| held.asks(&settled.question)) else {
            return Ok(());
        };
        let OpenInbox { approvals, .. } = open(&mut self.inbox, home)?;
        let held = &mut self.held[at];
        let now = baton_machine::clock::now();
        let moved = match (&settled.outcome, &held.handed) {
            // The plugin's next report has the effect of our answer.
            (QuestionOutcome::Answered(_) | QuestionOutcome::Dropped(_), Some(_)) if !held.lost => {
                return Ok(());
            }
            (
                QuestionOutcome::Answered(how) | QuestionOutcome::Dropped(how) | QuestionOutcome::Gone(how),
                None,
            ) => approvals.close(&held.id, Step::Over, Some(how), now)?,
            (_, None) => return Ok(()),
            (QuestionOutcome::Effective, Some(_)) => approvals.close(&held.id, Step::Over, None, now)?,
            (
                QuestionOutcome::Answered(why) | QuestionOutcome::Dropped(why) | QuestionOutcome::Gone(why),
                Some(answer),
            ) => approvals.close(&held.id, step_if_too_late(answer), Some(why), now)?,
            (QuestionOutcome::Refused(why), Some(_)) => {
                held.handed = None;
                approvals.record_refusal(&held.id, why)?
            }
            // The one who answered learns this. The question stays handed over, so that there is no
            // second answer.
            (QuestionOutcome::Unsure(_), Some(_)) => {
                held.lost = true;
                return Ok(());
            }
        };
        if moved.as_ref().is_none_or(|moved| moved.row.state.is_end()) {
            self.held.remove(at);
        }
        self.close_inbox();
        record_end_and_ring(home, moved);
        Ok(())
    }

    fn close_ran(&mut self, home: &Path, calls: &[String]) -> Result<(), Error> {
        let Some(OpenInbox { approvals, .. }) = &mut self.inbox else { return Ok(()) };
        let waited =
            |held: &HeldQuestion| held.reported.asked.call.as_ref().is_some_and(|call| calls.contains(call));
        for held in self.held.iter().filter(|held| waited(held)) {
            record_end_and_ring(
                home,
                approvals.close(&held.id, Step::Ran, None, baton_machine::clock::now())?,
            );
        }
        self.held.retain(|held| !waited(held));
        self.close_inbox();
        Ok(())
    }

    /// Closes all held questions, because the agent is gone.
    pub fn end(&mut self, home: &Path) -> Result<(), Error> {
        let Some(OpenInbox { approvals, .. }) = &mut self.inbox else { return Ok(()) };
        for held in self.held.drain(..) {
            record_end_and_ring(
                home,
                approvals.close(&held.id, Step::Gone, None, baton_machine::clock::now())?,
            );
        }
        self.close_inbox();
        Ok(())
    }

    fn close_inbox(&mut self) {
        if self.held.is_empty()
            && let Some(OpenInbox { mut approvals, .. }) = self.inbox.take()
        {
            approvals.tidy();
        }
    }
}

fn open<'a>(inbox: &'a mut Option<OpenInbox>, home: &Path) -> Result<&'a mut OpenInbox, Error> {
    Ok(match inbox {
        Some(open) => open,
        none => {
            // Listens before it opens, so that no answer is missed.
            let bell = baton_approvals::listen(home)?;
            none.insert(OpenInbox { approvals: Approvals::open(home, Role::Hook)?, bell })
        }
    })
}

/// Rings for all who wait for a question, and records its end in the trail if it has ended.
fn record_end_and_ring(home: &Path, moved: Option<Moved>) {
    if let Some(moved) = moved.filter(|moved| moved.moved && moved.row.state.is_end()) {
        trail::note(home, Kind::Closed, &moved.row);
    }
    baton_approvals::ring(home);
}

/// Whether an open question has lost its holder before an answer was handed over.
fn is_orphaned(row: &ApprovalRow, this: Process) -> bool {
    row.state != State::Handed
        && row.holder != Some(this)
        && row.holder.is_none_or(|holder| !process::is_alive(holder))
}

/// The step that shows that an answer came too late.
fn step_if_too_late(answer: &Answer) -> Step {
    match answer {
        Answer::Deny(_) => Step::Ran,
        Answer::Allow | Answer::AllowAlways | Answer::Words(_) => Step::RefusedThere,
    }
}
