//! What each event does to the mail of its session, one decision at a time.

use super::*;
use std::path::PathBuf;

const OFFER: OfferId = OfferId(1);
const OTHER: OfferId = OfferId(2);

fn event(kind: EventKind) -> Event {
    Event { turn: Some("t2".to_owned()), ..Event::new(kind, "s") }
}

fn turnless(kind: EventKind) -> Event {
    Event::new(kind, "s")
}

/// A busy session in turn `t1`, without mail, of an agent without peculiarities.
fn facts(event: &Event) -> Facts<'_> {
    Facts {
        event,
        session: SessionFacts {
            state: State::Busy,
            turn: Some("t1"),
            turn_from: 100,
            stops: 0,
            transcript: None,
            mail_offer: None,
            queued: false,
            wake: None,
            only_urgent: false,
            fresh: false,
            resumed: false,
        },
        agent: AgentFacts {
            takes_context: true,
            holds_typed_ahead: false,
            stops_when_interrupted: false,
            writes_summaries: false,
            hears_at_start: true,
        },
        offers: Vec::new(),
        reads: Reads::default(),
    }
}

/// The same, with mail, the settings and the length of the transcript.
fn with_mail(event: &Event) -> Facts<'_> {
    let mut facts = facts(event);
    facts.session.queued = true;
    facts.reads.limits = Some(Limits::default());
    facts.reads.transcript_length = Some(500);
    facts
}

fn offer(proof: Proof, waited: bool) -> OfferFacts<'static> {
    let proof = Some(ProofRead { proof, waited });
    OfferFacts { id: OFFER, of_this_session: true, turn: Some("t1"), session_over: false, proof }
}

fn settled(facts: &Facts<'_>) -> Settle {
    plan(facts).unwrap().settle[0].how
}

#[test]
fn a_quiet_event_reads_nothing_and_writes_nothing() {
    for kind in [EventKind::BeforeTool, EventKind::AfterTool, EventKind::AfterTools, EventKind::Request] {
        let event = turnless(kind);
        let plan = plan(&facts(&event)).unwrap();
        assert!(!plan.writes() && !plan.rings(false), "{kind:?}: {plan:?}");
        assert_eq!(plan.reply(None, None), Reply::Silent);
    }
}

#[test]
fn each_change_is_a_reason_to_write() {
    let event = turnless(EventKind::AfterTool);
    let quiet = plan(&facts(&event)).unwrap();
    let settle = |how| vec![Settlement { offer: OFFER, how }];
    assert!(!Plan { settle: settle(Settle::Keep), ..quiet.clone() }.writes());
    assert!(Plan { settle: settle(Settle::Seen), ..quiet.clone() }.writes());
    assert!(Plan { state: Some(State::Idle), ..quiet.clone() }.writes());
    assert!(Plan { transcript: Some("f".to_owned()), ..quiet.clone() }.writes());
    assert!(Plan { confirms: Some(WakeId(1)), ..quiet.clone() }.writes());
    let turn = Some(TurnStart { id: None, from: 0, by_person: true });
    assert!(Plan { turn, ..quiet.clone() }.writes());
    let offer = plan(&with_mail(&event)).unwrap().offer;
    assert!(Plan { offer, ..quiet }.writes());
}

#[test]
fn mail_is_offered_after_tools_with_the_place_to_look_for_it() {
    let calls = vec!["c1".to_owned(), "c2".to_owned()];
    let event = Event { calls: calls.clone(), ..turnless(EventKind::AfterTools) };
    let mut facts = with_mail(&event);
    facts.reads = Reads::default();
    assert_eq!(plan(&facts).unwrap_err(), Missing::Limits);
    facts.reads.limits = Some(Limits::default());
    assert_eq!(plan(&facts).unwrap_err(), Missing::TranscriptLength);
    let length = limits::LOOK_BEHIND_BYTES + 1_000;
    facts.reads.transcript_length = Some(length);
    facts.session.turn_from = limits::LOOK_BEHIND_BYTES + 100;
    let plan = plan(&facts).unwrap();
    let expected = NewOffer {
        anchor: Anchor::Tools(calls),
        turn: Some("t1".to_owned()),
        position: length,
        read_from: 100,
        at_stop: false,
        only_urgent: false,
    };
    assert_eq!(plan.offer, Some(expected));
    assert_eq!(plan.reply(Some("mail".to_owned()), None), Reply::Context("mail".to_owned()));
    assert!(!plan.rings(true));
}

