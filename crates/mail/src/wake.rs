//! Waking an idle recipient: what is known about it now, the decision, the claim, and then the act.
//!
//! The order matters: a wake is claimed in the store before anything is done, so of any number of senders one wakes; and what was claimed by a process that
//! was killed counts as a wake that nobody confirmed, and is tried again by whoever looks next.

pub mod command;
pub mod socket;
pub mod terminal;
pub mod waiter;

use crate::{bell, process, reconcile};
use baton_agents::Agent;
use baton_agents::wake::{Idle, Route};
use baton_core::Error;
use baton_core::limits::Limits;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake::{self, Decision, Facts, Outcome, RouteKind};
use baton_store::{NewWake, Participant, Process, Store, WakeView};
use std::path::Path;
use terminal::Typed;

/// Why somebody should be woken.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// Where baton keeps its state.
    pub home: &'a Path,
    /// The settings in force.
    pub rules: &'a Limits,
    /// Whoever sends wants it.
    pub wanted: bool,
    /// A person asks for it by hand.
    pub by_hand: bool,
}

/// What becomes of a wake, and by which route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// What became of it.
    pub outcome: Outcome,
    /// The route that was used.
    pub route: Option<RouteKind>,
}

impl Woken {
    fn skipped(outcome: Outcome) -> Self {
        Self { outcome, route: None }
    }
}

/// Wakes a participant, if that is right.
pub fn wake(store: &mut Store, participant: &mut Participant, wish: &Wish<'_>) -> Result<Woken, Error> {
    reconcile::state(store, participant)?;
    // Most recipients are busy or gone: then nothing else need be known.
    if let Some(outcome) = at_once(participant.state, wish) {
        return Ok(Woken::skipped(outcome));
    }
    let now = crate::now();
    let view = store.wake_view(participant.id, Moment(now.0 - wake::WINDOW.0))?;
    let looked = look(participant, wish);
    if view.newest.is_none() && looked.kinds.first() == Some(&RouteKind::Plugin) {
        // Faster than whoever sent it: it has been pushed already.
        return Ok(Woken { outcome: Outcome::Pushed, route: Some(RouteKind::Plugin) });
    }
    let (route, tried) = match wake::decide(&facts(participant, wish, &view, &looked, now)) {
        Decision::Wake(route, tried) => (route, tried),
        Decision::Skip(outcome) => {
            if let Some((last, _)) = view.last.filter(|_| outcome == Outcome::Unconfirmed) {
                store.give_up_wake(last, now)?;
            }
            if notable(outcome) {
                store.note(now, "wake", Some(participant.id), outcome.as_str())?;
            }
            return Ok(Woken::skipped(outcome));
        }
    };
    let (Some(session), Some(newest)) = (participant.session, view.newest) else {
        return Ok(Woken::skipped(Outcome::NoRoute));
    };
    if route == RouteKind::Plugin {
        // It is its own waker: it pushes by offers, and again where that failed.
        bell::ring(wish.home, participant.id);
        store.note(now, "wake", Some(participant.id), "pushed by plugin")?;
        return Ok(Woken { outcome: Outcome::Pushed, route: Some(route) });
    }
    let after = view.last.map(|(id, _)| id);
    let claim = NewWake { participant: participant.id, session, after, newest, tried, route };
    let Some(id) = store.claim_wake(&claim, now)? else {
        return Ok(Woken::skipped(Outcome::SkippedDeduped));
    };
    let used = looked.routes.iter().find(|found| found.kind() == route);
    let (outcome, detail) = match used {
        // Whoever waits performs it as soon as the bell rings, and writes down that he did.
        Some(Route::Waiter) => {
            bell::ring(wish.home, participant.id);
            return Ok(Woken { outcome: Outcome::Pushed, route: Some(route) });
        }
        Some(Route::Terminal) => type_line(participant),
        Some(used) => perform(used, participant),
        None => (Outcome::NoRoute, None),
    };
    store.end_wake(id, outcome, detail.as_deref(), crate::now())?;
    Ok(Woken { outcome, route: Some(route) })
}

/// What a wake of a participant would come to now, without doing anything.
pub fn outlook(store: &Store, participant: &Participant, wish: &Wish<'_>) -> Result<Outlook, Error> {
    if let Some(outcome) = at_once(participant.state, wish) {
        return Ok(Outlook { outcome, routes: Vec::new() });
    }
    let now = crate::now();
    let mut view = store.wake_view(participant.id, Moment(now.0 - wake::WINDOW.0))?;
    // As if something had just come.
    view.newest = view.newest.or(Some(baton_core::id::MessageRow(i64::MAX)));
    let looked = look(participant, wish);
    let outcome = match wake::decide(&facts(participant, wish, &view, &looked, now)) {
        Decision::Wake(RouteKind::Terminal, _) => Outcome::Typed,
        Decision::Wake(..) => Outcome::Pushed,
        Decision::Skip(outcome) => outcome,
    };
    Ok(Outlook { outcome, routes: looked.kinds })
}

