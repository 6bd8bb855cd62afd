//! Plays random interleavings of hooks, kills, interrupts, clears, resumes, wakes and late
//! transcripts against models of the real agents. It checks the contract: each message enters a
//! context exactly once, in order, and `seen` is always true.
//!
//! A turn may read its mail on purpose, with a command in its shell or an MCP call. It may do so at
//! any moment, however much of the turn is written.
//!
//! A wake comes as a prompt of its own, at any moment: for mail that waits, twice, hours late, into
//! a running turn, or without any mail.
//!
//! There are two agent models, which take or drop output as the real agents do. The first writes
//! its transcript late, starts tools while a response is still streaming, takes what a killed hook
//! had printed, and loses unwritten lines when it is killed. The second writes at once, runs a hook
//! per tool in parallel, and drops what a killed hook had printed.

#![expect(clippy::unwrap_used, reason = "a world that breaks its own rules should end the test")]

use baton_core::event::{Event, EventKind, Reply, Source};
use baton_core::id::{MessageRow, Nonce, OfferId, WakeId};
use baton_core::limits::Limits;
use baton_core::mail::plan::{AgentFacts, OfferFacts, ProofRead, Reads, SessionFacts};
use baton_core::mail::{
    Anchor, Delivery, Facts, Item, Mailbox, Missing, NewOffer, Plan, Proof, Search, Settle, Turns, plan,
    proof, start_of_search,
};
use baton_core::session::State;
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
    /// The person turns do-not-disturb on or off.
    DoNotDisturb(bool),
}

/// How a session reads its mail on purpose.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// A command in its shell, whose call is not known.
    Shell,
    /// A call whose id is known.
    Call,
}

/// A turn: the fates of its hooks in the order of their events, the number of tool batches, where
/// it is interrupted, and what is written and sent in between.
#[derive(Clone, Debug, Default)]
struct TurnScript {
    fates: Vec<Fate>,
    batches: u8,
    tools: u8,
    interrupt: Option<u8>,
    /// It begins with a wake line, not with a prompt of the person.
    woken: bool,
    /// Another tool's hook blocks the prompt.
    blocked: bool,
    /// The person types another prompt while the turn runs, or a wake line comes.
    typed_ahead: Option<EventKind>,
    /// Which of its batches read the mail, and how.
    reads: Vec<Option<Read>>,
    flushes: Vec<u8>,
    sends: Vec<u8>,
}

struct Session {
    file: Vec<Item>,
    unwritten: VecDeque<Item>,
    context: Vec<MessageRow>,
    /// How much of the context the model has answered with.
    answered: usize,
    state: State,
    turn_start: u64,
    turn: Option<String>,
    /// The wake that no event has confirmed yet.
    wake: Option<WakeId>,
    /// What hooks have put into the context.
    marks: Vec<String>,
}

struct Offer {
    nonce: Nonce,
    anchor: Anchor,
    turn: Option<String>,
    session: usize,
    /// Lines in the file at the claim, and the line at which the search for its proof starts.
    position: u64,
    read_from: u64,
    messages: Vec<MessageRow>,
}

/// What a hook printed.
enum Printed {
    Nothing,
    /// The text of the offer, and its messages.
    Mail(String, Vec<MessageRow>),
    /// The order to swallow the wake line.
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
    /// Do-not-disturb is on, and no mail here is urgent.
    only_urgent: bool,
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
            only_urgent: false,
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
            state: State::Idle,
            turn_start: 0,
            turn: None,
            wake: None,
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

    /// An agent holds lines back for a tenth of a second. No turn begins so soon after the one
    /// before, so the earlier prompt is written by then.
    fn write_prompts(&mut self) {
        let unwritten = &self.session().unwritten;
        let prompts = unwritten.iter().rposition(|item| matches!(item, Item::Prompt { .. }));
        self.flush(prompts.map_or(0, |last| last + 1));
    }

