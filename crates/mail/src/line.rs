//! The straight line of a hook call: event in, one look, one transaction if something changes, reply out.
//!
//! Nothing here knows which agent it serves beyond what [`Agent`] says, nor whether it runs in a hook process or in the MCP server.

use crate::{evidence, identity, process, project, random};
use baton_agents::Agent;
use baton_agents::agent::Env;
use baton_core::event::{Event, EventKind, Reply, Source};
use baton_core::frame::{self, Budget, Framed, Letter, Recipient};
use baton_core::id::{Nonce, OfferId, ParticipantId};
use baton_core::limits::{self, Limits};
use baton_core::mail::{self, Anchor, Look, Occasion, Settle, Turns, View, turn};
use baton_core::session;
use baton_core::time::Moment;
use baton_core::{Code, Error, wake};
use baton_store::{Claim, HookStep, HookView, OpenOffer, SessionSeen, Sighting, Store};
use std::path::Path;
use std::time::Instant;

/// The prefix of our own tools in hook payloads, which all agents share.
const OUR_TOOLS: &str = "mcp__baton__";
/// Room that the list of open asks takes from the mail of the same event.
const REMINDER_SIZE: usize = 2_500;
/// Asks of each kind in that list.
const REMINDER_ASKS: usize = 5;

/// What everything that a job runs has in its environment, one of them.
pub const JOB_MARKS: [&str; 2] = ["BATON_JOB", "BATON_SERVER"];

/// What a session of a job is tagged with: it is there and takes mail, but is nobody's peer by its kind alone.
pub const JOB_TAG: &str = "job";

/// What a hook call came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What to tell the agent.
    pub reply: Reply,
    /// The offer that the reply carries; to be given to [`give_back`] if it could not be printed.
    pub offer: Option<OfferId>,
    /// Whose doorbell is to be rung then: there is something new about it.
    pub rings: Option<ParticipantId>,
    /// Whose jobs are to be looked after then, with the number that says until when (`clear_jobs`).
    pub jobs: Option<(ParticipantId, i64)>,
}

impl Outcome {
    fn silent() -> Self {
        Self { reply: Reply::Silent, offer: None, rings: None, jobs: None }
    }
}

/// Where a hook call comes from.
pub struct Caller<'a> {
    /// The agent.
    pub agent: &'a dyn Agent,
    /// The environment of the hook; empty where the call came through MCP.
    pub env: Env<'a>,
    /// The settings, read only when something is to be delivered.
    pub limits: &'a dyn Fn() -> Limits,
}

/// Handles one event.
pub fn handle(store: &mut Store, caller: &Caller<'_>, event: &Event) -> Result<Outcome, Error> {
    if event.session_id.is_empty() || event.session_id.len() > limits::LABEL_BYTES {
        return Err(Error::new(Code::Usage, "the payload's session id is empty or too long"));
    }
    let agent = caller.agent;
    if event.subagent.is_some() || is_a_subagents(agent, event) {
        let ours = event.tool.as_deref().is_some_and(|tool| tool.starts_with(OUR_TOOLS));
        if event.kind == EventKind::BeforeTool && ours {
            for call in &event.calls {
                store.announce_subagent_call(call, crate::now())?;
            }
        }
        return Ok(Outcome::silent());
    }
    let mut known = store.hook_view(agent.name(), &event.session_id)?;
    let mut resumed = false;
    if known.is_none() || matches!(event.kind, EventKind::Start(_)) {
        if event.kind == EventKind::End {
            return Ok(Outcome::silent());
        }
        let seen = sight(store, caller, event, known.as_ref().map(|view| view.state))?;
        if seen.new && JOB_MARKS.iter().any(|mark| (caller.env)(mark).is_some()) {
            store.add_tag(seen.participant, JOB_TAG)?;
        }
        // A compaction goes on with the same process and the same file, whose last lines may still be on their way.
        let from_its_file =
            matches!(event.kind, EventKind::Start(Source::Startup | Source::Resume | Source::Other));
        resumed = from_its_file && !seen.new && !seen.former.is_some_and(process::is_alive);
        known = store.hook_view(agent.name(), &event.session_id)?;
    }
    let view =
        known.ok_or_else(|| Error::new(Code::Internal, "a session that was just registered is not there"))?;
    let outcome = step(store, caller, event, &view, resumed)?;
    Ok(Outcome { jobs: (view.jobs != 0).then_some((view.participant, view.jobs)), ..outcome })
}

