//! Questions on the real store: two answers at once, holders that die, and a thousand
//! interleavings.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::thread;

fn id(number: u8) -> ApprovalId {
    ApprovalId::from_random([number; 8])
}

/// What is asked in these tests.
fn digest() -> &'static Digest {
    static DIGEST: std::sync::LazyLock<Digest> = std::sync::LazyLock::new(|| of("ls"));
    &DIGEST
}

fn of(command: &str) -> Digest {
    let by = baton_core::approval::AskedBy { agent: "claude", asker: "s", folder: "/p" };
    baton_core::approval::Subject::command("bash", command).digest(by)
}

fn new(number: u8, asked: &'static str) -> NewApproval<'static> {
    NewApproval {
        id: id(number),
        project: "/p",
        cwd: "/p",
        agent: "claude",
        session: "s",
        subagent: None,
        participant: Some(ParticipantId(3)),
        name: "otter",
        transcript: None,
        question: "{}",
        digest: digest(),
        why: None,
        asked,
        call: None,
        input: u64::MAX - 1,
        asker: Some(Process { pid: 7, start: 8 }),
        holder: Some(Process { pid: 9, start: 10 }),
        until: None,
        now: Moment(1_000),
    }
}

fn asking(home: &Path) -> bool {
    Approvals::open_if_asking(home, "claude", "s").unwrap().is_some()
}

#[test]
fn a_question_goes_its_way_and_the_mark_with_it() {
    let home = tempfile::tempdir().unwrap();
    assert!(Approvals::open_if_any(home.path(), Role::Command).unwrap().is_none() && !asking(home.path()));
    let mut store = Approvals::open(home.path(), Role::Command).unwrap();
    let recorded = store.record(&new(1, "")).unwrap();
    assert!(recorded.moved && asking(home.path()));
    assert_eq!((recorded.row.state, recorded.row.input), (State::Waiting, u64::MAX - 1));
    assert_eq!(recorded.row.holder, Some(Process { pid: 9, start: 10 }));
    assert_eq!(store.pending().unwrap(), [recorded.row]);
    assert!(!store.take(&id(1), digest(), Moment(2)).unwrap().unwrap().moved, "nothing to take yet");
    let no = Answer::Deny("not today".into());
    let answered = store.answer(&id(1), digest(), &no, "user", Moment(2)).unwrap().unwrap();
    assert!(answered.moved);
    let second = store.answer(&id(1), digest(), &Answer::Allow, "other", Moment(3)).unwrap().unwrap();
    assert!(!second.moved);
    assert_eq!((second.row.answer, second.row.by.as_deref()), (Some(no), Some("user")), "the first stays");
    assert!(store.take(&id(1), digest(), Moment(4)).unwrap().unwrap().moved);
    assert!(!store.take(&id(1), digest(), Moment(5)).unwrap().unwrap().moved, "handed over once");
    assert!(!store.release(&id(1)).unwrap().unwrap().moved, "what was taken is not released");
    let closed = store.close(&id(1), Step::RefusedThere, None, Moment(6)).unwrap().unwrap();
    assert_eq!((closed.row.state, closed.row.closed_at), (State::Denied, Some(Moment(6))));
    assert!(!store.close(&id(1), Step::Gone, None, Moment(7)).unwrap().unwrap().moved);
    assert!(!asking(home.path()) && store.pending().unwrap().is_empty());
    assert_eq!(store.get(&id(1)).unwrap().unwrap().state, State::Denied);
    assert_eq!(store.answer(&id(9), digest(), &Answer::Allow, "user", Moment(8)).unwrap(), None);
}

#[test]
fn what_is_told_twice_is_one_question_and_asked_again_it_is_another() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Approvals::open(home.path(), Role::Command).unwrap();
    let first = store.record(&new(1, "per_1")).unwrap();
    let again = store.record(&new(2, "per_1")).unwrap();
    assert!(first.moved && !again.moved);
    assert_eq!(again.row.id, id(1));
    let open = store.of_session("claude", "s").unwrap();
    assert_eq!(open.iter().map(|row| (&row.id, row.asked.as_str())).collect::<Vec<_>>(), [(&id(1), "per_1")]);
    store.close(&id(1), Step::Over, None, Moment(2)).unwrap();
    assert!(!asking(home.path()));
    assert!(store.record(&new(3, "per_1")).unwrap().moved && asking(home.path()));
    // Without an id of the agent's, each is one of its own.
    assert!(store.record(&new(4, "")).unwrap().moved && store.record(&new(5, "")).unwrap().moved);
    assert_eq!(store.of_session("claude", "s").unwrap().len(), 3);
    assert_eq!(store.of_session("claude", "another").unwrap(), []);
}

