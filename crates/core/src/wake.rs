//! Waking an idle session: whether, and by which of its routes.
//!
//! A wake only speeds delivery up: one [`line`] makes the agent take a turn, and in that turn its
//! hooks bring the mail by offer and proof. So a route that reports wrongly, delays the line for
//! hours, fails late or fires twice neither loses nor doubles mail. But a wake must never do harm,
//! so this module decides from what is known right now.

pub mod line;
pub mod words;

use crate::id::MessageRow;
use crate::session::State;
use crate::time::{Moment, Span};

/// Tells the person that such a line found no mail.
pub const NOTHING_WAITS: &str = "baton: the mail has been taken meanwhile";

/// After a route refused a wake, no process tries again within this time. A wake that the session
/// took does not count: its turn is over, so newer mail wakes at once.
pub const DEBOUNCE_SPAN: Span = Span::seconds(1);
/// A process that follows waiting mail first looks again after this time. By then the sender has
/// made its own wake.
pub const FIRST_LOOK: Span = Span(1_500);
/// The looks become rarer, up to this time between two of them.
pub const LAST_LOOK: Span = Span::seconds(20);
/// Mail that waits longer than this beside an idle session with a route is a fault. It leaves room
/// for every try of a wake.
pub const STRANDED_AFTER: Span = Span::seconds(120);
/// For this long after an event began a turn, the agent's own registry may still call the session
/// idle.
pub const REGISTRY_LAG: Span = Span::seconds(1);
/// A wake that no event of the session confirms within this time has failed. An idle Codex takes up
/// to ten seconds to read its queue.
pub const CONFIRM_TIMEOUT: Span = Span::seconds(15);
/// The window of [`Limits::wakes_per_hour`](crate::limits::Limits::wakes_per_hour).
pub const WAKE_WINDOW: Span = Span::minutes(60);
/// How many wakes are tried for the same mail, over all routes. A process may be killed between
/// claiming a wake and performing it.
pub const MAX_TRIES: u32 = 3;

/// How urgent a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Attention {
    /// It wakes an idle recipient that accepts being disturbed.
    #[default]
    Ordinary,
    /// It also wakes a recipient that does not want to be disturbed. Only the person may send it.
    Urgent,
    /// It wakes no one, and comes with the recipient's next event.
    Quiet,
}

impl Attention {
    /// Its number in the store.
    pub fn code(self) -> i64 {
        match self {
            Self::Ordinary => 0,
            Self::Urgent => 1,
            Self::Quiet => 2,
        }
    }
}

/// A way to make an idle session take a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// baton's plugin pushes the mail itself, under ids that can't be taken twice.
    Plugin,
    /// A socket on which the session takes messages.
    Socket,
    /// A command of the agent's own that queues a prompt.
    Queue,
    /// A hook of baton that waits in the session's background.
    Waiter,
    /// Its terminal, if it shows an empty prompt.
    Terminal,
}

impl RouteKind {
    const ALL: [Self; 5] = [Self::Plugin, Self::Socket, Self::Queue, Self::Waiter, Self::Terminal];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Socket => "socket",
            Self::Queue => "queue",
            Self::Waiter => "waiter",
            Self::Terminal => "terminal",
        }
    }

    /// Reads what [`as_str`](Self::as_str) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|route| route.as_str() == text)
    }
}

/// The outcome of a request to wake a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Sent by a route that is not a terminal.
    Pushed,
    /// Typed into its terminal.
    Typed,
    /// A turn runs, and brings the mail by its end.
    PendingTurnEnd,
    /// The agent keeps the line from the model until its person agrees.
    Held,
    /// A turn runs that takes no mail.
    SkippedBusy,
    /// It asks its person for a permission.
    SkippedDialog,
    /// Its person is typing.
    SkippedDraft,
    /// It does not want to be disturbed.
    SkippedDnd,
    /// It was woken a moment ago.
    SkippedDebounced,
    /// It was woken too often.
    SkippedRateLimited,
    /// A wake for this mail is on its way, or there is nothing to bring.
    SkippedDeduped,
    /// Waking is switched off.
    SkippedDisabled,
    /// It is not running, or no person is in front of it.
    NoClient,
    /// It can't be woken here.
    NoRoute,
    /// The session took a turn.
    Confirmed,
    /// It never did.
    Unconfirmed,
}

