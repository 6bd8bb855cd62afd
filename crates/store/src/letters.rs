//! Messages as the letters that a participant reads.
//!
//! Each row is looked up by its key. SQLite takes longer to plan one join of the five tables than
//! to plan and run all of these lookups, and a hook plans its statements every time.

use crate::failure::{failure, foreign};
use baton_core::Error;
use baton_core::frame::Letter;
use baton_core::id::{MessageId, MessageRow, OfferId, ParticipantId};
use baton_core::process::Process;
use baton_core::time::Moment;
use baton_core::wake::Attention;
use rusqlite::{Connection, OptionalExtension as _, Statement};

/// Reads letters for one participant.
pub(crate) struct Letters<'a> {
    conn: &'a Connection,
    messages: Statement<'a>,
    people: Statement<'a>,
    /// For replies only.
    parents: Option<Statement<'a>>,
    reader: Person,
}

/// A letter, with what decides whether it may be offered.
pub(crate) struct Readable {
    pub(crate) letter: Letter,
    pub(crate) expires_at: Moment,
    pub(crate) urgent: bool,
    /// It answers an ask, and this process waits for it.
    pub(crate) waiter: Option<Process>,
}

struct Person {
    name: String,
    agent: String,
    project: String,
    offer: Option<i64>,
}

/// The message that a letter answers.
struct Parent {
    public: String,
    waiter: Option<Process>,
    closed_by: Option<i64>,
}

impl<'a> Letters<'a> {
    pub(crate) fn of(conn: &'a Connection, reader: ParticipantId) -> Result<Self, Error> {
        let mut people = conn
            .prepare("SELECT name, agent, project, offer FROM participant WHERE id = ?1")
            .map_err(failure)?;
        let reader = person(&mut people, reader.0)?.ok_or_else(|| foreign("a mailbox without an owner"))?;
        let messages = conn
            .prepare(
                "SELECT public, body, thread, ask, reply_to, sent_at, sender, expires_at, attention, by_person FROM message WHERE id = ?1",
            )
            .map_err(failure)?;
        Ok(Self { conn, messages, people, parents: None, reader })
    }

    /// The open mail offer of that participant.
    pub(crate) fn open_offer(&self) -> Option<OfferId> {
        self.reader.offer.map(OfferId)
    }

    /// One message; `None` if it is gone.
    pub(crate) fn read(&mut self, message: MessageRow, doubted: bool) -> Result<Option<Readable>, Error> {
        let row = self.messages.query_row([message.0], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get::<_, Option<i64>>(4)?,
                row.get(5).map(Moment)?,
                row.get::<_, Option<i64>>(6)?,
                row.get(7).map(Moment)?,
                row.get::<_, i64>(8)?,
                row.get(9)?,
            ))
        });
        let Some((public, body, thread, ask, reply_to, sent_at, sender, expires_at, attention, by_person)) =
            row.optional().map_err(failure)?
        else {
            return Ok(None);
        };
        let parent = reply_to.map(|parent| self.parent(parent)).transpose()?.flatten();
        let sender = sender.map(|sender| person(&mut self.people, sender)).transpose()?.flatten();
        let (from, kind, theirs) = match sender {
            Some(sender) => (sender.name, sender.agent, sender.project),
            None => (baton_core::name::BATON.to_owned(), baton_core::name::BATON.to_owned(), String::new()),
        };
        let letter = Letter {
            id: MessageId::parse(&public).ok_or_else(|| foreign("a message id"))?,
            from,
            kind,
            by_person,
            project: Some(theirs).filter(|theirs| !theirs.is_empty() && *theirs != self.reader.project),
            body,
            ask,
            reply_to: parent.as_ref().and_then(|parent| MessageId::parse(&parent.public)),
            thread,
            sent_at,
            perhaps_repeated: doubted,
        };
        let waiter =
            parent.filter(|parent| parent.closed_by == Some(message.0)).and_then(|parent| parent.waiter);
        Ok(Some(Readable { letter, expires_at, urgent: attention == Attention::Urgent.code(), waiter }))
    }

    fn parent(&mut self, message: i64) -> Result<Option<Parent>, Error> {
        let parents = match &mut self.parents {
            Some(parents) => parents,
            none => none.insert(
                self.conn
                    .prepare("SELECT public, waiter, waiter_start, closed_by FROM message WHERE id = ?1")
                    .map_err(failure)?,
            ),
        };
        parents
            .query_row([message], |row| {
                let waiter: Option<(i32, i64)> =
                    row.get::<_, Option<i32>>(1)?.zip(row.get::<_, Option<i64>>(2)?);
                Ok(Parent {
                    public: row.get(0)?,
                    waiter: waiter.map(|(pid, start)| Process { pid, start: start.cast_unsigned() }),
                    closed_by: row.get(3)?,
                })
            })
            .optional()
            .map_err(failure)
    }
}

fn person(people: &mut Statement<'_>, id: i64) -> Result<Option<Person>, Error> {
    people
        .query_row([id], |row| {
            Ok(Person { name: row.get(0)?, agent: row.get(1)?, project: row.get(2)?, offer: row.get(3)? })
        })
        .optional()
        .map_err(failure)
}
