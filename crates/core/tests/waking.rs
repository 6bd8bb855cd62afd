//! Plays random times of sends, turns, interrupts, kills and lost lines against the decisions about
//! waking. It checks that no mail waits for ever beside an idle session that has a route.
//!
//! The session has no MCP server: only senders, its own hooks and followers look. Time goes on in
//! steps of a millisecond count, and each process may be killed between any two of its steps. After
//! the last kill, one event of the session or one look of another server must be enough.

use baton_core::id::MessageRow;
use baton_core::session::State;
use baton_core::time::{Moment, Span};
use baton_core::wake::{
    self, CONFIRM_TIMEOUT, FIRST_LOOK, Facts, LAST_LOOK, Last, Look, MAX_TRIES, Outcome, RouteKind,
    WakeDecision, decide, must_look_again, next_pause,
};
use proptest::prelude::*;

const ROUTES: &[RouteKind] = &[RouteKind::Socket, RouteKind::Terminal];
/// The longest time in which waiting mail must reach an idle session: every try of a wake, each
/// with the longest pause before it is noticed.
const LIMIT: Span = Span((CONFIRM_TIMEOUT.0 + 2 * LAST_LOOK.0) * (MAX_TRIES as i64 + 1));

/// Where a process that wakes is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Killed {
    Never,
    /// After its mail was accepted, before it looked.
    BeforeLook,
    /// After it claimed a wake, before it performed it.
    AfterClaim,
    /// After it performed the wake, before it started a follower.
    BeforeFollower,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(Killed),
    /// Several senders that all decide before one of them claims.
    SendAtOnce(u8),
    /// Time goes on.
    Wait(u16),
    /// The person begins a turn, which takes this long and ends so.
    Prompt(u16, TurnEnd),
    /// How long turns take from now on, how they end, and whether lines and the terminal work.
    Turns(u16, TurnEnd),
    LoseLines(u8),
    Refuse(u8),
    KillFollower,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TurnEnd {
    /// The stop hook runs.
    Stop,
    /// Esc: no event.
    Interrupt,
    /// The stop hook runs, and the agent's registry says so this much later.
    LateRegistry(u16),
}

/// What happens at a later time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Later {
    /// A line reaches the session.
    Line,
    /// The running turn ends.
    TurnEnds,
    /// The registry calls the session idle.
    RegistryIdle,
    /// The follower with this number looks.
    FollowerLooks(u32),
}

struct World {
    now: i64,
    later: Vec<(i64, Later)>,
    sent: i64,
    /// Messages that wait.
    queued: Vec<i64>,
    state: State,
    last: Option<Last>,
    turn: (i64, TurnEnd),
    running: TurnEnd,
    follower: Option<(u32, Span)>,
    followers: u32,
    lost_lines: u8,
    refusals: u8,
    /// A process was killed that would have looked again.
    was_killed: bool,
}

impl World {
    fn new() -> Self {
        Self {
            now: 1_000_000,
            later: Vec::new(),
            sent: 0,
            queued: Vec::new(),
            state: State::Idle,
            last: None,
            turn: (100, TurnEnd::Stop),
            running: TurnEnd::Stop,
            follower: None,
            followers: 0,
            lost_lines: 0,
            refusals: 0,
            was_killed: false,
        }
    }

    fn at(&mut self, after: i64, what: Later) {
        self.later.push((self.now + after, what));
    }

