//! What the plugin's agent asks its person. This link is the holder of it: it takes each answer once, and the plugin hands it over.
//!
//! A question that was handed over is closed by what the plugin says about that, and by nothing else: the agent says "answered" also of what came
//! too late to do anything.

use baton_agents::Agent;
use baton_agents::asked::{Asked, Settled, Settlement};
use baton_approvals::ask::{self, Asker, Rules};
use baton_approvals::trail::{self, Kind};
use baton_core::approval::{Answer, State, Step};
use baton_core::event::Event;
use baton_core::id::ApprovalId;
use baton_core::{Code, Error};
use baton_mail::bell::{Bell, Watch};
use baton_mail::process;
use baton_store::{ApprovalRow, Approvals, Moved, Process, Role, Store};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// After this what a locked store kept from being written is tried again.
const PAUSE: Duration = Duration::from_millis(300);

/// The questions that one link holds.
#[derive(Debug, Default)]
pub struct Questions {
    held: Vec<Held>,
    /// Open, and listened for, as long as something is held.
    inbox: Option<(Approvals, Bell)>,
    /// Something may be there to be handed over.
    due: bool,
    /// What has happened and is not written yet, in its order.
    news: VecDeque<News>,
    /// Not before.
    next: Option<Instant>,
}

/// Something that the plugin told.
#[derive(Debug)]
pub enum News {
    /// The agent asks.
    Asked(Box<Told>),
    /// What became of a question.
    Settled(Settled),
    /// These calls of tools have ended: the questions that they waited for are over.
    Ran(Vec<String>),
}

/// What was asked, and in which words.
#[derive(Debug)]
pub struct Told {
    pub event: Event,
    pub payload: Vec<u8>,
    pub asked: Asked,
    pub rules: Rules,
}

#[derive(Debug)]
struct Held {
    id: ApprovalId,
    told: Told,
    /// The answer that is with the plugin.
    handed: Option<Answer>,
    /// The plugin does not know what became of it.
    lost: bool,
}

impl Held {
    fn asks(&self, question: &str) -> bool {
        self.told.asked.question.id == question
    }
}

impl Questions {
    /// Takes note of something; it is written by [`write`](Self::write).
    pub fn hear(&mut self, news: News) {
        self.news.push_back(news);
        self.next = self.next.or_else(|| Some(Instant::now()));
    }

    /// Whether something of that session is held.
    pub fn holds(&self, session: &str) -> bool {
        let is_news = |news: &News| matches!(news, News::Asked(told) if told.event.session_id == session);
        self.held.iter().any(|held| held.told.event.session_id == session) || self.news.iter().any(is_news)
    }

    /// When there is something to be written.
    pub fn next_try(&self) -> Option<Instant> {
        self.next
    }