/// Whether only urgent mail may reach the session now.
fn is_not_to_be_disturbed(view: &HookView) -> bool {
    view.dnd_until.is_some_and(|until| until > crate::now())
}

/// Mail to be pushed into an idle session.
#[derive(Debug)]
pub struct Pushed {
    /// The offer; to be given to [`give_back`] if it could not be passed on.
    pub offer: OfferId,
    /// What tells it from all others.
    pub nonce: Nonce,
    /// The framed mail.
    pub text: String,
    /// When the offer was made.
    pub made_at: Moment,
    /// It was pushed before, and nobody knows what became of it.
    pub again: bool,
}

/// What is to be pushed into a session now, if it is idle: its mail, or once more what was pushed before and has not been seen in any request since.
/// Whoever repeats a push repeats it under the same ids.
pub fn push(store: &mut Store, caller: &Caller<'_>, session_id: &str) -> Result<Option<Pushed>, Error> {
    let Some(view) = store.hook_view(caller.agent.name(), session_id)? else { return Ok(None) };
    let takes = caller.agent.takes(EventKind::IdleNotice);
    let only_urgent = is_not_to_be_disturbed(&view);
    let queued = view.queued && (!only_urgent || store.urgent_waits(view.participant)?);
    let seen = View { open: view.mail_offer.is_some(), queued, ..View::default() };
    if let Some(offer) = view.mail_offer.filter(|_| view.state == session::State::Idle) {
        return push_again(store, caller.agent, &view, offer, takes);
    }
    if !turn::may_push(view.state, seen, takes.is_some()) {
        return Ok(None);
    }
    let (rules, takes) = ((caller.limits)(), takes.unwrap_or((0, frame::Unit::Bytes)));
    if !rules.wake || !store.may_be_woken(view.participant)? {
        return Ok(None);
    }
    let (nonce, now) = (Nonce::from_random(random()), crate::now());
    let claim = Claim {
        nonce: nonce.clone(),
        anchor: Anchor::Push,
        turn: None,
        position: 0,
        read_from: 0,
        claimer: process::this(),
        at_stop: false,
        only_urgent,
    };
    let step = HookStep {
        session: view.session,
        participant: view.participant,
        settle: Vec::new(),
        state: None,
        transcript: None,
        turn: None,
        confirms: None,
        claim: Some(claim),
        now,
    };
    let claimed = store.hook_step(&step, &rules, &process::is_alive, &|letters, waiting, nonce| {
        frame_mail(recipient(caller.agent, &view), letters, waiting, nonce, takes, &rules, false)
    })?;
    Ok(claimed.map(|claimed| Pushed {
        offer: claimed.offer,
        nonce: nonce.clone(),
        text: claimed.text,
        made_at: now,
        again: false,
    }))
}

/// Whether a session is to be woken now, so that its prompt hook brings the mail: it is idle, and mail waits. An open offer is no hindrance:
/// the prompt is the occasion to look for its proof, and one that only lacks an answer gets it.
pub fn may_wake(store: &mut Store, caller: &Caller<'_>, session_id: &str) -> Result<bool, Error> {
    let Some(view) = store.hook_view(caller.agent.name(), session_id)? else { return Ok(false) };
    let takes = caller.agent.takes(EventKind::Woken).is_some();
    let seen = View { queued: view.queued, ..View::default() };
    Ok(turn::may_push(view.state, seen, takes)
        && (caller.limits)().wake
        && store.may_be_woken(view.participant)?
        && store.mail_waits(
            view.participant,
            crate::now(),
            is_not_to_be_disturbed(&view),
            &process::is_alive,
        )?)
}

fn push_again(
    store: &Store,
    agent: &dyn Agent,
    view: &HookView,
    offer: OfferId,
    takes: Option<(usize, frame::Unit)>,
) -> Result<Option<Pushed>, Error> {
    let ours = |open: &OpenOffer| open.anchor == Anchor::Push && open.session == view.session;
    // Whoever made it repeats it; somebody else only if that one is gone. Two processes that push the same would both be answered.
    let may = |open: &OpenOffer| open.claimer == process::this() || !process::is_alive(open.claimer);
    let Some(open) = store.open_offer(offer)?.filter(|open| ours(open) && may(open)) else { return Ok(None) };
    let (letters, made_at) = store.offered_letters(offer)?;
    let (size, unit) = takes.unwrap_or((0, frame::Unit::Bytes));
    let all = Budget { messages: letters.len(), size, unit };
    let framed = frame::render(recipient(agent, view), &letters, letters.len(), &open.nonce, all);
    Ok(Some(Pushed { offer, nonce: open.nonce, text: framed.text, made_at, again: true }))
}

