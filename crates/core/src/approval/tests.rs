//! The table of steps: what each leads to, and what never happens in any order of them.

use super::*;
use proptest::prelude::*;

#[test]
fn states_read_back() {
    for state in State::ALL {
        assert_eq!(State::parse(state.as_str()), Some(state));
    }
    assert_eq!(State::parse("approved "), None);
    for answer in [Answer::Allow, Answer::AllowAlways, Answer::Deny("no".into()), Answer::Words("x".into())] {
        let (word, words) = answer.in_words();
        assert_eq!(Answer::read(word, words), Some(answer));
    }
    assert_eq!(Answer::read("perhaps", ""), None);
}

#[test]
fn what_ended_stays() {
    for state in State::ALL.into_iter().filter(|state| state.is_end()) {
        for step in Step::ALL {
            assert_eq!(state.after(step, Some(&Answer::Allow)), None, "{state} {step:?}");
        }
    }
}

#[test]
fn an_answer_is_taken_by_what_waits_for_its_kind() {
    let permission = Question::new("1", Subject::command("bash", "ls"));
    let question =
        Question::new("2", Subject::input(None, vec![Part::question("which?", &[])], vec!["a".into()]));
    for (answer, by_permission, by_question) in [
        (Answer::Allow, true, false),
        (Answer::AllowAlways, true, false),
        (Answer::Words("a".into()), false, true),
        (Answer::Deny(String::new()), true, true),
    ] {
        assert_eq!((permission.takes(&answer), question.takes(&answer)), (by_permission, by_question));
    }
}

/// An agent with one question and its own dialog, the holder of it, and two people who answer
/// whenever they like.
///
/// The agent behaves like a real one: the first answer counts, wherever it comes from.
#[derive(Debug)]
struct World {
    state: State,
    given: Option<Answer>,
    /// Taken by the holder, on its way to the agent.
    on_its_way: Option<Answer>,
    /// What the agent did: `Some(true)` if it ran the tool.
    did: Option<bool>,
    /// Whose answer that was.
    by_dialog: bool,
    grants: usize,
    denied: bool,
    alive: bool,
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Approve,
    Deny,
    Take,
    Arrive,
    Lose,
    Dialog(bool),
    Release,
    Look,
    Die,
}

impl World {
    fn new() -> Self {
        Self {
            state: State::Waiting,
            given: None,
            on_its_way: None,
            did: None,
            by_dialog: false,
            grants: 0,
            denied: false,
            alive: true,
        }
    }

    fn step(&mut self, step: Step) -> bool {
        let next = self.state.after(step, self.given.as_ref());
        self.state = next.unwrap_or(self.state);
        next.is_some()
    }

    fn answer(&mut self, answer: Answer) {
        if self.step(Step::Answer) {
            assert!(self.given.is_none() || self.did.is_none(), "answered twice");
            self.given = Some(answer);
        }
    }

    fn decide(&mut self, runs: bool, by_dialog: bool) {
        if self.did.is_none() && self.alive {
            self.did = Some(runs);
            self.by_dialog = by_dialog;
            self.grants += usize::from(runs);
        }
    }

    fn make(&mut self, step: Move) {
        match step {
            Move::Approve => self.answer(Answer::Allow),
            Move::Deny => {
                self.denied |= self.state == State::Waiting;
                self.answer(Answer::Deny("no".into()));
            }
            Move::Take => {
                if self.step(Step::Take) {
                    assert!(self.on_its_way.is_none(), "handed over twice");
                    self.on_its_way = self.given.clone();
                }
            }
            Move::Arrive => {
                if let Some(answer) = self.on_its_way.take() {
                    assert!(answer == Answer::Allow || self.denied);
                    self.decide(answer == Answer::Allow, false);
                }
            }
            // The holder is killed between taking and handing over.
            Move::Lose => self.on_its_way = None,
            Move::Dialog(runs) => self.decide(runs, true),
            Move::Release => _ = self.step(Step::Release),
            Move::Look => match (self.alive, self.did) {
                (false, _) => _ = self.step(Step::Gone),
                (true, Some(true)) => _ = self.step(Step::Ran),
                (true, Some(false)) => _ = self.step(Step::RefusedThere),
                (true, None) => {}
            },
            Move::Die => self.alive = false,
        }
    }
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => Just(Move::Approve),
        3 => Just(Move::Deny),
        3 => Just(Move::Take),
        3 => Just(Move::Arrive),
        1 => Just(Move::Lose),
        1 => any::<bool>().prop_map(Move::Dialog),
        1 => Just(Move::Release),
        3 => Just(Move::Look),
        1 => Just(Move::Die),
    ];
    prop::collection::vec(one, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_yes_is_given_twice_nor_after_a_no_nor_reported_where_there_was_none(moves in moves()) {
        let mut world = World::new();
        for step in moves {
            let before = world.state;
            world.make(step);
            prop_assert!(!before.is_end() || world.state == before, "an end was left");
            prop_assert!(world.grants <= 1);
            if world.denied && world.given == Some(Answer::Deny("no".into())) {
                prop_assert!(world.did != Some(true) || world.by_dialog, "granted after a no");
            }
        }
        world.make(Move::Look);
        match world.state {
            State::Approved => prop_assert_eq!(world.did, Some(true)),
            State::Denied => prop_assert_eq!(world.did, Some(false)),
            State::Gone => prop_assert!(!world.alive),
            _ => {}
        }
        if world.did.is_some() && world.alive {
            prop_assert!(world.state.is_end(), "{:?}", world);
        }
    }

    #[test]
    fn a_release_and_an_answer_never_both_count(answer_first in any::<bool>()) {
        let mut state = State::Waiting;
        let steps = if answer_first { [Step::Answer, Step::Take, Step::Release] } else { [Step::Release, Step::Answer, Step::Take] };
        let made: Vec<bool> = steps.into_iter().map(|step| {
            let next = state.after(step, Some(&Answer::Allow));
            state = next.unwrap_or(state);
            next.is_some()
        }).collect();
        prop_assert_eq!(made, if answer_first { vec![true, true, false] } else { vec![true, false, false] });
    }
}

#[test]
fn an_answer_that_was_handed_over_outlives_its_holder() {
    let left = |state: &State| state.after(Step::Abandon, Some(&Answer::Allow)).is_some();
    let lost: Vec<State> = State::ALL.into_iter().filter(left).collect();
    assert_eq!(lost, [State::Waiting, State::Answered]);
}

#[test]
fn s1_a_line_is_whole_only_if_nothing_around_it_matters() {
    let question = || Question::new("1", Subject::command("bash", "rm -rf ./build"));
    let plain = question().line(None);
    assert_eq!((plain.text.as_str(), plain.is_whole), ("bash: rm -rf ./build", true));
    let there = question().line(Some("/etc\u{1b}[2J"));
    assert!(there.text.starts_with("bash: rm -rf ./build … (runs in /etc") && !there.is_whole, "{there:?}");
    assert!(!there.text.contains('\u{1b}'), "{there:?}");
    let guarded = Question { why: Some("files would be lost".into()), ..question() };
    let line = guarded.line(Some("/etc"));
    assert_eq!(line.text, "bash: rm -rf ./build … (runs in /etc, the guard says: files would be lost)");
    assert!(!line.is_whole && !guarded.line(None).is_whole);
}
