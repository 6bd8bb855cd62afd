//! The transactions of the hook path: one read first, and a write only if something changes.
//!
//! [`Store::hook_view`] is one read. [`Store::hook_step`] settles the open offer, notes what the
//! session does and claims the next batch, all in one transaction. A second hook that comes at the
//! same time finds the offer settled or open, and does nothing.

use crate::failure::{failure, foreign};
use crate::letters::Letters;
use crate::open::Store;
use crate::states::{
    OFFER_OPEN, delivery, delivery_code, delivery_state, is_offered, is_queued, offer, offer_code,
};
use crate::{accept, trail, wake};
use baton_core::Error;
use baton_core::frame::{Framed, Letter};
use baton_core::id::{MessageId, MessageRow, Nonce, OfferId, ParticipantId, SessionRow, WakeId};
use baton_core::limits::Limits;
use baton_core::mail::mailbox::{self, Entry};
use baton_core::mail::{Anchor, Delivery, Settle, Settlement, TurnStart};
use baton_core::process::Process;
use baton_core::session::State;
use baton_core::time::Moment;
use rusqlite::{Connection, OptionalExtension as _, Row, Rows, ToSql};

/// What a hook knows after its one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookView {
    pub session: SessionRow,
    pub participant: ParticipantId,
    /// The participant's name.
    pub name: String,
    /// What the session does, by its last event.
    pub state: State,
    /// The agent's id of the turn that is running.
    pub turn: Option<String>,
    /// The transcript's length when that turn began.
    pub turn_from: u64,
    /// Times in a row that mail kept it from stopping.
    pub stops: u32,
    pub process: Option<Process>,
    pub transcript: Option<String>,
    /// The open mail offer; while there is one, no other mail is offered.
    pub mail_offer: Option<OfferId>,
    /// All open offers, answers to asks included.
    pub open: Vec<OfferId>,
    pub queued: bool,
    /// Its wake that no event has confirmed yet.
    pub wake: Option<WakeId>,
    /// Until when only urgent mail reaches it.
    pub dnd_until: Option<Moment>,
    /// No person has prompted it yet.
    pub fresh: bool,
    /// Grows with each job that it starts, and is 0 when none of them can still run.
    pub jobs_generation: i64,
}

/// An open offer, with what is needed to look for its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOffer {
    pub id: OfferId,
    /// The text to look for.
    pub nonce: Nonce,
    /// Where in the session it was made.
    pub anchor: Anchor,
    /// The agent's id of the turn it was made in.
    pub turn: Option<String>,
    /// The transcript's length when it was made.
    pub position: u64,
    /// The transcript offset from which to read.
    pub read_from: u64,
    pub session: SessionRow,
    pub agent: String,
    pub transcript: Option<String>,
    pub process: Option<Process>,
    pub ended: bool,
    /// The process that made it.
    pub claimer: Process,
}

/// A request to claim mail.
#[derive(Clone, Debug)]
pub struct Claim {
    pub nonce: Nonce,
    /// Where in the session the offer is made.
    pub anchor: Anchor,
    pub turn: Option<String>,
    pub position: u64,
    /// The transcript offset from which a look for its proof must read.
    pub read_from: u64,
    /// The process that claims.
    pub claimer: Process,
    /// The offer keeps the session from stopping.
    pub at_stop: bool,
    /// Claims urgent mail only.
    pub only_urgent: bool,
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub offer: OfferId,
    /// What to print.
    pub text: String,
    /// The lines for the person at the terminal.
    pub glance: String,
    /// The messages in it.
    pub messages: Vec<MessageId>,
}

/// The messages of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedLetters {
    pub letters: Vec<Letter>,
    /// When the offer was made.
    pub made_at: Moment,
}

/// The mail that waits for a participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingMail {
    /// Who wrote the oldest of it, each once.
    pub senders: Vec<String>,
    pub count: usize,
}

/// From so many messages a wake line takes its names.
const MOST_NAMED: usize = 20;

/// What one hook run wants to change.
#[derive(Debug)]
pub struct HookStep {
    pub session: SessionRow,
    pub participant: ParticipantId,
    /// What became of open offers.
    pub settle: Vec<Settlement>,
    pub state: Option<State>,
    /// Set if it has changed.
    pub transcript: Option<String>,
    pub turn: Option<TurnStart>,
    /// The wake that this event confirms.
    pub confirms: Option<WakeId>,
    pub claim: Option<Claim>,
    pub now: Moment,
}

