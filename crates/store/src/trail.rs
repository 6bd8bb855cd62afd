//! The trail: everything that happened, in order. Append-only until old rows are trimmed.

use crate::failure::failure;
use crate::open::Store;
use crate::states::delivery_state;
use baton_core::Error;
use baton_core::id::{MessageRow, ParticipantId};
use baton_core::mail::Delivery;
use baton_core::time::Moment;
use rusqlite::{Connection, Statement};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrailRow {
    pub id: i64,
    pub at: Moment,
    /// `sent`, `offered`, `seen`, `returned`, `session-start`, …
    pub kind: String,
    /// The name of the participant that it happened to.
    pub participant: Option<String>,
    pub message: Option<String>,
    pub detail: Option<String>,
    /// The participant that it happened to.
    pub of: Option<ParticipantId>,
    /// Who sent the message, if a participant did.
    pub sender: Option<ParticipantId>,
    /// The name of the sender.
    pub from: Option<String>,
    /// The beginning of the message.
    pub head: Option<String>,
    /// The present state of the message at this participant.
    pub state: Option<Delivery>,
}

/// How much of a message's body comes with a row.
const HEAD_CHARS: u32 = 200;

/// Appends several rows in one transaction.
pub(crate) struct Notes<'conn>(Statement<'conn>);

impl<'conn> Notes<'conn> {
    pub(crate) fn new(conn: &'conn Connection) -> Result<Self, Error> {
        conn.prepare("INSERT INTO trail (at, kind, participant, message, detail) VALUES (?1, ?2, ?3, ?4, ?5)")
            .map(Self)
            .map_err(failure)
    }

    pub(crate) fn add(
        &mut self,
        at: Moment,
        kind: &str,
        participant: Option<ParticipantId>,
        message: Option<MessageRow>,
        detail: Option<&str>,
    ) -> Result<(), Error> {
        self.0
            .execute((at.0, kind, participant.map(|p| p.0), message.map(|m| m.0), detail))
            .map(drop)
            .map_err(failure)
    }
}

/// Appends a row, as part of the caller's transaction.
pub(crate) fn note(
    conn: &Connection,
    at: Moment,
    kind: &str,
    participant: Option<ParticipantId>,
    message: Option<MessageRow>,
    detail: Option<&str>,
) -> Result<(), Error> {
    Notes::new(conn)?.add(at, kind, participant, message, detail)
}

impl Store {
    /// Appends a row for something that is not part of another decision, such as an unknown event.
    pub fn note(
        &mut self,
        at: Moment,
        kind: &str,
        participant: Option<ParticipantId>,
        detail: &str,
    ) -> Result<(), Error> {
        note(&self.conn, at, kind, participant, None, Some(detail))
    }

    /// The trail after a row, oldest first.
    pub fn trail_after(&self, after: i64, most: usize) -> Result<Vec<TrailRow>, Error> {
        self.trail("t.id > ?1 ORDER BY t.id LIMIT ?2", after, most)
    }

    /// The end of the trail, oldest first.
    pub fn trail_tail(&self, most: usize) -> Result<Vec<TrailRow>, Error> {
        let mut rows = self.trail("t.id > ?1 ORDER BY t.id DESC LIMIT ?2", 0, most)?;
        rows.reverse();
        Ok(rows)
    }

    fn trail(&self, which: &str, after: i64, most: usize) -> Result<Vec<TrailRow>, Error> {
        let sql = format!(
            "SELECT t.id, t.at, t.kind, p.name, m.public, t.detail, t.participant, m.sender, s.name, substr(m.body, 1, {HEAD_CHARS}), d.state
             FROM trail t LEFT JOIN participant p ON p.id = t.participant LEFT JOIN message m ON m.id = t.message
             LEFT JOIN participant s ON s.id = m.sender
             LEFT JOIN delivery d ON d.message = t.message AND d.recipient = t.participant WHERE {which}"
        );
        let mut select = self.conn.prepare(&sql).map_err(failure)?;
        let rows = select
            .query_map((after, i64::try_from(most).unwrap_or(i64::MAX)), |row| {
                Ok(TrailRow {
                    id: row.get(0)?,
                    at: Moment(row.get(1)?),
                    kind: row.get(2)?,
                    participant: row.get(3)?,
                    message: row.get(4)?,
                    detail: row.get(5)?,
                    of: row.get::<_, Option<i64>>(6)?.map(ParticipantId),
                    sender: row.get::<_, Option<i64>>(7)?.map(ParticipantId),
                    from: row.get(8)?,
                    head: row.get(9)?,
                    state: row.get::<_, Option<i64>>(10)?.and_then(delivery_state),
                })
            })
            .map_err(failure)?;
        rows.collect::<Result<_, _>>().map_err(failure)
    }
}
