//! The one path of an event, from the parsed payload to its last effect.
//!
//! An event reaches baton through a hook process, through the hook tool of the MCP server, or
//! through a link. Each is a [`Surface`], which has its own input and output and nothing else.
//! [`handle`] decides what happens to the event, and in which order:
//!
//! ```text
//! guard ──▶ questions ──▶ mail ──▶ answer ──▶ bells ──▶ questions ──▶ jobs
//!   │           │                    │
//!   │           └ uncertain: silence └ not taken: the mail goes back to the queue
//!   └ it answers: mail waits for the next event
//! ```
//!
//! The steps after the answer can't change it, and may take longer.

use baton_agents::asked::{AgentQuestion, QuestionReport};
use baton_agents::{Agent, Ruling, ToolCall};
use baton_approvals::{ask, settle};
use baton_core::Error;
use baton_core::event::{Event, EventKind, Reply};
use baton_core::id::ParticipantId;
use baton_guard_runtime::{Guard, RuledCall};
use baton_machine::bell;
use baton_mail::hook_event::{self, Caller, OpenJobs, Outcome};
use baton_mail::unknown_events;
use baton_store::Store;
use std::ffi::OsString;
use std::path::Path;

/// The way in which an event comes in and its answer goes out.
pub trait Surface {
    /// Where baton keeps its state.
    fn home(&self) -> &Path;

    fn agent(&self) -> &'static dyn Agent;

    /// A variable of the environment that the agent gave this process.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// Whether the guard checks this kind of event through this surface. It does not if the agent
    /// has a separate hook for the guard.
    fn guards(&self, kind: EventKind) -> bool;

    /// The guard, with the rules that apply now.
    fn guard(&self) -> Guard;

    /// Works with the store. The first use opens it.
    fn with_store<T>(
        &mut self,
        event: &Event,
        work: impl FnOnce(&mut Store, &Caller<'_>) -> Result<T, Error>,
    ) -> Result<T, Error>;

    /// Hands the answer to the agent. `None` is the surface's way to say nothing. Called once for
    /// each event.
    fn answer(&mut self, answer: Option<&str>) -> Result<(), Error>;

    /// Records a question that the agent asks its person.
    fn ask(&mut self, event: &Event, payload: &[u8], asked: AgentQuestion) -> Result<(), Error>;

    /// Has a process follow the mail that waits for a session which is idle now. A surface that
    /// looks again by itself does nothing.
    fn follow(&mut self, _event: &Event, _participant: ParticipantId) {}

    /// Looks after jobs that this session asked for.
    fn look_after(&mut self, event: &Event, jobs: OpenJobs);

    /// Writes a line to the log.
    fn log(&self, what: &str);

    /// The answer that makes a plugin hold a call that a rule wants confirmed. `None` refuses the
    /// call at once.
    fn hold_call(&mut self, _guard: &Guard, _event: &Event, _call: &ToolCall, _why: &str) -> Option<String> {
        None
    }

    /// Whether this process holds questions of the session, so that it alone closes them.
    fn holds_questions(&self, _session_id: &str) -> bool {
        false
    }

    /// Takes note of what became of a question that this process holds.
    fn update_question(&mut self, _update: QuestionUpdate) {}

    /// The mail step of an event failed. A surface that outlives the event may go on without mail.
    fn without_mail(&mut self, _event: &Event, error: Error) -> Result<Outcome, Error> {
        Err(error)
    }
}

/// What an event says about a question that a process holds.
#[derive(Debug)]
pub enum QuestionUpdate {
    /// The agent reports what became of it.
    Settled(QuestionReport),
    /// These tool calls have ended, so the questions about them are over.
    Ran(Vec<String>),
}

/// How far an event went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// To an answer before the mail step. Its session is unchanged.
    Guard,
    /// The end of the path.
    End,
}

