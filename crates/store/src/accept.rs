//! Accepting mail: the one transaction behind send, ask and reply.
//!
//! Once it has committed, the message is on the disk and reaches an end that its sender can see. A
//! retry with the same key gives the first result and changes nothing.

use crate::asks;
use crate::failure::{failure, foreign};
use crate::open::Store;
use crate::people::{self, Participant};
use crate::states::{delivery, is_queued};
use crate::trail;
use baton_core::body::Body;
use baton_core::id::{MessageId, MessageRow, ParticipantId, SessionRow};
use baton_core::limits::Limits;
use baton_core::loops::{self, Traffic};
use baton_core::mail::Delivery;
use baton_core::process::Process;
use baton_core::time::{Moment, Span};
use baton_core::wake::Attention;
use baton_core::{Code, Error, limits, name};
use rusqlite::{Connection, OptionalExtension as _, params};

/// What kind of message it is; part of the idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Send,
    /// The sender waits for an answer.
    Ask,
    Reply,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Ask => "ask",
            Self::Reply => "reply",
        }
    }
}

/// What a caller names a request with, so that a retry gives the first result and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryKey<'a> {
    pub text: &'a str,
    /// Of the whole request: the same key with another request is an error.
    pub digest: [u8; 32],
}

/// A message to be accepted.
#[derive(Debug)]
pub struct NewMail<'a> {
    /// Made from fresh randomness.
    pub id: MessageId,
    pub sender: ParticipantId,
    /// Set if an agent sends it.
    pub session: Option<SessionRow>,
    /// Whether the person sends it, by what the processes above the caller have shown.
    pub by_person: bool,
    pub verb: Verb,
    pub recipients: Vec<Participant>,
    pub body: &'a Body,
    pub thread: Option<&'a str>,
    pub reply_to: Option<MessageRow>,
    pub key: Option<RetryKey<'a>>,
    /// The process that waits for the answer.
    pub waiter: Option<Process>,
    /// How long it may wait before it expires.
    pub ttl: Span,
    pub attention: Attention,
    pub now: Moment,
}

/// What was accepted, by this call or by an earlier one with the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub id: MessageId,
    pub row: MessageRow,
    pub to: Vec<Participant>,
    /// It was accepted before, under the same key.
    pub again: bool,
}

impl Store {
    /// What was accepted under a key, if anything. An error if that was another message.
    pub fn accepted_before(
        &self,
        sender: ParticipantId,
        verb: Verb,
        key: RetryKey<'_>,
    ) -> Result<Option<Accepted>, Error> {
        before(&self.conn, sender, verb, key)
    }

    /// Accepts a message. It is on the disk when this returns.
    pub fn accept_mail(&mut self, mail: NewMail<'_>, rules: &Limits) -> Result<Accepted, Error> {
        self.accept(mail, rules, None)
    }

    /// Accepts an ask, unless it would close a ring of asks that wait for each other. `alive` says
    /// which waiting processes still run.
    pub fn accept_ask(
        &mut self,
        mail: NewMail<'_>,
        rules: &Limits,
        alive: &dyn Fn(Process) -> bool,
    ) -> Result<Accepted, Error> {
        self.accept(mail, rules, Some(alive))
    }

    fn accept(
        &mut self,
        mail: NewMail<'_>,
        rules: &Limits,
        ask: Option<&dyn Fn(Process) -> bool>,
    ) -> Result<Accepted, Error> {
        let tx = self.begin()?;
        if let Some(key) = mail.key
            && let Some(found) = before(&tx, mail.sender, mail.verb, key)?
        {
            return Ok(found);
        }
        if let Some(alive) = ask {
            for asked in &mail.recipients {
                asks::refuse_ring(&tx, mail.sender, asked.id, alive)?;
            }
        }
        let hops = admit(&tx, &mail, rules)?;
        let row = insert(&tx, &mail, hops)?;
        for recipient in &mail.recipients {
            queue(&tx, row, recipient.id, mail.now, rules)?;
        }
        if mail.verb == Verb::Reply
            && let Some(parent) = mail.reply_to
        {
            // The first reply closes the ask; a second one is ordinary mail.
            tx.execute(
                "UPDATE message SET closed_by = ?2 WHERE id = ?1 AND ask = 1 AND closed_by IS NULL",
                (parent.0, row.0),
            )
            .map_err(failure)?;
        }
        read_back(&tx, &mail, row)?;
        tx.commit().map_err(failure)?;
        Ok(Accepted { id: mail.id, row, to: mail.recipients, again: false })
    }
}

