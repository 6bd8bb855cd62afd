//! The schema and its history. A step is only ever added, never edited.
//!
//! Hooks open this file for each tool call and SQLite parses every object of it, so there are few: what hooks don't need does not belong here.
//! Delivery states are small numbers with the waiting ones first, so that one partial index holds what waits and nothing else.

use baton_core::mail::Delivery;

/// The version that this program writes.
pub const VERSION: i32 = 2;

/// `STEPS[n]` brings a store of version n to n + 1.
pub(crate) const STEPS: [&str; VERSION as usize] =
    [include_str!("schema/v1.sql"), include_str!("schema/v2.sql")];

/// The number that stands for a state in the store.
pub(crate) fn delivery_code(state: Delivery) -> i64 {
    match state {
        Delivery::Queued => 0,
        Delivery::Offered => 1,
        Delivery::Seen => 2,
        Delivery::Expired => 3,
        Delivery::Undeliverable => 4,
        Delivery::Refused => 5,
        Delivery::Unconfirmed => 6,
    }
}

/// The state behind a number.
pub(crate) fn delivery_state(code: i64) -> Option<Delivery> {
    Delivery::ALL.into_iter().find(|state| delivery_code(*state) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_states_are_below_two() {
        for state in Delivery::ALL {
            assert_eq!(delivery_state(delivery_code(state)), Some(state));
            assert_eq!(delivery_code(state) < 2, !state.is_end());
        }
    }
}