#[test]
fn an_offer_has_the_anchor_of_its_event() {
    let anchor = |event: &Event| plan(&with_mail(event)).unwrap().offer.map(|offer| offer.anchor);
    assert_eq!(anchor(&turnless(EventKind::Start(Source::Startup))), Some(Anchor::Start));
    assert_eq!(anchor(&event(EventKind::Prompt)), Some(Anchor::Prompt));
    assert_eq!(anchor(&event(EventKind::Woken)), Some(Anchor::Prompt));
    assert_eq!(anchor(&event(EventKind::Stop)), Some(Anchor::Stop));
    assert_eq!(anchor(&event(EventKind::AfterTool)), Some(Anchor::Tools(Vec::new())));
}

#[test]
fn nothing_is_offered_beside_an_open_offer_or_where_the_agent_takes_nothing() {
    let event = event(EventKind::AfterTools);
    let mut open = with_mail(&event);
    open.session.mail_offer = Some(OFFER);
    assert_eq!(plan(&open).unwrap().offer, None, "an offer that another hook may be settling is open");
    open.offers = vec![offer(Proof::Open, false)];
    assert_eq!(plan(&open).unwrap().offer, None);
    open.offers = vec![offer(Proof::Proven, false)];
    assert!(
        plan(&open).unwrap().offer.is_some(),
        "the next batch goes out with the event that proves the last"
    );
    open.offers[0].id = OTHER;
    assert_eq!(plan(&open).unwrap().offer, None, "the proof of another offer closes only that");
    let mut deaf = with_mail(&event);
    deaf.agent.takes_context = false;
    assert_eq!(plan(&deaf).unwrap().offer, None);
}

#[test]
fn what_comes_back_waits_with_the_rest() {
    let event = event(EventKind::AfterTools);
    let mut facts = with_mail(&event);
    facts.session.queued = false;
    facts.session.mail_offer = Some(OFFER);
    facts.offers = vec![offer(Proof::Passed, false)];
    let returned = plan(&facts).unwrap();
    assert_eq!(returned.settle, [Settlement { offer: OFFER, how: Settle::Return }]);
    assert!(returned.offer.is_some());
    facts.offers = vec![offer(Proof::Proven, false)];
    assert_eq!(plan(&facts).unwrap().offer, None, "what was seen does not come again");
    let prompt = super::tests::event(EventKind::Prompt);
    facts.event = &prompt;
    facts.offers = vec![offer(Proof::Blind, true)];
    assert!(plan(&facts).unwrap().offer.is_some(), "what is in doubt comes again");
}

#[test]
fn only_urgent_mail_passes_do_not_disturb() {
    let event = event(EventKind::AfterTools);
    let mut facts = with_mail(&event);
    facts.session.only_urgent = true;
    assert_eq!(plan(&facts).unwrap_err(), Missing::UrgentWaits);
    facts.reads.urgent_waits = Some(false);
    assert_eq!(plan(&facts).unwrap().offer, None);
    facts.reads.urgent_waits = Some(true);
    assert!(plan(&facts).unwrap().offer.unwrap().only_urgent);
    facts.session.queued = false;
    facts.reads.urgent_waits = None;
    assert_eq!(plan(&facts).unwrap().offer, None, "without mail the store is not asked");
    facts.session.mail_offer = Some(OFFER);
    facts.offers = vec![offer(Proof::Passed, false)];
    assert_eq!(plan(&facts).unwrap().offer, None, "what comes back waits too");
}