    fn facts(&self) -> Facts<'static> {
        Facts {
            wanted: true,
            dnd: false,
            state: self.state,
            attended: true,
            newest: self.queued.last().map(|row| MessageRow(*row)),
            last: self.last,
            recent: 0,
            most: 60,
            routes: ROUTES,
            by_hand: false,
            now: Moment(self.now),
        }
    }

    /// Performs a decision, as `baton_mail::wake` does.
    fn perform(&mut self, decision: WakeDecision, saw: Option<Moment>, killed: Killed) -> Option<Look> {
        let waits = !self.queued.is_empty();
        let (route, tried) = match decision {
            WakeDecision::Skip(outcome) => {
                if outcome == Outcome::Unconfirmed
                    && let Some(last) = &mut self.last
                {
                    last.outcome = Some(Outcome::Unconfirmed);
                }
                return Some(Look { outcome, route: None, waits });
            }
            WakeDecision::Wake(route, tried) => (route, tried),
        };
        // The claim names the last wake that the caller saw, and needs an idle session.
        if self.last.map(|last| last.at) != saw || self.state != State::Idle {
            return Some(Look { outcome: Outcome::SkippedDeduped, route: None, waits });
        }
        let newest = MessageRow(self.queued.last().copied().unwrap_or(0));
        // Two claims at one instant are two claims.
        self.now += 1;
        self.last = Some(Last { at: Moment(self.now), tried, newest, outcome: None, brought: false });
        if killed == Killed::AfterClaim {
            return None;
        }
        let outcome = if self.refusals > 0 {
            self.refusals -= 1;
            if route == RouteKind::Terminal { Outcome::SkippedDraft } else { Outcome::NoRoute }
        } else {
            if self.lost_lines > 0 {
                self.lost_lines -= 1;
            } else {
                self.at(20, Later::Line);
            }
            if route == RouteKind::Terminal { Outcome::Typed } else { Outcome::Pushed }
        };
        if let Some(last) = &mut self.last {
            last.outcome = Some(outcome);
        }
        Some(Look { outcome, route: Some(route), waits })
    }

    /// A sender or a hook has looked. It starts a follower if one is needed and none is there.
    fn follow(&mut self, look: Option<Look>, killed: Killed) {
        let needs = look.is_none_or(|look| must_look_again(&look));
        if killed != Killed::Never {
            self.was_killed |= needs;
            return;
        }
        if needs && self.follower.is_none() {
            self.followers += 1;
            self.follower = Some((self.followers, FIRST_LOOK));
            self.at(FIRST_LOOK.0, Later::FollowerLooks(self.followers));
        }
    }

    fn send(&mut self, killed: Killed) {
        self.sent += 1;
        self.queued.push(self.sent);
        if killed == Killed::BeforeLook {
            return self.follow(None, killed);
        }
        let look = self.perform(decide(&self.facts()), self.last.map(|last| last.at), killed);
        self.follow(look, killed);
    }

    fn send_at_once(&mut self, count: u8) {
        let mut decided = Vec::new();
        for _ in 0..count {
            self.sent += 1;
            self.queued.push(self.sent);
            decided.push((decide(&self.facts()), self.last.map(|last| last.at)));
        }
        for (decision, saw) in decided {
            let look = self.perform(decision, saw, Killed::Never);
            self.follow(look, Killed::Never);
        }
    }

    /// A turn begins. Its prompt hook brings the mail, and confirms a wake.
    fn begin_turn(&mut self, is_line: bool) {
        if let Some(last) = self.last.as_mut().filter(|last| last.outcome.is_none_or(Outcome::is_under_way)) {
            last.outcome = Some(Outcome::Confirmed);
        }
        if self.state != State::Idle {
            return;
        }
        if self.queued.is_empty() && is_line {
            // The hook swallows the line: no turn.
            return;
        }
        self.bring();
        self.state = State::Busy;
        self.running = self.turn.1;
        self.at(self.turn.0, Later::TurnEnds);
    }

    fn bring(&mut self) {
        if let Some(last) = self.last.as_mut().filter(|_| !self.queued.is_empty()) {
            last.brought = true;
        }
        self.queued.clear();
    }

    fn handle(&mut self, what: Later) {
        match what {
            Later::Line => self.begin_turn(true),
            Later::RegistryIdle => self.state = State::Idle,
            Later::TurnEnds => match self.running {
                TurnEnd::Interrupt => self.state = State::Idle,
                TurnEnd::Stop if !self.queued.is_empty() => {
                    // The mail keeps the turn going.
                    self.bring();
                    self.at(self.turn.0, Later::TurnEnds);
                }
                TurnEnd::Stop => self.state = State::Idle,
                TurnEnd::LateRegistry(late) => self.at(i64::from(late), Later::RegistryIdle),
            },
            Later::FollowerLooks(who) => self.follower_looks(who),
        }
    }

    fn follower_looks(&mut self, who: u32) {
        let Some((_, pause)) = self.follower.filter(|(id, _)| *id == who) else { return };
        let look = self.perform(decide(&self.facts()), self.last.map(|last| last.at), Killed::Never);
        if look.is_some_and(|look| must_look_again(&look)) {
            self.follower = Some((who, next_pause(pause)));
            self.at(pause.0, Later::FollowerLooks(who));
        } else {
            self.follower = None;
        }
    }

    fn pass(&mut self, span: i64) {
        let end = self.now + span;
        while let Some(index) = (0..self.later.len()).min_by_key(|index| self.later[*index].0) {
            if self.later[index].0 > end {
                break;
            }
            let (at, what) = self.later.swap_remove(index);
            self.now = self.now.max(at);
            self.handle(what);
        }
        self.now = self.now.max(end);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send(killed) => self.send(killed),
            Step::SendAtOnce(count) => self.send_at_once(count),
            Step::Wait(span) => self.pass(i64::from(span)),
            Step::Prompt(length, end) => {
                let usual = std::mem::replace(&mut self.turn, (i64::from(length), end));
                self.begin_turn(false);
                self.turn = usual;
            }
            Step::Turns(length, end) => self.turn = (i64::from(length), end),
            Step::LoseLines(count) => self.lost_lines = count,
            Step::Refuse(count) => self.refusals = count,
            Step::KillFollower => self.was_killed |= self.follower.take().is_some(),
        }
    }

    /// From here on the routes work and no process is killed.
    fn settle(&mut self) {
        (self.lost_lines, self.refusals) = (0, 0);
        if self.was_killed {
            // The session's next event, the next sender or another server looks once.
            let look = Look { outcome: Outcome::PendingTurnEnd, route: None, waits: !self.queued.is_empty() };
            self.follow(Some(look), Killed::Never);
        }
        // The longest turn, and then every try.
        self.pass(i64::from(u16::MAX) * 3 + LIMIT.0);
    }
}