/// Whether a subagent caused the end of a tool, where only the subagent's own file can tell.
fn is_a_subagents(agent: &dyn Agent, event: &Event) -> bool {
    let (EventKind::AfterTool, Some(transcript)) = (event.kind, &event.transcript) else { return false };
    agent
        .subagent_folder(&event.session_id, transcript, event.tool.as_deref())
        .is_some_and(|folder| evidence::subagent_works(&folder, transcript))
}

/// Puts the messages of an offer back that could not be printed.
pub fn give_back(store: &mut Store, offer: OfferId) -> Result<(), Error> {
    store.settle(offer, Settle::Return, crate::now())
}

/// `former` is the state that a known session was in: a compaction does not change it.
fn sight(
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
        now: crate::now(),
    })
}

fn step(
    store: &mut Store,
    caller: &Caller<'_>,
    event: &Event,
    view: &HookView,
    resumed: bool,
) -> Result<Outcome, Error> {
    let agent = caller.agent;
    let transcript = event.transcript.as_deref().or(view.transcript.as_deref().map(Path::new));
    let settle = settle_open(store, caller, event, view, resumed)?;
    let kept = |id: OfferId| !settle.iter().any(|(settled, how)| *settled == id && *how != Settle::Keep);
    let still_open = view.mail_offer.is_some_and(kept);
    let returns = settle.iter().any(|(_, settle)| matches!(settle, Settle::Return | Settle::Doubt));
    let only_urgent = is_not_to_be_disturbed(view);
    // What comes back to the queue now waits with the rest of it.
    let waits = if only_urgent {
        view.queued && store.urgent_waits(view.participant)?
    } else {
        view.queued || returns
    };
    // Nothing waits: nothing to limit, and a quiet hook does not read the settings.
    let rules = if waits { (caller.limits)() } else { Limits::default() };
    let takes = agent.takes(event.kind);
    let mut seen = View { open: still_open, queued: waits, stops: view.stops, turn_running: false };
    let mut length = None;
    if matches!(event.kind, EventKind::Prompt | EventKind::Woken) && agent.holds_typed_ahead() {
        seen.turn_running = event.turn.is_some() && view.turn == event.turn;
        if !seen.turn_running && turn::may_deliver(event, seen, takes.is_some(), &rules) {
            let now = *length.get_or_insert_with(|| evidence::length(transcript));
            let same_file = transcript == view.transcript.as_deref().map(Path::new);
            let since = if same_file { view.turn_from } else { 0 };
            seen.turn_running = transcript
                .zip(event.turn.as_deref())
                .is_some_and(|(file, turn)| evidence::turn_is_written(agent, file, since, now, turn));
        }
    }
    let deliver = turn::may_deliver(event, seen, takes.is_some(), &rules)
        && !(event.kind == EventKind::Stop
            && agent.stops_when_interrupted()
            && transcript.is_some_and(|file| evidence::turn_is_taken_back(agent, file, view.turn_from)));
    // Then no turn begins.
    let in_vain = turn::is_in_vain(event, seen);
    // A request may still be one of the turn before a prompt that was typed meanwhile.
    let new_turn =
        event.turn.is_some() && event.turn != view.turn && event.kind != EventKind::Request && !in_vain;
    let by_person = event.kind == EventKind::Prompt && !seen.turn_running;
    let state = session::after(event).filter(|state| *state != view.state && !in_vain);
    // A session that was registered by a command of its own, before its hooks spoke, has no transcript yet.
    let named = event.transcript.as_ref().map(|path| path.to_string_lossy().into_owned());
    let new_transcript = named.filter(|path| view.transcript.as_ref() != Some(path));
    let reminder = if in_vain { None } else { reminder(store, agent, event, view, transcript)? };
    let confirms = view.wake.filter(|_| session::after(event) == Some(session::State::Busy));
    if !deliver
        && state.is_none()
        && !new_turn
        && !by_person
        && new_transcript.is_none()
        && confirms.is_none()
        && settle.iter().all(|(_, settle)| *settle == Settle::Keep)
    {
        let reply = match reminder {
            Some(text) => Reply::Context(text),
            None if in_vain => Reply::Block(wake::NOTHING_WAITS.to_owned()),
            None => Reply::Silent,
        };
        return Ok(Outcome { reply, ..Outcome::silent() });
    }
    let length = length
        .unwrap_or_else(|| if deliver || new_turn || by_person { evidence::length(transcript) } else { 0 });
    let begins = new_turn || (by_person && event.turn.is_none());
    let turn_from = if begins { length } else { view.turn_from };
    let claim = deliver.then(|| Claim {
        nonce: Nonce::from_random(random()),
        anchor: anchor(event),
        turn: event.turn.clone().or_else(|| view.turn.clone()),
        position: length,
        read_from: evidence::start_of_look(turn_from, length),
        claimer: process::this(),
        at_stop: event.kind == EventKind::Stop,
        only_urgent,
    });
    let step = HookStep {
        session: view.session,
        participant: view.participant,
        settle,
        state,
        transcript: new_transcript,
        confirms,
        turn: (new_turn || by_person).then(|| (event.turn.clone(), turn_from, by_person)),
        claim,
        now: crate::now(),
    };
    let claimed = store.hook_step(&step, &rules, &process::is_alive, &|letters, waiting, nonce| {
        frame_mail(
            recipient(agent, view),
            letters,
            waiting,
            nonce,
            takes.unwrap_or((0, frame::Unit::Bytes)),
            &rules,
            reminder.is_some(),
        )
    })?;
    // Mail that this turn does not take any more waits for the next; a wake was confirmed; a session is over. Whoever listens is to look.
    let left = event.kind == EventKind::Stop && claimed.is_none() && waits && !still_open;
    let rings = (left || confirms.is_some() || event.kind == EventKind::End).then_some(view.participant);
    Ok(match (claimed, reminder) {
        (None, _) if in_vain => {
            Outcome { reply: Reply::Block(wake::NOTHING_WAITS.to_owned()), rings, ..Outcome::silent() }
        }
        (None, None) => Outcome { rings, ..Outcome::silent() },
        (None, Some(text)) => Outcome { reply: Reply::Context(text), rings, ..Outcome::silent() },
        (Some(claimed), reminder) => {
            let text = match reminder {
                Some(reminder) => format!("{reminder}\n{}", claimed.text),
                None => claimed.text,
            };
            let reply =
                if event.kind == EventKind::Stop { Reply::Continue(text) } else { Reply::Context(text) };
            Outcome { reply, offer: Some(claimed.offer), rings, jobs: None }
        }
    })
}

