//! Wakes an idle recipient: it gathers what is known, decides, claims the wake, and then performs
//! it.
//!
//! The order matters. A process claims a wake in the store before it does anything, so only one of
//! several senders wakes. If that process is killed, its claim counts as an unconfirmed wake, and
//! the next process that checks tries again. If a look leaves mail behind, some process looks
//! again: see [`follow`].

pub mod command;
pub mod follow;
pub mod socket;
pub mod terminal;
pub mod waiter;

use crate::reconcile;
use baton_agents::Agent;
use baton_agents::wake::{Idle, Route};
use baton_core::Error;
use baton_core::id::ParticipantId;
use baton_core::limits::Limits;
use baton_core::process::Process;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake::{self, Facts, Look, Outcome, RouteKind, WakeDecision};
use baton_machine::{bell, process};
use baton_store::{NewWake, Participant, Store, WakeView};
use std::path::Path;
use terminal::Typed;

/// Why and how a participant should be woken.
#[derive(Clone, Copy, Debug)]
pub struct WakeRequest<'a> {
    /// Where baton keeps its state.
    pub home: &'a Path,
    /// The settings in force.
    pub rules: &'a Limits,
    /// The sender wants it.
    pub wanted: bool,
    /// A person asks for it by hand.
    pub by_hand: bool,
    /// The program that follows the mail if this wake does not settle it. `None` for a process that
    /// looks again by itself.
    pub follower: Option<&'a Path>,
}

/// What became of a wake, and by which route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    pub outcome: Outcome,
    /// The route that was used.
    pub route: Option<RouteKind>,
}

/// Wakes a participant, if it should be woken now. If mail may be left behind, a process follows
/// it.
pub fn wake(
    store: &mut Store,
    participant: &mut Participant,
    request: &WakeRequest<'_>,
) -> Result<Woken, Error> {
    let Look { outcome, route, waits } = look(store, participant, request)?;
    if let Some(program) = request.follower
        && wake::must_look_again(&Look { outcome, route, waits })
        && !bell::is_followed(request.home, participant.id)
        && (route.is_some() || !find_routes(participant, request, wake::line::PLAIN).kinds.is_empty())
    {
        follow::start(request.home, program, participant.id);
    }
    Ok(Woken { outcome, route })
}

/// The line that wakes a participant now. A wake needs no names, so an error leaves them out.
fn line_for(store: &Store, participant: ParticipantId) -> String {
    let now = baton_machine::clock::now();
    let waiting = store.waiting_mail(participant, now, &process::is_alive).unwrap_or_default();
    wake::line::line(&waiting.senders, waiting.count)
}

/// Whether a process can and must look after the waiting mail of a participant. Wakes nothing.
fn is_followable(store: &Store, participant: &Participant, request: &WakeRequest<'_>) -> Result<bool, Error> {
    let reachable = find_routes(participant, request, wake::line::PLAIN);
    if matches!(reachable.kinds.first(), None | Some(RouteKind::Plugin)) {
        return Ok(false);
    }
    if let Some(outcome) = outcome_by_state(participant.state, request) {
        let waits = store.may_be_woken(participant.id)?;
        return Ok(wake::must_look_again(&skipped(outcome, waits)));
    }
    let now = baton_machine::clock::now();
    let view = store.wake_view(participant.id, Moment(now.0 - wake::WAKE_WINDOW.0))?;
    let waits = view.newest.is_some();
    Ok(match wake::decide(&facts(participant, request, &view, &reachable, now)) {
        WakeDecision::Wake(..) => waits,
        WakeDecision::Skip(outcome) => wake::must_look_again(&skipped(outcome, waits)),
    })
}

