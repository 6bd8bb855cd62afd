//! Reading mail: the inbox, one message in full, the history, and what a reply needs to know.

use crate::failure::{failure, foreign};
use crate::hook;
use crate::open::Store;
use crate::schema::delivery_state;
use crate::sessions::Process;
use baton_core::frame::Letter;
use baton_core::id::{MessageId, MessageRow, ParticipantId};
use baton_core::mail::Delivery;
use baton_core::time::Moment;
use baton_core::{Code, Error, name};
use rusqlite::Row;

/// One message at one recipient, for showing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Whose.
    pub participant: ParticipantId,
    /// The recipient's name.
    pub to: String,
    /// Where it is.
    pub state: Delivery,
    /// Since when.
    pub at: Moment,
    /// How often an offer of it came back.
    pub returns: u32,
}

/// One message with the state of every delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRow {
    /// Its row.
    pub row: MessageRow,
    /// Its id.
    pub id: MessageId,
    /// Who sent it; `None` for baton's own notes.
    pub sender: Option<ParticipantId>,
    /// The sender's name.
    pub from: String,
    /// The sender's kind.
    pub kind: String,
    /// The sender's project.
    pub project: String,
    /// What it says.
    pub body: String,
    /// Its thread.
    pub thread: Option<String>,
    /// What it answers.
    pub reply_to: Option<MessageId>,
    /// Whether it is an ask.
    pub ask: bool,
    /// The reply that closed it.
    pub closed_by: Option<MessageId>,
    /// When it was accepted.
    pub sent_at: Moment,
    /// When it expires.
    pub expires_at: Moment,
    /// Where it is, at each recipient.
    pub deliveries: Vec<DeliveryRow>,
}

/// Which messages to show.
#[derive(Clone, Debug, Default)]
pub struct MailFilter<'a> {
    /// Sent or received by this participant.
    pub of: Option<ParticipantId>,
    /// Of this project: a participant of it on one side at least, or nobody of any project on either.
    pub project: Option<&'a str>,
    /// With this name on the other side.
    pub with: Option<&'a str>,
    /// In this thread.
    pub thread: Option<&'a str>,
    /// With this text in the body.
    pub search: Option<&'a str>,
    /// At most so many, the newest ones.
    pub most: usize,
}

const SELECT: &str = "SELECT m.id, m.public, m.sender, s.name, s.agent, s.project, m.body, m.thread, parent.public, m.ask, closing.public, m.sent_at, m.expires_at
    FROM message m LEFT JOIN participant s ON s.id = m.sender LEFT JOIN message parent ON parent.id = m.reply_to
    LEFT JOIN message closing ON closing.id = m.closed_by";

impl Store {
    /// The head of a participant's queue and how many wait in all; nothing changes.
    pub fn peek(
        &self,
        participant: ParticipantId,
        now: Moment,
        most: usize,
        alive: &dyn Fn(Process) -> bool,
    ) -> Result<(Vec<(MessageRow, Letter)>, usize), Error> {
        let queue = hook::queued_letters(&self.conn, participant, now, most, false, alive)?;
        Ok((queue.rows.into_iter().zip(queue.letters).collect(), queue.waiting))
    }

    /// A message by its id.
    pub fn message(&self, id: &MessageId) -> Result<Option<MailRow>, Error> {
        self.mail_rows("m.public = ?1", [id.as_str()]).map(|mut rows| rows.pop())
    }

    /// The message that `reader` wants to answer: only its recipient may.
    pub fn answerable(&self, reader: ParticipantId, id: &MessageId) -> Result<MailRow, Error> {
        let missing = || {
            Error::new(Code::MessageNotFound, format!("no message {id}"))
                .hint("`baton inbox --peek` and `baton mail` list yours")
        };
        let found = self.message(id)?.ok_or_else(missing)?;
        if !found.deliveries.iter().any(|delivery| delivery.participant == reader) {
            // To anybody else but its sender, a message does not exist.
            return Err(if found.sender == Some(reader) {
                Error::new(Code::NotRecipient, format!("{id} is your own message"))
                    .hint("reply to the answer, or send a new message")
            } else {
                missing()
            });
        }
        if found.sender.is_none() {
            return Err(Error::new(
                Code::NoReplyAddress,
                format!("{id} is a note from baton; nobody reads replies to it"),
            )
            .hint("send to the participant that it is about"));
        }
        Ok(found)
    }

