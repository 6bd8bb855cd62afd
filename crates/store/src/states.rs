//! The numbers that the mail store keeps for states, each named once, as Rust and as SQL text.
//!
//! The numbers are the on-disk format: never change one. A macro gives the SQL text, because SQL is
//! put together with `concat!` when the program is compiled: a hook plans its statements every
//! time, and must not build their text as well.

use baton_core::mail::{Delivery, Settle};

/// The number of a delivery state.
///
/// The waiting states come first, so one partial index (`delivery_waiting`) holds what waits and
/// nothing else. 5 is taken: an earlier version meant it for mail that the recipient's side
/// refuses.
pub(crate) fn delivery_code(state: Delivery) -> i64 {
    match state {
        Delivery::Queued => 0,
        Delivery::Offered => 1,
        Delivery::Seen => 2,
        Delivery::Expired => 3,
        Delivery::Undeliverable => 4,
        Delivery::Unconfirmed => 6,
    }
}

/// The delivery state behind a number.
pub(crate) fn delivery_state(code: i64) -> Option<Delivery> {
    Delivery::ALL.into_iter().find(|state| delivery_code(*state) == code)
}

/// The number of an offer that nothing has settled yet.
pub(crate) const OFFER_OPEN: i64 = 0;

/// The number of an offer's state once it is settled; `None` if it stays open.
pub(crate) fn offer_code(settle: Settle) -> Option<i64> {
    match settle {
        Settle::Keep => None,
        Settle::Seen => Some(1),
        Settle::Return => Some(2),
        Settle::Doubt => Some(3),
    }
}

/// The number of a delivery state in SQL.
macro_rules! delivery {
    (queued) => {
        "0"
    };
    (offered) => {
        "1"
    };
    (seen) => {
        "2"
    };
}
pub(crate) use delivery;

/// The number of an open offer in SQL.
macro_rules! offer {
    (open) => {
        "0"
    };
}
pub(crate) use offer;

/// The number of a message's attention in SQL.
macro_rules! attention {
    (urgent) => {
        "1"
    };
    (quiet) => {
        "2"
    };
}
pub(crate) use attention;

/// The SQL condition that a delivery has not ended: it is queued or offered. `$table` is the
/// table's alias with a dot.
macro_rules! is_waiting {
    () => {
        $crate::states::is_waiting!("")
    };
    ($table:literal) => {
        concat!($table, "state < ", $crate::states::delivery!(seen))
    };
}
pub(crate) use is_waiting;

/// The SQL condition that a delivery is queued.
///
/// Its second half follows from the first. It is there because SQLite uses the partial index
/// `delivery_waiting` only where the query repeats the index's own condition, `state < 2`.
macro_rules! is_queued {
    () => {
        $crate::states::is_queued!("")
    };
    ($table:literal) => {
        concat!(
            $table,
            "state = ",
            $crate::states::delivery!(queued),
            " AND ",
            $crate::states::is_waiting!($table)
        )
    };
}
pub(crate) use is_queued;

/// The SQL condition that a delivery is offered; [`is_queued`] says why it has two halves.
macro_rules! is_offered {
    () => {
        $crate::states::is_offered!("")
    };
    ($table:literal) => {
        concat!(
            $table,
            "state = ",
            $crate::states::delivery!(offered),
            " AND ",
            $crate::states::is_waiting!($table)
        )
    };
}
pub(crate) use is_offered;

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::wake::Attention;

    #[test]
    fn only_waiting_states_are_below_two() {
        for state in Delivery::ALL {
            assert_eq!(delivery_state(delivery_code(state)), Some(state));
            assert_eq!(delivery_code(state) < 2, !state.is_end());
        }
    }

    #[test]
    fn the_numbers_in_sql_are_those_in_rust() {
        let texts = [delivery!(queued), delivery!(offered), delivery!(seen)];
        let codes = [Delivery::Queued, Delivery::Offered, Delivery::Seen].map(delivery_code);
        assert_eq!(texts, codes.map(|code| code.to_string()));
        assert_eq!(offer!(open), OFFER_OPEN.to_string());
        assert_eq!(attention!(urgent), Attention::Urgent.code().to_string());
        assert_eq!(attention!(quiet), Attention::Quiet.code().to_string());
    }

    #[test]
    fn a_condition_repeats_that_of_the_partial_index() {
        assert_eq!(is_queued!(), "state = 0 AND state < 2");
        assert_eq!(is_offered!("d."), "d.state = 1 AND d.state < 2");
        assert!(include_str!("schema/v1.sql").contains(concat!("WHERE ", is_waiting!(), ";")));
    }
}
