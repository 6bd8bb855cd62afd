//! Handles one event of a session, from the payload to the reply for the agent.
//!
//! This module gathers facts, lets [`baton_core::mail::plan`] decide, executes the plan in one
//! transaction and renders the mail. It decides nothing itself, and does not know through which
//! surface the event came: a hook process, the MCP server or a link.

mod gather;
pub mod push;

use crate::{claim, evidence, identity};
use baton_agents::agent::Env;
use baton_agents::{Agent, ContextLimit};
use baton_core::event::{Event, EventKind, Reply, Source};
use baton_core::frame::{self, Budget, Framed, Letter, Recipient};
use baton_core::id::{Nonce, OfferId, ParticipantId};
use baton_core::job::{JOB_MARKS, JOB_TAG};
use baton_core::limits::{self, Limits};
use baton_core::mail::{NewOffer, Plan, Settle};
use baton_core::session;
use baton_core::{Code, Error};
use baton_machine::{clock, process, project, random};
use baton_store::{Claim, HookStep, HookView, SessionSeen, Sighting, Store};
use gather::Gathered;

/// The prefixes of baton's own tools in hook payloads: of setup's server, and of a plugin's.
const OWN_TOOL_PREFIXES: [&str; 2] = ["mcp__baton__", "mcp__plugin_baton_baton__"];

/// The result of one event.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub reply: Reply,
    /// The lines about its mail for the person at the terminal.
    pub glance: Option<String>,
    /// The offer in the reply. If the reply can't be handed over, pass it to [`give_back`].
    pub offer: Option<OfferId>,
    /// The participant whose bell rings once the reply is out.
    pub rings: Option<ParticipantId>,
    /// The participant that is idle now while mail waits. A process must follow that mail.
    pub leaves: Option<ParticipantId>,
    /// The jobs to look after once the reply is out.
    pub jobs: Option<OpenJobs>,
}

/// A participant that may have open jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenJobs {
    pub asker: ParticipantId,
    /// The generation of its jobs when this was read. The hint is cleared only if it still has this
    /// value.
    pub generation: i64,
}

impl Outcome {
    /// Nothing to say, and nothing to do.
    pub fn silent() -> Self {
        Self { reply: Reply::Silent, glance: None, offer: None, rings: None, leaves: None, jobs: None }
    }
}

/// Where an event comes from.
pub struct Caller<'a> {
    pub agent: &'a dyn Agent,
    /// The environment of the hook; empty for an event that came through MCP.
    pub env: Env<'a>,
    /// Reads the settings. Called only if there is mail to deliver.
    pub limits: &'a dyn Fn() -> Limits,
}

/// Handles one event.
pub fn handle(store: &mut Store, caller: &Caller<'_>, event: &Event) -> Result<Outcome, Error> {
    if event.session_id.is_empty() || event.session_id.len() > limits::LABEL_BYTES {
        return Err(Error::new(Code::Usage, "the payload's session id is empty or too long"));
    }
    let agent = caller.agent;
    if event.subagent.is_some() || is_from_subagent(agent, event) {
        let ours = event
            .tool
            .as_deref()
            .is_some_and(|tool| OWN_TOOL_PREFIXES.iter().any(|prefix| tool.starts_with(prefix)));
        if event.kind == EventKind::BeforeTool && ours {
            for call in &event.calls {
                store.announce_subagent_call(call, clock::now())?;
            }
        }
        return Ok(Outcome::silent());
    }
    let mut known = store.hook_view(agent.name(), &event.session_id)?;
    match &known {
        Some(view) => check_comes_from_session(store, agent, view, event)?,
        None => check_comes_from_no_other_agent(agent, event)?,
    }
    let starts = matches!(event.kind, EventKind::Start(_));
    if known.is_none() || starts || event.kind == EventKind::Prompt {
        identity::mark_agent(agent);
    }
    let mut resumed = false;
    let is_back = match &known {
        Some(view) => record_end_and_check_return(store, event, view)?,
        None => false,
    };
    if known.is_none() || is_back || starts {
        if event.kind == EventKind::End {
            return Ok(Outcome::silent());
        }
        let open_before = known.as_ref().and_then(|view| view.mail_offer);
        let seen = record_session(store, caller, event, known.as_ref().map(|view| view.state))?;
        if seen.new && JOB_MARKS.iter().any(|mark| (caller.env)(mark).is_some()) {
            store.add_tag(seen.participant, JOB_TAG)?;
        }
        // A compaction goes on with the same process and the same file, whose last lines may not be
        // written yet.
        let from_its_file =
            matches!(event.kind, EventKind::Start(Source::Startup | Source::Resume | Source::Other));
        resumed = from_its_file && !seen.new && !seen.former.is_some_and(process::is_alive);
        known = store.hook_view(agent.name(), &event.session_id)?;
        // Some agents run the hooks of a start and of its prompt at the same time. An offer that
        // the prompt's hook made meanwhile belongs to the new process.
        resumed &= known.as_ref().and_then(|view| view.mail_offer) == open_before;
    }
    let view =
        known.ok_or_else(|| Error::new(Code::Internal, "a session that was just registered is not there"))?;
    let outcome = execute(store, caller, event, &view, resumed)?;
    let jobs = (view.jobs_generation != 0)
        .then_some(OpenJobs { asker: view.participant, generation: view.jobs_generation });
    Ok(Outcome { jobs, ..outcome })
}