/// Whom mail for a session is for.
fn recipient<'a>(agent: &dyn Agent, view: &'a HookView) -> Recipient<'a> {
    Recipient { name: &view.name, answers: agent.answers() }
}

fn frame_mail(
    to: Recipient<'_>,
    letters: &[Letter],
    waiting: usize,
    nonce: &Nonce,
    takes: (usize, frame::Unit),
    rules: &Limits,
    reminded: bool,
) -> Framed {
    let room = takes.0.min(rules.chars_per_event);
    let size = if reminded { room.saturating_sub(REMINDER_SIZE) } else { room };
    frame::render(
        to,
        letters,
        waiting,
        nonce,
        Budget { messages: rules.messages_per_event, size, unit: takes.1 },
    )
}

/// After a clear or a compaction, the asks that are still open. They were delivered before; this only says so. Where the agent drops what it is
/// told at a start, they are told with the first prompt after a clear; where only its transcript tells of a compaction, with the first prompt after it.
fn reminder(
    store: &Store,
    agent: &dyn Agent,
    event: &Event,
    view: &HookView,
    transcript: Option<&Path>,
) -> Result<Option<String>, Error> {
    let asks = || -> Result<_, Error> {
        let (mine, theirs) = store.open_asks(view.participant, REMINDER_ASKS)?;
        Ok(frame::remind(&mine, &theirs))
    };
    let is_new_context = match event.kind {
        EventKind::Prompt | EventKind::Woken if agent.writes_summaries() => {
            // Few sessions have open asks, so that is looked up first.
            let reminder = asks()?;
            let summarized = |file| evidence::is_summarized(agent, file, view.turn_from);
            return Ok(reminder.filter(|_| transcript.is_some_and(summarized)));
        }
        EventKind::Start(Source::Clear | Source::Compact) => agent.hears_at_start(),
        EventKind::Prompt if view.fresh && !agent.hears_at_start() => {
            store.is_continuation(view.session, view.participant)?
        }
        _ => false,
    };
    if is_new_context { asks() } else { Ok(None) }
}