/// Handles one event. `payload` is what the agent sent.
pub fn handle<S: Surface>(surface: &mut S, event: &mut Event, payload: &[u8]) -> Result<Reached, Error> {
    let agent = surface.agent();
    unknown_events::record(surface.home(), agent, event);
    if let Some(signed) = agent.sign_call(event) {
        return surface.answer(Some(&signed)).map(|()| Reached::Guard);
    }
    if event.transcript.is_none() {
        event.transcript = agent.transcript_path(&event.session_id, &|name| surface.variable(name));
    }
    if surface.guards(event.kind) {
        let said = judge(surface, event, payload);
        // Before a tool there is nothing else to say.
        if said.is_some() || agent.facts().calls.before.contains(&event.native.as_str()) {
            return surface.answer(said.as_deref()).map(|()| Reached::Guard);
        }
    }
    let asked = if event.kind == EventKind::Blocked { agent.asked(payload, event) } else { None };
    let is_certain = |asked| ask::is_certain(agent, &|name| surface.variable(name), event, asked);
    if !asked.as_ref().is_none_or(is_certain) {
        return surface.answer(None).map(|()| Reached::Guard);
    }
    let handled = surface.with_store(event, |store, caller| hook_event::handle(store, caller, event));
    let outcome = match handled {
        Ok(outcome) => outcome,
        Err(error) => surface.without_mail(event, error)?,
    };
    answer(surface, event, &outcome)?;
    finish(surface, event, payload, &outcome, asked)?;
    Ok(Reached::End)
}

/// The guard's answer to the event, rendered for the agent.
fn judge<S: Surface>(surface: &mut S, event: &Event, payload: &[u8]) -> Option<String> {
    let (guard, agent) = (surface.guard(), surface.agent());
    let said = match event.kind {
        EventKind::Stop => match guard.holds(agent, event) {
            Ok(why) => why.map(|why| agent.render(event, &Reply::Continue(why), None)),
            Err(error) => {
                // If the guard can't find out, the turn may end.
                surface.log(&format!("{}: {}: {error}", event.native, error.code()));
                None
            }
        },
        _ => match guard.ruling(agent, payload, Some(&event.native)) {
            Ok(None) => None,
            Ok(Some(RuledCall { call, ruling })) => {
                let held = match &ruling {
                    Ruling::Ask(why) => surface.hold_call(&guard, event, &call, why),
                    _ => None,
                };
                Some(held.unwrap_or_else(|| agent.render_ruling(&call, &ruling)))
            }
            Err(error) => {
                surface.log(&format!("{}: {}: {error}", event.native, error.code()));
                guard.unjudged(agent, &event.native, None)
            }
        },
    };
    said.filter(|said| !said.is_empty())
}

/// Hands the answer over. If the agent did not take all of it, the mail in it goes back to the
/// queue.
fn answer<S: Surface>(surface: &mut S, event: &Event, outcome: &Outcome) -> Result<(), Error> {
    let said = (outcome.reply != Reply::Silent)
        .then(|| surface.agent().render(event, &outcome.reply, outcome.glance.as_deref()));
    let Err(error) = surface.answer(said.as_deref()) else { return Ok(()) };
    if let Some(offer) = outcome.offer {
        surface.with_store(event, |store, _| hook_event::give_back(store, offer))?;
    }
    Err(error)
}

/// The steps after the answer.
fn finish<S: Surface>(
    surface: &mut S,
    event: &Event,
    payload: &[u8],
    outcome: &Outcome,
    asked: Option<AgentQuestion>,
) -> Result<(), Error> {
    if let Some(participant) = outcome.rings {
        bell::ring(surface.home(), participant);
    }
    if let Some(participant) = outcome.leaves {
        surface.follow(event, participant);
    }
    // An error about a question must not stop the check of the jobs.
    let questions = update_questions(surface, event, payload, asked);
    if let Some(jobs) = outcome.jobs {
        surface.look_after(event, jobs);
    }
    questions
}

/// Updates the questions of a session by what an event says about them.
fn update_questions<S: Surface>(
    surface: &mut S,
    event: &Event,
    payload: &[u8],
    asked: Option<AgentQuestion>,
) -> Result<(), Error> {
    let agent = surface.agent();
    if let Some(asked) = asked {
        return surface.ask(event, payload, asked);
    }
    let holds = surface.holds_questions(&event.session_id);
    if let Some(settled) = agent.question_outcome(payload, event) {
        surface.update_question(QuestionUpdate::Settled(settled));
    } else if event.kind == EventKind::AfterTool && holds {
        surface.update_question(QuestionUpdate::Ran(event.calls.clone()));
    } else if event.kind != EventKind::Blocked && !holds {
        settle::by_event(surface.home(), agent.name(), event)?;
    }
    Ok(())
}