#[test]
fn a_refused_answer_leaves_room_for_another() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Approvals::open(home.path(), Role::Command).unwrap();
    store.record(&new(1, "per_1")).unwrap();
    store.answer(&id(1), digest(), &Answer::Allow, "user", Moment(2)).unwrap();
    store.take(&id(1), digest(), Moment(3)).unwrap();
    let back = store.record_refusal(&id(1), "404").unwrap().unwrap();
    assert_eq!(
        (back.row.state, back.row.answer, back.row.note.as_deref()),
        (State::Waiting, None, Some("404"))
    );
    assert!(
        store
            .answer(&id(1), digest(), &Answer::Deny(String::new()), "user", Moment(4))
            .unwrap()
            .unwrap()
            .moved
    );
}

#[test]
fn an_old_question_is_forgotten_and_a_hostile_session_names_no_file() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Approvals::open(home.path(), Role::Command).unwrap();
    let hostile = NewApproval { session: "../../x\n", ..new(1, "") };
    store.record(&hostile).unwrap();
    let marks: Vec<_> = std::fs::read_dir(home.path().join("asking")).unwrap().flatten().collect();
    assert_eq!(marks[0].file_name(), "claude-______x_");
    store.close(&id(1), Step::Over, None, Moment(2_000)).unwrap();
    store.record(&NewApproval { now: Moment(2_000 + KEEP_CLOSED_FOR.0 + 1), ..new(2, "") }).unwrap();
    assert_eq!(store.get(&id(1)).unwrap(), None);
    assert_eq!(store.latest(10).unwrap().len(), 1);
}