impl Outcome {
    const ALL: [Self; 16] = [
        Self::Pushed,
        Self::Typed,
        Self::PendingTurnEnd,
        Self::Held,
        Self::SkippedBusy,
        Self::SkippedDialog,
        Self::SkippedDraft,
        Self::SkippedDnd,
        Self::SkippedDebounced,
        Self::SkippedRateLimited,
        Self::SkippedDeduped,
        Self::SkippedDisabled,
        Self::NoClient,
        Self::NoRoute,
        Self::Confirmed,
        Self::Unconfirmed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pushed => "pushed",
            Self::Typed => "typed",
            Self::PendingTurnEnd => "pending_turn_end",
            Self::Held => "held",
            Self::SkippedBusy => "skipped_busy",
            Self::SkippedDialog => "skipped_dialog",
            Self::SkippedDraft => "skipped_draft",
            Self::SkippedDnd => "skipped_dnd",
            Self::SkippedDebounced => "skipped_debounced",
            Self::SkippedRateLimited => "skipped_rate_limited",
            Self::SkippedDeduped => "skipped_deduped",
            Self::SkippedDisabled => "skipped_disabled",
            Self::NoClient => "no_client",
            Self::NoRoute => "no_route",
            Self::Confirmed => "confirmed",
            Self::Unconfirmed => "unconfirmed",
        }
    }

    /// Reads what [`as_str`](Self::as_str) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }

    /// Whether an event of the session can still confirm it.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Pushed | Self::Typed)
    }

    /// The outcome in words, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Pushed => "told it that mail is waiting",
            Self::Typed => "typed into its terminal that mail is waiting",
            Self::PendingTurnEnd => "it is busy, and this turn brings its mail",
            Self::Held => "its agent holds the wake until the person there agrees",
            Self::SkippedBusy => "it is busy",
            Self::SkippedDialog => "it is asking its person for a permission",
            Self::SkippedDraft => "its person is typing",
            Self::SkippedDnd => "it does not want to be disturbed (baton dnd)",
            Self::SkippedDebounced => "it was woken a moment ago",
            Self::SkippedRateLimited => "it was woken too often (limits.wakes_per_hour)",
            Self::SkippedDeduped => "a wake is on its way already, or nothing waits for it",
            Self::SkippedDisabled => "waking is switched off",
            Self::NoClient => "it is not running, or no person is in front of it",
            Self::NoRoute => "there is no way to wake it; it gets its mail with its next prompt",
            Self::Confirmed => "it took a turn",
            Self::Unconfirmed => "it never took a turn",
        }
    }
}

/// The last wake of a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// When it was claimed.
    pub at: Moment,
    /// How many tries for the same mail came before it.
    pub tried: u32,
    /// The newest message that waited then.
    pub newest: MessageRow,
    /// Its outcome so far. `None` between claim and performance, and permanently if the process
    /// that claimed it was killed.
    pub outcome: Option<Outcome>,
    /// Whether mail has come into the session since.
    pub brought: bool,
}

/// Everything that a wake decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Whether the settings and the sender allow it.
    pub wanted: bool,
    /// Whether the recipient does not want to be disturbed and no urgent mail waits.
    pub dnd: bool,
    /// What it does now, by its agent's registry if there is one, else by its last event.
    pub state: State,
    /// Whether a person is in front of it, or the person allows turns that no one watches.
    pub attended: bool,
    /// The newest message that waits for it.
    pub newest: Option<MessageRow>,
    pub last: Option<Last>,
    /// How many wakes were performed within [`WAKE_WINDOW`].
    pub recent: u32,
    /// How many there may be.
    pub most: u32,
    /// The usable routes, best first.
    pub routes: &'a [RouteKind],
    /// Whether a person asks for it by hand. Then only what could do harm stops it.
    pub by_hand: bool,
    pub now: Moment,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeDecision {
    /// Try this route. The number says how many tries for the same mail came before.
    Wake(RouteKind, u32),
    /// Do nothing, for this reason.
    Skip(Outcome),
}