    /// Writes what has happened. What a locked store does not take is tried again later.
    pub fn write(&mut self, store: &mut Store, asker: &Asker<'_>) -> Result<(), Error> {
        self.next = None;
        while let Some(news) = self.news.pop_front() {
            let written = match &news {
                News::Asked(told) => self.record(store, asker, told),
                News::Settled(settled) => self.settle(asker.home, settled).map(|()| None),
                News::Ran(calls) => self.ran(asker.home, calls).map(|()| None),
            };
            match (written, news) {
                (Ok(Some(row)), News::Asked(told)) => self.hold(row, *told),
                (Ok(_), _) => {}
                (Err(error), news) => {
                    self.next = Some(Instant::now() + PAUSE);
                    if error.code() == Code::StoreLocked {
                        self.news.push_front(news);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Records what the agent asks, with this process as the holder. What the plugin tells again, because the link before this one has ended, is
    /// asked anew, unless its answer was on its way.
    fn record(
        &mut self,
        store: &mut Store,
        asker: &Asker<'_>,
        told: &Told,
    ) -> Result<Option<ApprovalRow>, Error> {
        let Told { event, asked, rules, .. } = told;
        let asker = &Asker { rules: rules.clone(), ..*asker };
        if self.held.iter().any(|held| held.asks(&asked.question.id)) {
            return Ok(None);
        }
        let (approvals, _) = open(&mut self.inbox, asker.home)?;
        let (this, agent) = (process::this(), process::ancestors().first().copied());
        let mut record =
            |approvals: &mut Approvals| ask::record(store, approvals, asker, event, asked, Some(this), agent);
        let row = record(approvals)?;
        if !is_left(&row, this) {
            return Ok(Some(row));
        }
        approvals.close(&row.id, Step::Over, Some("it is asked anew"), baton_mail::now())?;
        record(approvals).map(Some)
    }

    fn hold(&mut self, row: ApprovalRow, told: Told) {
        let handed = row.answer.filter(|_| row.state == State::Handed);
        self.held.push(Held { id: row.id, told, handed, lost: false });
        self.due = true;
    }

    /// The bell that rings when something was answered.
    pub fn bell(&self) -> Option<&Watch> {
        self.inbox.as_ref().map(|(_, bell)| bell.watch())
    }

    /// It rang, or might have.
    pub fn rang(&mut self) {
        if let Some((_, bell)) = &mut self.inbox {
            bell.drain();
            self.due = true;
        }
    }

    /// Takes the answers that are there; gives what the plugin is to be told, also if not all could be looked at.
    pub fn take(&mut self, home: &Path, agent: &dyn Agent) -> (Vec<Value>, Result<(), Error>) {
        let mut replies = Vec::new();
        if !std::mem::take(&mut self.due) {
            return (replies, Ok(()));
        }
        let taken = self.take_each(home, agent, &mut replies);
        if taken.is_err() {
            (self.due, self.next) = (true, Some(Instant::now() + PAUSE));
        }
        self.close_inbox();
        (replies, taken)
    }

    fn take_each(&mut self, home: &Path, agent: &dyn Agent, replies: &mut Vec<Value>) -> Result<(), Error> {
        let Some((approvals, _)) = &mut self.inbox else { return Ok(()) };
        let mut over = Vec::new();
        for held in &mut self.held {
            let state = approvals.get(&held.id)?.map_or(State::Gone, |row| row.state);
            if state.is_end() {
                over.push(held.id.clone());
            }
            if state != State::Answered {
                continue;
            }
            let taken = approvals.take(&held.id, baton_mail::now())?.filter(|moved| moved.moved);
            let Some(answer) = taken.and_then(|moved| moved.row.answer) else { continue };
            let Told { event, payload, asked, .. } = &held.told;
            match agent.reply(payload, event, asked, &answer) {
                Some(reply) => {
                    replies.push(reply);
                    held.handed = Some(answer);
                }
                None => _ = approvals.refused(&held.id, "its plugin can't give that answer")?,
            }
            baton_approvals::ring(home);
        }
        self.held.retain(|held| !over.contains(&held.id));
        Ok(())
    }

    /// What the plugin says about a question.
    fn settle(&mut self, home: &Path, settled: &Settled) -> Result<(), Error> {
        let Some(at) = self.held.iter().position(|held| held.asks(&settled.question)) else {
            return Ok(());
        };
        let (approvals, _) = open(&mut self.inbox, home)?;
        let held = &mut self.held[at];
        let now = baton_mail::now();
        let moved = match (&settled.how, &held.handed) {
            // The plugin says next what came of our answer.
            (Settlement::Answered(_) | Settlement::Dropped(_), Some(_)) if !held.lost => return Ok(()),
            (Settlement::Answered(how) | Settlement::Dropped(how) | Settlement::Gone(how), None) => {
                approvals.close(&held.id, Step::Over, Some(how), now)?
            }
            (_, None) => return Ok(()),
            (Settlement::Effective, Some(_)) => approvals.close(&held.id, Step::Over, None, now)?,
            (Settlement::Answered(why) | Settlement::Dropped(why) | Settlement::Gone(why), Some(answer)) => {
                approvals.close(&held.id, contrary(answer), Some(why), now)?
            }
            (Settlement::Refused(why), Some(_)) => {
                held.handed = None;
                approvals.refused(&held.id, why)?
            }
            // Whoever has answered is told so. It stays handed over, so that there is no second answer.
            (Settlement::Unsure(_), Some(_)) => {
                held.lost = true;
                return Ok(());
            }
        };
        if moved.as_ref().is_none_or(|moved| moved.row.state.is_end()) {
            self.held.remove(at);
        }
        self.close_inbox();
        tell(home, moved);
        Ok(())
    }

    fn ran(&mut self, home: &Path, calls: &[String]) -> Result<(), Error> {
        let Some((approvals, _)) = &mut self.inbox else { return Ok(()) };
        let waited = |held: &Held| held.told.asked.call.as_ref().is_some_and(|call| calls.contains(call));
        for held in self.held.iter().filter(|held| waited(held)) {
            tell(home, approvals.close(&held.id, Step::Ran, None, baton_mail::now())?);
        }
        self.held.retain(|held| !waited(held));
        self.close_inbox();
        Ok(())
    }

    /// The agent is gone.
    pub fn end(&mut self, home: &Path) -> Result<(), Error> {
        let Some((approvals, _)) = &mut self.inbox else { return Ok(()) };
        for held in self.held.drain(..) {
            tell(home, approvals.close(&held.id, Step::Gone, None, baton_mail::now())?);
        }
        self.close_inbox();
        Ok(())
    }

    fn close_inbox(&mut self) {
        if self.held.is_empty()
            && let Some((mut approvals, _)) = self.inbox.take()
        {
            approvals.tidy();
        }
    }
}

fn open<'a>(
    inbox: &'a mut Option<(Approvals, Bell)>,
    home: &Path,
) -> Result<&'a mut (Approvals, Bell), Error> {
    Ok(match inbox {
        Some(open) => open,
        none => {
            // Listens first: what is answered meanwhile is found at the first look.
            let bell = baton_approvals::listen(home)?;
            none.insert((Approvals::open(home, Role::Hook)?, bell))
        }
    })
}

/// Says that something became of a question, to whoever waits, and in the trail if that was its end.
fn tell(home: &Path, moved: Option<Moved>) {
    if let Some(moved) = moved.filter(|moved| moved.moved && moved.row.state.is_end()) {
        trail::note(home, Kind::Closed, &moved.row);
    }
    baton_approvals::ring(home);
}

/// Whether an open question has lost its holder before an answer was handed over.
fn is_left(row: &ApprovalRow, this: Process) -> bool {
    row.state != State::Handed
        && row.holder != Some(this)
        && row.holder.is_none_or(|holder| !process::is_alive(holder))
}

/// What must have been seen for an answer to have come too late.
fn contrary(answer: &Answer) -> Step {
    match answer {
        Answer::Deny(_) => Step::Ran,
        Answer::Allow | Answer::AllowAlways | Answer::Words(_) => Step::RefusedThere,
    }
}
