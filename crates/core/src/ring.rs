//! Asks that wait for each other: a ring of them would wait until its time-outs.
//!
//! A participant whose process waits for an answer can't answer others. So an ask is refused if the
//! participant that it asks waits, directly or through others, for the one who asks. The store
//! knows who waits for whom, and searches and accepts in one transaction: of two asks that would
//! close a ring together, the second one finds the first.

use crate::id::{MessageRow, ParticipantId};
use std::collections::HashSet;

/// How many participants one search follows. A longer ring ends with its time-outs.
pub const MAX_FOLLOWED: usize = 1000;

/// An ask whose sender waits for the answer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingAsk {
    pub ask: MessageRow,
    /// The participant that waits.
    pub by: ParticipantId,
    /// The participant that has to answer.
    pub of: ParticipantId,
}

/// The ask that waits for `asker` and keeps `asked` from answering, if there is one. `waits_of`
/// lists what a participant waits for.
pub fn find<E>(
    asker: ParticipantId,
    asked: ParticipantId,
    mut waits_of: impl FnMut(ParticipantId) -> Result<Vec<WaitingAsk>, E>,
) -> Result<Option<WaitingAsk>, E> {
    let mut followed = HashSet::from([asked]);
    let mut open = vec![asked];
    while let Some(participant) = open.pop() {
        for wait in waits_of(participant)? {
            if wait.of == asker {
                return Ok(Some(wait));
            }
            if followed.len() < MAX_FOLLOWED && followed.insert(wait.of) {
                open.push(wait.of);
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// Asks by (asker, asked); the position in the list is the ask's row.
    fn found(waits: &[(i64, i64)], asker: i64, asked: i64) -> Option<i64> {
        let waits_of = |participant: ParticipantId| {
            let rows = waits.iter().enumerate().filter(|(_, (from, _))| *from == participant.0);
            let waits = rows.map(|(row, (_, to))| WaitingAsk {
                ask: MessageRow(row as i64),
                by: participant,
                of: ParticipantId(*to),
            });
            Ok::<_, Infallible>(waits.collect())
        };
        let Ok(found) = find(ParticipantId(asker), ParticipantId(asked), waits_of);
        found.map(|wait| wait.ask.0)
    }

    #[test]
    fn a_ring_is_found_by_its_last_ask_and_names_the_question_to_answer() {
        assert_eq!(found(&[], 1, 2), None);
        assert_eq!(found(&[(2, 1)], 1, 2), Some(0));
        assert_eq!(found(&[(2, 3), (3, 1)], 1, 2), Some(1));
        // These wait for the participant that is asked, or for a third one that waits for no one.
        assert_eq!(found(&[(1, 2), (3, 2)], 1, 2), None);
        assert_eq!(found(&[(2, 3), (3, 2)], 1, 2), None, "a ring without the asker");
    }

    #[test]
    fn the_search_is_bounded() {
        let chain: Vec<(i64, i64)> = (2..5_000).map(|from| (from, from + 1)).collect();
        assert_eq!(found(&chain, 1, 2), None);
    }

    proptest! {
        /// It says yes exactly if the one who asks can be reached from the one that is asked.
        #[test]
        fn it_finds_what_reachability_finds(
            waits in prop::collection::vec((0_i64..8, 0_i64..8), 0..24), asker in 0_i64..8, asked in 0_i64..8,
        ) {
            let mut reached = HashSet::from([asked]);
            for _ in 0..8 {
                let next: Vec<i64> =
                    waits.iter().filter(|(from, _)| reached.contains(from)).map(|(_, to)| *to).collect();
                reached.extend(next);
            }
            let closes = waits.iter().any(|(from, to)| reached.contains(from) && *to == asker);
            let row = found(&waits, asker, asked);
            prop_assert_eq!(row.is_some(), closes);
            if let Some(row) = row {
                prop_assert_eq!(waits[row as usize].1, asker);
            }
        }
    }
}