#[test]
fn a_prompt_typed_into_a_running_turn_brings_no_mail_and_is_not_swallowed() {
    for kind in [EventKind::Prompt, EventKind::Woken] {
        let event = event(kind);
        let mut facts = with_mail(&event);
        facts.agent.holds_typed_ahead = true;
        assert_eq!(plan(&facts).unwrap_err(), Missing::TurnIsWritten, "{kind:?}");
        facts.reads.turn_is_written = Some(false);
        assert!(plan(&facts).unwrap().offer.is_some(), "{kind:?}");
        facts.reads.turn_is_written = Some(true);
        assert_eq!(plan(&facts).unwrap().offer, None, "{kind:?}");
        facts.reads.turn_is_written = None;
        facts.session.turn = Some("t2");
        let noted = plan(&facts).unwrap();
        assert_eq!((noted.offer, noted.turn), (None, None), "{kind:?}");
        facts.agent.holds_typed_ahead = false;
        assert!(plan(&facts).unwrap().offer.is_some(), "{kind:?}: another agent asks only between turns");
    }
    let woken = event(EventKind::Woken);
    let mut in_vain = facts(&woken);
    in_vain.agent.holds_typed_ahead = true;
    assert_eq!(plan(&in_vain).unwrap_err(), Missing::TurnIsWritten);
    in_vain.reads.turn_is_written = Some(true);
    in_vain.reads.transcript_length = Some(500);
    assert!(!plan(&in_vain).unwrap().swallows_prompt);
    in_vain.reads.turn_is_written = Some(false);
    assert!(plan(&in_vain).unwrap().swallows_prompt);
}

#[test]
fn a_prompt_that_brings_no_mail_reads_no_transcript() {
    let event = event(EventKind::Prompt);
    let mut facts = facts(&event);
    facts.agent.holds_typed_ahead = true;
    assert_eq!(plan(&facts).unwrap_err(), Missing::TranscriptLength, "for the turn that begins");
    facts.reads.transcript_length = Some(500);
    assert!(plan(&facts).is_ok());
}

#[test]
fn an_agent_without_turn_ids_is_not_searched_for_one() {
    let event = turnless(EventKind::Prompt);
    let mut facts = with_mail(&event);
    facts.agent.holds_typed_ahead = true;
    facts.session.turn = None;
    assert!(plan(&facts).unwrap().offer.is_some());
}

#[test]
fn a_wake_that_finds_nothing_goes_no_further_and_changes_nothing() {
    let woken = event(EventKind::Woken);
    let mut facts = facts(&woken);
    facts.session.state = State::Idle;
    let plan_ = plan(&facts).unwrap();
    assert!(plan_.swallows_prompt && !plan_.writes());
    assert_eq!(plan_.reply(None, None), Reply::Block(wake::NOTHING_WAITS.to_owned()));
    facts.session.wake = Some(WakeId(7));
    assert_eq!(plan(&facts).unwrap().confirms, Some(WakeId(7)), "the wake arrived, even if in vain");
    facts.agent.writes_summaries = true;
    assert!(!plan(&facts).unwrap().reminds, "nothing is read for a prompt that goes no further");
}

#[test]
fn a_turn_that_was_taken_back_is_not_continued() {
    let event = event(EventKind::Stop);
    let mut facts = with_mail(&event);
    facts.agent.stops_when_interrupted = true;
    assert_eq!(plan(&facts).unwrap_err(), Missing::TurnIsTakenBack);
    facts.reads.turn_is_taken_back = Some(true);
    let taken_back = plan(&facts).unwrap();
    assert_eq!(taken_back.offer, None);
    assert!(taken_back.rings(false), "the mail is left over");
    facts.reads.turn_is_taken_back = Some(false);
    assert!(plan(&facts).unwrap().offer.unwrap().at_stop);
    let tools = turnless(EventKind::AfterTools);
    facts.event = &tools;
    facts.reads.turn_is_taken_back = None;
    assert!(plan(&facts).unwrap().offer.is_some(), "between tools nothing was taken back");
}

