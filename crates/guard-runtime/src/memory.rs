//! What the guard remembers of a session: the calls it judged, how often a call was repeated, how
//! often a turn was kept from ending.
//!
//! To check history, a hook first appends its own record, then reads only the records before it.
//! That gives all hooks the same order without a lock.

use crate::Guard;
use crate::journal::{Journal, Record, RecordKind, digest, digest_of, seconds};
use baton_agents::{Agent, ToolCall};
use baton_core::event::EventKind;
use baton_guard::RuleSet;

/// The rule that needs the count of repeated calls.
const REPEATS_RULE: &str = "warn-repeated-tool-calls";
/// The count stops here. No rule needs a larger number.
const MAX_COUNTED_REPEATS: u32 = 100;

/// The records of one session.
pub(crate) struct Memory<'a> {
    journal: Journal<'a>,
    session: u64,
    at: u32,
}

/// How the records of one call find each other.
#[derive(Clone, Copy)]
enum Key {
    /// By the agent's own id, which only one call has.
    Id(u64),
    /// By the tool and its input, for agents without ids. The same call may come again.
    Content(u64),
}

impl Guard {
    /// The memory of a session.
    pub(crate) fn memory(&self, agent: &dyn Agent, session: Option<&str>) -> Memory<'_> {
        let session = digest(&[agent.name(), session.unwrap_or_default()]);
        let at = seconds((self.places.now)());
        Memory { journal: Journal::new(&self.places.home), session, at }
    }
}

impl Memory<'_> {
    fn write(&self, kind: RecordKind, call: u64) -> Option<u64> {
        self.journal.append(&Record { kind, session: self.session, call, at: self.at })
    }

    fn newest<T>(&self, until: Option<u64>, mut find: impl FnMut(&Record) -> Option<T>) -> Option<T> {
        self.journal.newest(until, |record| if record.session == self.session { find(record) } else { None })
    }

    /// Records a call that is about to run, and counts how often the same call was made just before
    /// it. 0 if no active rule needs the count.
    pub(crate) fn record_and_count_repeats(&self, call: &ToolCall, rules: &RuleSet) -> u32 {
        if !rules.rules.iter().any(|active| active.rule.id == REPEATS_RULE) {
            return 0;
        }
        let same = digest_of(&call.tool.native, &call.input);
        // After the call ran, its own record is already there, and is the last.
        let place = match call.kind {
            EventKind::BeforeTool => self.write(RecordKind::Made, same),
            _ => None,
        };
        let mut count = 0;
        self.newest(place, |record| match record.kind {
            RecordKind::Made if record.call == same && count <= MAX_COUNTED_REPEATS => {
                count += 1;
                None
            }
            RecordKind::Made => Some(()),
            _ => None,
        });
        u32::saturating_sub(count, 1)
    }

    /// Records that a call was judged, and whether it was refused.
    pub(crate) fn record_judged(&self, call: &ToolCall, kind: RecordKind) {
        let (Key::Id(key) | Key::Content(key)) = key(call);
        self.write(kind, key);
    }

    /// Records that a call has run, and says whether it was judged before. A call without an id was
    /// not, if the same call has run more often than it was judged.
    pub(crate) fn record_run_and_check_judged(&self, call: &ToolCall) -> bool {
        match key(call) {
            Key::Id(key) => {
                let judged = |record: &Record| {
                    (record.call == key && matches!(record.kind, RecordKind::Judged | RecordKind::Refused))
                        .then_some(())
                };
                self.newest(None, judged).is_some()
            }
            Key::Content(key) => {
                let Some(place) = self.write(RecordKind::Ran, key) else { return true };
                let (mut ran, mut judged) = (0_u32, 0_u32);
                let enough = self.newest(Some(place), |record| {
                    match record.kind {
                        RecordKind::Ran if record.call == key => ran += 1,
                        RecordKind::Judged if record.call == key => judged += 1,
                        _ => {}
                    }
                    // The search goes from new to old, so it meets a run before the judgement of
                    // that run.
                    (judged >= ran && judged > 0).then_some(())
                });
                enough.is_some()
            }
        }
    }

    /// How often this turn was kept from ending. If the agent reliably says that it was never kept,
    /// the count is 0. Otherwise every block since the last turn that ended counts.
    pub(crate) fn times_held(&self, stop_active: bool, is_reliable: bool) -> u32 {
        if is_reliable && !stop_active {
            return 0;
        }
        let mut held = 0;
        self.newest(None, |record| match record.kind {
            RecordKind::HeldAgain => {
                held += 1;
                None
            }
            RecordKind::Held => {
                held += 1;
                is_reliable.then_some(())
            }
            RecordKind::Ended => Some(()),
            _ => None,
        });
        held
    }

    /// Records that a turn was kept from ending, or ended. False if the record can't be written.
    pub(crate) fn record_turn(&self, kind: RecordKind) -> bool {
        self.write(kind, 0).is_some()
    }
}

fn key(call: &ToolCall) -> Key {
    match &call.id {
        Some(id) => Key::Id(digest(&[id])),
        None => Key::Content(digest_of(&call.tool.native, &call.input)),
    }
}
