//! Plays random interleavings of hooks, kills, interrupts, clears, resumes, wakes and late transcripts against models of the real
//! agents, and checks the contract: each message enters the context exactly once, in order, and `seen` is never a lie.
//!
//! A wake comes as a prompt of its own, at any moment: for mail that waits, twice, hours late, into a running turn, or for nothing.
//!
//! The agent models take or drop output as the real ones do: one writes its transcript late and starts tools while a response is
//! still streaming, takes what a killed hook had printed, and loses unwritten lines when killed; the other writes at once, runs a
//! hook per tool in parallel and drops what a killed hook had printed.

#![expect(clippy::unwrap_used, reason = "a world that breaks its own rules should end the test")]

use baton_core::event::{Event, EventKind, Source};
use baton_core::id::{MessageRow, Nonce, OfferId};
use baton_core::limits::Limits;
use baton_core::mail::{
    Anchor, Delivery, Item, Look, Mailbox, Occasion, Search, Settle, Turns, View, proof, turn,
};
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    /// Late transcript, one hook per batch, a killed hook's output is taken.
    Late,
    /// Immediate transcript, one hook per tool in parallel, a killed hook's output is dropped.
    Prompt,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    /// The hook runs to its end.
    Fine,
    /// Killed after its claim, before it printed.
    KilledUnprinted,
    /// Killed after it printed.
    KilledPrinted,
    /// Killed before it did anything.
    KilledEarly,
}

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    Flush(u8),
    Turn(TurnScript),
    Clear(Fate),
    KillAgentAndResume(Fate),
    Compact,
}

/// A turn: fates of the hooks, in the order of their events; how many tool batches; where it is interrupted, if at all; what is
/// written and sent in between.
#[derive(Clone, Debug, Default)]
struct TurnScript {
    fates: Vec<Fate>,
    batches: u8,
    tools: u8,
    interrupt: Option<u8>,
    /// It begins with the line that wakes the session, and not with the person's prompt.
    woken: bool,
    /// Another tool's hook blocks the prompt.
    blocked: bool,
    /// The person types another prompt while the turn runs, or such a line comes.
    typed_ahead: Option<EventKind>,
    flushes: Vec<u8>,
    sends: Vec<u8>,
}

struct Session {
    file: Vec<Item>,
    unwritten: VecDeque<Item>,
    context: Vec<MessageRow>,
    /// How much of the context the model has answered with.
    answered: usize,
    turn_start: usize,
    turn: Option<String>,
    /// What hooks have put into the context.
    marks: Vec<String>,
}

struct Offer {
    nonce: Nonce,
    anchor: Anchor,
    turn: Option<String>,
    session: usize,
    /// Lines in the file at the claim, and at the start of the turn.
    position: usize,
    turn_start: usize,
    messages: Vec<MessageRow>,
}

/// What a hook printed.
enum Printed {
    Nothing,
    /// Mail: the text of the offer, and what it holds.
    Mail(String, Vec<MessageRow>),
    /// That the line which woke the session goes no further.
    Swallow,
}

struct World {
    style: Style,
    mailbox: Mailbox,
    offers: Vec<Offer>,
    sessions: Vec<Session>,
    next_message: i64,
    counter: u64,
    stops: u32,
    limits: Limits,
}

impl World {
    fn new(style: Style) -> Self {
        let mut world = Self {
            style,
            mailbox: Mailbox::default(),
            offers: Vec::new(),
            sessions: Vec::new(),
            next_message: 0,
            counter: 0,
            stops: 0,
            limits: Limits::default(),
        };
        world.open_session();
        world
    }

    fn open_session(&mut self) {
        self.sessions.push(Session {
            file: Vec::new(),
            unwritten: VecDeque::new(),
            context: Vec::new(),
            answered: 0,
            turn_start: 0,
            turn: None,
            marks: Vec::new(),
        });
    }

    fn session(&mut self) -> &mut Session {
        self.sessions.last_mut().unwrap()
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.counter += 1;
        format!("{prefix}{}", self.counter)
    }

    fn send(&mut self, count: u8) {
        for _ in 0..count {
            self.next_message += 1;
            self.mailbox.accept(MessageRow(self.next_message));
        }
    }

    fn write(&mut self, item: Item) {
        let late = self.style == Style::Late;
        let session = self.session();
        if late { session.unwritten.push_back(item) } else { session.file.push(item) }
    }

    fn flush(&mut self, count: usize) {
        let session = self.session();
        for _ in 0..count {
            if let Some(item) = session.unwritten.pop_front() {
                session.file.push(item);
            }
        }
    }

