//! Reading mail: the inbox, one message in full, the history, and what a reply needs.

use crate::failure::{failure, foreign};
use crate::hook;
use crate::open::Store;
use crate::states::delivery_state;
use baton_core::frame::Letter;
use baton_core::id::{MessageId, MessageRow, ParticipantId};
use baton_core::mail::Delivery;
use baton_core::process::Process;
use baton_core::time::Moment;
use baton_core::{Code, Error, name};
use rusqlite::Row;

/// One message at one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    pub participant: ParticipantId,
    /// The recipient's name.
    pub to: String,
    pub state: Delivery,
    pub at: Moment,
    /// How often an offer of it came back.
    pub returns: u32,
}

/// One message with the state of every delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRow {
    pub row: MessageRow,
    pub id: MessageId,
    /// `None` for notes from baton.
    pub sender: Option<ParticipantId>,
    /// The sender's name.
    pub from: String,
    /// The sender's agent, or `user` or `script`.
    pub kind: String,
    pub project: String,
    pub body: String,
    pub thread: Option<String>,
    pub reply_to: Option<MessageId>,
    pub ask: bool,
    /// The reply that closed it.
    pub closed_by: Option<MessageId>,
    pub sent_at: Moment,
    pub expires_at: Moment,
    pub deliveries: Vec<DeliveryRow>,
}

/// The head of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peeked {
    pub letters: Vec<(MessageRow, Letter)>,
    /// How many wait in all.
    pub waiting: usize,
}

/// Whose messages to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everybody's.
    Any,
    /// Those that came to a participant.
    Received(ParticipantId),
    /// Those that a participant sent or got.
    Either(ParticipantId),
    /// Those that a participant asked.
    Asked(ParticipantId),
}

/// How much the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub messages: u64,
    pub sessions: u64,
}

/// Which messages to show.
#[derive(Clone, Debug, Default)]
pub struct MailFilter<'a> {
    /// Sent or received by this participant.
    pub of: Option<ParticipantId>,
    /// A participant of this project is on one side at least, or both sides are outsiders.
    pub project: Option<&'a str>,
    /// With this name on the other side.
    pub with: Option<&'a str>,
    /// In this thread.
    pub thread: Option<&'a str>,
    /// With this text in the body.
    pub search: Option<&'a str>,
    /// The newest ones, up to this many.
    pub most: usize,
}

const SELECT: &str = "SELECT m.id, m.public, m.sender, s.name, s.agent, s.project, m.body, m.thread, parent.public, m.ask, closing.public, m.sent_at, m.expires_at
    FROM message m LEFT JOIN participant s ON s.id = m.sender LEFT JOIN message parent ON parent.id = m.reply_to
    LEFT JOIN message closing ON closing.id = m.closed_by";

impl Store {
    /// The head of a participant's queue. Changes nothing.
    pub fn peek(
        &self,
        participant: ParticipantId,
        now: Moment,
        most: usize,
        alive: &dyn Fn(Process) -> bool,
    ) -> Result<Peeked, Error> {
        let queue = hook::queued_letters(&self.conn, participant, now, most, false, alive)?;
        Ok(Peeked { letters: queue.rows.into_iter().zip(queue.letters).collect(), waiting: queue.waiting })
    }

    pub fn message(&self, id: &MessageId) -> Result<Option<MailRow>, Error> {
        self.mail_rows("m.public = ?1", [id.as_str()]).map(|mut rows| rows.pop())
    }

    /// The replies to a message, oldest first.
    pub fn replies(&self, message: MessageRow, most: usize) -> Result<Vec<MailRow>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        // A reply is newer than its message.
        self.mail_rows("m.id > ?1 AND m.reply_to = ?1 ORDER BY m.id LIMIT ?2", (message.0, most))
    }

    /// The messages whose ids begin with `beginning`, the newest first: those of one participant,
    /// or all of them.
    pub fn messages_beginning(
        &self,
        beginning: &str,
        part: Part,
        most: usize,
    ) -> Result<Vec<MailRow>, Error> {
        // A range finds them by the index of ids, whose characters all sort before the tilde.
        let which = match part {
            Part::Any => "?3 IS NULL",
            Part::Received(_) => {
                "EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND d.recipient = ?3)"
            }
            Part::Either(_) => {
                "(m.sender = ?3 OR EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND d.recipient = ?3))"
            }
            Part::Asked(_) => "m.sender = ?3 AND m.ask = 1",
        };
        let of = match part {
            Part::Any => None,
            Part::Received(of) | Part::Either(of) | Part::Asked(of) => Some(of.0),
        };
        let which = format!("m.public >= ?1 AND m.public < ?2 AND {which} ORDER BY m.id DESC LIMIT ?4");
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.mail_rows(&which, (beginning, format!("{beginning}~"), of, most))
    }

    /// The message that `reader` wants to answer. Only its recipient may answer it.
    pub fn answerable(&self, reader: ParticipantId, id: &MessageId) -> Result<MailRow, Error> {
        let missing = || {
            Error::new(Code::MessageNotFound, format!("no message {id}"))
                .hint("`baton inbox --peek` and `baton mail` list yours")
        };
        let found = self.message(id)?.ok_or_else(missing)?;
        if !found.deliveries.iter().any(|delivery| delivery.participant == reader) {
            // For all others but its sender, a message does not exist.
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
                format!("{id} is a note from baton, which reads no replies"),
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
            let deliveries = self.deliveries(MessageRow(row.get(0).map_err(failure)?))?;
            found.push(mail_row(row, deliveries)?);
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

    /// How many messages and sessions there are, for doctor.
    pub fn counts(&self) -> Result<Counts, Error> {
        self.conn
            .query_row("SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM session)", [], |row| {
                Ok(Counts {
                    messages: row.get::<_, i64>(0)?.cast_unsigned(),
                    sessions: row.get::<_, i64>(1)?.cast_unsigned(),
                })
            })
            .map_err(failure)
    }
}

fn mail_row(row: &Row<'_>, deliveries: Vec<DeliveryRow>) -> Result<MailRow, Error> {
    let public: String = row.get(1).map_err(failure)?;
    let id = MessageId::parse(&public).ok_or_else(|| foreign("a message id"))?;
    let read = || -> rusqlite::Result<_> {
        let parent: Option<String> = row.get(8)?;
        let closing: Option<String> = row.get(10)?;
        Ok(MailRow {
            row: MessageRow(row.get(0)?),
            id,
            sender: row.get::<_, Option<i64>>(2)?.map(ParticipantId),
            from: row.get::<_, Option<String>>(3)?.unwrap_or_else(|| name::BATON.to_owned()),
            kind: row.get::<_, Option<String>>(4)?.unwrap_or_else(|| name::BATON.to_owned()),
            project: row.get::<_, Option<String>>(5)?.unwrap_or_default(),
            body: row.get(6)?,
            thread: row.get(7)?,
            reply_to: parent.as_deref().and_then(MessageId::parse),
            ask: row.get(9)?,
            closed_by: closing.as_deref().and_then(MessageId::parse),
            sent_at: Moment(row.get(11)?),
            expires_at: Moment(row.get(12)?),
            deliveries,
        })
    };
    read().map_err(failure)
}
