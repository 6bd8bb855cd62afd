//! What the plugin's agent asks its person. This link is the holder of it: it takes each answer once, and the plugin hands it over.
//!
//! A question that was handed over is closed by what the plugin says about that, and by nothing else: the agent says "answered" also of what came
//! too late to do anything.

use baton_agents::Agent;
use baton_agents::asked::{Asked, Settled, Settlement};
use baton_approvals::ask::{self, Asker};
use baton_core::Error;
use baton_core::approval::{Answer, State, Step};
use baton_core::event::Event;
use baton_core::id::ApprovalId;
use baton_mail::bell::{Bell, Watch};
use baton_mail::process;
use baton_store::{ApprovalRow, Approvals, Process, Store};
use serde_json::Value;
use std::path::Path;

/// The questions that one link holds.
#[derive(Debug, Default)]
pub struct Questions {
    held: Vec<Held>,
    /// Open, and listened for, as long as something is held.
    inbox: Option<(Approvals, Bell)>,
    /// Something may be there to be handed over.
    due: bool,
}

#[derive(Debug)]
struct Held {
    id: ApprovalId,
    event: Event,
    payload: Vec<u8>,
    asked: Asked,
    /// The answer that is with the plugin.
    handed: Option<Answer>,
    /// The plugin does not know what became of it.
    lost: bool,
}

impl Questions {
    /// Records what the agent asks, with this process as the holder. What the plugin tells again, because the link before this one has ended, is
    /// held from now on.
    pub fn ask(
        &mut self,
        store: &mut Store,
        asker: &Asker<'_>,
        event: &Event,
        payload: &[u8],
        asked: Asked,
    ) -> Result<(), Error> {
        if self.held.iter().any(|held| held.asked.question.id == asked.question.id) {
            return Ok(());
        }
        let (approvals, _) = open(&mut self.inbox, asker.home)?;
        let (this, agent) = (process::this(), process::ancestors().first().copied());
        let mut record = |approvals: &mut Approvals| {
            ask::record(store, approvals, asker, event, &asked, Some(this), agent)
        };
        let mut row = record(approvals)?;
        if is_left(&row, this) {
            approvals.close(&row.id, Step::Over, Some("it is asked anew"), baton_mail::now())?;
            row = record(approvals)?;
        }
        let handed = row.answer.filter(|_| row.state == State::Handed);
        self.held.push(Held {
            id: row.id,
            event: event.clone(),
            payload: payload.to_vec(),
            asked,
            handed,
            lost: false,
        });
        self.due = true;
        Ok(())
    }

    /// Whether something of that session is held.
    pub fn holds(&self, session: &str) -> bool {
        self.held.iter().any(|held| held.event.session_id == session)
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

    /// Takes the answers that are there; gives what the plugin is to be told.
    pub fn take(&mut self, home: &Path, agent: &dyn Agent) -> Result<Vec<Value>, Error> {
        let mut replies = Vec::new();
        let Some((approvals, _)) = self.inbox.as_mut().filter(|_| std::mem::take(&mut self.due)) else {
            return Ok(replies);
        };
        let mut over = Vec::new();
        for held in &mut self.held {
            match approvals.get(&held.id)?.map_or(State::Gone, |row| row.state) {
                State::Answered => {}
                state if state.is_end() => {
                    over.push(held.id.clone());
                    continue;
                }
                _ => continue,
            }
            let taken = approvals.take(&held.id, baton_mail::now())?.filter(|moved| moved.moved);
            let Some(answer) = taken.and_then(|moved| moved.row.answer) else { continue };
            match agent.reply(&held.payload, &held.event, &held.asked, &answer) {
                Some(reply) => {
                    replies.push(reply);
                    held.handed = Some(answer);
                }
                None => _ = approvals.refused(&held.id, "its plugin can't give that answer")?,
            }
            baton_approvals::ring(home);
        }
        self.held.retain(|held| !over.contains(&held.id));
        self.close_inbox();
        Ok(replies)
    }

    /// What the plugin says about a question.
    pub fn settle(&mut self, home: &Path, settled: &Settled) -> Result<(), Error> {
        let Some(at) = self.held.iter().position(|held| held.asked.question.id == settled.question) else {
            return Ok(());
        };
        let (approvals, _) = open(&mut self.inbox, home)?;
        let held = &mut self.held[at];
        let now = baton_mail::now();
        let moved = match (&settled.how, &held.handed) {
            // The plugin says next what came of our answer.
            (Settlement::Answered(_) | Settlement::Dropped(_), Some(_)) if !held.lost => return Ok(()),
            (Settlement::Answered(how) | Settlement::Dropped(how), None) => {
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
        if moved.is_none_or(|moved| moved.row.state.is_end()) {
            self.held.remove(at);
        }
        self.close_inbox();
        baton_approvals::ring(home);
        Ok(())
    }

    /// A tool has run: the question that it waited for is over.
    pub fn ran(&mut self, home: &Path, event: &Event) -> Result<(), Error> {
        let Some((approvals, _)) = &mut self.inbox else { return Ok(()) };
        let waited = |held: &Held| held.asked.call.as_ref().is_some_and(|call| event.calls.contains(call));
        for held in self.held.extract_if(.., |held| waited(held)) {
            approvals.close(&held.id, Step::Ran, None, baton_mail::now())?;
        }
        self.close_inbox();
        baton_approvals::ring(home);
        Ok(())
    }

    /// The agent is gone.
    pub fn end(&mut self, home: &Path) -> Result<(), Error> {
        let Some((approvals, _)) = &mut self.inbox else { return Ok(()) };
        for held in self.held.drain(..) {
            approvals.close(&held.id, Step::Gone, None, baton_mail::now())?;
        }
        self.close_inbox();
        baton_approvals::ring(home);
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
            none.insert((Approvals::open(home)?, bell))
        }
    })
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