pub fn decide(facts: &Facts<'_>) -> WakeDecision {
    use WakeDecision::{Skip, Wake};
    if !facts.wanted {
        return Skip(Outcome::SkippedDisabled);
    }
    match facts.state {
        State::Gone => return Skip(Outcome::NoClient),
        State::Busy => return Skip(Outcome::PendingTurnEnd),
        State::Blocked => return Skip(Outcome::SkippedDialog),
        State::Idle => {}
    }
    if facts.dnd && !facts.by_hand {
        return Skip(Outcome::SkippedDnd);
    }
    let Some(newest) = facts.newest else { return Skip(Outcome::SkippedDeduped) };
    if !facts.attended {
        return Skip(Outcome::NoClient);
    }
    let Some(best) = facts.routes.first() else { return Skip(Outcome::NoRoute) };
    if !facts.by_hand && facts.recent >= facts.most {
        return Skip(Outcome::SkippedRateLimited);
    }
    let Some(last) = facts.last else { return Wake(*best, 0) };
    // If the clock was set back, the session must not go silent for an hour.
    let age = facts.now.0.saturating_sub(last.at.0);
    let is_within = |span: Span| (0..span.0).contains(&age);
    let news = newest > last.newest || last.brought;
    match last.outcome {
        // The session took that turn and is idle again. Only mail that the turn was for waits on.
        Some(Outcome::Confirmed) if !news && !facts.by_hand && is_within(STRANDED_AFTER) => {
            Skip(Outcome::SkippedDeduped)
        }
        // That turn could not take mail: it began while the session was not to be disturbed, or
        // with other mail whose proof was missing.
        Some(Outcome::Confirmed) if !news && !facts.by_hand => match last.tried + 1 {
            tried if tried < MAX_TRIES => Wake(*best, tried),
            _ => Skip(Outcome::Unconfirmed),
        },
        Some(Outcome::Confirmed) => Wake(*best, 0),
        // Its outcome is not known yet. One wake brings all mail.
        None | Some(Outcome::Pushed | Outcome::Typed) if is_within(CONFIRM_TIMEOUT) => {
            Skip(Outcome::SkippedDeduped)
        }
        Some(Outcome::Unconfirmed) if !news && !facts.by_hand => Skip(Outcome::Unconfirmed),
        Some(Outcome::Unconfirmed) => Wake(*best, 0),
        // The route refused at once, and would again.
        _ if is_within(DEBOUNCE_SPAN) => Skip(Outcome::SkippedDebounced),
        // The person was typing there. That is no failure of the route.
        Some(Outcome::SkippedDialog | Outcome::SkippedDraft | Outcome::SkippedBusy) => {
            let tried = last.tried.min(MAX_TRIES - 1);
            Wake(facts.routes[tried as usize % facts.routes.len()], tried)
        }
        _ => {
            let tried = last.tried + 1;
            if tried < MAX_TRIES {
                Wake(facts.routes[tried as usize % facts.routes.len()], tried)
            } else if news || facts.by_hand {
                Wake(*best, 0)
            } else {
                Skip(Outcome::Unconfirmed)
            }
        }
    }
}

/// How a look at waiting mail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub outcome: Outcome,
    /// The route that was tried.
    pub route: Option<RouteKind>,
    /// Whether mail waits that may wake the session.
    pub waits: bool,
}

/// Whether a process must look again after this outcome. If no process follows the mail of the
/// session, the process that got this outcome starts one.
///
/// | outcome | again | because |
/// |---|---|---|
/// | no mail waits | no | the next mail has its own sender |
/// | switched off, gone, given up | no | the person, or the session's next event, brings it back |
/// | no route | no | a route that comes up looks for itself |
/// | a plugin | no | it repeats its pushes itself |
/// | anything else | yes | only a look shows what became of it |
pub fn must_look_again(look: &Look) -> bool {
    let is_final = match look.outcome {
        Outcome::SkippedDisabled | Outcome::NoClient | Outcome::Unconfirmed => true,
        // A route that refused is followed by the next try.
        Outcome::NoRoute => look.route.is_none(),
        _ => look.route == Some(RouteKind::Plugin),
    };
    look.waits && !is_final
}

