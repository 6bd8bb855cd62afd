//! The stop gate: whether a session that wants to stop is reviewed first, and what comes of it.
//!
//! A review can only ever hold a session for a few rounds: whatever goes wrong with it, the session stops.

use std::fmt;

/// What is known when a session wants to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping {
    /// The gate is on.
    pub on: bool,
    /// The session does the work of a job itself: its asker looks at what it did.
    pub in_job: bool,
    /// The turn goes on only because a stop hook said so.
    pub stop_active: bool,
    /// So many reviews have kept it from stopping since it last stopped by itself.
    pub rounds: u32,
    /// So many may.
    pub most: u32,
    /// What there is to review, beside what was allowed last.
    pub changes: Changes,
}

/// What has changed since a review last said yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing, or nothing that was not reviewed.
    None,
    /// Something.
    Some,
    /// It can't be known: there is no repository, or git fails.
    Unknown,
}

/// Why a session stops unreviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreviewed {
    /// Nobody wants it.
    Off,
    /// It is a job's own session.
    InJob,
    /// It was held often enough.
    Rounds,
    /// There is nothing new.
    NothingNew,
    /// Nobody can say what is new.
    Unknown,
}

/// Whether a review is to be asked for; else why not.
pub fn wanted(stopping: Stopping) -> Result<(), Unreviewed> {
    if !stopping.on {
        return Err(Unreviewed::Off);
    }
    if stopping.in_job {
        return Err(Unreviewed::InJob);
    }
    if rounds_before(stopping.stop_active, stopping.rounds) >= stopping.most {
        return Err(Unreviewed::Rounds);
    }
    match stopping.changes {
        Changes::None => Err(Unreviewed::NothingNew),
        Changes::Unknown => Err(Unreviewed::Unknown),
        Changes::Some => Ok(()),
    }
}

/// How often it was held in this chain of stops: a stop that no hook caused begins a new one.
pub fn rounds_before(stop_active: bool, rounds: u32) -> u32 {
    if stop_active { rounds } else { 0 }
}

/// What a review came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may stop.
    Allow,
    /// It goes on, and is told why.
    Block(String),
    /// Nobody could say; it may stop, and the log has the reason.
    CouldNotRun(String),
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allowed"),
            Self::Block(_) => f.write_str("blocked"),
            Self::CouldNotRun(why) => write!(f, "could not run: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Stopping =
        Stopping { on: true, in_job: false, stop_active: false, rounds: 0, most: 2, changes: Changes::Some };

    #[test]
    fn only_new_changes_of_a_gated_session_are_reviewed() {
        assert_eq!(wanted(NEW), Ok(()));
        for (stopping, why) in [
            (Stopping { on: false, ..NEW }, Unreviewed::Off),
            (Stopping { in_job: true, ..NEW }, Unreviewed::InJob),
            (Stopping { changes: Changes::None, ..NEW }, Unreviewed::NothingNew),
            (Stopping { changes: Changes::Unknown, ..NEW }, Unreviewed::Unknown),
            (Stopping { most: 0, ..NEW }, Unreviewed::Rounds),
        ] {
            assert_eq!(wanted(stopping), Err(why), "{stopping:?}");
        }
    }

    #[test]
    fn a_chain_of_stops_has_so_many_rounds_and_a_new_one_begins_anew() {
        let held = |rounds| Stopping { stop_active: true, rounds, ..NEW };
        assert_eq!(wanted(held(1)), Ok(()));
        assert_eq!(wanted(held(2)), Err(Unreviewed::Rounds));
        assert_eq!(wanted(held(u32::MAX)), Err(Unreviewed::Rounds));
        assert_eq!(wanted(Stopping { stop_active: false, ..held(2) }), Ok(()));
    }
}
