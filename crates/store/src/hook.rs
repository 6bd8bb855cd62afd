//! The transactions of the hook path: look first, and write only if something changes.
//!
//! [`Store::hook_view`] is one read. [`Store::hook_step`] settles the open offer, notes what the session does and claims the next
//! batch, all in one transaction; whoever comes second finds the offer settled or open and does nothing.

use crate::failure::{failure, foreign};
use crate::letters::Letters;
use crate::open::Store;
use crate::schema::{delivery_code, delivery_state};
use crate::sessions::Process;
use crate::{accept, trail, wake};
use baton_core::Error;
use baton_core::frame::{Framed, Letter};
use baton_core::id::{MessageId, MessageRow, Nonce, OfferId, ParticipantId, SessionRow, WakeId};
use baton_core::limits::Limits;
use baton_core::mail::mailbox::{self, Entry};
use baton_core::mail::{Anchor, Delivery, Settle};
use baton_core::session::State;
use baton_core::time::Moment;
use rusqlite::{Connection, OptionalExtension as _, Rows, ToSql};

/// What a hook knows after its one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookView {
    /// The session.
    pub session: SessionRow,
    /// Whose it is.
    pub participant: ParticipantId,
    /// The participant's name.
    pub name: String,
    /// What the session did so far.
    pub state: State,
    /// The agent's id of the turn that is running.
    pub turn: Option<String>,
    /// The transcript's length when that turn began.
    pub turn_from: u64,
    /// Times in a row that mail kept it from stopping.
    pub stops: u32,
    /// The process that runs it.
    pub process: Option<Process>,
    /// Where it writes its conversation down.
    pub transcript: Option<String>,
    /// The open mail offer; while there is one, no other mail is offered.
    pub mail_offer: Option<OfferId>,
    /// All open offers, answers to asks included.
    pub open: Vec<OfferId>,
    /// Something is queued.
    pub queued: bool,
    /// Its wake that no event has confirmed yet.
    pub wake: Option<WakeId>,
    /// Until when only urgent mail reaches it.
    pub dnd_until: Option<Moment>,
    /// No person has said anything in it yet.
    pub fresh: bool,
    /// Not 0: a job that it asked for may still run.
    pub jobs: i64,
}

/// An open offer with what is needed to look for its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOffer {
    /// Its row.
    pub id: OfferId,
    /// What to look for.
    pub nonce: Nonce,
    /// Where it was made.
    pub anchor: Anchor,
    /// The agent's id of the turn it was made in.
    pub turn: Option<String>,
    /// The transcript's length when it was made.
    pub position: u64,
    /// Where to start reading.
    pub read_from: u64,
    /// The session it was made for.
    pub session: SessionRow,
    /// That session's agent.
    pub agent: String,
    /// That session's transcript.
    pub transcript: Option<String>,
    /// That session's process.
    pub process: Option<Process>,
    /// Whether that session has ended.
    pub ended: bool,
    /// The process that made it.
    pub claimer: Process,
}

/// A wish to claim mail.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The new offer's nonce.
    pub nonce: Nonce,
    /// Where it is made.
    pub anchor: Anchor,
    /// The turn it is made in.
    pub turn: Option<String>,
    /// The transcript's length now.
    pub position: u64,
    /// Where a look for its proof has to start reading.
    pub read_from: u64,
    /// Who claims.
    pub claimer: Process,
    /// It keeps the session from stopping.
    pub at_stop: bool,
    /// Only what is urgent.
    pub only_urgent: bool,
}

/// What a claim gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The new offer.
    pub offer: OfferId,
    /// What to print.
    pub text: String,
    /// What is in it.
    pub messages: Vec<MessageId>,
}

/// What one hook run wants to change.
#[derive(Debug)]
pub struct HookStep {
    /// The session.
    pub session: SessionRow,
    /// Whose it is.
    pub participant: ParticipantId,
    /// What became of open offers.
    pub settle: Vec<(OfferId, Settle)>,
    /// The session's new state.
    pub state: Option<State>,
    /// Where it writes its conversation down, if that is news.
    pub transcript: Option<String>,
    /// A turn begins: its id, the transcript's length, and whether a person began it.
    pub turn: Option<(Option<String>, u64, bool)>,
    /// The wake that this event confirms.
    pub confirms: Option<WakeId>,
    /// Mail to claim.
    pub claim: Option<Claim>,
    /// Now.
    pub now: Moment,
}

