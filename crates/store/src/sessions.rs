//! Sessions: registering them, and what they do.

use crate::failure::failure;
use crate::open::Store;
use crate::trail;
use baton_core::event::Source;
use baton_core::id::{ParticipantId, SessionRow};
use baton_core::process::Process;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::{Code, Error, name};
use rusqlite::{Connection, OptionalExtension as _};

/// What an event says about a session, which may be new.
#[derive(Clone, Debug)]
pub struct Sighting<'a> {
    pub agent: &'a str,
    pub native: &'a str,
    /// The project of its folder.
    pub project: &'a str,
    pub cwd: &'a str,
    pub transcript: Option<&'a str>,
    /// The agent's process, if it is known to run this session alone.
    pub process: Option<Process>,
    /// Why it started; `None` if the event is from the middle of a session.
    pub source: Option<Source>,
    /// What it does now.
    pub state: State,
    pub now: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: SessionRow,
    pub participant: ParticipantId,
    pub agent: String,
    /// The agent's own id of it.
    pub native: String,
    pub transcript: Option<String>,
    pub process: Option<Process>,
    /// What it does, by its last event.
    pub state: State,
    pub state_since: Moment,
}

/// The result of a sighting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSeen {
    pub session: SessionRow,
    pub participant: ParticipantId,
    pub new: bool,
    /// The process that had this session before, if it was another one.
    pub former: Option<Process>,
}

/// What was last heard of an agent's sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub agent: String,
    /// The last sign of life, without what a reader noticed later, such as a dead process.
    pub last: Moment,
    /// The last prompt of a person. Only hooks and plugins report those.
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

    /// Registers a session, or updates what is known of it. A known id always keeps its
    /// participant. After a clear the participant goes on in the new session. Any other new session
    /// is a new participant with a new name.
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

    /// Whether the participant of a session had another session before it.
    pub fn is_continuation(&self, id: SessionRow, participant: ParticipantId) -> Result<bool, Error> {
        self.conn
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM session WHERE participant = ?2 AND id < ?1)",
                (id.0, participant.0),
                |row| row.get(0),
            )
            .map_err(failure)
    }

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

    /// Corrects the state of a session whose process is gone, or of which the agent's own registry
    /// says something else. Changes nothing if another event came since `expected_since`.
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

    /// Records an MCP call that a subagent is about to make.
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

/// If the event names no process, the known one stays, unless that session was over: then another
/// process runs it now.
fn refresh(conn: &Connection, id: i64, sighting: &Sighting<'_>) -> Result<(), Error> {
    conn.execute(
        "UPDATE session SET transcript = coalesce(?2, transcript), cwd = ?3, pid = CASE WHEN ?4 IS NULL AND state <> 'gone' THEN pid ELSE ?4 END,
            pid_start = CASE WHEN ?4 IS NULL AND state <> 'gone' THEN pid_start ELSE ?5 END,
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

/// After a clear, the participant that ran in the same process, if exactly one did. A guess among
/// several would hand mail to a stranger. If nothing says that it was a clear (the agent does not
/// report one, or another event came before the start), only a participant whose session has ended.
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
    const MAX_ATTEMPTS: u32 = 100_000;
    for attempt in 0..MAX_ATTEMPTS {
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
