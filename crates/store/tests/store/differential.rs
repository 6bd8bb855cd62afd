//! Random sequences of accept, claim and settle give the same states in SQLite as in the pure
//! mailbox.

use crate::post::{NOW, claim, send, session};
use baton_core::id::{MessageId, MessageRow, OfferId, ParticipantId, SessionRow};
use baton_core::limits;
use baton_core::mail::{Delivery, Mailbox, Settle};
use baton_store::{MailFilter, Role, Store};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Debug)]
enum Step {
    /// To the first, the second, or both.
    Accept(u8),
    Claim(u8, usize),
    /// Settles the newest offer of a recipient, or an older one.
    Settle(u8, Settle, usize),
    /// Offers that come back again and again.
    Bounce(u8, u32),
    /// Another connection goes on.
    Reopen(bool),
}

fn settle() -> impl Strategy<Value = Settle> {
    prop_oneof![Just(Settle::Seen), Just(Settle::Return), Just(Settle::Doubt), Just(Settle::Keep)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u8..3).prop_map(Step::Accept),
        6 => (0u8..2, 1usize..5).prop_map(|(who, most)| Step::Claim(who, most)),
        6 => (0u8..2, settle(), 0usize..3).prop_map(|(who, settle, back)| Step::Settle(who, settle, back)),
        1 => (0u8..2, 1u32..25).prop_map(|(who, times)| Step::Bounce(who, times)),
        1 => any::<bool>().prop_map(Step::Reopen),
    ]
}

/// One recipient in both worlds.
struct Twin {
    me: (ParticipantId, SessionRow),
    mailbox: Mailbox,
    offers: Vec<OfferId>,
}

struct Both {
    home: tempfile::TempDir,
    store: Store,
    sender: ParticipantId,
    twins: [Twin; 2],
    ids: HashMap<MessageRow, MessageId>,
}

impl Both {
    fn new() -> Both {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(home.path(), Role::Command).unwrap();
        let (sender, _) = session(&mut store, "sender");
        let twins = ["one", "two"].map(|id| Twin {
            me: session(&mut store, id),
            mailbox: Mailbox::default(),
            offers: Vec::new(),
        });
        Both { home, store, sender, twins, ids: HashMap::new() }
    }

    fn claim(&mut self, who: usize, most: usize) {
        let twin = &mut self.twins[who];
        let queued: Vec<_> = twin.mailbox.entries().to_vec();
        match claim(&mut self.store, twin.me, most) {
            Some(taken) => {
                let rows = twin.mailbox.claim(taken.offer, most);
                let expected: Vec<(MessageId, bool)> = rows
                    .iter()
                    .map(|row| {
                        (
                            self.ids[row].clone(),
                            queued.iter().any(|entry| entry.message == *row && entry.doubted),
                        )
                    })
                    .collect();
                let got: Vec<(MessageId, bool)> =
                    taken.letters.iter().map(|letter| (letter.id.clone(), letter.perhaps_repeated)).collect();
                assert_eq!(got, expected, "the same letters, the same doubts");
                twin.offers.push(taken.offer);
            }
            None => assert_eq!(twin.mailbox.claim(OfferId(i64::MAX), most), [], "the store claimed nothing"),
        }
    }