    fn look(&self, offer: &Offer, now: Option<String>) -> Look {
        let session = &self.sessions[offer.session];
        let turns = Turns { offer: offer.turn.clone(), now, unnamed: false };
        let mut search = Search::new(&offer.nonce, &offer.anchor, &turns);
        for (at, item) in session.file.iter().enumerate().skip(offer.turn_start) {
            if !search.feed(item, at >= offer.position) {
                break;
            }
        }
        search.look()
    }

    /// One hook run; returns what the agent takes of what it printed.
    fn hook(&mut self, event: &Event, fate: Fate) -> Printed {
        if matches!(fate, Fate::KilledEarly) {
            return Printed::Nothing;
        }
        let printed = self.decide(event);
        match (fate, self.style) {
            (Fate::KilledUnprinted, _) | (Fate::KilledPrinted, Style::Prompt) => Printed::Nothing,
            _ => printed,
        }
    }

    /// What a hook decides, and notes in the store.
    fn decide(&mut self, event: &Event) -> Printed {
        let current = self.sessions.len() - 1;
        if let Some(id) = self.mailbox.open() {
            let offer = &self.offers[id.0 as usize];
            let occasion = match event.kind {
                _ if offer.session != current => Occasion::Replaced,
                EventKind::Start(Source::Resume) => Occasion::Ended,
                _ => Occasion::of(event),
            };
            let settle = turn::settle(self.look(offer, event.turn.clone()), occasion);
            self.mailbox.settle(id, settle);
        }
        let view = View {
            open: self.mailbox.open().is_some(),
            queued: self.mailbox.entries().iter().any(|entry| entry.state == Delivery::Queued),
            stops: self.stops,
            turn_running: matches!(event.kind, EventKind::Prompt | EventKind::Woken)
                && self.is_running(&event.turn),
        };
        if turn::is_in_vain(event, view) {
            return Printed::Swallow;
        }
        if event.turn.is_some() {
            self.begin(event.turn.clone());
        }
        if !turn::may_deliver(event, view, true, &self.limits) {
            return Printed::Nothing;
        }
        let id = OfferId(self.offers.len() as i64);
        let messages = self.mailbox.claim(id, 3);
        self.counter += 1;
        let nonce = Nonce::from_random(self.counter.to_le_bytes());
        let text = proof::mark(&nonce);
        let (turn_start, turn) = (self.session().turn_start, self.session().turn.clone());
        let anchor = match event.kind {
            EventKind::Start(_) => Anchor::Start,
            EventKind::Prompt | EventKind::Woken => Anchor::Prompt,
            EventKind::Stop => Anchor::Stop,
            _ => Anchor::Tools(event.calls.clone()),
        };
        let position = self.session().file.len();
        self.offers.push(Offer {
            nonce,
            anchor,
            turn,
            session: current,
            position,
            turn_start,
            messages: messages.clone(),
        });
        if event.kind == EventKind::Stop {
            self.stops += 1;
        }
        Printed::Mail(text, messages)
    }

    fn take(&mut self, printed: &Printed) {
        if let Printed::Mail(text, messages) = printed {
            self.write(Item::Injected { text: text.clone() });
            self.session().context.extend(messages);
            self.session().marks.push(text.clone());
            self.check_context();
        }
    }

    fn check_context(&mut self) {
        let context = &self.session().context;
        assert!(
            context.windows(2).all(|pair| pair[0] < pair[1]),
            "doubled or out of order in one context: {context:?}"
        );
    }

    fn event(&mut self, kind: EventKind) -> Event {
        Event::new(kind, format!("s{}", self.sessions.len()))
    }

    fn start(&mut self, source: Source, fate: Fate) {
        let event = self.event(EventKind::Start(source));
        self.begin(None);
        let printed = self.hook(&event, fate);
        self.take(&printed);
    }

    /// Whether that turn began before: by what the store noted, or, if the hook of its prompt died, by what the agent wrote.
    fn is_running(&mut self, turn: &Option<String>) -> bool {
        let session = self.session();
        session.turn == *turn
            || session
                .file
                .iter()
                .any(|item| matches!(item, Item::Prompt { id } if Some(id) == turn.as_ref()))
    }

    /// What the store notes of a session when a turn begins.
    fn begin(&mut self, turn: Option<String>) {
        let session = self.session();
        if turn.is_none() || session.turn != turn {
            session.turn_start = session.file.len();
            session.turn = turn;
        }
    }