    fn proof_of(&self, offer: &Offer, now: Option<String>) -> Proof {
        let session = &self.sessions[offer.session];
        let turns = Turns { offer: offer.turn.clone(), now, unnamed: false };
        let mut search = Search::new(&offer.nonce, &offer.anchor, &turns);
        for (at, item) in (0..).zip(&session.file).skip(offer.read_from as usize) {
            if !search.feed(item, at >= offer.position) {
                break;
            }
        }
        search.proof()
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

    /// Executes what the plan decides, as every surface does.
    fn decide(&mut self, event: &Event) -> Printed {
        let plan = self.plan(event);
        for settlement in &plan.settle {
            self.mailbox.settle(settlement.offer, settlement.how);
        }
        let session = self.session();
        session.state = plan.state.unwrap_or(session.state);
        if plan.confirms.is_some() {
            session.wake = None;
        }
        if let Some(turn) = plan.turn.clone() {
            session.turn = turn.id;
            session.turn_start = turn.from;
            // A person is there again.
            self.stops = if turn.by_person { 0 } else { self.stops };
        }
        let mail = plan.offer.clone().map(|offer| {
            self.stops += u32::from(offer.at_stop);
            self.claim(offer)
        });
        match (plan.reply(mail.clone().map(|(text, _)| text), None), mail) {
            (Reply::Block(_), None) => Printed::Swallow,
            (Reply::Silent, None) => Printed::Nothing,
            (Reply::Context(_) | Reply::Continue(_), Some((text, messages))) => Printed::Mail(text, messages),
            (reply, mail) => panic!("{reply:?} with {mail:?}"),
        }
    }

    /// Calls for the plan, and reads the facts that it needs.
    fn plan(&self, event: &Event) -> Plan {
        let current = self.sessions.len() - 1;
        let session = &self.sessions[current];
        let open: Vec<OfferId> = self.mailbox.open().into_iter().collect();
        let offers = open.iter().map(|id| {
            let offer = &self.offers[id.0 as usize];
            OfferFacts {
                id: *id,
                of_this_session: offer.session == current,
                turn: offer.turn.as_deref(),
                session_over: offer.session != current,
                proof: None,
            }
        });
        let mut facts = Facts {
            event,
            session: SessionFacts {
                state: session.state,
                turn: session.turn.as_deref(),
                turn_from: session.turn_start,
                stops: self.stops,
                transcript: None,
                mail_offer: self.mailbox.open(),
                queued: self.is_queued(),
                wake: session.wake,
                only_urgent: self.only_urgent,
                fresh: false,
                resumed: event.kind == EventKind::Start(Source::Resume),
            },
            agent: AgentFacts {
                takes_context: true,
                holds_typed_ahead: true,
                stops_when_interrupted: false,
                writes_summaries: false,
                hears_at_start: true,
            },
            offers: offers.collect(),
            reads: Reads::default(),
        };
        loop {
            match plan(&facts) {
                Ok(plan) => return plan,
                Err(missing) => self.read_fact(missing, &mut facts),
            }
        }
    }

    /// Each fact is read at most once: a plan that asked for the same fact again would never end.
    fn read_fact(&self, missing: Missing, facts: &mut Facts<'_>) {
        let reads = &mut facts.reads;
        let again = match missing {
            Missing::Proof(index) => {
                let proof =
                    self.proof_of(&self.offers[facts.offers[index].id.0 as usize], facts.event.turn.clone());
                facts.offers[index].proof.replace(ProofRead { proof, waited: false }).is_some()
            }
            // Nothing is written meanwhile, as if the hook were infinitely fast.
            Missing::PatientProof(index) => {
                let read = facts.offers[index].proof.as_mut().unwrap();
                std::mem::replace(&mut read.waited, true)
            }
            Missing::UrgentWaits => reads.urgent_waits.replace(false).is_some(),
            Missing::Limits => reads.limits.replace(self.limits).is_some(),
            Missing::TranscriptLength => {
                reads.transcript_length.replace(self.sessions.last().unwrap().file.len() as u64).is_some()
            }
            Missing::TurnIsWritten => {
                reads.turn_is_written.replace(self.is_written(&facts.event.turn)).is_some()
            }
            Missing::HasOpenAsks => reads.has_open_asks.replace(false).is_some(),
            Missing::TurnIsTakenBack | Missing::IsSummarized | Missing::IsContinuation => {
                panic!("{missing:?} must not be asked for these agents")
            }
        };
        assert!(!again, "{missing:?} was read already");
    }

    fn is_queued(&self) -> bool {
        self.mailbox.entries().iter().any(|entry| entry.state == Delivery::Queued)
    }

    /// Makes an offer of what waits, with what the store knows about the session.
    fn claim(&mut self, new: NewOffer) -> (String, Vec<MessageRow>) {
        let id = OfferId(self.offers.len() as i64);
        let messages = self.mailbox.claim(id, 3);
        self.counter += 1;
        let nonce = Nonce::from_random(self.counter.to_le_bytes());
        let text = proof::mark(&nonce);
        let session = self.sessions.len() - 1;
        let NewOffer { anchor, turn, position, read_from, .. } = new;
        let held = messages.clone();
        self.offers.push(Offer { nonce, anchor, turn, session, position, read_from, messages: held });
        (text, messages)
    }

    /// The last of these calls reads the mail. Returns what its result holds.
    fn read(&mut self, how: Read, calls: &[String]) -> Printed {
        if self.mailbox.open().is_some() || !self.is_queued() {
            return Printed::Nothing;
        }
        let anchor = match how {
            Read::Shell => Anchor::Shell,
            Read::Call => Anchor::Call(calls.last().unwrap().clone()),
        };
        let session = self.session();
        let position = session.file.len() as u64;
        let (turn, read_from) = (session.turn.clone(), start_of_search(session.turn_start, position));
        let new = NewOffer { anchor, turn, position, read_from, at_stop: false, only_urgent: false };
        let (text, messages) = self.claim(new);
        Printed::Mail(text, messages)
    }

    /// Writes the results of the calls. The last result holds the mail that was read, which enters
    /// the context with it.
    fn results(&mut self, calls: &[String], read: &Printed) {
        for (at, call) in calls.iter().enumerate() {
            let mut text = "done".to_owned();
            if let (Printed::Mail(mark, messages), true) = (read, at + 1 == calls.len()) {
                text.clone_from(mark);
                self.session().context.extend(messages);
                self.session().marks.push(mark.clone());
                self.check_context();
            }
            self.write(Item::ToolResult { call: call.clone(), text });
        }
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
        let printed = self.hook(&event, fate);
        self.take(&printed);
    }

    /// Whether the agent has written down a prompt of that turn.
    fn is_written(&self, turn: &Option<String>) -> bool {
        let file = &self.sessions.last().unwrap().file;
        file.iter().any(|item| matches!(item, Item::Prompt { id } if Some(id) == turn.as_ref()))
    }

    fn response(&mut self, tools: usize) -> Vec<String> {
        let id = self.fresh("r");
        let session = self.session();
        session.answered = session.context.len();
        // Only the late agent records its requests.
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

    #[expect(clippy::too_many_lines, reason = "one turn, from its prompt to its end")]
    fn turn(&mut self, script: &TurnScript) {
        let mut moment = 0;
        let mut fates = script.fates.iter().copied().chain(std::iter::repeat(Fate::Fine));
        let mut between = |world: &mut Self| -> bool {
            world.flush(usize::from(script.flushes.get(moment).copied().unwrap_or(2)));
            world.send(script.sends.get(moment).copied().unwrap_or(0));
            moment += 1;
            script.interrupt.is_some_and(|at| usize::from(at) == moment)
        };
        self.write_prompts();
        let prompt = self.fresh("p");
        if script.woken {
            self.session().wake = Some(WakeId(1));
        }
        let mut event = self.event(if script.woken { EventKind::Woken } else { EventKind::Prompt });
        event.turn = Some(prompt.clone());
        let printed = self.hook(&event, fates.next().unwrap());
        if let Printed::Swallow = printed {
            // While do-not-disturb is on, waiting mail is no reason to wake.
            assert!(script.woken && (self.only_urgent || !self.is_waiting()), "a prompt was swallowed");
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
                // Before the first word of the answer, the person takes back the prompt and what
                // came with it. The file does not show that.
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
                "mail came with a prompt that may be held or taken back, or the line that began this turn was swallowed"
            );
        }
        for batch in 0..usize::from(script.batches) {
            let calls = self.response(usize::from(script.tools).max(1));
            if between(self) {
                return;
            }
            let how = script.reads.get(batch).copied().flatten();
            let read = how.map_or(Printed::Nothing, |how| self.read(how, &calls));
            if how.is_some() && between(self) {
                return;
            }
            match self.style {
                Style::Late => {
                    self.results(&calls, &read);
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
                    self.results(&calls, &read);
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
                // The model did not see what it never answered.
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
                        // A later request without the mark shows that the prompt was taken back.
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
                        Item::ToolResult { text, .. } => {
                            let found = self.offers.iter().find(|offer| proof::mark(&offer.nonce) == *text);
                            if let Some(offer) = found {
                                context.extend(offer.messages.clone());
                                marks.push(text.clone());
                            }
                        }
                        Item::Response { .. } => answered = context.len(),
                        _ => {}
                    }
                }
                // An answer that was never written is lost with the rest of the killed process.
                self.session().answered = answered;
                self.session().context = context;
                self.session().marks = marks;
                self.start(Source::Resume, *fate);
            }
            Step::Compact => {
                let event = self.event(EventKind::Start(Source::Compact));
                assert!(matches!(self.hook(&event, Fate::Fine), Printed::Nothing));
            }
            Step::DoNotDisturb(on) => self.only_urgent = *on,
        }
        self.seen_is_never_a_lie();
    }