/// One look at the mail of a participant. Wakes it, if it should be woken now.
fn look(store: &mut Store, participant: &mut Participant, request: &WakeRequest<'_>) -> Result<Look, Error> {
    reconcile::correct_state(store, participant)?;
    // Most recipients are busy or gone. Then the state alone decides.
    if let Some(outcome) = outcome_by_state(participant.state, request) {
        return Ok(skipped(outcome, true));
    }
    let now = baton_machine::clock::now();
    let view = store.wake_view(participant.id, Moment(now.0 - wake::WAKE_WINDOW.0))?;
    let waits = view.newest.is_some();
    let line = match view.newest {
        Some(_) => line_for(store, participant.id),
        None => wake::line::PLAIN.to_owned(),
    };
    let reachable = find_routes(participant, request, &line);
    if view.newest.is_none() && reachable.kinds.first() == Some(&RouteKind::Plugin) {
        // The plugin was faster than the sender, and has pushed it already.
        return Ok(Look { outcome: Outcome::Pushed, route: Some(RouteKind::Plugin), waits });
    }
    let (route, tried) = match wake::decide(&facts(participant, request, &view, &reachable, now)) {
        WakeDecision::Wake(route, tried) => (route, tried),
        WakeDecision::Skip(outcome) => {
            if let Some((last, _)) = view.last.filter(|_| outcome == Outcome::Unconfirmed) {
                store.give_up_wake(last, now)?;
            }
            if is_notable(outcome) {
                store.note(now, "wake", Some(participant.id), outcome.as_str())?;
            }
            return Ok(skipped(outcome, waits));
        }
    };
    let (Some(session), Some(newest)) = (participant.session, view.newest) else {
        return Ok(skipped(Outcome::NoRoute, waits));
    };
    if route == RouteKind::Plugin {
        // The plugin wakes by itself: it pushes mail as an offer, and repeats a push that failed.
        bell::ring(request.home, participant.id);
        store.note(now, "wake", Some(participant.id), "pushed by plugin")?;
        return Ok(Look { outcome: Outcome::Pushed, route: Some(route), waits });
    }
    let after = view.last.map(|(id, _)| id);
    let claim = NewWake { participant: participant.id, session, after, newest, tried, route };
    let Some(id) = store.claim_wake(&claim, now)? else {
        return Ok(skipped(Outcome::SkippedDeduped, waits));
    };
    let used = reachable.routes.iter().find(|found| found.kind() == route);
    let Performed { outcome, detail } = match used {
        // The waiter performs the wake as soon as the bell rings, and records it.
        Some(Route::Waiter) => {
            bell::ring(request.home, participant.id);
            return Ok(Look { outcome: Outcome::Pushed, route: Some(route), waits });
        }
        Some(Route::Terminal) => type_line(participant, &line),
        Some(used) => perform(used, participant),
        None => Outcome::NoRoute.into(),
    };
    store.end_wake(id, outcome, detail.as_deref(), baton_machine::clock::now())?;
    Ok(Look { outcome, route: Some(route), waits })
}

fn skipped(outcome: Outcome, waits: bool) -> Look {
    Look { outcome, route: None, waits }
}

/// What would become of a wake of a participant now. Wakes nothing.
pub fn forecast(
    store: &Store,
    participant: &Participant,
    request: &WakeRequest<'_>,
) -> Result<Forecast, Error> {
    if let Some(outcome) = outcome_by_state(participant.state, request) {
        return Ok(Forecast { outcome, routes: Vec::new() });
    }
    let now = baton_machine::clock::now();
    let mut view = store.wake_view(participant.id, Moment(now.0 - wake::WAKE_WINDOW.0))?;
    // As if a message had just come.
    view.newest = view.newest.or(Some(baton_core::id::MessageRow(i64::MAX)));
    let reachable = find_routes(participant, request, wake::line::PLAIN);
    let outcome = match wake::decide(&facts(participant, request, &view, &reachable, now)) {
        WakeDecision::Wake(RouteKind::Terminal, _) => Outcome::Typed,
        WakeDecision::Wake(..) => Outcome::Pushed,
        WakeDecision::Skip(outcome) => outcome,
    };
    Ok(Forecast { outcome, routes: reachable.kinds })
}

/// What would become of a wake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    pub outcome: Outcome,
    /// The available routes, best first.
    pub routes: Vec<RouteKind>,
}

fn outcome_by_state(state: State, request: &WakeRequest<'_>) -> Option<Outcome> {
    match state {
        _ if !request.wanted || !(request.rules.wake || request.by_hand) => Some(Outcome::SkippedDisabled),
        State::Busy => Some(Outcome::PendingTurnEnd),
        State::Blocked => Some(Outcome::SkippedDialog),
        State::Gone => Some(Outcome::NoClient),
        State::Idle => None,
    }
}

/// How a session can be reached, by its agent and its processes.
struct Reachability {
    routes: Vec<Route>,
    kinds: Vec<RouteKind>,
    attended: bool,
}

fn find_routes(participant: &Participant, request: &WakeRequest<'_>, line: &str) -> Reachability {
    let nothing = Reachability { routes: Vec::new(), kinds: Vec::new(), attended: true };
    let Ok(agent) = baton_agents::by_name(&participant.agent) else { return nothing };
    let (Some(session), Some(native)) = (participant.session, participant.native.as_deref()) else {
        return nothing;
    };
    let pid = participant.process.map(|process| process.pid);
    let arguments = pid.map(process::arguments).unwrap_or_default();
    let idle = Idle {
        session_id: native,
        transcript: participant.transcript.as_deref().map(Path::new),
        cwd: participant.cwd.as_deref().map(Path::new),
        pid,
        arguments: &arguments,
        line,
    };
    let read = |file: &Path| baton_machine::files::read(file, baton_core::limits::AGENT_FILE_BYTES).ok();
    let mut routes = agent.routes(&idle, &read);
    routes.retain(|route| match route {
        Route::Waiter => waiter::is_waiting(request.home, session),
        Route::Terminal => terminal_process(agent, participant)
            .is_some_and(|process| process::variable(process.pid, "TMUX").is_some()),
        Route::Plugin => bell::is_attended(request.home, participant.id),
        Route::Socket { .. } | Route::Queue { .. } => true,
    });
    // An agent holds its queue after an interruption, so every other route comes first. The check
    // reads a file, so it is made only if there is a queue.
    if routes.iter().any(is_queue) && reconcile::interrupted_at(agent, participant).is_some() {
        routes.sort_by_key(is_queue);
    }
    let kinds = routes.iter().map(Route::kind).collect();
    Reachability { routes, kinds, attended: request.rules.wake_unattended || is_attended(agent, participant) }
}

