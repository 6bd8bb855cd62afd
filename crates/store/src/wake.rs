//! Wakes: what decides about one, claiming it, and recording what became of it.
//!
//! A wake is claimed in one transaction before anything is done. The claim names the last wake that
//! the caller saw, so of two processes that decide at the same instant only one wakes.

use crate::failure::{failure, foreign};
use crate::open::Store;
use crate::states::{attention, is_queued};
use crate::{accept, trail};
use baton_core::id::{MessageRow, ParticipantId, SessionRow, WakeId};
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake::{Last, Outcome, RouteKind};
use baton_core::{Error, name};
use rusqlite::{Connection, OptionalExtension as _};

/// What the store knows that decides about a wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeView {
    /// The newest waiting message that may wake.
    pub newest: Option<MessageRow>,
    pub last: Option<(WakeId, Last)>,
    /// Wakes since the given moment that were passed on.
    pub recent: u32,
    /// Until when only urgent mail reaches the participant.
    pub dnd_until: Option<Moment>,
    /// Something urgent waits.
    pub urgent: bool,
    /// It must never be woken.
    pub off: bool,
}

/// A wake to be claimed.
#[derive(Clone, Copy, Debug)]
pub struct NewWake {
    pub participant: ParticipantId,
    pub session: SessionRow,
    /// The last wake when this was decided.
    pub after: Option<WakeId>,
    /// The newest message that waits.
    pub newest: MessageRow,
    /// Earlier tries for the same mail.
    pub tried: u32,
    pub route: RouteKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeRow {
    pub id: WakeId,
    /// When it was claimed.
    pub at: Moment,
    pub route: RouteKind,
    /// `None` while it is being performed.
    pub outcome: Option<Outcome>,
    pub detail: Option<String>,
}

impl Store {
    /// Everything about a participant that decides about a wake.
    pub fn wake_view(&self, participant: ParticipantId, since: Moment) -> Result<WakeView, Error> {
        let conn = &self.conn;
        let (newest, dnd_until, off): (Option<i64>, Option<i64>, bool) = conn
            .query_row(
                concat!(
                    "SELECT (SELECT max(d.message) FROM delivery d JOIN message m ON m.id = d.message
                    WHERE d.recipient = p.id AND ",
                    is_queued!("d."),
                    " AND m.attention <> ",
                    attention!(quiet),
                    "), dnd_until, wake_off
                 FROM participant p WHERE id = ?1"
                ),
                [participant.0],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .map_err(failure)?;
        let recent = conn
            .query_row(
                "SELECT count(*) FROM wake WHERE participant = ?1 AND at >= ?2 AND (outcome IS NULL OR outcome IN ('pushed', 'typed', 'confirmed', 'unconfirmed'))",
                (participant.0, since.0),
                |row| row.get(0),
            )
            .map_err(failure)?;
        let last = last(conn, participant)?;
        let urgent = dnd_until.is_some() && self.urgent_waits(participant)?;
        Ok(WakeView {
            newest: newest.map(MessageRow),
            last,
            recent,
            dnd_until: dnd_until.map(Moment),
            urgent,
            off,
        })
    }

    /// Whether mail waits that may wake a participant, and the participant may be woken at all.
    pub fn may_be_woken(&self, participant: ParticipantId) -> Result<bool, Error> {
        self.conn
            .query_row(
                concat!("SELECT wake_off = 0 AND EXISTS (SELECT 1 FROM delivery d JOIN message m ON m.id = d.message
                 WHERE d.recipient = p.id AND ", is_queued!("d."), " AND m.attention <> ", attention!(quiet), ") FROM participant p WHERE id = ?1"),
                [participant.0],
                |row| row.get(0),
            )
            .map_err(failure)
    }

    /// The participants with a session that is not gone, and mail that waits and may wake
    /// them.
    pub fn waiting_sessions(&self) -> Result<Vec<ParticipantId>, Error> {
        self.conn
            .prepare(concat!(
                "SELECT DISTINCT p.id FROM delivery d JOIN message m ON m.id = d.message
                 JOIN participant p ON p.id = d.recipient JOIN session s ON s.id = p.session
                 WHERE ",
                is_queued!("d."),
                " AND m.attention <> ",
                attention!(quiet),
                " AND p.wake_off = 0 AND s.state <> ?1"
            ))
            .and_then(|mut select| {
                select.query_map([State::Gone.as_str()], |row| row.get(0).map(ParticipantId))?.collect()
            })
            .map_err(failure)
    }

    /// Since when the oldest mail waits that may wake a participant.
    pub fn waits_since(&self, participant: ParticipantId) -> Result<Option<Moment>, Error> {
        self.conn
            .query_row(
                concat!(
                    "SELECT min(m.sent_at) FROM delivery d JOIN message m ON m.id = d.message
                     WHERE d.recipient = ?1 AND ",
                    is_queued!("d."),
                    " AND m.attention <> ",
                    attention!(quiet)
                ),
                [participant.0],
                |row| row.get::<_, Option<i64>>(0),
            )
            .map(|since| since.map(Moment))
            .map_err(failure)
    }

    /// Whether urgent mail waits for a participant.
    pub fn urgent_waits(&self, participant: ParticipantId) -> Result<bool, Error> {
        self.conn
            .query_row(
                concat!(
                    "SELECT EXISTS (SELECT 1 FROM delivery d JOIN message m ON m.id = d.message
                 WHERE d.recipient = ?1 AND ",
                    is_queued!("d."),
                    " AND m.attention = ",
                    attention!(urgent),
                    ")"
                ),
                [participant.0],
                |row| row.get(0),
            )
            .map_err(failure)
    }

    /// Claims a wake, unless another process claimed one since it was decided.
    pub fn claim_wake(&mut self, wake: &NewWake, now: Moment) -> Result<Option<WakeId>, Error> {
        let tx = self.begin()?;
        let idle: bool = tx
            .query_row(
                "SELECT state = ?2 FROM session WHERE id = ?1",
                (wake.session.0, State::Idle.as_str()),
                |row| row.get(0),
            )
            .map_err(failure)?;
        // A session that has begun a turn since then would never confirm the wake.
        if !idle || last(&tx, wake.participant)?.map(|(id, _)| id) != wake.after {
            return Ok(None);
        }
        tx.execute(
            "INSERT INTO wake (participant, session, newest, tried, route, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (
                wake.participant.0,
                wake.session.0,
                wake.newest.0,
                wake.tried,
                wake.route.as_str(),
                now.0,
            ),
        )
        .map_err(failure)?;
        let id = WakeId(tx.last_insert_rowid());
        tx.execute("UPDATE participant SET wake = ?2 WHERE id = ?1", (wake.participant.0, id.0))
            .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(Some(id))
    }

