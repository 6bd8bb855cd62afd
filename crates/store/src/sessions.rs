//! Sessions: registering them, and what they are doing.

use crate::failure::failure;
use crate::open::Store;
use crate::trail;
use baton_core::event::Source;
use baton_core::id::{ParticipantId, SessionRow};
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::{Code, Error, name};
use rusqlite::{Connection, OptionalExtension as _};

/// A process, told apart from a later one with the same number by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it started, in the kernel's own count.
    pub start: u64,
}

/// What an event says about a session that may be new to us.
#[derive(Clone, Debug)]
pub struct Sighting<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The agent's own session id.
    pub native: &'a str,
    /// The project that its folder belongs to.
    pub project: &'a str,
    /// Where it works.
    pub cwd: &'a str,
    /// Where it writes its conversation down.
    pub transcript: Option<&'a str>,
    /// The agent's process, where it is known to run this session alone.
    pub process: Option<Process>,
    /// Why it started; `None` when we see it in the middle.
    pub source: Option<Source>,
    /// What it does now.
    pub state: State,
    /// Now.
    pub now: Moment,
}

/// A session as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its row.
    pub id: SessionRow,
    /// Whose it is.
    pub participant: ParticipantId,
    /// The agent's name.
    pub agent: String,
    /// The agent's own id.
    pub native: String,
    /// Where its conversation is written down.
    pub transcript: Option<String>,
    /// Its process.
    pub process: Option<Process>,
    /// What it does, by its last event.
    pub state: State,
    /// Since when.
    pub state_since: Moment,
}

/// What a sighting led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSeen {
    /// The session's row.
    pub session: SessionRow,
    /// Whose it is.
    pub participant: ParticipantId,
    /// Whether it was new.
    pub new: bool,
    /// The process that had this session before, if it was another one.
    pub former: Option<Process>,
}

/// What was last heard of the sessions of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The agent's name.
    pub agent: String,
    /// The last sign of life that is known: not what a reader noticed later, such as a dead process.
    pub last: Moment,
    /// The last prompt of a person, which only hooks and plugins tell us.
    pub prompt: Option<Moment>,
}

impl Store {
    /// What was last heard of each agent that ever had a session here.
    pub fn heard(&self) -> Result<Vec<Heard>, Error> {
        let mut select = self
            .conn
            .prepare(
                "SELECT agent, max(max(started_at, coalesce(person_turn_at, 0), CASE state WHEN 'gone' THEN 0 ELSE state_since END)),
                    max(person_turn_at) FROM session GROUP BY agent",
            )
            .map_err(failure)?;
        let rows = select
            .query_map([], |row| {
                Ok(Heard {
                    agent: row.get(0)?,
                    last: Moment(row.get(1)?),
                    prompt: row.get::<_, Option<i64>>(2)?.map(Moment),
                })
            })
            .map_err(failure)?;
        rows.collect::<Result<_, _>>().map_err(failure)
    }

    /// Registers a session, or brings what is known of it up to date. A known id keeps its participant for ever; after a clear the
    /// participant goes on in the new session; anything else new is a new participant with a name of its own.
    pub fn sight_session(&mut self, sighting: &Sighting<'_>) -> Result<SessionSeen, Error> {
        let tx = self.begin()?;
        let known: Option<(i64, i64, Option<i32>, Option<i64>)> = tx
            .query_row(
                "SELECT id, participant, pid, pid_start FROM session WHERE agent = ?1 AND native = ?2",
                (sighting.agent, sighting.native),
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
            )
            .optional()
            .map_err(failure)?;
        let seen = match known {
            Some((id, participant, pid, start)) => {
                let former = pid.zip(start).map(|(pid, start)| Process { pid, start: start.cast_unsigned() });
                refresh(&tx, id, sighting)?;
                SessionSeen {
                    session: SessionRow(id),
                    participant: ParticipantId(participant),
                    new: false,
                    former: former.filter(|former| Some(*former) != sighting.process),
                }
            }
            None => register(&tx, sighting)?,
        };
        tx.execute("UPDATE participant SET session = ?2 WHERE id = ?1", (seen.participant.0, seen.session.0))
            .map_err(failure)?;
        let kind = match sighting.source {
            Some(Source::Clear) => "session-clear",
            Some(Source::Resume) => "session-resume",
            Some(Source::Fork) => "session-fork",
            _ => "session-start",
        };
        trail::note(&tx, sighting.now, kind, Some(seen.participant), None, Some(sighting.native))?;
        tx.commit().map_err(failure)?;
        Ok(seen)
    }

