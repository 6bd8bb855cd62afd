//! Keeping the store small: expiry and trimming. Commands and servers run it, never a hook.

use crate::accept;
use crate::failure::failure;
use crate::open::Store;
use crate::states::{delivery, delivery_code, is_offered, is_queued, is_waiting, offer};
use crate::trail;
use baton_core::Error;
use baton_core::id::{MessageRow, OfferId, ParticipantId};
use baton_core::limits::Limits;
use baton_core::mail::{Delivery, Settle};
use baton_core::time::Moment;

/// What one round of upkeep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upkeep {
    pub expired: usize,
    pub trimmed: usize,
}

/// The most rows that one transaction handles, so that other writers don't wait long.
const BATCH_ROWS: i64 = 500;

impl Store {
    /// Expires mail that was not taken in time, and removes what is old enough. Unseen mail is
    /// never removed: it expires, and its sender is told.
    pub fn upkeep(&mut self, rules: &Limits, now: Moment) -> Result<Upkeep, Error> {
        let mut done = Upkeep::default();
        self.return_offers_of_ended_sessions(now)?;
        if self.something_expired(now)? {
            done.expired = self.expire(now)?;
        }
        // Messages are kept for a time since they were seen, which may be long after they were
        // sent. A store that is too large can't wait for that.
        let since = Moment(now.0 - rules.keep.0);
        let (since, seen_since) = if self.bytes()? > rules.keep_bytes {
            (self.early_edge()?, Moment(i64::MAX))
        } else {
            (since, since)
        };
        if self.something_older(since)? {
            done.trimmed = self.trim(since, seen_since)?;
        }
        Ok(done)
    }

    /// Takes back offers of sessions that ended without a proof and did not come back before the
    /// mail was due, so that the mail can expire.
    fn return_offers_of_ended_sessions(&mut self, now: Moment) -> Result<(), Error> {
        let offers: Vec<i64> = self
            .conn
            .prepare(concat!(
                "SELECT o.id FROM offer o JOIN session s ON s.id = o.session WHERE o.state = ",
                offer!(open),
                " AND s.state = 'gone' AND NOT EXISTS (
                    SELECT 1 FROM delivery d JOIN message m ON m.id = d.message
                    WHERE d.recipient = o.participant AND ",
                is_offered!("d."),
                " AND d.offer = o.id AND m.expires_at > ?1)"
            ))
            .and_then(|mut select| select.query_map([now.0], |row| row.get(0))?.collect())
            .map_err(failure)?;
        for offer in offers {
            self.settle(OfferId(offer), Settle::Return, now)?;
        }
        Ok(())
    }

    fn something_expired(&self, now: Moment) -> Result<bool, Error> {
        self.conn
            .query_row(
                concat!(
                    "SELECT EXISTS (SELECT 1 FROM delivery d JOIN message m ON m.id = d.message WHERE ",
                    is_queued!("d."),
                    " AND m.expires_at <= ?1)"
                ),
                [now.0],
                |row| row.get(0),
            )
            .map_err(failure)
    }

    fn expire(&mut self, now: Moment) -> Result<usize, Error> {
        let tx = self.begin()?;
        let due: Vec<(i64, i64)> = tx
            .prepare(concat!(
                "SELECT d.message, d.recipient FROM delivery d JOIN message m ON m.id = d.message
                 WHERE ",
                is_queued!("d."),
                " AND m.expires_at <= ?1 ORDER BY d.message LIMIT ?2"
            ))
            .and_then(|mut select| {
                select.query_map((now.0, BATCH_ROWS), |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
            })
            .map_err(failure)?;
        for (message, recipient) in &due {
            tx.execute(
                concat!("UPDATE delivery SET state = ?3, state_at = ?4 WHERE message = ?1 AND recipient = ?2 AND state = ", delivery!(queued)),
                (message, recipient, delivery_code(Delivery::Expired), now.0),
            )
            .map_err(failure)?;
            let (message, recipient) = (MessageRow(*message), ParticipantId(*recipient));
            trail::note(&tx, now, Delivery::Expired.as_str(), Some(recipient), Some(message), None)?;
            accept::send_end_note(&tx, message, recipient, Delivery::Expired, now)?;
        }
        tx.commit().map_err(failure)?;
        Ok(due.len())
    }

    /// The time before which messages go when the store is too large: the older half.
    fn early_edge(&self) -> Result<Moment, Error> {
        self.conn
            .query_row(
                "SELECT coalesce((SELECT sent_at FROM message ORDER BY id LIMIT 1 OFFSET (SELECT count(*) / 2 FROM message)), 0)",
                [],
                |row| row.get(0).map(Moment),
            )
            .map_err(failure)
    }

    fn bytes(&self) -> Result<u64, Error> {
        self.conn
            .query_row(
                // Freed pages are used again before the file grows.
                "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()",
                [],
                |row| row.get::<_, i64>(0),
            )
            .map(i64::cast_unsigned)
            .map_err(failure)
    }

    fn something_older(&self, since: Moment) -> Result<bool, Error> {
        self.conn
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM trail WHERE id = (SELECT min(id) FROM trail) AND at < ?1)
                     OR EXISTS (SELECT 1 FROM message WHERE id = (SELECT min(id) FROM message) AND sent_at < ?1)",
                [since.0],
                |row| row.get(0),
            )
            .map_err(failure)
    }

    fn trim(&mut self, since: Moment, seen_since: Moment) -> Result<usize, Error> {
        let tx = self.begin()?;
        // The newest row of each table stays. The next id is one above it, so no id is ever used
        // twice.
        let old = concat!(
            "SELECT m.id FROM message m WHERE m.sent_at < ?1 AND m.id < (SELECT max(id) FROM message)
            AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND (",
            is_waiting!("d."),
            " OR d.state_at >= ?3))
            AND NOT (m.ask = 1 AND m.closed_by IS NULL AND m.expires_at > ?1)
            ORDER BY m.id LIMIT ?2"
        );
        let ids: Vec<i64> = tx
            .prepare(old)
            .and_then(|mut select| {
                select.query_map((since.0, BATCH_ROWS, seen_since.0), |row| row.get(0))?.collect()
            })
            .map_err(failure)?;
        for id in &ids {
            tx.execute("DELETE FROM delivery WHERE message = ?1", [id]).map_err(failure)?;
            tx.execute("DELETE FROM message WHERE id = ?1", [id]).map_err(failure)?;
        }
        tx.execute(
            "DELETE FROM trail WHERE id IN (SELECT id FROM trail WHERE at < ?1 AND id < (SELECT max(id) FROM trail) ORDER BY id LIMIT 5000)",
            [since.0],
        )
        .map_err(failure)?;
        tx.execute(
            concat!(
                "DELETE FROM offer WHERE id IN (SELECT id FROM offer WHERE state > ",
                offer!(open),
                " AND made_at < ?1 AND id < (SELECT max(id) FROM offer) LIMIT 500)"
            ),
            [since.0],
        )
        .map_err(failure)?;
        tx.execute(
            "DELETE FROM wake WHERE id IN (SELECT id FROM wake WHERE at < ?1 AND id < (SELECT max(id) FROM wake) LIMIT 500)",
            [since.0],
        )
        .map_err(failure)?;
        tx.execute("DELETE FROM subagent_call WHERE at < ?1", [since.0]).map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(ids.len())
    }
}