#[test]
fn mail_keeps_a_session_from_stopping_a_few_times_and_then_rings() {
    let event = event(EventKind::Stop);
    let mut facts = with_mail(&event);
    let stop = plan(&facts).unwrap();
    assert!(stop.offer.as_ref().unwrap().at_stop);
    assert_eq!(stop.reply(Some("mail".to_owned()), None), Reply::Continue("mail".to_owned()));
    assert!(!stop.rings(true) && stop.rings(false), "what was not claimed after all is left over");
    facts.session.stops = Limits::default().stops_in_a_row;
    let last = plan(&facts).unwrap();
    assert_eq!((last.offer.clone(), last.state), (None, Some(State::Idle)));
    assert!(last.rings(false));
    facts.session.mail_offer = Some(OFFER);
    facts.offers = vec![offer(Proof::Held, true)];
    assert!(!plan(&facts).unwrap().rings(false), "an open offer rings when it is settled");
    facts.session.queued = false;
    facts.session.mail_offer = None;
    facts.offers.clear();
    assert!(!plan(&facts).unwrap().rings(false));
}

#[test]
fn a_turn_begins_with_its_first_event_and_by_a_person_only_with_a_prompt() {
    let turn = |event: &Event, session_turn: Option<&'static str>| {
        let mut facts = facts(event);
        facts.session.turn = session_turn;
        facts.reads.transcript_length = Some(500);
        plan(&facts).unwrap().turn
    };
    let start =
        |id: Option<&str>, from, by_person| Some(TurnStart { id: id.map(str::to_owned), from, by_person });
    assert_eq!(turn(&event(EventKind::Prompt), Some("t1")), start(Some("t2"), 500, true));
    assert_eq!(turn(&event(EventKind::Prompt), Some("t2")), start(Some("t2"), 100, true));
    assert_eq!(turn(&turnless(EventKind::Prompt), Some("t1")), start(None, 500, true));
    assert_eq!(turn(&event(EventKind::AfterTool), Some("t1")), start(Some("t2"), 500, false));
    assert_eq!(turn(&event(EventKind::AfterTool), Some("t2")), None);
    assert_eq!(turn(&turnless(EventKind::AfterTool), Some("t1")), None);
    assert_eq!(turn(&event(EventKind::Request), Some("t1")), None, "it may belong to the turn before");
}

#[test]
fn an_offer_belongs_to_the_turn_of_its_event() {
    let event = event(EventKind::AfterTools);
    let offer = plan(&with_mail(&event)).unwrap().offer.unwrap();
    assert_eq!(offer.turn.as_deref(), Some("t2"));
}

#[test]
fn the_state_is_noted_when_it_changes() {
    let stop = event(EventKind::Stop);
    let mut known = facts(&stop);
    known.reads.transcript_length = Some(500);
    assert_eq!(plan(&known).unwrap().state, Some(State::Idle));
    known.session.state = State::Idle;
    assert_eq!(plan(&known).unwrap().state, None);
    let end = turnless(EventKind::End);
    let plan = plan(&facts(&end)).unwrap();
    assert_eq!(plan.state, Some(State::Gone));
    assert!(plan.rings(false), "a process that waits for it learns that it ended");
}

#[test]
fn a_settled_question_ends_a_block_and_nothing_else() {
    let settled = turnless(EventKind::QuestionSettled);
    for (state, change) in
        [(State::Blocked, Some(State::Busy)), (State::Idle, None), (State::Gone, None), (State::Busy, None)]
    {
        let mut facts = facts(&settled);
        facts.session.state = state;
        facts.session.wake = Some(WakeId(7));
        let plan = plan(&facts).unwrap();
        assert_eq!((plan.state, plan.confirms), (change, None), "{state:?}");
    }
}

#[test]
fn a_wake_is_confirmed_by_an_event_of_a_running_turn() {
    for (kind, confirms) in [(EventKind::AfterTool, true), (EventKind::Stop, false), (EventKind::End, false)]
    {
        let event = turnless(kind);
        let mut facts = facts(&event);
        facts.session.wake = Some(WakeId(7));
        let plan = plan(&facts).unwrap();
        assert_eq!(plan.confirms.is_some(), confirms, "{kind:?}");
        assert_eq!(plan.rings(false), confirms || kind == EventKind::End, "{kind:?}");
    }
}

