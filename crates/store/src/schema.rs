//! The schema and its history. A step is only ever added, never edited.
//!
//! Hooks open this file for each tool call and SQLite parses every object of it, so there are few: what hooks don't need does not belong here.
//! Delivery states are small numbers with the waiting ones first, so that one partial index holds what waits and nothing else.

use baton_core::mail::Delivery;

/// One file and its history.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Its name in the home.
    pub file: &'static str,
    /// `steps[n]` brings a file of version n to n + 1.
    pub steps: &'static [&'static str],
}

impl Layout {
    /// The version that this program writes.
    pub const fn version(&self) -> i32 {
        self.steps.len() as i32
    }
}

/// What hooks open: participants, sessions, mail.
pub(crate) const MAIL: Layout = Layout {
    file: "baton.db",
    steps: &[include_str!("schema/v1.sql"), include_str!("schema/v2.sql"), include_str!("schema/v3.sql")],
};

/// What hooks don't need: jobs.
pub(crate) const JOBS: Layout = Layout { file: "jobs.db", steps: &[include_str!("schema/jobs/v1.sql")] };

/// What hooks need only when their agent asks for something: questions and their answers.
pub(crate) const APPROVALS: Layout = Layout {
    file: "approvals.db",
    steps: &[include_str!("schema/approvals/v1.sql"), include_str!("schema/approvals/v2.sql")],
};

/// The version of the mail store that this program writes.
pub const VERSION: i32 = MAIL.version();

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