    fn settle(&mut self, who: usize, settle: Settle, back: usize) {
        let twin = &mut self.twins[who];
        let Some(offer) = twin.offers.iter().rev().nth(back).copied() else { return };
        self.store.settle(offer, settle, NOW).unwrap();
        twin.mailbox.settle(offer, settle);
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Accept(to) => {
                let chosen: Vec<usize> = if *to == 2 { vec![0, 1] } else { vec![usize::from(*to)] };
                let recipients: Vec<ParticipantId> = chosen.iter().map(|who| self.twins[*who].me.0).collect();
                let (id, row) = send(&mut self.store, self.sender, &recipients, "hello");
                self.ids.insert(row, id);
                for who in chosen {
                    self.twins[who].mailbox.accept(row);
                }
            }
            Step::Claim(who, most) => self.claim(usize::from(*who), *most),
            Step::Settle(who, settle, back) => self.settle(usize::from(*who), *settle, *back),
            Step::Bounce(who, times) => {
                for _ in 0..*times {
                    self.claim(usize::from(*who), 2);
                    self.settle(usize::from(*who), Settle::Return, 0);
                }
            }
            Step::Reopen(hook) => {
                let role = if *hook { Role::Hook } else { Role::Command };
                self.store = Store::open(self.home.path(), role).unwrap();
            }
        }
    }

    fn compare(&self) {
        for twin in &self.twins {
            for entry in twin.mailbox.entries() {
                let mail = self.store.message(&self.ids[&entry.message]).unwrap().unwrap();
                let row = mail.deliveries.iter().find(|row| row.participant == twin.me.0).unwrap();
                assert_eq!((row.state, row.returns), (entry.state, entry.returns), "{entry:?}");
            }
            let view = self
                .store
                .hook_view("claude", if twin.me == self.twins[0].me { "one" } else { "two" })
                .unwrap()
                .unwrap();
            assert_eq!(view.mail_offer, twin.mailbox.open());
            assert_eq!(
                view.queued,
                twin.mailbox.entries().iter().any(|entry| entry.state == Delivery::Queued)
            );
        }
        // Each end that is not `seen` has told the sender, once.
        let sad = |state: Delivery| state.is_end() && state != Delivery::Seen;
        let ends = self
            .twins
            .iter()
            .flat_map(|twin| twin.mailbox.entries())
            .filter(|entry| sad(entry.state))
            .count();
        let history = self
            .store
            .history(&MailFilter { of: Some(self.sender), most: 10_000, ..MailFilter::default() })
            .unwrap();
        assert_eq!(history.iter().filter(|mail| mail.sender.is_none()).count(), ends);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_does_what_the_mailbox_means(steps in proptest::collection::vec(step(), 1..60)) {
        let mut both = Both::new();
        for step in &steps {
            both.play(step);
            both.compare();
        }
        both.store.check().unwrap();
    }
}

#[test]
fn an_offer_that_comes_back_twenty_times_is_undeliverable() {
    let mut both = Both::new();
    both.play(&Step::Accept(0));
    both.play(&Step::Bounce(0, limits::MAX_RETURNS));
    both.compare();
    assert_eq!(both.twins[0].mailbox.entries()[0].state, Delivery::Undeliverable);
}

/// Two who look at the same offer and disagree: one wins, and the other changes nothing.
#[test]
fn of_two_settlers_one_wins() {
    for round in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(home.path(), Role::Command).unwrap();
        let (sender, _) = session(&mut store, "sender");
        let me = session(&mut store, "me");
        let (id, _) = send(&mut store, sender, &[me.0], "hello");
        let offer = claim(&mut store, me, 5).unwrap().offer;
        std::thread::scope(|scope| {
            for settle in [Settle::Seen, Settle::Return, Settle::Seen, Settle::Return] {
                let home = home.path();
                scope.spawn(move || {
                    Store::open(home, Role::Hook).unwrap().settle(offer, settle, NOW).unwrap()
                });
            }
        });
        let row = store.message(&id).unwrap().unwrap().deliveries.remove(0);
        let consistent = matches!((row.state, row.returns), (Delivery::Seen, 0) | (Delivery::Queued, 1));
        assert!(consistent, "round {round}: {row:?}");
    }
}

/// Eight who claim at the same instant: one gets it all, the others nothing.
#[test]
fn of_eight_claimers_one_wins() {
    for _ in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(home.path(), Role::Command).unwrap();
        let (sender, _) = session(&mut store, "sender");
        let me = session(&mut store, "me");
        for n in 0..3 {
            send(&mut store, sender, &[me.0], &format!("hello {n}"));
        }
        let claimed: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let home = home.path();
                    scope.spawn(move || {
                        let mut store = Store::open(home, Role::Hook).unwrap();
                        claim(&mut store, me, 5).map_or(0, |taken| taken.letters.len())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut sorted = claimed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 0, 0, 0, 0, 0, 0, 3], "{claimed:?}");
    }
}