impl Store {
    /// Tells the recipients of a message that was refused to stop a loop. Each hears of it once in
    /// `window`.
    pub fn send_cut_notes(
        &mut self,
        sender: &str,
        recipients: &[ParticipantId],
        why: &str,
        window: Span,
        now: Moment,
    ) -> Result<(), Error> {
        let tx = self.begin()?;
        let body = format!("baton holds back what {sender} wanted to send you: {why}.");
        for recipient in recipients {
            // Walks back from the newest message, as the count of the budget does.
            let told: bool = tx
                .query_row(
                    "SELECT EXISTS (SELECT 1 FROM (SELECT id, body, verb, sent_at FROM message ORDER BY id DESC LIMIT 1000) m
                     JOIN delivery d ON d.message = m.id WHERE m.verb = 'note' AND m.sent_at >= ?2 AND instr(m.body, ?3) = 1 AND d.recipient = ?1)",
                    (recipient.0, now.0 - window.0, format!("baton holds back what {sender} wanted")),
                    |row| row.get(0),
                )
                .map_err(failure)?;
            if !told {
                insert_note(&tx, *recipient, None, &body, now)?;
            }
        }
        tx.commit().map_err(failure)
    }

    /// Raises a participant's jobs generation: a job that it asked for may run, so its events look
    /// after its jobs.
    pub fn bump_jobs_generation(&mut self, asker: ParticipantId) -> Result<(), Error> {
        let tx = self.begin()?;
        tx.execute("UPDATE participant SET jobs = jobs + 1 WHERE id = ?1", [asker.0]).map_err(failure)?;
        tx.commit().map_err(failure)
    }

    /// A participant's jobs generation; 0 if none of its jobs can still run.
    pub fn jobs_generation(&self, asker: ParticipantId) -> Result<i64, Error> {
        let number =
            self.conn.query_row("SELECT jobs FROM participant WHERE id = ?1", [asker.0], |row| row.get(0));
        number.optional().map_err(failure).map(Option::unwrap_or_default)
    }

    /// Sets the jobs generation to 0, if it still is `seen`: a job that started since then has
    /// raised it.
    pub fn clear_jobs_generation(&mut self, asker: ParticipantId, seen: i64) -> Result<(), Error> {
        let tx = self.begin()?;
        tx.execute("UPDATE participant SET jobs = 0 WHERE id = ?1 AND jobs = ?2", (asker.0, seen))
            .map_err(failure)?;
        tx.commit().map_err(failure)
    }
}

fn before(
    conn: &Connection,
    sender: ParticipantId,
    verb: Verb,
    key: RetryKey<'_>,
) -> Result<Option<Accepted>, Error> {
    let found: Option<(i64, String, Option<Vec<u8>>)> = conn
        .query_row(
            "SELECT id, public, digest FROM message WHERE sender = ?1 AND verb = ?2 AND key = ?3",
            (sender.0, verb.as_str(), key.text),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()
        .map_err(failure)?;
    let Some((row, public, known)) = found else { return Ok(None) };
    if known.as_deref() != Some(key.digest.as_slice()) {
        return Err(Error::new(
            Code::KeyConflict,
            format!("the key {} was used for another message", baton_core::frame::shown(key.text, 60)),
        )
        .hint("use a new key for a new message; the same key only repeats the same message"));
    }
    let row = MessageRow(row);
    let id = MessageId::parse(&public).ok_or_else(|| foreign("a message id"))?;
    Ok(Some(Accepted { id, row, to: recipients(conn, row)?, again: true }))
}

/// The hops of the new message, or the refusal that stops a loop. Only mail between agents counts.
fn admit(conn: &Connection, mail: &NewMail<'_>, rules: &Limits) -> Result<u32, Error> {
    let Some(session) = mail.session else { return Ok(0) };
    let parent: Option<(u32, i64)> = match mail.reply_to {
        Some(parent) => conn
            .query_row(
                "SELECT m.hops, m.sent_at FROM message m JOIN participant p ON p.id = m.sender WHERE m.id = ?1 AND p.project <> ''",
                [parent.0],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(failure)?,
        None => None,
    };
    let person_turn: Option<i64> = conn
        .query_row("SELECT person_turn_at FROM session WHERE id = ?1", [session.0], |row| row.get(0))
        .map_err(failure)?;
    let mut hops = 0;
    for recipient in &mail.recipients {
        if !recipient.is_outsider() {
            let recent = recent_between(conn, mail.sender, recipient.id, mail.now, rules)?;
            let traffic = Traffic {
                parent: parent.map(|(hops, at)| loops::Parent { hops, sent_at: Moment(at) }),
                person_turn: person_turn.map(Moment),
                recent,
            };
            hops = hops.max(loops::admit(traffic, rules)?);
        }
    }
    Ok(hops)
}

/// How many messages two participants sent each other within the window. Walks back from the newest
/// and stops at the window's edge, so no index is needed.
fn recent_between(
    conn: &Connection,
    one: ParticipantId,
    other: ParticipantId,
    now: Moment,
    rules: &Limits,
) -> Result<u32, Error> {
    let since = now.0 - rules.pair_window.0;
    let mut select =
        conn.prepare("SELECT id, sender, sent_at FROM message ORDER BY id DESC").map_err(failure)?;
    // Prepared only when it is needed: most pairs have not written to each other lately.
    let mut went_to = None;
    let mut rows = select.query([]).map_err(failure)?;
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failure)? {
        let read = || Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, i64>(2)?));
        let (message, sender, at) = read().map_err(failure)?;
        if at < since || count >= rules.pair_messages {
            break;
        }
        let to = match sender {
            Some(sender) if sender == one.0 => other,
            Some(sender) if sender == other.0 => one,
            _ => continue,
        };
        let went_to = match &mut went_to {
            Some(went_to) => went_to,
            none => none.insert(
                conn.prepare("SELECT 1 FROM delivery WHERE message = ?1 AND recipient = ?2")
                    .map_err(failure)?,
            ),
        };
        count += u32::from(went_to.exists((message, to.0)).map_err(failure)?);
    }
    Ok(count)
}