impl Store {
    /// Everything a hook needs to know, in one read. `None` for a session that was never seen.
    ///
    /// Row by row, as [`Letters`] are read: one statement for all of it takes SQLite longer to plan.
    pub fn hook_view(&self, agent: &str, native: &str) -> Result<Option<HookView>, Error> {
        let read = self.conn.unchecked_transaction().map_err(failure)?;
        let view = view(&read, agent, native).map_err(failure)?;
        read.finish().map_err(failure)?;
        Ok(view)
    }

    /// An offer, if it is still open.
    pub fn open_offer(&self, id: OfferId) -> Result<Option<OpenOffer>, Error> {
        self.open_offers("o.id = ?1", [id.0]).map(|mut found| found.pop())
    }

    /// Every open offer of a participant, or of everybody.
    pub fn open_offers_of(&self, participant: Option<ParticipantId>) -> Result<Vec<OpenOffer>, Error> {
        self.open_offers("?1 IS NULL OR o.participant = ?1", [participant.map(|p| p.0)])
    }

    fn open_offers(&self, which: &str, by: impl rusqlite::Params) -> Result<Vec<OpenOffer>, Error> {
        let sql = format!(
            "SELECT o.id, o.nonce, o.anchor, o.turn, o.position, o.read_from, o.session, s.agent, s.transcript, s.pid, s.pid_start, s.state, o.pid, o.pid_start,
                p.session FROM offer o JOIN session s ON s.id = o.session JOIN participant p ON p.id = o.participant WHERE o.state = 0 AND ({which})"
        );
        let mut select = self.conn.prepare(&sql).map_err(failure)?;
        let mut rows = select.query(by).map_err(failure)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failure)? {
            let read = || -> rusqlite::Result<_> {
                let pid: Option<i32> = row.get(9)?;
                let start: Option<i64> = row.get(10)?;
                Ok((
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                    OpenOffer {
                        id: OfferId(row.get(0)?),
                        nonce: Nonce::from_random([0; 8]),
                        anchor: Anchor::Start,
                        turn: row.get(3)?,
                        position: row.get::<_, i64>(4)?.cast_unsigned(),
                        read_from: row.get::<_, i64>(5)?.cast_unsigned(),
                        session: SessionRow(row.get(6)?),
                        agent: row.get(7)?,
                        transcript: row.get(8)?,
                        process: pid
                            .zip(start)
                            .map(|(pid, start)| Process { pid, start: start.cast_unsigned() }),
                        ended: row.get::<_, String>(11)? == State::Gone.as_str(),
                        claimer: Process { pid: row.get(12)?, start: row.get::<_, i64>(13)?.cast_unsigned() },
                    },
                ))
            };
            let (nonce, anchor, offer) = read().map_err(failure)?;
            found.push(OpenOffer {
                nonce: Nonce::parse(&nonce).ok_or_else(|| foreign("a nonce"))?,
                anchor: Anchor::parse(&anchor).ok_or_else(|| foreign("an anchor"))?,
                ..offer
            });
        }
        Ok(found)
    }

    /// What an open offer holds, to say it once more in the same words, and when it was made.
    pub fn offered_letters(&self, offer: OfferId) -> Result<(Vec<Letter>, Moment), Error> {
        let (owner, made_at) = self
            .conn
            .query_row("SELECT participant, made_at FROM offer WHERE id = ?1", [offer.0], |row| {
                Ok((ParticipantId(row.get(0)?), Moment(row.get(1)?)))
            })
            .map_err(failure)?;
        let mut select = self
            .conn
            .prepare(
                "SELECT message, doubted FROM delivery WHERE recipient = ?1 AND state = 1 AND state < 2 AND offer = ?2 ORDER BY message",
            )
            .map_err(failure)?;
        let mut rows = select.query((owner.0, offer.0)).map_err(failure)?;
        let mut reader = Letters::of(&self.conn, owner)?;
        let mut letters = Vec::new();
        while let Some((message, doubted)) = next_delivery(&mut rows)? {
            letters.extend(reader.read(message, doubted)?.map(|found| found.letter));
        }
        Ok((letters, made_at))
    }

    /// Whether mail waits that may be offered to a participant, once no offer is open.
    pub fn mail_waits(
        &self,
        participant: ParticipantId,
        now: Moment,
        only_urgent: bool,
        alive: &dyn Fn(Process) -> bool,
    ) -> Result<bool, Error> {
        queued_letters(&self.conn, participant, now, 1, only_urgent, alive)
            .map(|queue| !queue.letters.is_empty())
    }

    /// Does what one hook run decided. `render` frames the letters that are queued; the claim holds as many as it took.
    pub fn hook_step(
        &mut self,
        step: &HookStep,
        limits: &Limits,
        alive: &dyn Fn(Process) -> bool,
        render: &dyn Fn(&[Letter], usize, &Nonce) -> Framed,
    ) -> Result<Option<Claimed>, Error> {
        let tx = self.begin()?;
        for (offer, settle) in &step.settle {
            settle_offer(&tx, *offer, *settle, step.now)?;
        }
        note_session(&tx, step)?;
        if let Some(id) = step.confirms {
            wake::confirm(&tx, step.participant, id, step.now)?;
        }
        let claimed = match &step.claim {
            Some(claim) => claim_mail(&tx, step, claim, limits, alive, render)?,
            None => None,
        };
        tx.commit().map_err(failure)?;
        Ok(claimed)
    }

    /// Settles an offer outside a hook: a reader noticed, or the claimer could not print.
    pub fn settle(&mut self, offer: OfferId, settle: Settle, now: Moment) -> Result<(), Error> {
        let tx = self.begin()?;
        settle_offer(&tx, offer, settle, now)?;
        tx.commit().map_err(failure)
    }
}

