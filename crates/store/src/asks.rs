//! Asks: who waits for which answer, and taking it.

use crate::failure::{failure, foreign};
use crate::hook::{self, Claim};
use crate::letters::Letters;
use crate::open::Store;
use crate::schema::{delivery_code, delivery_state};
use crate::sessions::Process;
use crate::trail;
use baton_core::frame::Letter;
use baton_core::id::{MessageId, MessageRow, ParticipantId, SessionRow};
use baton_core::mail::Delivery;
use baton_core::time::Moment;
use baton_core::{Code, Error};
use rusqlite::OptionalExtension as _;

/// Somebody who waits for an answer and how it takes it.
#[derive(Debug)]
pub enum Waiter<'a> {
    /// An agent's session: the answer is offered, and proven by the result of its call.
    Session(SessionRow, &'a Claim),
    /// The person or a script: it is marked seen once printed, by [`Store::mark_read`].
    Outsider,
}

/// How an ask stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskState {
    /// No answer yet.
    Waiting,
    /// The answer, claimed for the waiter.
    Answered(Box<Letter>, MessageRow),
    /// The answer came, but it was delivered in another way already.
    AnsweredElsewhere(MessageId, Delivery),
    /// The ask itself ended without being seen.
    Ended(Delivery),
}

impl Store {
    /// Looks at an ask of a participant, and takes the answer if it is there and still queued.
    pub fn take_answer(
        &mut self,
        asker: ParticipantId,
        ask: &MessageId,
        waiter: &Waiter<'_>,
        now: Moment,
    ) -> Result<AskState, Error> {
        let seen = self.ask_state(asker, ask)?;
        let (row, reply) = match seen {
            (row, Some(reply)) => (row, reply),
            (row, None) => return self.unanswered(row),
        };
        let tx = self.begin()?;
        let state: i64 = tx
            .query_row(
                "SELECT state FROM delivery WHERE message = ?1 AND recipient = ?2",
                (reply.0, asker.0),
                |row| row.get(0),
            )
            .map_err(failure)?;
        let state = delivery_state(state).ok_or_else(|| foreign("a delivery state"))?;
        let letter = read_letter(&tx, reply, asker)?;
        if state != Delivery::Queued {
            return Ok(AskState::AnsweredElsewhere(letter.id, state));
        }
        if let Waiter::Session(session, claim) = waiter {
            hook::insert_offer(&tx, asker, *session, claim, true, &[reply], now)?;
        }
        tx.execute("UPDATE message SET waiter = NULL, waiter_start = NULL WHERE id = ?1", [row.0])
            .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(AskState::Answered(Box::new(letter), reply))
    }

    /// Says who waits for an ask's answer now; `None` when nobody does any more, so that it comes as ordinary mail.
    pub fn set_waiter(
        &mut self,
        asker: ParticipantId,
        ask: &MessageId,
        waiter: Option<Process>,
    ) -> Result<(), Error> {
        self.conn
            .execute(
                "UPDATE message SET waiter = ?3, waiter_start = ?4 WHERE public = ?1 AND sender = ?2 AND ask = 1",
                (ask.as_str(), asker.0, waiter.map(|w| w.pid), waiter.map(|w| w.start.cast_signed())),
            )
            .map(drop)
            .map_err(failure)
    }

    /// Marks messages that a person or a script has read as seen.
    pub fn mark_read(
        &mut self,
        reader: ParticipantId,
        messages: &[MessageRow],
        now: Moment,
    ) -> Result<(), Error> {
        let tx = self.begin()?;
        for message in messages {
            let changed = tx
                .execute(
                    "UPDATE delivery SET state = ?3, state_at = ?4 WHERE message = ?1 AND recipient = ?2 AND state = 0",
                    (message.0, reader.0, delivery_code(Delivery::Seen), now.0),
                )
                .map_err(failure)?;
            if changed == 1 {
                trail::note(&tx, now, "seen", Some(reader), Some(*message), None)?;
            }
        }
        tx.commit().map_err(failure)
    }

    /// The asks of a participant that nobody has answered, oldest first; and those it was asked and has not answered.
    pub fn open_asks(
        &self,
        participant: ParticipantId,
        most: usize,
    ) -> Result<(Vec<Letter>, Vec<Letter>), Error> {
        let mine = self.asks(
            "m.sender = ?1 AND m.closed_by IS NULL AND EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND d.state IN (0, 1, 2))",
            participant,
            most,
        )?;
        let theirs = self.asks(
            "m.closed_by IS NULL AND EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND d.recipient = ?1 AND d.state IN (1, 2))",
            participant,
            most,
        )?;
        Ok((mine, theirs))
    }

    fn asks(&self, which: &str, participant: ParticipantId, most: usize) -> Result<Vec<Letter>, Error> {
        let sql = format!("SELECT id FROM message m WHERE ask = 1 AND {which} ORDER BY id DESC LIMIT ?2");
        let mut select = self.conn.prepare(&sql).map_err(failure)?;
        let mut rows =
            select.query((participant.0, i64::try_from(most).unwrap_or(i64::MAX))).map_err(failure)?;
        let mut reader = Letters::of(&self.conn, participant)?;
        let mut letters = Vec::new();
        while let Some(row) = rows.next().map_err(failure)? {
            let ask = MessageRow(row.get(0).map_err(failure)?);
            letters.extend(reader.read(ask, false)?.map(|found| found.letter));
        }
        letters.reverse();
        Ok(letters)
    }

    fn ask_state(
        &self,
        asker: ParticipantId,
        ask: &MessageId,
    ) -> Result<(MessageRow, Option<MessageRow>), Error> {
        self.conn
            .query_row(
                "SELECT id, closed_by FROM message WHERE public = ?1 AND sender = ?2 AND ask = 1",
                (ask.as_str(), asker.0),
                |row| Ok((MessageRow(row.get(0)?), row.get::<_, Option<i64>>(1)?.map(MessageRow))),
            )
            .optional()
            .map_err(failure)?
            .ok_or_else(|| {
                Error::new(Code::RequestNotFound, format!("no ask {} of yours", ask.request()))
                    .hint("`baton mail` lists your messages")
            })
    }

    fn unanswered(&self, ask: MessageRow) -> Result<AskState, Error> {
        let code: i64 = self
            .conn
            .query_row("SELECT max(state) FROM delivery WHERE message = ?1", [ask.0], |row| row.get(0))
            .map_err(failure)?;
        let state = delivery_state(code).ok_or_else(|| foreign("a delivery state"))?;
        Ok(if state.is_end() && state != Delivery::Seen { AskState::Ended(state) } else { AskState::Waiting })
    }
}

fn read_letter(
    conn: &rusqlite::Connection,
    message: MessageRow,
    reader: ParticipantId,
) -> Result<Letter, Error> {
    let found = Letters::of(conn, reader)?.read(message, false)?;
    found.map(|found| found.letter).ok_or_else(|| foreign("a reply that is gone"))
}