/// What a wake would come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// What would become of it.
    pub outcome: Outcome,
    /// The routes that are there, best first.
    pub routes: Vec<RouteKind>,
}

fn at_once(state: State, wish: &Wish<'_>) -> Option<Outcome> {
    match state {
        _ if !wish.wanted || !(wish.rules.wake || wish.by_hand) => Some(Outcome::SkippedDisabled),
        State::Busy => Some(Outcome::PendingTurnEnd),
        State::Blocked => Some(Outcome::SkippedDialog),
        State::Gone => Some(Outcome::NoClient),
        State::Idle => None,
    }
}

/// What is known about a session besides what the store knows.
struct Looked {
    routes: Vec<Route>,
    kinds: Vec<RouteKind>,
    attended: bool,
}

fn look(participant: &Participant, wish: &Wish<'_>) -> Looked {
    let nothing = Looked { routes: Vec::new(), kinds: Vec::new(), attended: true };
    let Ok(agent) = baton_agents::by_name(&participant.agent) else { return nothing };
    let (Some(session), Some(native)) = (participant.session, participant.native.as_deref()) else {
        return nothing;
    };
    let pid = participant.process.map(|(pid, _)| pid);
    let arguments = pid.map(process::arguments).unwrap_or_default();
    let idle = Idle {
        session_id: native,
        transcript: participant.transcript.as_deref().map(Path::new),
        cwd: participant.cwd.as_deref().map(Path::new),
        pid,
        arguments: &arguments,
    };
    let read = |file: &Path| std::fs::read(file).ok();
    let mut routes = agent.routes(&idle, &read);
    routes.retain(|route| match route {
        Route::Waiter => waiter::waits(wish.home, session),
        Route::Terminal => pid.is_some_and(|pid| process::variable(pid, "TMUX").is_some()),
        Route::Plugin => bell::is_attended(wish.home, participant.id),
        Route::Socket { .. } | Route::Queue { .. } => true,
    });
    let kinds = routes.iter().map(Route::kind).collect();
    Looked { routes, kinds, attended: wish.rules.wake_unattended || is_attended(agent, participant) }
}

/// Whether somebody sits in front of the session. One whose process runs it alone ends with its terminal.
fn is_attended(agent: &dyn Agent, participant: &Participant) -> bool {
    if !agent.outlives_terminals() || participant.process.is_some() {
        return true;
    }
    let folder = participant.cwd.as_deref().map(Path::new);
    folder.is_some_and(|folder| {
        process::at_terminals(folder).iter().any(|pid| {
            let arguments = process::arguments(*pid);
            agent.is_process(&arguments) && agent.is_client(&arguments)
        })
    })
}

fn facts<'a>(
    participant: &Participant,
    wish: &Wish<'_>,
    view: &WakeView,
    looked: &'a Looked,
    now: Moment,
) -> Facts<'a> {
    Facts {
        wanted: !view.off || wish.by_hand,
        dnd: view.dnd_until.is_some_and(|until| until > now) && !view.urgent,
        state: participant.state,
        attended: looked.attended,
        newest: view.newest,
        last: view.last.map(|(_, last)| last).filter(|_| looked.kinds.first() != Some(&RouteKind::Plugin)),
        recent: view.recent,
        most: wish.rules.wakes_per_hour,
        routes: &looked.kinds,
        by_hand: wish.by_hand,
        now,
    }
}

/// What is worth a line in the trail: not what each mail to a busy, absent or just woken session comes to.
fn notable(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::PendingTurnEnd
            | Outcome::SkippedDebounced
            | Outcome::SkippedDeduped
            | Outcome::NoRoute
            | Outcome::Unconfirmed
    )
}

/// Types into the terminal of a session, if that is safe.
fn type_line(participant: &Participant) -> (Outcome, Option<String>) {
    let agent = baton_agents::by_name(&participant.agent).ok();
    let process = participant.process.map(|(pid, start)| Process { pid, start });
    let Some((agent, process)) = agent.zip(process) else { return (Outcome::NoRoute, None) };
    match terminal::type_line(agent, process, wake::LINE) {
        Typed::Typed => (Outcome::Typed, None),
        Typed::Dialog => (Outcome::SkippedDialog, None),
        Typed::Draft => (Outcome::SkippedDraft, None),
        Typed::Busy => (Outcome::SkippedBusy, None),
        other => (Outcome::NoRoute, Some(other.to_string())),
    }
}

fn perform(route: &Route, participant: &Participant) -> (Outcome, Option<String>) {
    let done = match route {
        Route::Socket { path, line } => socket::write(path, line, participant.process.map(|(pid, _)| pid)),
        Route::Queue { program, arguments, environment } => {
            let cwd = participant.cwd.as_deref().map(Path::new);
            command::run(program, arguments, environment, cwd)
        }
        Route::Plugin | Route::Waiter | Route::Terminal => Err("not performed here".to_owned()),
    };
    match done {
        Ok(()) => (Outcome::Pushed, None),
        Err(why) => (Outcome::NoRoute, Some(why)),
    }
}