/// What is known of a session, its participant and what waits there.
fn view(conn: &Connection, agent: &str, native: &str) -> rusqlite::Result<Option<HookView>> {
    let session = conn
        .prepare(
            "SELECT id, participant, state, turn, turn_from, stops, pid, pid_start, transcript, person_turn_at FROM session WHERE agent = ?1 AND native = ?2",
        )?
        .query_row((agent, native), |row| {
            let state: String = row.get(2)?;
            let pid: Option<i32> = row.get(6)?;
            let start: Option<i64> = row.get(7)?;
            Ok(HookView {
                session: SessionRow(row.get(0)?),
                participant: ParticipantId(row.get(1)?),
                name: String::new(),
                state: State::parse(&state).unwrap_or(State::Gone),
                turn: row.get(3)?,
                turn_from: row.get::<_, i64>(4)?.cast_unsigned(),
                stops: row.get(5)?,
                process: pid.zip(start).map(|(pid, start)| Process { pid, start: start.cast_unsigned() }),
                transcript: row.get(8)?,
                fresh: row.get::<_, Option<i64>>(9)?.is_none(),
                mail_offer: None,
                open: Vec::new(),
                queued: false,
                wake: None,
                dnd_until: None,
                jobs: 0,
            })
        })
        .optional()?;
    let Some(session) = session else { return Ok(None) };
    let id = session.participant.0;
    let open = conn
        .prepare("SELECT id FROM offer WHERE participant = ?1 AND state = 0")?
        .query_map([id], |row| row.get(0).map(OfferId))?
        .collect::<rusqlite::Result<_>>()?;
    let queued = conn
        .prepare("SELECT 1 FROM delivery WHERE recipient = ?1 AND state = 0 AND state < 2")?
        .exists([id])?;
    conn.prepare("SELECT name, offer, wake, dnd_until, jobs FROM participant WHERE id = ?1")?
        .query_row([id], |row| {
            Ok(HookView {
                name: row.get(0)?,
                mail_offer: row.get::<_, Option<i64>>(1)?.map(OfferId),
                wake: row.get::<_, Option<i64>>(2)?.map(WakeId),
                dnd_until: row.get::<_, Option<i64>>(3)?.map(Moment),
                jobs: row.get(4)?,
                open,
                queued,
                ..session
            })
        })
        .optional()
}

/// Writes down what the session does now, in one statement where anything has changed.
fn note_session(conn: &Connection, step: &HookStep) -> Result<(), Error> {
    if step.state.is_none() && step.turn.is_none() && step.transcript.is_none() {
        return Ok(());
    }
    // Only what changes: to plan the rest would cost more than to write it.
    let mut sets = Vec::new();
    let mut values: Vec<(&str, &dyn ToSql)> = vec![(":id", &step.session.0)];
    let state = step.state.map(State::as_str);
    if let Some(state) = &state {
        sets.push("state_since = CASE WHEN state = :state THEN state_since ELSE :now END, state = :state");
        values.push((":state", state));
    }
    let turn = step.turn.as_ref().map(|(turn, from, by_person)| (turn, from.cast_signed(), *by_person));
    if let Some((turn, from, by_person)) = &turn {
        sets.push("turn = :turn, turn_from = :from");
        values.extend([(":turn", *turn as &dyn ToSql), (":from", from)]);
        if *by_person {
            sets.push("stops = 0, person_turn_at = :now");
        }
    }
    if let Some(transcript) = &step.transcript {
        sets.push("transcript = :transcript");
        values.push((":transcript", transcript));
    }
    if sets.iter().any(|set| set.contains(":now")) {
        values.push((":now", &step.now.0));
    }
    conn.execute(&format!("UPDATE session SET {} WHERE id = :id", sets.join(", ")), &values[..])
        .map(drop)
        .map_err(failure)
}