/// Threads with a connection each, like real processes: two people, a holder whose time is over,
/// and the agent's own dialog.
#[test]
fn of_all_who_come_at_once_one_is_first() {
    let home = tempfile::tempdir().unwrap();
    Approvals::open(home.path(), Role::Command).unwrap();
    let rounds = std::env::var("BATON_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(40_u8);
    for round in 1..=rounds {
        let mut store = Approvals::open(home.path(), Role::Command).unwrap();
        store.record(&new(round, "")).unwrap();
        let with = |step: &(dyn Fn(&mut Approvals) -> bool + Sync)| {
            step(&mut Approvals::open(home.path(), Role::Command).unwrap())
        };
        let moved = |moved: Result<Option<Moved>, Error>| moved.unwrap().unwrap().moved;
        let id = id(round);
        let (allowed, denied, released, taken) = thread::scope(|scope| {
            let allow = scope
                .spawn(|| with(&|store| moved(store.answer(&id, digest(), &Answer::Allow, "a", Moment(1)))));
            let deny = scope.spawn(|| {
                with(&|store| moved(store.answer(&id, digest(), &Answer::Deny("no".into()), "b", Moment(1))))
            });
            let hold = scope.spawn(|| {
                let mut store = Approvals::open(home.path(), Role::Command).unwrap();
                // The holder takes what is there, and lets go otherwise.
                let taken = moved(store.take(&id, digest(), Moment(2)));
                (!taken && moved(store.release(&id)), taken)
            });
            let late = scope.spawn(|| with(&|store| moved(store.take(&id, digest(), Moment(3)))));
            let (released, taken) = hold.join().unwrap();
            let late = late.join().unwrap();
            assert!(!(taken && late), "taken twice");
            (allow.join().unwrap(), deny.join().unwrap(), released, taken || late)
        });
        let row = store.get(&id).unwrap().unwrap();
        assert!(!(allowed && denied), "both answers counted");
        assert!(!(taken && released), "handed over, and given to the dialog");
        match row.state {
            State::Terminal => assert!(released && row.answer.is_none()),
            State::Handed => assert!(taken && row.answer.is_some()),
            State::Answered => assert!((allowed || denied) && !taken && !released),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn of_many_who_would_tell_one_does_and_the_next_waits_its_time() {
    let home = tempfile::tempdir().unwrap();
    let window = Span::seconds(5);
    let claim = |who: &str, asked: i64, now: i64| {
        let mut store = Approvals::open(home.path(), Role::Command).unwrap();
        store.claim_notice(who, Moment(asked), Moment(now), window).unwrap()
    };
    Approvals::open(home.path(), Role::Command).unwrap();
    let made = thread::scope(|scope| {
        let tellers: Vec<_> = (0..8).map(|_| scope.spawn(|| claim("s", 1_000, 2_000))).collect();
        tellers.into_iter().map(|teller| teller.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(made.iter().filter(|one| **one == NoticeClaim::Granted).count(), 1);
    assert_eq!(made.iter().filter(|one| **one == NoticeClaim::Covered).count(), 7);
    assert_eq!(
        claim("s", 2_000, 2_500),
        NoticeClaim::Wait(Span(4_500)),
        "asked in the same moment: not told of"
    );
    assert_eq!(claim("other", 2_000, 2_500), NoticeClaim::Granted);
    assert_eq!(claim("s", 2_400, 7_000), NoticeClaim::Granted);
    assert_eq!(claim("s", 2_450, 7_000), NoticeClaim::Covered, "with the one before");
    assert_eq!(claim("s", 7_100, 6_000), NoticeClaim::Granted, "a clock that was set back silences nobody");
}

#[test]
fn the_first_version_is_brought_up_to_date_with_what_is_in_it() {
    let home = tempfile::tempdir().unwrap();
    Approvals::open(home.path(), Role::Command).unwrap().record(&new(1, "")).unwrap();
    let conn = Connection::open(home.path().join("approvals.db")).unwrap();
    conn.execute_batch("DROP TABLE notice; ALTER TABLE approval DROP COLUMN digest; ALTER TABLE approval DROP COLUMN answered; PRAGMA user_version = 1").unwrap();
    drop(conn);
    let mut store = Approvals::open(home.path(), Role::Command).unwrap();
    assert_eq!(store.pending().unwrap().len(), 1);
    assert_eq!(store.claim_notice("s", Moment(1), Moment(2), Span(5)).unwrap(), NoticeClaim::Granted);
}

/// What may happen to one of three questions of a session, in any order.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A person says yes.
    Approve,
    /// A person says no.
    Deny,
    /// Its holder takes what is there.
    Take,
    /// What it took comes to the agent.
    Arrive,
    /// Its holder's time is over, or the holder is gone.
    Release,
    /// The agent refuses it.
    Refuse,
    /// Its person answers the agent's own dialog.
    Dialog(bool),
    /// A reader checks what the agent has done.
    Look,
    /// The agent asks the same again, under another id.
    AskAgain,
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![
        3 => Just(Act::Approve),
        3 => Just(Act::Deny),
        4 => Just(Act::Take),
        4 => Just(Act::Arrive),
        1 => Just(Act::Release),
        1 => Just(Act::Refuse),
        1 => any::<bool>().prop_map(Act::Dialog),
        3 => Just(Act::Look),
        1 => Just(Act::AskAgain),
    ];
    prop::collection::vec((0..3_usize, act), 1..30)
}

/// A question as its agent sees it.
struct Asked {
    id: ApprovalId,
    /// What the agent did: it ran the tool, or did not.
    did: Option<bool>,
    /// The answers that people have given and were told to count.
    accepted: Vec<bool>,
    /// What its holder has taken.
    on_its_way: Option<bool>,
    /// How often it was taken since the last refusal.
    taken: usize,
}

/// In memory if possible: this test counts moves, not how long a disk takes for them.
fn quick_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a folder")
}

#[test]
fn no_yes_is_given_twice_or_to_another_question_or_after_a_no() {
    let home = quick_folder();
    let mut store = Approvals::open(home.path(), Role::Command).unwrap();
    let mut next = 0_u64;
    let mut fresh = |store: &mut Approvals| {
        next += 1;
        let id = ApprovalId::from_random(next.to_le_bytes());
        store.record(&NewApproval { id: id.clone(), ..new(0, "") }).unwrap();
        Asked { id, did: None, accepted: Vec::new(), on_its_way: None, taken: 0 }
    };
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let store = std::cell::RefCell::new(&mut store);
    let fresh = std::cell::RefCell::new(&mut fresh);
    runner
        .run(&acts(), |acts| {
            let (mut store, mut fresh) = (store.borrow_mut(), fresh.borrow_mut());
            let mut questions: Vec<Asked> = (0..3).map(|_| fresh(&mut store)).collect();
            for (which, act) in acts {
                let moved = |moved: Result<Option<Moved>, Error>| moved.unwrap().filter(|moved| moved.moved);
                let asked = &mut questions[which];
                match act {
                    Act::Approve | Act::Deny => {
                        let yes = matches!(act, Act::Approve);
                        let answer = if yes { Answer::Allow } else { Answer::Deny("no".into()) };
                        if moved(store.answer(&asked.id, digest(), &answer, "user", Moment(2))).is_some() {
                            asked.accepted.push(yes);
                        }
                    }
                    Act::Take => {
                        if let Some(taken) = moved(store.take(&asked.id, digest(), Moment(3))) {
                            asked.taken += 1;
                            prop_assert_eq!(asked.taken, 1, "handed over twice");
                            prop_assert_eq!(&taken.row.id, &asked.id);
                            let yes = taken.row.answer == Some(Answer::Allow);
                            prop_assert_eq!(Some(&yes), asked.accepted.last(), "not what was said last");
                            asked.on_its_way = Some(yes);
                        }
                    }
                    // The agent goes by what comes first.
                    Act::Arrive => asked.did = asked.did.or(asked.on_its_way.take()),
                    Act::Refuse => {
                        if asked.on_its_way.take().is_some()
                            && moved(store.record_refusal(&asked.id, "404")).is_some()
                        {
                            asked.taken = 0;
                        }
                    }
                    Act::Release => _ = moved(store.release(&asked.id)),
                    Act::Dialog(yes) => asked.did = asked.did.or(Some(yes)),
                    Act::Look => {
                        let step = asked.did.map(|ran| if ran { Step::Ran } else { Step::RefusedThere });
                        if let Some(closed) =
                            step.and_then(|step| moved(store.close(&asked.id, step, None, Moment(4))))
                        {
                            match closed.row.state {
                                State::Approved => prop_assert!(
                                    asked.did == Some(true) && asked.accepted.last() == Some(&true)
                                ),
                                State::Denied => prop_assert!(
                                    asked.did == Some(false) && asked.accepted.last() == Some(&false)
                                ),
                                _ => {}
                            }
                        }
                    }
                    Act::AskAgain => *asked = fresh(&mut store),
                }
                // After a no that may have reached the agent there is no yes.
                let asked = &questions[which];
                prop_assert!(
                    asked.taken == 0
                        || asked.accepted.last() != Some(&false)
                        || asked.on_its_way != Some(true)
                );
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn s3_an_answer_counts_only_for_what_was_shown() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Approvals::open(home.path(), Role::Command).unwrap();
    store.record(&new(1, "per_1")).unwrap();
    let other = of("curl x | sh");
    let refused = store.answer(&id(1), &other, &Answer::Allow, "user", Moment(2)).unwrap_err();
    assert_eq!(refused.code(), Code::QuestionChanged);
    assert_eq!(store.get(&id(1)).unwrap().unwrap().state, State::Waiting);
    // Shown and answered; but its holder has something else in hand.
    assert!(store.answer(&id(1), digest(), &Answer::Allow, "user", Moment(3)).unwrap().unwrap().moved);
    assert_eq!(store.take(&id(1), &other, Moment(4)).unwrap_err().code(), Code::QuestionChanged);
    let row = store.get(&id(1)).unwrap().unwrap();
    assert_eq!((row.state, row.answer, row.answered), (State::Waiting, None, None), "it waits for another");
}

#[test]
fn s3_another_question_under_the_same_id_is_another_row() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Approvals::open(home.path(), Role::Command).unwrap();
    store.record(&new(1, "per_1")).unwrap();
    assert!(!store.record(&new(2, "per_1")).unwrap().moved, "the same, told twice");
    let other = of("curl x | sh");
    let swapped = store.record(&NewApproval { digest: &other, ..new(3, "per_1") }).unwrap();
    assert!(swapped.moved && swapped.row.id == id(3));
    let late = store.answer(&id(1), digest(), &Answer::Allow, "user", Moment(5)).unwrap().unwrap();
    assert_eq!((late.moved, late.row.state), (false, State::Elsewhere));
    assert_eq!(store.get(&id(3)).unwrap().unwrap().state, State::Waiting);
}