    fn messages_of(&self, marks: &[String]) -> Vec<MessageRow> {
        let offer = |mark: &String| self.offers.iter().find(|offer| proof::mark(&offer.nonce) == *mark);
        marks.iter().filter_map(offer).flat_map(|offer| offer.messages.clone()).collect()
    }

    /// Whether a message still waits for delivery or for proof.
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
        proptest::collection::vec(
            proptest::option::weighted(0.5, prop_oneof![Just(Read::Shell), Just(Read::Call)]),
            0..4,
        ),
        // Often nothing at all is written between two events.
        proptest::collection::vec(prop_oneof![Just(0u8), 0u8..6], 0..14),
        proptest::collection::vec(0u8..2, 0..14),
    )
        .prop_map(
            |(fates, batches, tools, (interrupt, woken, blocked, typed_ahead), reads, flushes, sends)| {
                Step::Turn(TurnScript {
                    fates,
                    batches,
                    tools,
                    interrupt,
                    woken,
                    blocked,
                    typed_ahead,
                    reads,
                    flushes,
                    sends,
                })
            },
        );
    prop_oneof![
        3 => (1u8..5).prop_map(Step::Send),
        2 => (1u8..12).prop_map(Step::Flush),
        6 => turn,
        1 => fate().prop_map(Step::Clear),
        2 => fate().prop_map(Step::KillAgentAndResume),
        1 => Just(Step::Compact),
        1 => proptest::bool::ANY.prop_map(Step::DoNotDisturb),
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
        world.only_urgent = false;
        // Then nothing disturbs: there are enough clean turns for every batch, each with an event
        // after the transcript has caught up. Wakes alone are enough.
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
fn settling_an_offer_that_is_settled_already_changes_nothing() {
    let mut mailbox = Mailbox::default();
    mailbox.accept(MessageRow(1));
    mailbox.claim(OfferId(1), 20);
    mailbox.settle(OfferId(1), Settle::Return);
    assert_eq!(mailbox.claim(OfferId(2), 20), [MessageRow(1)]);
    mailbox.settle(OfferId(1), Settle::Seen);
    assert_eq!(mailbox.open(), Some(OfferId(2)));
    assert_eq!(mailbox.entries()[0].state, Delivery::Offered);
}

/// E2: the prompt's hook was killed, and the prompt is not written yet when a command of its turn
/// reads the mail.
#[test]
fn e2_a_reading_before_its_prompt_is_written_is_no_reading_of_the_turn_before() {
    for how in [Read::Shell, Read::Call] {
        let mut world = World::new(Style::Late);
        world.start(Source::Startup, Fate::Fine);
        world.turn(&TurnScript { flushes: vec![60; 64], ..TurnScript::default() });
        world.flush(1_000_000);
        world.send(1);
        world.turn(&TurnScript {
            fates: vec![Fate::KilledEarly],
            batches: 1,
            tools: 1,
            reads: vec![Some(how)],
            flushes: vec![0, 0, 0, 0, 60, 60],
            ..TurnScript::default()
        });
        world.flush(1_000_000);
        for _ in 0..3 {
            world.turn(&TurnScript { batches: 1, flushes: vec![60; 64], ..TurnScript::default() });
        }
        let entry = world.mailbox.entries()[0];
        assert_eq!((entry.state, world.times_in_contexts(entry.message)), (Delivery::Seen, 1), "{how:?}");
    }
}

/// E2: the hooks of two prompts in a row were killed. The first prompt in the file does not show
/// which turn read the mail.
#[test]
fn e2_a_reading_behind_two_killed_prompt_hooks_is_not_doubled() {
    for how in [Read::Shell, Read::Call] {
        let mut world = World::new(Style::Late);
        world.start(Source::Startup, Fate::Fine);
        world.turn(&TurnScript::default());
        let killed = TurnScript { fates: vec![Fate::KilledEarly], ..TurnScript::default() };
        world.turn(&TurnScript { interrupt: Some(1), ..killed.clone() });
        world.send(1);
        world.turn(&TurnScript { batches: 1, reads: vec![Some(how)], flushes: vec![0, 0], ..killed });
        for _ in 0..3 {
            world.turn(&TurnScript { batches: 1, flushes: vec![60; 64], ..TurnScript::default() });
            world.flush(1_000_000);
        }
        let entry = world.mailbox.entries()[0];
        assert_eq!((entry.state, world.times_in_contexts(entry.message)), (Delivery::Seen, 1), "{how:?}");
    }
}

/// An interrupted command has shown nothing, so what it took must come again.
#[test]
fn e2_what_an_interrupted_reading_took_comes_again() {
    for how in [Read::Shell, Read::Call] {
        let mut world = World::new(Style::Late);
        world.start(Source::Startup, Fate::Fine);
        world.send(1);
        let interrupt = Some(3);
        world.turn(&TurnScript {
            fates: vec![Fate::KilledEarly],
            batches: 1,
            reads: vec![Some(how)],
            interrupt,
            ..TurnScript::default()
        });
        assert_eq!(world.mailbox.entries()[0].state, Delivery::Offered);
        for _ in 0..3 {
            world.turn(&TurnScript { batches: 1, flushes: vec![60; 64], ..TurnScript::default() });
            world.flush(1_000_000);
        }
        let entry = world.mailbox.entries()[0];
        assert_eq!((entry.state, world.times_in_contexts(entry.message)), (Delivery::Seen, 1), "{how:?}");
    }
}