fn claim_mail(
    conn: &Connection,
    step: &HookStep,
    claim: &Claim,
    limits: &Limits,
    alive: &dyn Fn(Process) -> bool,
    render: &dyn Fn(&[Letter], usize, &Nonce) -> Framed,
) -> Result<Option<Claimed>, Error> {
    let queue = queued_letters(
        conn,
        step.participant,
        step.now,
        limits.messages_per_event,
        claim.only_urgent,
        alive,
    )?;
    if queue.letters.is_empty() || queue.held_back {
        return Ok(None);
    }
    let framed = render(&queue.letters, queue.waiting, &claim.nonce);
    let rows = &queue.rows[..framed.taken];
    let offer = insert_offer(conn, step.participant, step.session, claim, false, rows, step.now)?;
    if claim.at_stop {
        // The turn goes on.
        conn.execute(
            "UPDATE session SET stops = stops + 1, state = ?2, state_since = CASE WHEN state = ?2 THEN state_since ELSE ?3 END WHERE id = ?1",
            (step.session.0, State::Busy.as_str(), step.now.0),
        )
        .map_err(failure)?;
    }
    let messages = queue.letters.iter().take(framed.taken).map(|letter| letter.id.clone()).collect();
    Ok(Some(Claimed { offer, text: framed.text, messages }))
}