/// For how long mail has waited beside an idle session that could be woken, if that is longer than
/// a wake with all its tries takes. `forecast` is the outcome of a wake now.
pub fn stranded_for(state: State, forecast: Outcome, since: Moment, now: Moment) -> Option<Span> {
    let waited = Span(now.0.saturating_sub(since.0));
    let can_be_woken = matches!(
        forecast,
        Outcome::Pushed | Outcome::Typed | Outcome::SkippedDeduped | Outcome::SkippedDebounced
    );
    (state == State::Idle && can_be_woken && waited >= STRANDED_AFTER).then_some(waited)
}

/// The pause before the next look, by the pause before this one.
pub fn next_pause(pause: Span) -> Span {
    Span((pause.0.saturating_mul(2)).clamp(FIRST_LOOK.0, LAST_LOOK.0))
}

/// Whether a session's state by its agent's registry may be older than the event that recorded
/// another state. An agent may write its registry after its hooks have run.
pub fn is_registry_late(recorded: State, since: Moment, registry: State, now: Moment) -> bool {
    recorded == State::Busy
        && registry == State::Idle
        && (0..REGISTRY_LAG.0).contains(&now.0.saturating_sub(since.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROUTES: &[RouteKind] = &[RouteKind::Socket, RouteKind::Terminal];

    fn facts(last: Option<Last>) -> Facts<'static> {
        Facts {
            wanted: true,
            dnd: false,
            state: State::Idle,
            attended: true,
            newest: Some(MessageRow(5)),
            last,
            recent: 0,
            most: 60,
            routes: ROUTES,
            by_hand: false,
            now: Moment(1_000_000),
        }
    }

    fn last(age: i64, outcome: Option<Outcome>, newest: i64, tried: u32) -> Option<Last> {
        let at = Moment(1_000_000 - age);
        Some(Last { at, tried, newest: MessageRow(newest), outcome, brought: false })
    }

    #[test]
    fn outcomes_and_routes_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
        }
        for route in RouteKind::ALL {
            assert_eq!(RouteKind::parse(route.as_str()), Some(route));
        }
    }

    #[test]
    fn only_an_idle_session_that_wants_it_is_woken() {
        use Outcome as O;
        let idle = facts(None);
        let table: &[(Facts<'_>, WakeDecision)] = &[
            (idle, WakeDecision::Wake(RouteKind::Socket, 0)),
            (Facts { wanted: false, ..idle }, WakeDecision::Skip(O::SkippedDisabled)),
            (Facts { state: State::Busy, ..idle }, WakeDecision::Skip(O::PendingTurnEnd)),
            (Facts { state: State::Blocked, ..idle }, WakeDecision::Skip(O::SkippedDialog)),
            (Facts { state: State::Gone, ..idle }, WakeDecision::Skip(O::NoClient)),
            (Facts { dnd: true, ..idle }, WakeDecision::Skip(O::SkippedDnd)),
            (Facts { newest: None, ..idle }, WakeDecision::Skip(O::SkippedDeduped)),
            (Facts { attended: false, ..idle }, WakeDecision::Skip(O::NoClient)),
            (Facts { routes: &[], ..idle }, WakeDecision::Skip(O::NoRoute)),
            (Facts { recent: 60, ..idle }, WakeDecision::Skip(O::SkippedRateLimited)),
            (
                Facts { recent: 60, dnd: true, by_hand: true, ..idle },
                WakeDecision::Wake(RouteKind::Socket, 0),
            ),
        ];
        for (facts, decision) in table {
            assert_eq!(decide(facts), *decision, "{facts:?}");
        }
    }

    #[test]
    fn a_wake_on_its_way_is_waited_for_and_then_tried_by_another_route() {
        let skip = WakeDecision::Skip;
        assert_eq!(decide(&facts(last(300, None, 5, 0))), skip(Outcome::SkippedDeduped));
        let refused = |outcome| decide(&facts(last(300, Some(outcome), 5, 0)));
        assert_eq!(refused(Outcome::NoRoute), skip(Outcome::SkippedDebounced));
        assert_eq!(refused(Outcome::SkippedDraft), skip(Outcome::SkippedDebounced));
        assert_eq!(decide(&facts(last(5_000, Some(Outcome::Pushed), 5, 0))), skip(Outcome::SkippedDeduped));
        // This also holds for newer mail: one wake brings all of it.
        assert_eq!(decide(&facts(last(5_000, Some(Outcome::Pushed), 4, 0))), skip(Outcome::SkippedDeduped));
        let late = |tried| decide(&facts(last(16_000, Some(Outcome::Pushed), 5, tried)));
        assert_eq!(late(0), WakeDecision::Wake(RouteKind::Terminal, 1));
        assert_eq!(late(1), WakeDecision::Wake(RouteKind::Socket, 2));
        assert_eq!(late(2), skip(Outcome::Unconfirmed));
        // The process that claimed it was killed before it performed it.
        assert_eq!(decide(&facts(last(16_000, None, 5, 0))), WakeDecision::Wake(RouteKind::Terminal, 1));
        // A route that refused at once needs no wait.
        let refused = decide(&facts(last(2_000, Some(Outcome::NoRoute), 5, 0)));
        assert_eq!(refused, WakeDecision::Wake(RouteKind::Terminal, 1));
        // A draft in its terminal is no failure of the route, however often.
        let typing = decide(&facts(last(2_000, Some(Outcome::SkippedDraft), 5, 1)));
        assert_eq!(typing, WakeDecision::Wake(RouteKind::Terminal, 1));
    }

    #[test]
    fn a_confirmed_wake_is_the_last_for_its_mail() {
        let confirmed = Some(Outcome::Confirmed);
        let same = facts(last(60_000, confirmed, 5, 0));
        assert_eq!(decide(&same), WakeDecision::Skip(Outcome::SkippedDeduped));
        assert_eq!(decide(&facts(last(60_000, confirmed, 4, 0))), WakeDecision::Wake(RouteKind::Socket, 0));
        // The turn is over, however short it was: newer mail waits for no clock.
        assert_eq!(decide(&facts(last(300, confirmed, 4, 0))), WakeDecision::Wake(RouteKind::Socket, 0));
        // It brought some mail, and the session stopped before the rest.
        let some = same.last.map(|last| Last { brought: true, ..last });
        assert_eq!(decide(&Facts { last: some, ..same }), WakeDecision::Wake(RouteKind::Socket, 0));
    }

    proptest! {
        /// A session that is not idle or has no route is never woken, and mail that no one takes is
        /// tried a bounded number of times.
        #[test]
        fn never_into_a_session_that_is_not_idle(
            state in prop::sample::select(vec![State::Busy, State::Blocked, State::Gone]),
            by_hand: bool, dnd: bool, age in -20_000_i64..100_000, tried in 0_u32..6, brought: bool,
            outcome in prop::option::of(prop::sample::select(Outcome::ALL.to_vec())),
        ) {
            let last = last(age, outcome, 5, tried).map(|last| Last { brought, ..last });
            let facts = Facts { by_hand, dnd, ..facts(last) };
            let awake = Facts { state, ..facts };
            prop_assert!(matches!(decide(&awake), WakeDecision::Skip(_)));
            let stranded = Facts { routes: &[], ..facts };
            prop_assert!(matches!(decide(&stranded), WakeDecision::Skip(_)));
            if let WakeDecision::Wake(_, tries) = decide(&facts) {
                prop_assert!(tries < MAX_TRIES);
                prop_assert!(tries == 0 || tries == tried.min(MAX_TRIES - 1) || tries == tried + 1);
            }
        }
    }
}
