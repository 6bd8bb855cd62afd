//! The stop gate: whether a session that wants to stop is reviewed first, and what follows from the
//! review.
//!
//! A review can keep a session from stopping for a few rounds only. If anything goes wrong with the
//! review, the session stops.

use std::fmt;

/// What is known when a session wants to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping {
    /// The gate is on.
    pub on: bool,
    /// The session does the work of a job. Its asker checks that work.
    pub in_job: bool,
    /// The turn continues only because a stop hook said so.
    pub stop_active: bool,
    /// How many reviews have kept it from stopping since it last stopped by itself.
    pub rounds: u32,
    /// How many reviews may do that.
    pub most: u32,
    /// What changed since the last review that allowed a stop.
    pub changes: Changes,
}

/// What has changed since a review last allowed a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing new.
    None,
    /// Something.
    Some,
    /// It can't be known: there is no repository, or git fails.
    Unknown,
}

/// Why a session stops without a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreviewed {
    /// The gate is off.
    Off,
    /// The session does the work of a job.
    InJob,
    /// The rounds are used up.
    Rounds,
    /// There is nothing new.
    NothingNew,
    /// It is not known what is new.
    Unknown,
}

/// Whether a review is needed; the error says why not.
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

/// How many rounds this chain of stops has had. A stop that no hook caused begins a new chain.
pub fn rounds_before(stop_active: bool, rounds: u32) -> u32 {
    if stop_active { rounds } else { 0 }
}

/// The outcome of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopDecision {
    /// It may stop.
    Allow,
    /// It goes on, and gets the reason.
    Block(String),
    /// The review could not run. The session may stop, and the log has the reason.
    CouldNotRun(String),
}

impl fmt::Display for StopDecision {
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
    fn a_chain_of_stops_has_limited_rounds_and_a_new_chain_starts_again() {
        let held = |rounds| Stopping { stop_active: true, rounds, ..NEW };
        assert_eq!(wanted(held(1)), Ok(()));
        assert_eq!(wanted(held(2)), Err(Unreviewed::Rounds));
        assert_eq!(wanted(held(u32::MAX)), Err(Unreviewed::Rounds));
        assert_eq!(wanted(Stopping { stop_active: false, ..held(2) }), Ok(()));
    }
}