/// Writes an offer of these messages down; `answer` for the reply that a waiting ask takes.
pub(crate) fn insert_offer(
    conn: &Connection,
    participant: ParticipantId,
    session: SessionRow,
    claim: &Claim,
    answer: bool,
    messages: &[MessageRow],
    now: Moment,
) -> Result<OfferId, Error> {
    conn.prepare(
        "INSERT INTO offer (nonce, participant, session, answer, anchor, turn, position, read_from, pid, pid_start, made_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )
    .and_then(|mut insert| {
        insert.execute((
            claim.nonce.as_str(),
            participant.0,
            session.0,
            answer,
            claim.anchor.to_text(),
            &claim.turn,
            claim.position.cast_signed(),
            claim.read_from.cast_signed(),
            claim.claimer.pid,
            claim.claimer.start.cast_signed(),
            now.0,
        ))
    })
    .map_err(failure)?;
    let offer = OfferId(conn.last_insert_rowid());
    if !answer {
        conn.execute("UPDATE participant SET offer = ?2 WHERE id = ?1", (participant.0, offer.0))
            .map_err(failure)?;
    }
    let mut update = conn
        .prepare("UPDATE delivery SET state = 1, state_at = ?3, offer = ?4 WHERE message = ?1 AND recipient = ?2 AND state = 0")
        .map_err(failure)?;
    let mut notes = trail::Notes::new(conn)?;
    for message in messages {
        let changed = update.execute((message.0, participant.0, now.0, offer.0)).map_err(failure)?;
        if changed != 1 {
            return Err(foreign("a queued message that is not queued"));
        }
        notes.add(now, "offered", Some(participant), Some(*message), None)?;
    }
    Ok(offer)
}

/// What waits for a participant, oldest first.
pub(crate) struct Queue {
    /// A mail offer is open, so none of it may be offered now.
    pub(crate) held_back: bool,
    pub(crate) rows: Vec<MessageRow>,
    pub(crate) letters: Vec<Letter>,
    pub(crate) waiting: usize,
}

/// The head of a participant's queue. A reply is left for the ask that waits for it, as long as its waiter lives.
pub(crate) fn queued_letters(
    conn: &Connection,
    participant: ParticipantId,
    now: Moment,
    most: usize,
    only_urgent: bool,
    alive: &dyn Fn(Process) -> bool,
) -> Result<Queue, Error> {
    let mut select = conn
        .prepare("SELECT message, doubted FROM delivery WHERE recipient = ?1 AND state = 0 AND state < 2 ORDER BY message")
        .map_err(failure)?;
    let mut rows = select.query([participant.0]).map_err(failure)?;
    let mut reader = Letters::of(conn, participant)?;
    let held_back = reader.open_offer().is_some();
    let mut queue = Queue { held_back, rows: Vec::new(), letters: Vec::new(), waiting: 0 };
    while let Some((message, doubted)) = next_delivery(&mut rows)? {
        let Some(found) = reader.read(message, doubted)? else { continue };
        if found.expires_at <= now || (only_urgent && !found.urgent) {
            continue;
        }
        if queue.letters.len() >= most {
            // Counted by the index alone: what else waits may be thousands.
            queue.waiting = count_queued(conn, participant)?;
            break;
        }
        if found.waiter.is_some_and(alive) {
            continue;
        }
        queue.waiting += 1;
        queue.letters.push(found.letter);
        queue.rows.push(message);
    }
    Ok(queue)
}

fn next_delivery(rows: &mut Rows<'_>) -> Result<Option<(MessageRow, bool)>, Error> {
    let row = rows.next().map_err(failure)?;
    row.map(|row| Ok((MessageRow(row.get(0)?), row.get(1)?))).transpose().map_err(failure)
}

fn count_queued(conn: &Connection, participant: ParticipantId) -> Result<usize, Error> {
    conn.query_row(
        "SELECT count(*) FROM delivery WHERE recipient = ?1 AND state = 0 AND state < 2",
        [participant.0],
        |row| row.get::<_, i64>(0),
    )
    .map(|count| usize::try_from(count).unwrap_or(0))
    .map_err(failure)
}

/// Settles an offer if it is still open: compare and set, so that of two lookers one wins and the other changes nothing.
pub(crate) fn settle_offer(
    conn: &Connection,
    offer: OfferId,
    settle: Settle,
    now: Moment,
) -> Result<(), Error> {
    let code = match settle {
        Settle::Keep => return Ok(()),
        Settle::Seen => 1,
        Settle::Return => 2,
        Settle::Doubt => 3,
    };
    let owner: Option<i64> = conn
        .query_row(
            "UPDATE offer SET state = ?2, decided_at = ?3 WHERE id = ?1 AND state = 0 RETURNING participant",
            (offer.0, code, now.0),
            |row| row.get(0),
        )
        .optional()
        .map_err(failure)?;
    let Some(owner) = owner.map(ParticipantId) else { return Ok(()) };
    conn.execute("UPDATE participant SET offer = NULL WHERE id = ?1 AND offer = ?2", (owner.0, offer.0))
        .map_err(failure)?;
    for entry in offered_entries(conn, owner, offer)? {
        let next = mailbox::settled(settle, entry);
        conn.execute(
            "UPDATE delivery SET state = ?3, state_at = ?4, returns = ?5, doubted = ?6 WHERE message = ?1 AND recipient = ?2",
            (entry.message.0, owner.0, delivery_code(next.state), now.0, next.returns, next.doubted),
        )
        .map_err(failure)?;
        let kind = if next.state == Delivery::Queued { "returned" } else { next.state.as_str() };
        trail::note(conn, now, kind, Some(owner), Some(entry.message), None)?;
        if next.state.is_end() && next.state != Delivery::Seen {
            accept::tell_sender(conn, entry.message, owner, next.state, now)?;
        }
    }
    Ok(())
}

fn offered_entries(conn: &Connection, owner: ParticipantId, offer: OfferId) -> Result<Vec<Entry>, Error> {
    let mut select = conn
        .prepare(
            "SELECT message, state, returns, doubted FROM delivery WHERE recipient = ?1 AND state = 1 AND state < 2 AND offer = ?2 ORDER BY message",
        )
        .map_err(failure)?;
    let rows = select
        .query_map((owner.0, offer.0), |row| {
            Ok((
                MessageRow(row.get(0)?),
                row.get::<_, i64>(1)?,
                row.get::<_, u32>(2)?,
                row.get::<_, bool>(3)?,
            ))
        })
        .map_err(failure)?;
    let mut entries = Vec::new();
    for row in rows {
        let (message, code, returns, doubted) = row.map_err(failure)?;
        let state = delivery_state(code).ok_or_else(|| foreign("a delivery state"))?;
        entries.push(Entry { message, state, returns, doubted });
    }
    Ok(entries)
}