fn insert(conn: &Connection, mail: &NewMail<'_>, hops: u32) -> Result<MessageRow, Error> {
    conn.prepare(
        "INSERT INTO message (public, sender, sender_session, body, thread, reply_to, ask, waiter, waiter_start, hops, verb, key, digest, sent_at, expires_at, attention, by_person)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            mail.id.as_str(),
            mail.sender.0,
            mail.session.map(|session| session.0),
            mail.body.as_str(),
            mail.thread,
            mail.reply_to.map(|row| row.0),
            mail.verb == Verb::Ask,
            mail.waiter.map(|waiter| waiter.pid),
            mail.waiter.map(|waiter| waiter.start.cast_signed()),
            hops,
            mail.verb.as_str(),
            mail.key.map(|key| key.text),
            mail.key.map(|key| key.digest),
            mail.now.0,
            mail.now.plus(mail.ttl).0,
            mail.attention.code(),
            mail.by_person,
        ])
    })
    .map_err(failure)?;
    Ok(MessageRow(conn.last_insert_rowid()))
}

fn queue(
    conn: &Connection,
    message: MessageRow,
    recipient: ParticipantId,
    now: Moment,
    rules: &Limits,
) -> Result<(), Error> {
    let full = conn
        .prepare(concat!(
            "SELECT 1 FROM delivery WHERE recipient = ?1 AND ",
            is_queued!(),
            " LIMIT 1 OFFSET ?2"
        ))
        .and_then(|mut select| select.exists((recipient.0, rules.mailbox.saturating_sub(1))))
        .map_err(failure)?;
    if full {
        return Err(Error::new(
            Code::MailboxFull,
            format!("{} messages wait for that recipient already", rules.mailbox),
        )
        .hint("`baton who` shows whether it is running; the limit is `limits.mailbox`"));
    }
    conn.prepare(concat!(
        "INSERT INTO delivery (message, recipient, state, state_at) VALUES (?1, ?2, ",
        delivery!(queued),
        ", ?3)"
    ))
    .and_then(|mut insert| insert.execute((message.0, recipient.0, now.0)))
    .map_err(failure)?;
    trail::note(conn, now, "sent", Some(recipient), Some(message), None)
}