fn settle_open(
    store: &Store,
    caller: &Caller<'_>,
    event: &Event,
    view: &HookView,
    resumed: bool,
) -> Result<Vec<(OfferId, Settle)>, Error> {
    let mut settled = Vec::new();
    // One wait for all of them: several answers may be on their way.
    let deadline = Instant::now() + limits::SETTLE_WAIT.to_std();
    for id in &view.open {
        let Some(offer) = store.open_offer(*id)? else { continue };
        let occasion = occasion(event, view, &offer, resumed);
        // Somebody else's agent made it, for a session of the same participant: it has its own way of writing.
        let reader = baton_agents::by_name(&offer.agent).unwrap_or(caller.agent);
        // Some agents name the turn only when it begins.
        let now = event.turn.as_deref().or(view.turn.as_deref());
        let look = if reader.shows_requests() {
            look_at_plugin(event, &offer, offer.session == view.session)
        } else {
            look(reader, event, now, &offer, occasion, deadline)
        };
        settled.push((*id, turn::settle(look, occasion)));
    }
    Ok(settled)
}

/// Looks at the offer, with patience where nobody will look again soon: at a stop, where mail that was not taken has its last chance to come
/// again in this turn; at the end, after which what left no proof goes back; and before an offer is called unprovable.
fn look(
    agent: &dyn Agent,
    event: &Event,
    now: Option<&str>,
    offer: &OpenOffer,
    occasion: Occasion,
    deadline: Instant,
) -> Look {
    match evidence::look(agent, offer, now) {
        Look::Blind if occasion != Occasion::Passing => evidence::look_patiently(agent, offer, now, deadline),
        Look::Open | Look::Held if event.kind == EventKind::Stop => {
            evidence::look_patiently(agent, offer, now, deadline)
        }
        Look::Open if event.kind == EventKind::End => evidence::look_patiently(agent, offer, now, deadline),
        seen => seen,
    }
}

/// Looks at an offer of an agent whose plugin tells us what becomes of it.
fn look_at_plugin(event: &Event, offer: &OpenOffer, of_this_session: bool) -> Look {
    match event.kind {
        EventKind::Request if of_this_session => {
            let turns = Turns { offer: offer.turn.clone(), now: event.turn.clone(), unnamed: false };
            let maker_lives = process::is_alive(offer.claimer);
            mail::look_at_request(&offer.nonce, &offer.anchor, &turns, &event.shown, maker_lives)
        }
        // What a compaction has summarized, the model will not be shown any more.
        EventKind::PushFailed | EventKind::Start(Source::Compact)
            if event.shown.marks.contains(&mail::mark(&offer.nonce)) =>
        {
            Look::Passed
        }
        _ => Look::Held,
    }
}

fn occasion(event: &Event, view: &HookView, offer: &OpenOffer, resumed: bool) -> Occasion {
    if offer.session == view.session {
        // A second hook of the prompt that the offer was made with, or a prompt typed into its turn: no turn has ended, and none begins.
        let prompts = matches!(event.kind, EventKind::Prompt | EventKind::Woken);
        let same_turn = prompts && event.turn.is_some() && event.turn == offer.turn;
        return match (resumed, same_turn) {
            (true, _) => Occasion::Ended,
            (false, true) => Occasion::Passing,
            (false, false) => Occasion::of(event),
        };
    }
    let over = offer.ended || offer.process.is_some_and(|process| !process::is_alive(process));
    if over { Occasion::Replaced } else { Occasion::Passing }
}

fn anchor(event: &Event) -> Anchor {
    match event.kind {
        EventKind::Start(_) => Anchor::Start,
        EventKind::Prompt | EventKind::Woken => Anchor::Prompt,
        EventKind::Stop => Anchor::Stop,
        _ => Anchor::Tools(event.calls.clone()),
    }
}
