//! One recipient's mail as a pure state machine: the executable meaning of the store's
//! transactions.
//!
//! The store does the same with SQL, and its tests run random sequences on both and compare. This
//! module owns only states. Texts, nonces and sessions are in the store.

use super::delivery::Delivery;
use super::turn::Settle;
use crate::id::{MessageRow, OfferId};
use crate::limits;

/// One message in the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Rows ascend in the order of acceptance.
    pub message: MessageRow,
    pub state: Delivery,
    /// How many offers of it came back to the queue.
    pub returns: u32,
    /// An offer of it ended in doubt, so the next one is marked as a possible repeat.
    pub doubted: bool,
}

/// What becomes of a message when its offer is settled. No other code decides this.
pub fn settled(settle: Settle, entry: Entry) -> Entry {
    match settle {
        Settle::Keep => entry,
        Settle::Seen => Entry { state: Delivery::Seen, ..entry },
        Settle::Return if entry.returns + 1 >= limits::MAX_RETURNS => {
            Entry { state: Delivery::Undeliverable, returns: entry.returns + 1, ..entry }
        }
        Settle::Return => Entry { state: Delivery::Queued, returns: entry.returns + 1, ..entry },
        Settle::Doubt if entry.doubted => Entry { state: Delivery::Unconfirmed, ..entry },
        Settle::Doubt => Entry { state: Delivery::Queued, doubted: true, ..entry },
    }
}

#[derive(Clone, Debug)]
struct OpenOffer {
    id: OfferId,
    messages: Vec<MessageRow>,
}

/// All mail of one recipient.
#[derive(Clone, Debug, Default)]
pub struct Mailbox {
    entries: Vec<Entry>,
    open: Option<OpenOffer>,
}

impl Mailbox {
    /// Accepts a message; messages come in ascending order.
    pub fn accept(&mut self, message: MessageRow) {
        assert!(self.entries.last().is_none_or(|last| last.message < message), "accepted out of order");
        self.entries.push(Entry { message, state: Delivery::Queued, returns: 0, doubted: false });
    }

    pub fn open(&self) -> Option<OfferId> {
        self.open.as_ref().map(|open| open.id)
    }

    /// Claims up to `most` queued messages, oldest first, for a new offer. If an offer is open or
    /// nothing waits, it claims none.
    pub fn claim(&mut self, offer: OfferId, most: usize) -> Vec<MessageRow> {
        if self.open.is_some() {
            return Vec::new();
        }
        let mut taken = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.state == Delivery::Queued).take(most) {
            entry.state = Delivery::Offered;
            taken.push(entry.message);
        }
        if !taken.is_empty() {
            self.open = Some(OpenOffer { id: offer, messages: taken.clone() });
        }
        taken
    }

    /// Settles the offer if it is still the open one. The first to settle it wins; settling an
    /// older offer changes nothing.
    pub fn settle(&mut self, offer: OfferId, settle: Settle) {
        if settle == Settle::Keep || self.open() != Some(offer) {
            return;
        }
        let Some(OpenOffer { messages, .. }) = self.open.take() else { return };
        for entry in self.entries.iter_mut().filter(|entry| messages.contains(&entry.message)) {
            let next = settled(settle, *entry);
            assert!(entry.state.may_become(next.state), "{:?} -> {:?}", entry.state, next.state);
            *entry = next;
        }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