/// Reads what was written in the same ways as its readers do. In a damaged store an index can lead
/// elsewhere: then nothing is accepted.
fn read_back(conn: &Connection, mail: &NewMail<'_>, row: MessageRow) -> Result<(), Error> {
    let body: Option<(i64, String)> = conn
        .query_row("SELECT id, body FROM message WHERE public = ?1", [mail.id.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .map_err(failure)?;
    let mut is_there = body.is_some_and(|(found, body)| found == row.0 && body == mail.body.as_str());
    let mut queued = conn
        .prepare(concat!(
            "SELECT 1 FROM delivery INDEXED BY delivery_waiting WHERE recipient = ?1 AND ",
            is_queued!(),
            " AND message = ?2"
        ))
        .map_err(failure)?;
    for recipient in &mail.recipients {
        is_there = is_there && queued.exists((recipient.id.0, row.0)).map_err(failure)?;
    }
    is_there = is_there && recipients(conn, row)?.len() == mail.recipients.len();
    // Its readers see who sent it.
    is_there = is_there && people::whole(conn, mail.sender)?.is_some();
    if is_there { Ok(()) } else { Err(unreadable()) }
}

fn unreadable() -> Error {
    Error::new(Code::StoreCorrupt, "the store is damaged: what was written can't be read back")
        .hint("nothing was accepted; `baton doctor` names the file: restore a backup of it, or move it away")
}

fn recipients(conn: &Connection, message: MessageRow) -> Result<Vec<Participant>, Error> {
    people::all(
        conn,
        "p.id IN (SELECT recipient FROM delivery WHERE message = ?1) ORDER BY p.name",
        [message.0],
    )
}

/// Tells a sender that its message reached an end other than `seen`. Notes from baton itself have
/// no sender to tell.
pub(crate) fn send_end_note(
    conn: &Connection,
    message: MessageRow,
    recipient: ParticipantId,
    end: Delivery,
    now: Moment,
) -> Result<(), Error> {
    let found: Option<(i64, String, String, i64)> = conn
        .query_row(
            "SELECT m.sender, m.public, p.name, m.id FROM message m JOIN participant p ON p.id = ?2
             JOIN participant s ON s.id = m.sender WHERE m.id = ?1 AND s.name <> ?3",
            (message.0, recipient.0, name::SCRIPT),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .optional()
        .map_err(failure)?;
    let Some((sender, public, to, _)) = found else { return Ok(()) };
    let why = match end {
        Delivery::Expired => "nobody took it in time",
        Delivery::Undeliverable => "it was offered many times and never taken",
        Delivery::Unconfirmed => {
            "it was offered twice to a session that leaves no proof, so it may or may not have been seen"
        }
        Delivery::Queued | Delivery::Offered | Delivery::Seen => return Ok(()),
    };
    let body = format!("Your message {public} to {to} ended as {}: {why}.", end.as_str());
    insert_note(conn, ParticipantId(sender), Some(message), &body, now)
}

/// Puts a note from baton into a mailbox. It wakes no session: it comes with the recipient's next
/// event.
pub(crate) fn insert_note(
    conn: &Connection,
    recipient: ParticipantId,
    about: Option<MessageRow>,
    body: &str,
    now: Moment,
) -> Result<(), Error> {
    let id = note_id(conn)?;
    let expires = now.plus(Span::days(7));
    conn.execute(
        "INSERT INTO message (public, body, reply_to, verb, sent_at, expires_at, attention) VALUES (?1, ?2, ?3, 'note', ?4, ?5, ?6)",
        (id.as_str(), body, about.map(|message| message.0), now.0, expires.0, Attention::Quiet.code()),
    )
    .map_err(failure)?;
    let row = MessageRow(conn.last_insert_rowid());
    conn.execute(
        concat!(
            "INSERT INTO delivery (message, recipient, state, state_at) VALUES (?1, ?2, ",
            delivery!(queued),
            ", ?3)"
        ),
        (row.0, recipient.0, now.0),
    )
    .map_err(failure)?;
    trail::note(conn, now, "noted", Some(recipient), Some(row), None)
}

/// A new id for a note. SQLite gives the random bytes, because a note is written in the middle of a
/// transaction.
fn note_id(conn: &Connection) -> Result<MessageId, Error> {
    let bytes: Vec<u8> = conn.query_row("SELECT randomblob(8)", [], |row| row.get(0)).map_err(failure)?;
    let random = bytes.try_into().map_err(|_| foreign("too few random bytes"))?;
    Ok(MessageId::from_random(random))
}

/// Checks a label that a caller chose: a key or a thread.
pub fn check_label(what: &str, text: &str) -> Result<(), Error> {
    if text.is_empty() || text.len() > limits::LABEL_BYTES || text.chars().any(char::is_control) {
        return Err(Error::new(
            Code::Usage,
            format!("the {what} must have 1 to {} bytes and no control characters", limits::LABEL_BYTES),
        )
        .hint("choose a short one, such as a uuid or a task's number"));
    }
    Ok(())
}