#[test]
fn a_transcript_is_noted_when_it_is_new() {
    let event = Event { transcript: Some(PathBuf::from("/t")), ..turnless(EventKind::AfterTool) };
    let mut facts = facts(&event);
    assert_eq!(plan(&facts).unwrap().transcript.as_deref(), Some("/t"));
    facts.session.transcript = Some("/t");
    assert_eq!(plan(&facts).unwrap().transcript, None);
    facts.session.transcript = Some("/other");
    assert_eq!(plan(&facts).unwrap().transcript.as_deref(), Some("/t"));
}

#[test]
fn a_clear_or_a_compaction_reminds_of_open_asks_where_the_model_hears_it() {
    let reminds = |kind, change: &dyn Fn(&mut Facts<'_>)| {
        let event = turnless(kind);
        let mut facts = facts(&event);
        facts.reads.transcript_length = Some(500);
        change(&mut facts);
        plan(&facts).map(|plan| plan.reminds)
    };
    for source in [Source::Clear, Source::Compact] {
        let start = EventKind::Start(source);
        assert_eq!(reminds(start, &|_| ()), Err(Missing::HasOpenAsks));
        assert_eq!(reminds(start, &|facts| facts.reads.has_open_asks = Some(true)), Ok(true));
        assert_eq!(reminds(start, &|facts| facts.reads.has_open_asks = Some(false)), Ok(false));
        assert_eq!(reminds(start, &|facts| facts.agent.hears_at_start = false), Ok(false));
    }
    assert_eq!(reminds(EventKind::Start(Source::Startup), &|_| ()), Ok(false));
    let deaf_at_start = |facts: &mut Facts<'_>| {
        facts.agent.hears_at_start = false;
        facts.session.fresh = true;
        facts.reads.has_open_asks = Some(true);
    };
    assert_eq!(reminds(EventKind::Prompt, &deaf_at_start), Err(Missing::IsContinuation));
    for continues in [true, false] {
        let first_prompt = |facts: &mut Facts<'_>| {
            deaf_at_start(facts);
            facts.reads.is_continuation = Some(continues);
        };
        assert_eq!(reminds(EventKind::Prompt, &first_prompt), Ok(continues));
        let later_prompt = |facts: &mut Facts<'_>| {
            first_prompt(facts);
            facts.session.fresh = false;
        };
        assert_eq!(reminds(EventKind::Prompt, &later_prompt), Ok(false));
        let hears = |facts: &mut Facts<'_>| {
            first_prompt(facts);
            facts.agent.hears_at_start = true;
        };
        assert_eq!(reminds(EventKind::Prompt, &hears), Ok(false));
    }
}

#[test]
fn a_summary_in_the_transcript_reminds_with_the_next_prompt() {
    for kind in [EventKind::Prompt, EventKind::Woken] {
        let event = turnless(kind);
        let mut facts = with_mail(&event);
        facts.agent.writes_summaries = true;
        assert_eq!(plan(&facts).unwrap_err(), Missing::HasOpenAsks);
        facts.reads.has_open_asks = Some(false);
        assert!(!plan(&facts).unwrap().reminds, "without open asks the transcript is not read");
        facts.reads.has_open_asks = Some(true);
        assert_eq!(plan(&facts).unwrap_err(), Missing::IsSummarized);
        for summarized in [true, false] {
            facts.reads.is_summarized = Some(summarized);
            assert_eq!(plan(&facts).unwrap().reminds, summarized);
        }
    }
}

#[test]
fn a_reminder_stands_before_the_mail() {
    let event = event(EventKind::Prompt);
    let plan = plan(&with_mail(&event)).unwrap();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(plan.reply(None, text("asks")), Reply::Context("asks".to_owned()));
    assert_eq!(plan.reply(text("mail"), text("asks")), Reply::Context("asks\nmail".to_owned()));
}