/// Whether a person may be in front of the session. A session with its own process ends with its
/// terminal.
fn is_attended(agent: &dyn Agent, participant: &Participant) -> bool {
    if !agent.quirks().outlives_terminals || participant.process.is_some() {
        return true;
    }
    !clients(agent, participant).is_empty()
}

/// The agent's processes at a terminal in the participant's folder.
fn clients(agent: &dyn Agent, participant: &Participant) -> Vec<i32> {
    let Some(folder) = participant.cwd.as_deref().map(Path::new) else { return Vec::new() };
    let mut there = process::at_terminals(folder);
    there.retain(|pid| {
        let arguments = process::arguments(*pid);
        agent.is_process(&arguments) && agent.is_client(&arguments)
    });
    there
}

/// The process in whose terminal a participant can be woken: its own. If one process runs the
/// sessions of several terminals, it is the only client in the participant's folder. If that client
/// shows another session, the prompt hook swallows the line.
fn terminal_process(agent: &dyn Agent, participant: &Participant) -> Option<Process> {
    if let Some(process) = participant.process {
        return Some(process);
    }
    if !agent.quirks().outlives_terminals {
        return None;
    }
    let clients = clients(agent, participant);
    // A launcher and the program below it are one client.
    let above: Vec<i32> = clients
        .iter()
        .flat_map(|pid| process::lineage(*pid).into_iter().filter(move |up| up != pid))
        .collect();
    let mut inner = clients.into_iter().filter(|pid| !above.contains(pid));
    match (inner.next(), inner.next()) {
        (Some(only), None) => process::find(only),
        _ => None,
    }
}

/// Why no route leads to a session. A session without a process of its own is not searched for:
/// every send to it would do that.
pub(crate) fn why_no_route(participant: &Participant) -> &'static str {
    match participant.process {
        None => "its terminal is not known",
        Some(process) if process::variable(process.pid, "TMUX").is_none() => "not in tmux",
        Some(_) => "its agent has no way in",
    }
}

fn is_queue(route: &Route) -> bool {
    route.kind() == RouteKind::Queue
}

fn facts<'a>(
    participant: &Participant,
    request: &WakeRequest<'_>,
    view: &WakeView,
    reachable: &'a Reachability,
    now: Moment,
) -> Facts<'a> {
    Facts {
        wanted: !view.off || request.by_hand,
        dnd: view.dnd_until.is_some_and(|until| until > now) && !view.urgent,
        state: participant.state,
        attended: reachable.attended,
        newest: view.newest,
        last: view.last.map(|(_, last)| last).filter(|_| reachable.kinds.first() != Some(&RouteKind::Plugin)),
        recent: view.recent,
        most: request.rules.wakes_per_hour,
        routes: &reachable.kinds,
        by_hand: request.by_hand,
        now,
    }
}

/// Whether an outcome is worth a line in the trail. The usual outcomes for a busy, absent or just
/// woken session are not.
fn is_notable(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::PendingTurnEnd
            | Outcome::SkippedDebounced
            | Outcome::SkippedDeduped
            | Outcome::NoRoute
            | Outcome::Unconfirmed
    )
}

/// The result of performing a wake, with a reason if it failed.
struct Performed {
    outcome: Outcome,
    detail: Option<String>,
}

impl From<Outcome> for Performed {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, detail: None }
    }
}

/// Types into the terminal of a session, if that is safe.
fn type_line(participant: &Participant, line: &str) -> Performed {
    let agent = baton_agents::by_name(&participant.agent).ok();
    let found = agent.and_then(|agent| Some((agent, terminal_process(agent, participant)?)));
    let Some((agent, process)) = found else { return Outcome::NoRoute.into() };
    match terminal::type_line(agent, process, line) {
        Typed::Typed => Outcome::Typed.into(),
        Typed::Dialog => Outcome::SkippedDialog.into(),
        Typed::Draft => Outcome::SkippedDraft.into(),
        Typed::Busy => Outcome::SkippedBusy.into(),
        other => Performed { outcome: Outcome::NoRoute, detail: Some(other.to_string()) },
    }
}

fn perform(route: &Route, participant: &Participant) -> Performed {
    let done = match route {
        Route::Socket { path, line } => {
            socket::write(path, line, participant.process.map(|process| process.pid))
        }
        Route::Queue { program, arguments, environment } => {
            let cwd = participant.cwd.as_deref().map(Path::new);
            command::run(program, arguments, environment, cwd)
        }
        Route::Plugin | Route::Waiter | Route::Terminal => Err("not performed here".to_owned()),
    };
    match done {
        Ok(()) => Outcome::Pushed.into(),
        Err(why) => Performed { outcome: Outcome::NoRoute, detail: Some(why) },
    }
}