fn killed() -> impl Strategy<Value = Killed> {
    prop_oneof![
        6 => Just(Killed::Never),
        1 => Just(Killed::BeforeLook),
        1 => Just(Killed::AfterClaim),
        1 => Just(Killed::BeforeFollower),
    ]
}

fn turn_end() -> impl Strategy<Value = TurnEnd> {
    prop_oneof![
        3 => Just(TurnEnd::Stop),
        1 => Just(TurnEnd::Interrupt),
        1 => (0_u16..2_000).prop_map(TurnEnd::LateRegistry),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let span = prop_oneof![0_u16..2_000, 0_u16..30_000];
    prop_oneof![
        5 => killed().prop_map(Step::Send),
        1 => (2_u8..5).prop_map(Step::SendAtOnce),
        6 => span.clone().prop_map(Step::Wait),
        2 => (span.clone(), turn_end()).prop_map(|(length, end)| Step::Prompt(length, end)),
        1 => (span, turn_end()).prop_map(|(length, end)| Step::Turns(length, end)),
        1 => (0_u8..2).prop_map(Step::LoseLines),
        1 => (0_u8..2).prop_map(Step::Refuse),
        1 => Just(Step::KillFollower),
    ]
}

fn cases() -> u32 {
    std::env::var("BATON_WAKINGS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mail_waits_for_ever_beside_an_idle_session(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.settle();
        // After all tries in vain its sender has a note, and new mail tries again.
        let given_up = world.last.is_some_and(|last| last.outcome == Some(Outcome::Unconfirmed));
        prop_assert!(world.queued.is_empty() || given_up, "{:?} wait at {:?}", world.queued, world.last);
        prop_assert_eq!(world.state, State::Idle);
        prop_assert!(world.follower.is_none(), "a follower is left without mail");
    }
}

#[test]
fn the_looks_of_a_follower_become_rarer_up_to_a_limit() {
    let mut pause = FIRST_LOOK;
    for _ in 0..10 {
        let next = next_pause(pause);
        assert!(next >= pause && next <= LAST_LOOK);
        pause = next;
    }
    assert_eq!(pause, LAST_LOOK);
    assert!(wake::STRANDED_AFTER.0 > CONFIRM_TIMEOUT.0 * i64::from(MAX_TRIES));
}