/// Whether a session that was over goes on in another process. If its process has died, this first
/// records the end. Some agents don't announce a resume, and their first event shows it. The
/// process can't change between the tools of a turn, so this checks nothing there.
fn record_end_and_check_return(store: &mut Store, event: &Event, view: &HookView) -> Result<bool, Error> {
    if event.kind == EventKind::End {
        return Ok(false);
    }
    if view.state == session::State::Gone {
        return Ok(session::after(event).is_some());
    }
    let begins = matches!(event.kind, EventKind::Prompt | EventKind::Woken | EventKind::IdleNotice);
    let has_died = begins && view.process.is_some_and(|process| !process::is_alive(process));
    if has_died && let Some(known) = store.session(view.session)? {
        store.correct_state(view.session, known.state_since, session::State::Gone, clock::now())?;
    }
    Ok(has_died)
}

/// An error if a process other than the session's sent the event. Then no mail goes there, and the
/// session's record does not change.
pub fn check_comes_from_session(
    store: &Store,
    agent: &dyn Agent,
    view: &HookView,
    event: &Event,
) -> Result<(), Error> {
    let named = claim::NamedSession { session: view.session, process: view.process, state: view.state };
    if claim::comes_from_session(store, agent, named, event.kind)? {
        return Ok(());
    }
    let who = frame::shown(&event.session_id, 80);
    Err(Error::new(
        Code::NotYourSession,
        format!(
            "{} for session {who} came from a process that does not run it, and was ignored",
            event.native
        ),
    ))
}

/// An error if another agent runs the hook of a session that is not known yet: such a session would
/// exist by name only. If it is uncertain which agent runs the hook, the event passes.
pub fn check_comes_from_no_other_agent(agent: &dyn Agent, event: &Event) -> Result<(), Error> {
    if !identity::is_run_by_another(agent) {
        return Ok(());
    }
    let who = frame::shown(&event.session_id, 80);
    let what =
        format!("{} for session {who} came from a process of another agent, and was ignored", event.native);
    Err(Error::new(Code::NotYourSession, what))
}

/// Whether only urgent mail may reach the session now.
fn takes_only_urgent(view: &HookView) -> bool {
    view.dnd_until.is_some_and(|until| until > clock::now())
}

/// Whether a subagent ran the tool that has ended, for agents where only the subagent's own file
/// shows that.
fn is_from_subagent(agent: &dyn Agent, event: &Event) -> bool {
    let (EventKind::AfterTool, Some(transcript)) = (event.kind, &event.transcript) else { return false };
    agent
        .subagent_folder(&event.session_id, transcript, event.tool.as_deref())
        .is_some_and(|folder| evidence::is_subagent_working(&folder, transcript))
}

/// Puts the messages of an offer that could not be printed back into the queue.
pub fn give_back(store: &mut Store, offer: OfferId) -> Result<(), Error> {
    store.settle(offer, Settle::Return, clock::now())
}