    /// Messages with the state of every delivery, oldest first.
    pub fn history(&self, filter: &MailFilter<'_>) -> Result<Vec<MailRow>, Error> {
        let which = "(?1 IS NULL OR m.sender = ?1 OR EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND d.recipient = ?1))
            AND (?2 IS NULL OR s.name = ?2 OR EXISTS (SELECT 1 FROM delivery d JOIN participant r ON r.id = d.recipient WHERE d.message = m.id AND r.name = ?2))
            AND (?3 IS NULL OR m.thread = ?3) AND (?4 IS NULL OR instr(lower(m.body), lower(?4)) > 0)
            AND (?6 IS NULL OR coalesce(s.project, '') = ?6
                 OR EXISTS (SELECT 1 FROM delivery d JOIN participant r ON r.id = d.recipient WHERE d.message = m.id AND r.project = ?6)
                 OR (coalesce(s.project, '') = ''
                     AND NOT EXISTS (SELECT 1 FROM delivery d JOIN participant r ON r.id = d.recipient WHERE d.message = m.id AND r.project <> '')))
            ORDER BY m.id DESC LIMIT ?5";
        let most = i64::try_from(filter.most).unwrap_or(i64::MAX);
        let of = filter.of.map(|participant| participant.0);
        let mut rows =
            self.mail_rows(which, (of, filter.with, filter.thread, filter.search, most, filter.project))?;
        rows.reverse();
        Ok(rows)
    }

    fn mail_rows(&self, which: &str, by: impl rusqlite::Params) -> Result<Vec<MailRow>, Error> {
        let mut select = self.conn.prepare(&format!("{SELECT} WHERE {which}")).map_err(failure)?;
        let mut rows = select.query(by).map_err(failure)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failure)? {
            let mut mail = mail_row(row)?;
            mail.deliveries = self.deliveries(mail.row)?;
            found.push(mail);
        }
        Ok(found)
    }

    fn deliveries(&self, message: MessageRow) -> Result<Vec<DeliveryRow>, Error> {
        let mut select = self
            .conn
            .prepare(
                "SELECT d.recipient, p.name, d.state, d.state_at, d.returns FROM delivery d JOIN participant p ON p.id = d.recipient
                 WHERE d.message = ?1 ORDER BY p.name",
            )
            .map_err(failure)?;
        let mut rows = select.query([message.0]).map_err(failure)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failure)? {
            let code: i64 = row.get(2).map_err(failure)?;
            let read = || -> rusqlite::Result<_> {
                Ok((ParticipantId(row.get(0)?), row.get(1)?, Moment(row.get(3)?), row.get(4)?))
            };
            let (participant, to, at, returns) = read().map_err(failure)?;
            let state = delivery_state(code).ok_or_else(|| foreign("a delivery state"))?;
            found.push(DeliveryRow { participant, to, state, at, returns });
        }
        Ok(found)
    }

    /// How many messages and participants there are, for doctor.
    pub fn counts(&self) -> Result<(u64, u64), Error> {
        self.conn
            .query_row("SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM session)", [], |row| {
                Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)?.cast_unsigned()))
            })
            .map_err(failure)
    }
}

fn mail_row(row: &Row<'_>) -> Result<MailRow, Error> {
    let read = || -> rusqlite::Result<_> {
        Ok((
            row.get::<_, String>(1)?,
            row.get::<_, Option<String>>(8)?,
            row.get::<_, Option<String>>(10)?,
            MailRow {
                row: MessageRow(row.get(0)?),
                id: MessageId::from_random([0; 8]),
                sender: row.get::<_, Option<i64>>(2)?.map(ParticipantId),
                from: row.get::<_, Option<String>>(3)?.unwrap_or_else(|| name::BATON.to_owned()),
                kind: row.get::<_, Option<String>>(4)?.unwrap_or_else(|| name::BATON.to_owned()),
                project: row.get::<_, Option<String>>(5)?.unwrap_or_default(),
                body: row.get(6)?,
                thread: row.get(7)?,
                reply_to: None,
                ask: row.get(9)?,
                closed_by: None,
                sent_at: Moment(row.get(11)?),
                expires_at: Moment(row.get(12)?),
                deliveries: Vec::new(),
            },
        ))
    };
    let (public, parent, closing, mail) = read().map_err(failure)?;
    Ok(MailRow {
        id: MessageId::parse(&public).ok_or_else(|| foreign("a message id"))?,
        reply_to: parent.as_deref().and_then(MessageId::parse),
        closed_by: closing.as_deref().and_then(MessageId::parse),
        ..mail
    })
}
