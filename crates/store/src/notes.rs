//! Notes of baton that have a key: each is sent once, whoever comes first, and is settled when its
//! recipient has learnt elsewhere what it says.

use crate::accept::insert_note;
use crate::failure::failure;
use crate::open::Store;
use crate::states::{delivery, delivery_code};
use crate::trail;
use baton_core::Error;
use baton_core::id::{MessageRow, ParticipantId};
use baton_core::mail::Delivery;
use baton_core::time::Moment;
use baton_core::wake::Attention;
use rusqlite::Connection;

impl Store {
    /// Sends a note under a key, unless a note with that key was sent before. Returns whether it
    /// was sent now. Unlike other notes it may wake the recipient.
    pub fn send_note_once(
        &mut self,
        asker: ParticipantId,
        key: &str,
        body: &str,
        now: Moment,
    ) -> Result<bool, Error> {
        let tx = self.begin()?;
        let told: bool = tx
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM message WHERE sender IS NULL AND verb = 'note' AND key = ?1)",
                [key],
                |row| row.get(0),
            )
            .map_err(failure)?;
        if told {
            return Ok(false);
        }
        insert_keyed_note(&tx, asker, key, body, now)?;
        tx.commit().map_err(failure)?;
        Ok(true)
    }

    /// Records that the recipient has read elsewhere what the note under this key says. If the note
    /// waits, it is seen. If it does not exist yet, it is kept as seen, and is never sent.
    pub fn note_was_read(
        &mut self,
        recipient: ParticipantId,
        key: &str,
        body: &str,
        now: Moment,
    ) -> Result<(), Error> {
        let tx = self.begin()?;
        if notes_with(&tx, key)?.is_empty() {
            insert_keyed_note(&tx, recipient, key, body, now)?;
        }
        settle_notes(&tx, recipient, key, Delivery::Seen, now)?;
        tx.commit().map_err(failure)
    }

    /// Expires notes that wait for a recipient and are out of date: those whose key begins like
    /// this.
    pub fn expire_notes(&mut self, recipient: ParticipantId, key: &str, now: Moment) -> Result<(), Error> {
        let tx = self.begin()?;
        settle_notes(&tx, recipient, key, Delivery::Expired, now)?;
        tx.commit().map_err(failure)
    }
}

/// Puts a note under a key into a mailbox. It may wake the recipient.
fn insert_keyed_note(
    conn: &Connection,
    recipient: ParticipantId,
    key: &str,
    body: &str,
    now: Moment,
) -> Result<(), Error> {
    insert_note(conn, recipient, None, body, now)?;
    conn.execute(
        "UPDATE message SET key = ?1, attention = ?2 WHERE id = (SELECT max(id) FROM message)",
        (key, Attention::Ordinary.code()),
    )
    .map_err(failure)?;
    Ok(())
}

/// The notes whose key begins like this.
fn notes_with(conn: &Connection, key: &str) -> Result<Vec<MessageRow>, Error> {
    let sql =
        "SELECT id FROM message WHERE sender IS NULL AND verb = 'note' AND substr(key, 1, length(?1)) = ?1";
    let mut statement = conn.prepare(sql).map_err(failure)?;
    let rows = statement.query_map([key], |row| row.get(0).map(MessageRow)).map_err(failure)?;
    rows.map(|row| row.map_err(failure)).collect()
}

/// Ends the waiting notes of a recipient whose key begins like this.
fn settle_notes(
    conn: &Connection,
    recipient: ParticipantId,
    key: &str,
    end: Delivery,
    now: Moment,
) -> Result<(), Error> {
    for message in notes_with(conn, key)? {
        let ended = conn
            .execute(
                concat!("UPDATE delivery SET state = ?3, state_at = ?4 WHERE message = ?1 AND recipient = ?2 AND state = ", delivery!(queued)),
                (message.0, recipient.0, delivery_code(end), now.0),
            )
            .map_err(failure)?;
        if ended == 1 {
            trail::note(conn, now, end.as_str(), Some(recipient), Some(message), None)?;
        }
    }
    Ok(())
}