    /// Records what became of a wake, unless an event has confirmed it.
    pub fn end_wake(
        &mut self,
        id: WakeId,
        outcome: Outcome,
        detail: Option<&str>,
        now: Moment,
    ) -> Result<(), Error> {
        let tx = self.begin()?;
        let ended: Option<(i64, String)> = tx
            .query_row(
                "UPDATE wake SET outcome = ?2, detail = ?3, decided_at = ?4 WHERE id = ?1 AND (outcome IS NULL OR outcome <> 'confirmed')
                 RETURNING participant, route",
                (id.0, outcome.as_str(), detail, now.0),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(failure)?;
        let Some((participant, route)) = ended else { return Ok(()) };
        if !outcome.is_under_way() {
            tx.execute("UPDATE participant SET wake = NULL WHERE id = ?1 AND wake = ?2", (participant, id.0))
                .map_err(failure)?;
        }
        let what = match detail {
            Some(detail) => format!("{} by {route}: {detail}", outcome.as_str()),
            None => format!("{} by {route}", outcome.as_str()),
        };
        trail::note(&tx, now, "wake", Some(ParticipantId(participant)), None, Some(&what))?;
        tx.commit().map_err(failure)
    }

    /// Gives up a wake that no event has confirmed after all tries, and tells the senders of the
    /// waiting mail, once.
    pub fn give_up_wake(&mut self, id: WakeId, now: Moment) -> Result<(), Error> {
        let tx = self.begin()?;
        let given_up: Option<(i64, String)> = tx
            .query_row(
                "UPDATE wake SET outcome = ?2, decided_at = ?3 WHERE id = ?1 AND (outcome IS NULL OR outcome NOT IN (?2, 'confirmed'))
                 RETURNING participant, (SELECT name FROM participant p WHERE p.id = participant)",
                (id.0, Outcome::Unconfirmed.as_str(), now.0),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(failure)?;
        let Some((participant, name)) = given_up else { return Ok(()) };
        tx.execute("UPDATE participant SET wake = NULL WHERE id = ?1 AND wake = ?2", (participant, id.0))
            .map_err(failure)?;
        let participant = ParticipantId(participant);
        trail::note(&tx, now, "wake", Some(participant), None, Some(Outcome::Unconfirmed.as_str()))?;
        let senders: Vec<(i64, i64, String)> = tx
            .prepare(
                concat!("SELECT m.sender, max(m.id), m.public FROM delivery d JOIN message m ON m.id = d.message JOIN participant s ON s.id = m.sender
                 WHERE d.recipient = ?1 AND ", is_queued!("d."), " AND m.attention <> ", attention!(quiet), " AND s.name <> ?2 GROUP BY m.sender"),
            )
            .and_then(|mut select| {
                select
                    .query_map((participant.0, name::SCRIPT), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                    .collect()
            })
            .map_err(failure)?;
        for (sender, message, public) in senders {
            let body = format!(
                "{name} could not be woken for your message {public}: it took no turn. The message waits for its next prompt."
            );
            accept::insert_note(&tx, ParticipantId(sender), Some(MessageRow(message)), &body, now)?;
        }
        tx.commit().map_err(failure)
    }

    /// The wake that a background hook of a session is to perform, if there is one.
    pub fn wake_for_waiter(&self, session: SessionRow) -> Result<Option<WakeId>, Error> {
        self.conn
            .query_row(
                "SELECT w.id FROM participant p JOIN wake w ON w.id = p.wake WHERE w.session = ?1 AND w.route = ?2",
                (session.0, RouteKind::Waiter.as_str()),
                |row| row.get(0).map(WakeId),
            )
            .optional()
            .map_err(failure)
    }

    pub fn last_wake(&self, participant: ParticipantId) -> Result<Option<WakeRow>, Error> {
        self.conn
            .query_row(
                "SELECT id, at, route, outcome, detail FROM wake WHERE participant = ?1 ORDER BY id DESC LIMIT 1",
                [participant.0],
                |row| {
                    let route: String = row.get(2)?;
                    let outcome: Option<String> = row.get(3)?;
                    Ok(WakeRow {
                        id: WakeId(row.get(0)?),
                        at: Moment(row.get(1)?),
                        route: RouteKind::parse(&route).unwrap_or(RouteKind::Terminal),
                        outcome: outcome.as_deref().and_then(Outcome::parse),
                        detail: row.get(4)?,
                    })
                },
            )
            .optional()
            .map_err(failure)
    }

    /// Lets only urgent mail through to a participant until then; `None` lets everything through
    /// again.
    pub fn set_dnd(
        &mut self,
        participant: ParticipantId,
        until: Option<Moment>,
        now: Moment,
    ) -> Result<(), Error> {
        let tx = self.begin()?;
        tx.execute(
            "UPDATE participant SET dnd_until = ?2 WHERE id = ?1",
            (participant.0, until.map(|at| at.0)),
        )
        .map_err(failure)?;
        let what = match until {
            Some(Moment(i64::MAX)) => "on".to_owned(),
            Some(until) => format!("until {}", until.to_rfc3339()),
            None => "off".to_owned(),
        };
        trail::note(&tx, now, "dnd", Some(participant), None, Some(&what))?;
        tx.commit().map_err(failure)
    }

    /// Sets whether a participant may be woken.
    pub fn set_wake(&mut self, participant: ParticipantId, on: bool, now: Moment) -> Result<(), Error> {
        let tx = self.begin()?;
        tx.execute("UPDATE participant SET wake_off = ?2 WHERE id = ?1", (participant.0, !on))
            .map_err(failure)?;
        let what = if on { "switched on" } else { "switched off" };
        trail::note(&tx, now, "wake", Some(participant), None, Some(what))?;
        tx.commit().map_err(failure)
    }

    pub fn dnd_until(&self, participant: ParticipantId) -> Result<Option<Moment>, Error> {
        self.conn
            .query_row("SELECT dnd_until FROM participant WHERE id = ?1", [participant.0], |row| {
                row.get::<_, Option<i64>>(0)
            })
            .map(|until| until.map(Moment))
            .map_err(failure)
    }
}

/// Records that an event of the session confirmed its wake.
pub(crate) fn confirm(
    conn: &Connection,
    participant: ParticipantId,
    id: WakeId,
    now: Moment,
) -> Result<(), Error> {
    conn.execute("UPDATE participant SET wake = NULL WHERE id = ?1 AND wake = ?2", (participant.0, id.0))
        .map_err(failure)?;
    conn.execute(
        "UPDATE wake SET outcome = ?2, decided_at = ?3 WHERE id = ?1",
        (id.0, Outcome::Confirmed.as_str(), now.0),
    )
    .map_err(failure)?;
    trail::note(conn, now, "wake", Some(participant), None, Some(Outcome::Confirmed.as_str()))
}

fn last(conn: &Connection, participant: ParticipantId) -> Result<Option<(WakeId, Last)>, Error> {
    let found: Option<(i64, i64, u32, i64, Option<String>)> = conn
        .query_row(
            "SELECT id, at, tried, newest, outcome FROM wake WHERE participant = ?1 ORDER BY id DESC LIMIT 1",
            [participant.0],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
        )
        .optional()
        .map_err(failure)?;
    let Some((id, at, tried, newest, outcome)) = found else { return Ok(None) };
    let outcome = outcome
        .map(|text| Outcome::parse(&text).ok_or_else(|| foreign("an outcome of a wake")))
        .transpose()?;
    let brought = offered_since(conn, participant, Moment(at))?;
    Ok(Some((WakeId(id), Last { at: Moment(at), tried, newest: MessageRow(newest), outcome, brought })))
}

/// Whether mail was offered to the participant since then. Walks back from the newest offer, so no
/// index is needed.
fn offered_since(conn: &Connection, participant: ParticipantId, since: Moment) -> Result<bool, Error> {
    let mut select = conn
        .prepare("SELECT participant, made_at FROM offer WHERE answer = 0 ORDER BY id DESC")
        .map_err(failure)?;
    let mut rows = select.query([]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        let (whose, at): (i64, i64) = (row.get(0).map_err(failure)?, row.get(1).map_err(failure)?);
        if at < since.0 {
            return Ok(false);
        }
        if whose == participant.0 {
            return Ok(true);
        }
    }
    Ok(false)
}