#[test]
fn an_offer_without_proof_is_looked_at() {
    let event = event(EventKind::AfterTool);
    let mut facts = facts(&event);
    facts.offers = vec![offer(Proof::Proven, false), OfferFacts { proof: None, ..offer(Proof::Open, false) }];
    assert_eq!(plan(&facts).unwrap_err(), Missing::Proof(1));
}

#[test]
fn the_last_chance_to_look_is_worth_a_wait() {
    use EventKind::{AfterTool, End, Prompt, Stop};
    for (kind, proof, waits) in [
        (Stop, Proof::Open, true),
        (Stop, Proof::Held, true),
        (Stop, Proof::Blind, true),
        (Stop, Proof::Proven, false),
        (Stop, Proof::Passed, false),
        (End, Proof::Open, true),
        (End, Proof::Held, false),
        (End, Proof::Blind, true),
        (Prompt, Proof::Open, false),
        (Prompt, Proof::Held, false),
        (Prompt, Proof::Blind, true),
        (AfterTool, Proof::Open, false),
        (AfterTool, Proof::Blind, false),
    ] {
        let event = event(kind);
        let mut facts = with_mail(&event);
        facts.offers = vec![offer(proof, false)];
        let patient = plan(&facts).err() == Some(Missing::PatientProof(0));
        assert_eq!(patient, waits, "{kind:?} {proof:?}");
        facts.offers = vec![offer(proof, true)];
        assert!(plan(&facts).is_ok(), "one wait is enough");
    }
}

#[test]
fn an_offer_is_judged_by_what_its_session_went_through() {
    let tool = event(EventKind::AfterTool);
    let mut known = with_mail(&tool);
    let own = offer(Proof::Open, true);
    known.offers = vec![own];
    assert_eq!(settled(&known), Settle::Keep, "more will come in this session");
    known.offers = vec![OfferFacts { of_this_session: false, ..own }];
    assert_eq!(settled(&known), Settle::Keep, "its own session may still answer");
    known.offers = vec![OfferFacts { of_this_session: false, session_over: true, ..own }];
    assert_eq!(settled(&known), Settle::Return, "no session goes on with that file");
    known.offers = vec![own];
    known.session.resumed = true;
    assert_eq!(settled(&known), Settle::Return, "the file is complete");
    known.offers = vec![OfferFacts { of_this_session: false, ..own }];
    assert_eq!(settled(&known), Settle::Keep, "another session was not resumed");
}

#[test]
fn a_prompt_of_the_offers_own_turn_is_no_boundary() {
    for kind in [EventKind::Prompt, EventKind::Woken, EventKind::Stop] {
        let event = event(kind);
        let mut facts = with_mail(&event);
        let blind = offer(Proof::Blind, true);
        facts.offers = vec![OfferFacts { turn: Some("t2"), ..blind }];
        let same = if kind == EventKind::Stop { Settle::Doubt } else { Settle::Keep };
        assert_eq!(settled(&facts), same, "{kind:?}");
        facts.offers = vec![blind];
        assert_eq!(settled(&facts), Settle::Doubt, "{kind:?}: another turn");
    }
    let unnamed = turnless(EventKind::Prompt);
    let mut facts = with_mail(&unnamed);
    facts.offers = vec![OfferFacts { turn: None, ..offer(Proof::Blind, true) }];
    assert_eq!(settled(&facts), Settle::Doubt, "two turns without names are not the same");
}

#[test]
fn a_search_starts_before_its_turn_and_reaches_beyond_the_offer() {
    let behind = limits::LOOK_BEHIND_BYTES;
    let half = limits::LOOK_BYTES / 2;
    assert_eq!(start_of_search(behind + 5, behind + 10), 5);
    assert_eq!(start_of_search(5, 10), 0);
    assert_eq!(start_of_search(behind + 50, behind + 10), 10, "a turn can't begin behind the end");
    assert_eq!(start_of_search(0, half + 7), 7, "no further back than one search reads");
}
