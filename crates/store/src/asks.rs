//! Asks: which process waits for which answer, and taking the answer.

use crate::failure::{failure, foreign};
use crate::hook::{self, Claim, NewOffer};
use crate::letters::Letters;
use crate::open::Store;
use crate::people;
use crate::states::{delivery, delivery_code, delivery_state};
use crate::trail;
use baton_core::frame::{Letter, shown};
use baton_core::id::{MessageId, MessageRow, ParticipantId, SessionRow};
use baton_core::mail::Delivery;
use baton_core::process::Process;
use baton_core::ring::{self, WaitingAsk};
use baton_core::time::Moment;
use baton_core::{Code, Error};
use rusqlite::{Connection, OptionalExtension as _};

/// Who waits for an answer, and how it takes it.
#[derive(Debug)]
pub enum Waiter<'a> {
    /// An agent's session. The answer is offered to it, and the result of its call proves that it
    /// arrived.
    Session(SessionRow, &'a Claim),
    /// A person or a script. [`Store::mark_read`] marks the answer as seen once it is printed.
    Outsider,
}

/// What became of an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskState {
    Waiting,
    /// The answer, claimed for the waiter.
    Answered(Box<Letter>, MessageRow),
    /// The answer has come, but it was delivered in another way.
    AnsweredElsewhere(MessageId, Delivery),
    /// The ask itself ended without being seen.
    Ended(Delivery),
}

/// Asks without an answer, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenAsks {
    /// Those that the participant asked.
    pub mine: Vec<Letter>,
    /// Those that others asked the participant.
    pub theirs: Vec<Letter>,
}