    fn response(&mut self, tools: usize) -> Vec<String> {
        let id = self.fresh("r");
        let session = self.session();
        session.answered = session.context.len();
        // Only the late one records its requests.
        let request = (self.style == Style::Late).then(|| self.session().marks.clone());
        self.write(Item::Response { id: id.clone(), calls: vec![], request: request.clone() });
        let calls: Vec<_> = (0..tools).map(|_| self.fresh("c")).collect();
        for call in &calls {
            self.write(Item::Response {
                id: id.clone(),
                calls: vec![call.clone()],
                request: request.clone(),
            });
        }
        calls
    }

    fn turn(&mut self, script: &TurnScript) {
        let mut moment = 0;
        let mut fates = script.fates.iter().copied().chain(std::iter::repeat(Fate::Fine));
        let mut between = |world: &mut Self| -> bool {
            world.flush(usize::from(script.flushes.get(moment).copied().unwrap_or(2)));
            world.send(script.sends.get(moment).copied().unwrap_or(0));
            moment += 1;
            script.interrupt.is_some_and(|at| usize::from(at) == moment)
        };
        let prompt = self.fresh("p");
        if !script.woken {
            // A person is there again.
            self.stops = 0;
        }
        let mut event = self.event(if script.woken { EventKind::Woken } else { EventKind::Prompt });
        event.turn = Some(prompt.clone());
        let printed = self.hook(&event, fates.next().unwrap());
        if let Printed::Swallow = printed {
            assert!(script.woken && !self.is_waiting(), "a prompt was swallowed");
            return;
        }
        if script.blocked {
            return;
        }
        let (context_before, marks_before) = (self.session().context.len(), self.session().marks.len());
        self.write(Item::Prompt { id: prompt.clone() });
        self.take(&printed);
        if between(self) {
            match self.style {
                // Before the first word of the answer, the prompt and what came with it are taken back; the file does not say so.
                Style::Late => {
                    self.session().context.truncate(context_before);
                    self.session().marks.truncate(marks_before);
                }
                Style::Prompt => {}
            }
            return;
        }
        if let Some(kind) = script.typed_ahead {
            // A person needs longer to type than an agent to write.
            self.flush(1_000_000);
            let ahead = Event { kind, ..event.clone() };
            let printed = self.hook(&ahead, fates.next().unwrap());
            assert!(
                matches!(printed, Printed::Nothing),
                "mail with a prompt that may be held or taken back, or a line swallowed that began this turn"
            );
        }
        for _ in 0..script.batches {
            let calls = self.response(usize::from(script.tools).max(1));
            if between(self) {
                return;
            }
            match self.style {
                Style::Late => {
                    for call in &calls {
                        self.write(Item::ToolResult { call: call.clone(), text: "done".into() });
                    }
                    let mut event = self.event(EventKind::AfterTools);
                    event.turn = Some(prompt.clone());
                    event.calls = calls;
                    let printed = self.hook(&event, fates.next().unwrap());
                    if between(self) {
                        return;
                    }
                    self.take(&printed);
                }
                Style::Prompt => {
                    for call in &calls {
                        let mut event = self.event(EventKind::AfterTool);
                        event.calls = vec![call.clone()];
                        event.turn = Some(prompt.clone());
                        let printed = self.hook(&event, fates.next().unwrap());
                        self.take(&printed);
                    }
                    if between(self) {
                        return;
                    }
                    for call in calls {
                        self.write(Item::ToolResult { call, text: "done".into() });
                    }
                }
            }
            if between(self) {
                return;
            }
        }
        loop {
            self.response(0);
            if between(self) {
                return;
            }
            let mut event = self.event(EventKind::Stop);
            event.turn = Some(prompt.clone());
            let printed = self.hook(&event, fates.next().unwrap());
            if let Printed::Mail(text, _) = &printed
                && self.style == Style::Late
            {
                self.write(Item::HookRan { output: text.clone() });
            }
            self.take(&printed);
            if self.style == Style::Late {
                self.write(Item::StopHandled);
            }
            if between(self) || matches!(printed, Printed::Nothing) {
                return;
            }
        }
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Send(count) => self.send(*count),
            Step::Flush(count) => self.flush(usize::from(*count)),
            Step::Turn(script) => self.turn(script),
            Step::Clear(fate) => {
                self.flush(1_000_000);
                // What the model never answered was not seen by it.
                let session = self.session();
                session.context.truncate(session.answered);
                let event = self.event(EventKind::End);
                self.hook(&event, *fate);
                self.open_session();
                self.start(Source::Clear, Fate::Fine);
            }
            Step::KillAgentAndResume(fate) => {
                self.session().unwritten.clear();
                let file = self.session().file.clone();
                let (mut context, mut marks, mut answered) = (Vec::new(), Vec::new(), 0);
                for item in &file {
                    match item {
                        // A later request without it says that it was taken back.
                        Item::Response { request: Some(request), .. } => {
                            marks.retain(|mark| request.contains(mark));
                            context = self.messages_of(&marks);
                            answered = context.len();
                        }
                        Item::Injected { text } => {
                            let offer =
                                self.offers.iter().find(|offer| proof::mark(&offer.nonce) == *text).unwrap();
                            context.extend(offer.messages.clone());
                            marks.push(text.clone());
                        }
                        Item::Response { .. } => answered = context.len(),
                        _ => {}
                    }
                }
                // An answer that was never written is as lost as the rest of that life.
                self.session().answered = answered;
                self.session().context = context;
                self.session().marks = marks;
                self.start(Source::Resume, *fate);
            }
            Step::Compact => {
                let event = self.event(EventKind::Start(Source::Compact));
                assert!(matches!(self.hook(&event, Fate::Fine), Printed::Nothing));
            }
        }
        self.seen_is_never_a_lie();
    }

    fn messages_of(&self, marks: &[String]) -> Vec<MessageRow> {
        let offer = |mark: &String| self.offers.iter().find(|offer| proof::mark(&offer.nonce) == *mark);
        marks.iter().filter_map(offer).flat_map(|offer| offer.messages.clone()).collect()
    }

    /// Whether something is still to be brought, or to be proven.
    fn is_waiting(&self) -> bool {
        self.mailbox.entries().iter().any(|entry| !entry.state.is_end())
    }

    fn seen_is_never_a_lie(&self) {
        for entry in self.mailbox.entries().iter().filter(|entry| entry.state == Delivery::Seen) {
            assert!(self.times_in_contexts(entry.message) >= 1, "{entry:?} is in no context");
        }
    }

    fn times_in_contexts(&self, message: MessageRow) -> usize {
        self.sessions.iter().flat_map(|session| &session.context).filter(|held| **held == message).count()
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        5 => Just(Fate::Fine),
        1 => Just(Fate::KilledUnprinted),
        1 => Just(Fate::KilledPrinted),
        1 => Just(Fate::KilledEarly),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let turn = (
        proptest::collection::vec(fate(), 0..8),
        0u8..4,
        1u8..4,
        (
            proptest::option::weighted(0.3, 1u8..14),
            proptest::bool::weighted(0.4),
            proptest::bool::weighted(0.1),
            proptest::option::weighted(0.3, prop_oneof![Just(EventKind::Prompt), Just(EventKind::Woken)]),
        ),
        proptest::collection::vec(0u8..6, 0..14),
        proptest::collection::vec(0u8..2, 0..14),
    )
        .prop_map(|(fates, batches, tools, (interrupt, woken, blocked, typed_ahead), flushes, sends)| {
            Step::Turn(TurnScript {
                fates,
                batches,
                tools,
                interrupt,
                woken,
                blocked,
                typed_ahead,
                flushes,
                sends,
            })
        });
    prop_oneof![
        3 => (1u8..5).prop_map(Step::Send),
        2 => (1u8..12).prop_map(Step::Flush),
        6 => turn,
        1 => fate().prop_map(Step::Clear),
        2 => fate().prop_map(Step::KillAgentAndResume),
        1 => Just(Step::Compact),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_enters_exactly_one_context_once(
        style in prop_oneof![Just(Style::Late), Just(Style::Prompt)],
        steps in proptest::collection::vec(step(), 1..14),
        woken: bool,
    ) {
        let mut world = World::new(style);
        world.start(Source::Startup, Fate::Fine);
        for step in &steps {
            world.play(step);
        }
        // Then peace: enough clean turns for every batch, each with an event after the transcript has caught up. Wakes alone are enough.
        for _ in 0..200 {
            if !world.is_waiting() {
                break;
            }
            world.flush(1_000_000);
            world.turn(&TurnScript { woken, batches: 1, flushes: vec![60; 64], ..TurnScript::default() });
        }
        for entry in world.mailbox.entries() {
            prop_assert_eq!(entry.state, Delivery::Seen, "{:?}", entry);
            prop_assert_eq!(world.times_in_contexts(entry.message), 1, "{:?}", entry);
        }
    }
}

#[test]
fn settling_an_offer_that_somebody_else_settled_changes_nothing() {
    let mut mailbox = Mailbox::default();
    mailbox.accept(MessageRow(1));
    mailbox.claim(OfferId(1), 20);
    mailbox.settle(OfferId(1), Settle::Return);
    assert_eq!(mailbox.claim(OfferId(2), 20), [MessageRow(1)]);
    mailbox.settle(OfferId(1), Settle::Seen);
    assert_eq!(mailbox.open(), Some(OfferId(2)));
    assert_eq!(mailbox.entries()[0].state, Delivery::Offered);
}