    /// Whether a session goes on for a participant that had another one before.
    pub fn is_continuation(&self, id: SessionRow, participant: ParticipantId) -> Result<bool, Error> {
        self.conn
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM session WHERE participant = ?2 AND id < ?1)",
                (id.0, participant.0),
                |row| row.get(0),
            )
            .map_err(failure)
    }

    /// A session by its row.
    pub fn session(&self, id: SessionRow) -> Result<Option<SessionInfo>, Error> {
        self.conn
            .query_row(
                "SELECT id, participant, agent, native, transcript, pid, pid_start, state, state_since FROM session WHERE id = ?1",
                [id.0],
                |row| {
                    let pid: Option<i32> = row.get(5)?;
                    let start: Option<i64> = row.get(6)?;
                    let state: String = row.get(7)?;
                    Ok(SessionInfo {
                        id: SessionRow(row.get(0)?),
                        participant: ParticipantId(row.get(1)?),
                        agent: row.get(2)?,
                        native: row.get(3)?,
                        transcript: row.get(4)?,
                        process: pid.zip(start).map(|(pid, start)| Process { pid, start: start.cast_unsigned() }),
                        state: State::parse(&state).unwrap_or(State::Gone),
                        state_since: Moment(row.get(8)?),
                    })
                },
            )
            .optional()
            .map_err(failure)
    }

    /// Notes that a session's process is gone, or that the agent's own registry says something else than its last event.
    /// Changes nothing if another event came in since `expected_since`.
    pub fn correct_state(
        &mut self,
        id: SessionRow,
        expected_since: Moment,
        state: State,
        now: Moment,
    ) -> Result<(), Error> {
        self.conn
            .execute(
                "UPDATE session SET state = ?3, state_since = ?4 WHERE id = ?1 AND state_since = ?2 AND state <> ?3",
                (id.0, expected_since.0, state.as_str(), now.0),
            )
            .map(drop)
            .map_err(failure)
    }

    /// Remembers an MCP call that a subagent is about to make.
    pub fn announce_subagent_call(&mut self, call: &str, now: Moment) -> Result<(), Error> {
        self.conn
            .execute(
                "INSERT INTO subagent_call (call, at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                (call, now.0),
            )
            .map(drop)
            .map_err(failure)
    }

    /// Whether a subagent announced this call.
    pub fn is_subagent_call(&self, call: &str) -> Result<bool, Error> {
        self.conn
            .query_row("SELECT EXISTS (SELECT 1 FROM subagent_call WHERE call = ?1)", [call], |row| {
                row.get(0)
            })
            .map_err(failure)
    }
}

fn refresh(conn: &Connection, id: i64, sighting: &Sighting<'_>) -> Result<(), Error> {
    conn.execute(
        "UPDATE session SET transcript = coalesce(?2, transcript), cwd = ?3, pid = coalesce(?4, pid), pid_start = coalesce(?5, pid_start),
            state = ?6, state_since = ?7, turn = CASE WHEN ?8 THEN NULL ELSE turn END WHERE id = ?1",
        (
            id,
            sighting.transcript,
            sighting.cwd,
            sighting.process.map(|process| process.pid),
            sighting.process.map(|process| process.start.cast_signed()),
            sighting.state.as_str(),
            sighting.now.0,
            sighting.source.is_some_and(Source::is_new_turnless),
        ),
    )
    .map(drop)
    .map_err(failure)
}

fn register(conn: &Connection, sighting: &Sighting<'_>) -> Result<SessionSeen, Error> {
    let participant = match predecessor(conn, sighting)? {
        Some(participant) => participant,
        None => name_participant(conn, sighting)?,
    };
    conn.execute(
        "INSERT INTO session (agent, native, participant, transcript, cwd, pid, pid_start, state, state_since, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)",
        (
            sighting.agent,
            sighting.native,
            participant,
            sighting.transcript,
            sighting.cwd,
            sighting.process.map(|process| process.pid),
            sighting.process.map(|process| process.start.cast_signed()),
            sighting.state.as_str(),
            sighting.now.0,
        ),
    )
    .map_err(failure)?;
    Ok(SessionSeen {
        session: SessionRow(conn.last_insert_rowid()),
        participant: ParticipantId(participant),
        new: true,
        former: None,
    })
}

/// After a clear: whoever ran in that very process, if exactly one did. A guess among several would hand mail to a stranger. Where nothing
/// says that it was a clear (the agent has no word for it, or another event came before that of the start), only if that one has ended.
fn predecessor(conn: &Connection, sighting: &Sighting<'_>) -> Result<Option<i64>, Error> {
    let (None | Some(Source::Clear | Source::New), Some(process)) = (sighting.source, sighting.process)
    else {
        return Ok(None);
    };
    let mut select = conn
        .prepare(
            "SELECT DISTINCT p.id, s.id FROM session s JOIN participant p ON p.session = s.id
             WHERE s.agent = ?1 AND s.pid = ?2 AND s.pid_start = ?3 AND (?4 OR s.state = 'gone')",
        )
        .map_err(failure)?;
    let found: Vec<(i64, i64)> = select
        .query_map(
            (
                sighting.agent,
                process.pid,
                process.start.cast_signed(),
                sighting.source == Some(Source::Clear),
            ),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .and_then(Iterator::collect)
        .map_err(failure)?;
    let [(participant, session)] = found[..] else { return Ok(None) };
    conn.execute(
        "UPDATE session SET state = 'gone', state_since = ?2 WHERE id = ?1 AND state <> 'gone'",
        (session, sighting.now.0),
    )
    .map_err(failure)?;
    Ok(Some(participant))
}

fn name_participant(conn: &Connection, sighting: &Sighting<'_>) -> Result<i64, Error> {
    const ATTEMPTS: u32 = 100_000;
    for attempt in 0..ATTEMPTS {
        let added = conn
            .execute(
                "INSERT INTO participant (project, name, agent, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                (sighting.project, name::candidate(sighting.native, attempt), sighting.agent, sighting.now.0),
            )
            .map_err(failure)?;
        if added == 1 {
            return Ok(conn.last_insert_rowid());
        }
    }
    Err(Error::new(Code::Internal, "no name is left in this project"))
}