impl Store {
    /// Checks an ask of a participant, and takes the answer if it has come and is still queued.
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
            let new = NewOffer {
                participant: asker,
                session: *session,
                claim,
                is_answer: true,
                messages: &[reply],
                now,
            };
            hook::insert_offer(&tx, &new)?;
        }
        tx.execute("UPDATE message SET waiter = NULL, waiter_start = NULL WHERE id = ?1", [row.0])
            .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(AskState::Answered(Box::new(letter), reply))
    }

    /// Sets the process that waits for an ask's answer, unless the wait would close a ring of asks
    /// that wait for each other. `alive` says which waiting processes still run.
    pub fn set_waiter(
        &mut self,
        asker: ParticipantId,
        ask: &MessageId,
        waiter: Process,
        alive: &dyn Fn(Process) -> bool,
    ) -> Result<(), Error> {
        let tx = self.begin()?;
        for asked in awaited(&tx, asker, ask)? {
            refuse_ring(&tx, asker, asked, alive)?;
        }
        tx.execute(
            "UPDATE message SET waiter = ?3, waiter_start = ?4 WHERE public = ?1 AND sender = ?2 AND ask = 1",
            (ask.as_str(), asker.0, waiter.pid, waiter.start.cast_signed()),
        )
        .map_err(failure)?;
        tx.commit().map_err(failure)
    }

    /// Records that no process waits for an ask's answer, so it comes as ordinary mail.
    pub fn clear_waiter(&mut self, asker: ParticipantId, ask: &MessageId) -> Result<(), Error> {
        self.conn
            .execute(
                "UPDATE message SET waiter = NULL, waiter_start = NULL WHERE public = ?1 AND sender = ?2 AND ask = 1",
                (ask.as_str(), asker.0),
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
                    concat!("UPDATE delivery SET state = ?3, state_at = ?4 WHERE message = ?1 AND recipient = ?2 AND state = ", delivery!(queued)),
                    (message.0, reader.0, delivery_code(Delivery::Seen), now.0),
                )
                .map_err(failure)?;
            if changed == 1 {
                trail::note(&tx, now, "seen", Some(reader), Some(*message), None)?;
            }
        }
        tx.commit().map_err(failure)
    }

    /// The open asks of a participant: those that it asked, and those that it was asked.
    pub fn open_asks(&self, participant: ParticipantId, most: usize) -> Result<OpenAsks, Error> {
        let mine = self.asks(
            concat!("m.sender = ?1 AND m.closed_by IS NULL AND EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND d.state IN (", delivery!(queued), ", ", delivery!(offered), ", ", delivery!(seen), "))"),
            participant,
            most,
        )?;
        let theirs = self.asks(
            concat!("m.closed_by IS NULL AND EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND d.recipient = ?1 AND d.state IN (", delivery!(offered), ", ", delivery!(seen), "))"),
            participant,
            most,
        )?;
        Ok(OpenAsks { mine, theirs })
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
                Error::new(Code::RequestNotFound, format!("you have no ask {}", ask.request()))
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

/// The participants whose answer to an open ask has not come. None if the ask is closed.
fn awaited(conn: &Connection, asker: ParticipantId, ask: &MessageId) -> Result<Vec<ParticipantId>, Error> {
    let mut select = conn
        .prepare(concat!(
            "SELECT d.recipient FROM message m JOIN delivery d ON d.message = m.id
             WHERE m.public = ?1 AND m.sender = ?2 AND m.ask = 1 AND m.closed_by IS NULL AND d.state <= ",
            delivery!(seen)
        ))
        .map_err(failure)?;
    let found =
        select.query_map((ask.as_str(), asker.0), |row| row.get(0).map(ParticipantId)).map_err(failure)?;
    found.collect::<Result<_, _>>().map_err(failure)
}

/// Refuses that `asker` waits for `asked`, if `asked` waits for `asker`, directly or through
/// others. A process that was killed while it waited does not wait.
pub(crate) fn refuse_ring(
    conn: &Connection,
    asker: ParticipantId,
    asked: ParticipantId,
    alive: &dyn Fn(Process) -> bool,
) -> Result<(), Error> {
    let mut select = conn
        .prepare(concat!(
            "SELECT m.id, m.waiter, m.waiter_start, d.recipient
             FROM message m INDEXED BY message_waiting JOIN delivery d ON d.message = m.id
             WHERE m.sender = ?1 AND m.waiter IS NOT NULL AND m.closed_by IS NULL AND d.state <= ",
            delivery!(seen)
        ))
        .map_err(failure)?;
    let closing = ring::find(asker, asked, |participant| -> Result<_, Error> {
        let mut rows = select.query([participant.0]).map_err(failure)?;
        let mut waits = Vec::new();
        while let Some(row) = rows.next().map_err(failure)? {
            let read = || -> rusqlite::Result<_> {
                let process = Process { pid: row.get(1)?, start: row.get::<_, i64>(2)?.cast_unsigned() };
                let wait = WaitingAsk {
                    ask: MessageRow(row.get(0)?),
                    by: participant,
                    of: ParticipantId(row.get(3)?),
                };
                Ok((process, wait))
            };
            let (process, wait) = read().map_err(failure)?;
            waits.extend(alive(process).then_some(wait));
        }
        Ok(waits)
    })?;
    match closing {
        Some(question) => Err(would_deadlock(conn, asker, asked, question)?),
        None => Ok(()),
    }
}

/// The error names the question that `asker` has to answer first. An agent gets its text as mail,
/// with proof; the person sees its beginning here.
fn would_deadlock(
    conn: &Connection,
    asker: ParticipantId,
    asked: ParticipantId,
    question: WaitingAsk,
) -> Result<Error, Error> {
    let letter = read_letter(conn, question.ask, asker)?;
    let person = |id| people::whole(conn, id)?.ok_or_else(|| foreign("a participant that is gone"));
    let (asker, known) = (person(asker)?, person(asked)?);
    let (id, from) = (&letter.id, &letter.from);
    let quoted =
        if asker.is_outsider() { format!(" (“{}”)", shown(&letter.body, 80)) } else { String::new() };
    let message = if asked == question.by {
        format!("{from} waits for your answer to its question {id}{quoted}, so neither of you would get one")
    } else {
        format!(
            "{} can't answer before {from} has an answer, and {from} waits for yours to {id}{quoted}",
            known.name
        )
    };
    Ok(Error::new(Code::WouldDeadlock, message).hint(format!(
        "`baton mail {id}` shows it; answer it first (baton reply {id} \"text\", or the tool reply_to_message), then ask again"
    )))
}

fn read_letter(conn: &Connection, message: MessageRow, reader: ParticipantId) -> Result<Letter, Error> {
    let found = Letters::of(conn, reader)?.read(message, false)?;
    found.map(|found| found.letter).ok_or_else(|| foreign("a reply that is gone"))
}