impl Store {
    /// Everything that a hook needs to know, in one read. `None` for a session that was never seen.
    ///
    /// It reads row by row, as [`Letters`] does: SQLite takes longer to plan one statement for all
    /// of it.
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

    /// Every open offer of one participant, or of all.
    pub fn open_offers_of(&self, participant: Option<ParticipantId>) -> Result<Vec<OpenOffer>, Error> {
        self.open_offers("?1 IS NULL OR o.participant = ?1", [participant.map(|p| p.0)])
    }

    fn open_offers(&self, which: &str, by: impl rusqlite::Params) -> Result<Vec<OpenOffer>, Error> {
        let sql = format!(
            "SELECT o.id, o.nonce, o.anchor, o.turn, o.position, o.read_from, o.session, s.agent, s.transcript, s.pid, s.pid_start, s.state, o.pid, o.pid_start,
                p.session FROM offer o JOIN session s ON s.id = o.session JOIN participant p ON p.id = o.participant WHERE o.state = {OFFER_OPEN} AND ({which})"
        );
        let mut select = self.conn.prepare(&sql).map_err(failure)?;
        let mut rows = select.query(by).map_err(failure)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failure)? {
            let nonce: String = row.get(1).map_err(failure)?;
            let anchor: String = row.get(2).map_err(failure)?;
            let nonce = Nonce::parse(&nonce).ok_or_else(|| foreign("a nonce"))?;
            let anchor = Anchor::parse(&anchor).ok_or_else(|| foreign("an anchor"))?;
            found.push(open_offer(row, nonce, anchor).map_err(failure)?);
        }
        Ok(found)
    }

    /// The messages of an open offer, to offer them again in the same words.
    pub fn offered_letters(&self, offer: OfferId) -> Result<OfferedLetters, Error> {
        let (owner, made_at) = self
            .conn
            .query_row("SELECT participant, made_at FROM offer WHERE id = ?1", [offer.0], |row| {
                Ok((ParticipantId(row.get(0)?), Moment(row.get(1)?)))
            })
            .map_err(failure)?;
        let mut select = self
            .conn
            .prepare(concat!(
                "SELECT message, doubted FROM delivery WHERE recipient = ?1 AND ",
                is_offered!(),
                " AND offer = ?2 ORDER BY message"
            ))
            .map_err(failure)?;
        let mut rows = select.query((owner.0, offer.0)).map_err(failure)?;
        let mut reader = Letters::of(&self.conn, owner)?;
        let mut letters = Vec::new();
        while let Some((message, doubted)) = next_delivery(&mut rows)? {
            letters.extend(reader.read(message, doubted)?.map(|found| found.letter));
        }
        Ok(OfferedLetters { letters, made_at })
    }

    /// What waits for a participant and may be offered once no offer is open. That is urgent mail
    /// alone if the participant does not want to be disturbed.
    pub fn waiting_mail(
        &self,
        participant: ParticipantId,
        now: Moment,
        alive: &dyn Fn(Process) -> bool,
    ) -> Result<WaitingMail, Error> {
        let dnd_until: Option<i64> = self
            .conn
            .query_row("SELECT dnd_until FROM participant WHERE id = ?1", [participant.0], |row| row.get(0))
            .map_err(failure)?;
        let only_urgent = dnd_until.is_some_and(|until| until > now.0);
        let queue = queued_letters(&self.conn, participant, now, MOST_NAMED, only_urgent, alive)?;
        let mut senders: Vec<String> = Vec::new();
        for Letter { from, .. } in queue.letters {
            if !senders.contains(&from) {
                senders.push(from);
            }
        }
        Ok(WaitingMail { senders, count: queue.waiting })
    }

    /// Does what one hook run decided. `render` frames the queued letters; the claim holds as many
    /// as it took.
    pub fn hook_step(
        &mut self,
        step: &HookStep,
        limits: &Limits,
        alive: &dyn Fn(Process) -> bool,
        render: &dyn Fn(&[Letter], usize, &Nonce) -> Framed,
    ) -> Result<Option<Claimed>, Error> {
        let tx = self.begin()?;
        for Settlement { offer, how } in &step.settle {
            settle_offer(&tx, *offer, *how, step.now)?;
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

    /// Settles an offer outside a hook: a reader saw its proof, or the claimer could not print it.
    pub fn settle(&mut self, offer: OfferId, settle: Settle, now: Moment) -> Result<(), Error> {
        let tx = self.begin()?;
        settle_offer(&tx, offer, settle, now)?;
        tx.commit().map_err(failure)
    }
}

fn open_offer(row: &Row<'_>, nonce: Nonce, anchor: Anchor) -> rusqlite::Result<OpenOffer> {
    let pid: Option<i32> = row.get(9)?;
    let start: Option<i64> = row.get(10)?;
    Ok(OpenOffer {
        id: OfferId(row.get(0)?),
        nonce,
        anchor,
        turn: row.get(3)?,
        position: row.get::<_, i64>(4)?.cast_unsigned(),
        read_from: row.get::<_, i64>(5)?.cast_unsigned(),
        session: SessionRow(row.get(6)?),
        agent: row.get(7)?,
        transcript: row.get(8)?,
        process: pid.zip(start).map(|(pid, start)| Process { pid, start: start.cast_unsigned() }),
        ended: row.get::<_, String>(11)? == State::Gone.as_str(),
        claimer: Process { pid: row.get(12)?, start: row.get::<_, i64>(13)?.cast_unsigned() },
    })
}

/// What is known of a session, its participant and what waits for it.
fn view(conn: &Connection, agent: &str, native: &str) -> rusqlite::Result<Option<HookView>> {
    let mut select = conn.prepare(
        "SELECT id, participant, state, turn, turn_from, stops, pid, pid_start, transcript, person_turn_at FROM session WHERE agent = ?1 AND native = ?2",
    )?;
    let mut sessions = select.query((agent, native))?;
    let Some(session) = sessions.next()? else { return Ok(None) };
    let id: i64 = session.get(1)?;
    let open = conn
        .prepare(concat!("SELECT id FROM offer WHERE participant = ?1 AND state = ", offer!(open)))?
        .query_map([id], |row| row.get(0).map(OfferId))?
        .collect::<rusqlite::Result<_>>()?;
    let queued = conn
        .prepare(concat!("SELECT 1 FROM delivery WHERE recipient = ?1 AND ", is_queued!()))?
        .exists([id])?;
    let state: String = session.get(2)?;
    let pid: Option<i32> = session.get(6)?;
    let start: Option<i64> = session.get(7)?;
    conn.prepare("SELECT name, offer, wake, dnd_until, jobs FROM participant WHERE id = ?1")?
        .query_row([id], |participant| {
            Ok(HookView {
                session: SessionRow(session.get(0)?),
                participant: ParticipantId(id),
                name: participant.get(0)?,
                state: State::parse(&state).unwrap_or(State::Gone),
                turn: session.get(3)?,
                turn_from: session.get::<_, i64>(4)?.cast_unsigned(),
                stops: session.get(5)?,
                process: pid.zip(start).map(|(pid, start)| Process { pid, start: start.cast_unsigned() }),
                transcript: session.get(8)?,
                fresh: session.get::<_, Option<i64>>(9)?.is_none(),
                mail_offer: participant.get::<_, Option<i64>>(1)?.map(OfferId),
                open,
                queued,
                wake: participant.get::<_, Option<i64>>(2)?.map(WakeId),
                dnd_until: participant.get::<_, Option<i64>>(3)?.map(Moment),
                jobs_generation: participant.get(4)?,
            })
        })
        .optional()
}

/// Writes down what the session does now, in one statement, if anything has changed.
fn note_session(conn: &Connection, step: &HookStep) -> Result<(), Error> {
    if step.state.is_none() && step.turn.is_none() && step.transcript.is_none() {
        return Ok(());
    }
    // Only the columns that change: SQLite takes longer to plan the rest than to write it.
    let mut sets = Vec::new();
    let mut values: Vec<(&str, &dyn ToSql)> = vec![(":id", &step.session.0)];
    let state = step.state.map(State::as_str);
    if let Some(state) = &state {
        sets.push("state_since = CASE WHEN state = :state THEN state_since ELSE :now END, state = :state");
        values.push((":state", state));
    }
    let turn_from = step.turn.as_ref().map(|start| start.from.cast_signed());
    if let (Some(start), Some(from)) = (&step.turn, &turn_from) {
        sets.push("turn = :turn, turn_from = :from");
        values.extend([(":turn", &start.id as &dyn ToSql), (":from", from)]);
        if start.by_person {
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
    let new = NewOffer {
        participant: step.participant,
        session: step.session,
        claim,
        is_answer: false,
        messages: &queue.rows[..framed.taken],
        now: step.now,
    };
    let offer = insert_offer(conn, &new)?;
    if claim.at_stop {
        // The turn goes on.
        conn.execute(
            "UPDATE session SET stops = stops + 1, state = ?2, state_since = CASE WHEN state = ?2 THEN state_since ELSE ?3 END WHERE id = ?1",
            (step.session.0, State::Busy.as_str(), step.now.0),
        )
        .map_err(failure)?;
    }
    let messages = queue.letters.iter().take(framed.taken).map(|letter| letter.id.clone()).collect();
    Ok(Some(Claimed { offer, text: framed.text, glance: framed.glance, messages }))
}

/// An offer to be inserted.
pub(crate) struct NewOffer<'a> {
    pub(crate) participant: ParticipantId,
    pub(crate) session: SessionRow,
    pub(crate) claim: &'a Claim,
    /// It is the reply that a waiting ask takes, which may be open beside the one mail offer.
    pub(crate) is_answer: bool,
    pub(crate) messages: &'a [MessageRow],
    pub(crate) now: Moment,
}

/// Inserts an offer, and marks its messages as offered.
pub(crate) fn insert_offer(conn: &Connection, new: &NewOffer<'_>) -> Result<OfferId, Error> {
    let NewOffer { participant, session, claim, is_answer, messages, now } = *new;
    conn.prepare(
        "INSERT INTO offer (nonce, participant, session, answer, anchor, turn, position, read_from, pid, pid_start, made_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )
    .and_then(|mut insert| {
        insert.execute((
            claim.nonce.as_str(),
            participant.0,
            session.0,
            is_answer,
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
    if !is_answer {
        conn.execute("UPDATE participant SET offer = ?2 WHERE id = ?1", (participant.0, offer.0))
            .map_err(failure)?;
    }
    let mut update = conn
        .prepare(concat!(
            "UPDATE delivery SET state = ",
            delivery!(offered),
            ", state_at = ?3, offer = ?4 WHERE message = ?1 AND recipient = ?2 AND state = ",
            delivery!(queued)
        ))
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

/// The head of a participant's queue. A reply stays for the ask that waits for it, as long as its
/// waiter lives.
pub(crate) fn queued_letters(
    conn: &Connection,
    participant: ParticipantId,
    now: Moment,
    most: usize,
    only_urgent: bool,
    alive: &dyn Fn(Process) -> bool,
) -> Result<Queue, Error> {
    let mut select = conn
        .prepare(concat!(
            "SELECT message, doubted FROM delivery WHERE recipient = ?1 AND ",
            is_queued!(),
            " ORDER BY message"
        ))
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
            // Counted by the index alone, because thousands may wait.
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
        concat!("SELECT count(*) FROM delivery WHERE recipient = ?1 AND ", is_queued!()),
        [participant.0],
        |row| row.get::<_, i64>(0),
    )
    .map(|count| usize::try_from(count).unwrap_or(0))
    .map_err(failure)
}

/// Settles an offer if it is still open. This is a compare-and-set: of two processes, one wins and
/// the other changes nothing.
pub(crate) fn settle_offer(
    conn: &Connection,
    offer: OfferId,
    settle: Settle,
    now: Moment,
) -> Result<(), Error> {
    let Some(code) = offer_code(settle) else { return Ok(()) };
    let owner: Option<i64> = conn
        .query_row(
            concat!(
                "UPDATE offer SET state = ?2, decided_at = ?3 WHERE id = ?1 AND state = ",
                offer!(open),
                " RETURNING participant"
            ),
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
            accept::send_end_note(conn, entry.message, owner, next.state, now)?;
        }
    }
    Ok(())
}

fn offered_entries(conn: &Connection, owner: ParticipantId, offer: OfferId) -> Result<Vec<Entry>, Error> {
    let mut select = conn
        .prepare(concat!(
            "SELECT message, state, returns, doubted FROM delivery WHERE recipient = ?1 AND ",
            is_offered!(),
            " AND offer = ?2 ORDER BY message"
        ))
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
