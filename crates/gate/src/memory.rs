//! What the guard remembers of calls and turns: which calls were judged, how often one was repeated, how often a turn was held.

use crate::Gate;
use crate::journal::{Journal, Mark, Record, digest, digest_of, seconds};
use baton_agents::{Agent, Call};
use baton_core::event::EventKind;
use baton_guard::RuleSet;

/// The rule that counts calls.
const REPEATS: &str = "warn-repeated-tool-calls";
/// Nobody wants to know how often beyond this.
const MAX_REPEATS: u32 = 100;

/// What is remembered of one session.
pub(crate) struct Memory<'a> {
    journal: Journal<'a>,
    session: u64,
    at: u32,
}

/// By what a call is known again.
#[derive(Clone, Copy)]
enum Key {
    /// The agent's own id: there is one call of it.
    Id(u64),
    /// The tool and its input, for agents that say no id: the same call may come again.
    Content(u64),
}

impl Gate {
    /// What is remembered of a session.
    pub(crate) fn memory(&self, agent: &dyn Agent, session: Option<&str>) -> Memory<'_> {
        let session = digest(&[agent.name(), session.unwrap_or_default()]);
        let at = seconds((self.places.now)());
        Memory { journal: Journal::new(&self.places.home), session, at }
    }
}

impl Memory<'_> {
    fn write(&self, mark: Mark, call: u64) -> Option<u64> {
        self.journal.append(&Record { mark, session: self.session, call, at: self.at })
    }

    fn newest<T>(&self, until: Option<u64>, mut find: impl FnMut(&Record) -> Option<T>) -> Option<T> {
        self.journal.newest(until, |record| if record.session == self.session { find(record) } else { None })
    }

    /// How often the same call was made just before this one, as far as a rule asks.
    pub(crate) fn repeats(&self, call: &Call, rules: &RuleSet) -> u32 {
        if !rules.rules.iter().any(|active| active.rule.id == REPEATS) {
            return 0;
        }
        let same = digest_of(&call.tool.native, &call.input);
        // After it ran, its own record is the last.
        let place = match call.kind {
            EventKind::BeforeTool => self.write(Mark::Made, same),
            _ => None,
        };
        let mut count = 0;
        self.newest(place, |record| match record.mark {
            Mark::Made if record.call == same && count <= MAX_REPEATS => {
                count += 1;
                None
            }
            Mark::Made => Some(()),
            _ => None,
        });
        u32::saturating_sub(count, 1)
    }

    /// A call is judged; whether it was refused.
    pub(crate) fn judged(&self, call: &Call, mark: Mark) {
        let (Key::Id(key) | Key::Content(key)) = key(call);
        self.write(mark, key);
    }

    /// Whether a call that has run was judged before. A call without an id was, unless the same one has run more often than it was judged.
    pub(crate) fn was_judged(&self, call: &Call) -> bool {
        match key(call) {
            Key::Id(key) => {
                let judged = |record: &Record| {
                    (record.call == key && matches!(record.mark, Mark::Judged | Mark::Refused)).then_some(())
                };
                self.newest(None, judged).is_some()
            }
            Key::Content(key) => {
                let Some(place) = self.write(Mark::Ran, key) else { return true };
                let (mut ran, mut judged) = (0_u32, 0_u32);
                let enough = self.newest(Some(place), |record| {
                    match record.mark {
                        Mark::Ran if record.call == key => ran += 1,
                        Mark::Judged if record.call == key => judged += 1,
                        _ => {}
                    }
                    // Newest first, a run that follows its judgement is met before it.
                    (judged >= ran && judged > 0).then_some(())
                });
                enough.is_some()
            }
        }
    }

    /// How often the end of this turn was held already. A turn that the agent says was never held has just begun to end; where its word can't be
    /// relied on, one that was held and never let go goes on.
    pub(crate) fn times_held(&self, stop_active: bool, is_reliable: bool) -> u32 {
        if is_reliable && !stop_active {
            return 0;
        }
        let mut held = 0;
        self.newest(None, |record| match record.mark {
            Mark::HeldAgain => {
                held += 1;
                None
            }
            Mark::Held => {
                held += 1;
                is_reliable.then_some(())
            }
            Mark::Ended => Some(()),
            _ => None,
        });
        held
    }

    /// The end of a turn is held, or not.
    pub(crate) fn turn(&self, mark: Mark) -> bool {
        self.write(mark, 0).is_some()
    }
}

fn key(call: &Call) -> Key {
    match &call.id {
        Some(id) => Key::Id(digest(&[id])),
        None => Key::Content(digest_of(&call.tool.native, &call.input)),
    }
}