/// Records that the session is there. `former` is the state of a known session, which a compaction
/// does not change.
fn record_session(
    store: &mut Store,
    caller: &Caller<'_>,
    event: &Event,
    former: Option<session::State>,
) -> Result<SessionSeen, Error> {
    let former = former.filter(|state| *state != session::State::Gone);
    let cwd = event.cwd.clone().unwrap_or_else(|| "/".into());
    let transcript = event.transcript.as_ref().map(|path| path.to_string_lossy().into_owned());
    store.sight_session(&Sighting {
        agent: caller.agent.name(),
        native: &event.session_id,
        project: &project::of(&cwd),
        cwd: &cwd.to_string_lossy(),
        transcript: transcript.as_deref(),
        process: identity::agent_process(caller.agent, caller.env),
        source: match event.kind {
            EventKind::Start(source) => Some(source),
            _ => None,
        },
        state: session::after(event).or(former).unwrap_or(session::State::Busy),
        now: clock::now(),
    })
}

/// Plans what the event does to its session's mail, and executes the plan.
fn execute(
    store: &mut Store,
    caller: &Caller<'_>,
    event: &Event,
    view: &HookView,
    resumed: bool,
) -> Result<Outcome, Error> {
    let Gathered { plan, limits, reminder } = gather::plan(store, caller, event, view, resumed)?;
    let nonce = plan.offer.as_ref().map(|_| Nonce::from_random(random::id()));
    let claim = plan.offer.clone().zip(nonce).map(|(offer, nonce)| claim(offer, nonce));
    let claimed = if plan.writes() {
        let step = hook_step(view, &plan, claim);
        let room = Room::of(caller.agent, event.kind, &limits, reminder.is_some());
        store.hook_step(&step, &limits, &process::is_alive, &|letters, waiting, nonce| {
            room.frame(recipient(caller.agent, view), letters, waiting, nonce)
        })?
    } else {
        None
    };
    let offer = claimed.as_ref().map(|claimed| claimed.offer);
    let (mail, glance) = claimed.map(|claimed| (claimed.text, claimed.glance)).unzip();
    let leaves = plan.leaves_mail_idle(offer.is_some()) && store.may_be_woken(view.participant)?;
    Ok(Outcome {
        rings: (leaves || plan.rings(offer.is_some())).then_some(view.participant),
        leaves: leaves.then_some(view.participant),
        reply: plan.reply(mail, reminder),
        glance: glance.filter(|_| limits.show_mail),
        offer,
        jobs: None,
    })
}

fn hook_step(view: &HookView, plan: &Plan, claim: Option<Claim>) -> HookStep {
    HookStep {
        session: view.session,
        participant: view.participant,
        settle: plan.settle.clone(),
        state: plan.state,
        transcript: plan.transcript.clone(),
        turn: plan.turn.clone(),
        confirms: plan.confirms,
        claim,
        now: clock::now(),
    }
}

/// The claim that makes an offer.
fn claim(offer: NewOffer, nonce: Nonce) -> Claim {
    Claim {
        nonce,
        anchor: offer.anchor,
        turn: offer.turn,
        position: offer.position,
        read_from: offer.read_from,
        claimer: process::this(),
        at_stop: offer.at_stop,
        only_urgent: offer.only_urgent,
    }
}

/// The room that mail has at one event.
struct Room {
    size: usize,
    unit: frame::Unit,
    messages: usize,
}

impl Room {
    /// `reminds` says whether the list of open asks shares the room.
    fn of(agent: &dyn Agent, event: EventKind, limits: &Limits, reminds: bool) -> Self {
        let ContextLimit { size, unit } = agent.context_limit(event).unwrap_or(ContextLimit::NONE);
        let size = size.min(limits.chars_per_event);
        let size = if reminds { size.saturating_sub(limits::REMINDER_SIZE) } else { size };
        Self { size, unit, messages: limits.messages_per_event }
    }

    fn frame(&self, to: Recipient<'_>, letters: &[Letter], waiting: usize, nonce: &Nonce) -> Framed {
        let budget = Budget { messages: self.messages, size: self.size, unit: self.unit };
        frame::render(to, letters, waiting, nonce, budget)
    }
}

/// The recipient of a session's mail, for its frame.
fn recipient<'a>(agent: &dyn Agent, view: &'a HookView) -> Recipient<'a> {
    Recipient { name: &view.name, answers: agent.quirks().answers }
}
