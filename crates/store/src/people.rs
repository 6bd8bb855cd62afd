//! Participants: who exists, under which name, and whom an address means.

use crate::failure::{failure, foreign};
use crate::open::Store;
use crate::sessions::Process;
use baton_core::id::{ParticipantId, SessionRow};
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::{Code, Error, name};
use rusqlite::{Connection, OptionalExtension as _, Row};

/// A mailbox owner with what its present session does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Its row.
    pub id: ParticipantId,
    /// The project that it belongs to; empty for the person and for scripts.
    pub project: String,
    /// Its name.
    pub name: String,
    /// Its kind: an agent's name, `user` or `script`.
    pub agent: String,
    /// Its present session's row.
    pub session: Option<SessionRow>,
    /// The agent's own id of that session.
    pub native: Option<String>,
    /// Where it works.
    pub cwd: Option<String>,
    /// Where its conversation is written down.
    pub transcript: Option<String>,
    /// What it does, by its last event.
    pub state: State,
    /// Since when.
    pub state_since: Moment,
    /// The process that runs it, with its start time.
    pub process: Option<(i32, u64)>,
    /// Messages that wait for it or are on their way into its context; only counted by [`Store::everybody`] and [`Store::participant`].
    pub unread: u32,
    /// Its tags; only gathered there too.
    pub tags: Vec<String>,
}

/// What a search for a name found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Exactly one.
    One(Box<Participant>),
    /// Nobody here, but in these other projects.
    Elsewhere(Vec<String>),
    /// Nobody anywhere.
    Nobody,
}

/// The columns of a participant. Counting its mail and gathering its tags costs more than all the rest, so that is done only where it is shown.
const SELECT: &str = "SELECT p.id, p.project, p.name, p.agent, p.session, s.native, s.cwd, s.transcript, s.state, s.state_since, s.pid,
    s.pid_start, 0, NULL, p.created_at FROM participant p LEFT JOIN session s ON s.id = p.session";
/// The same by one of its sessions, with that one's row; not by its present one only.
const SELECT_BY_SESSION: &str = "SELECT p.id, p.project, p.name, p.agent, p.session, s.native, s.cwd, s.transcript, s.state, s.state_since, s.pid,
    s.pid_start, 0, NULL, p.created_at, me.id
    FROM session me JOIN participant p ON p.id = me.participant LEFT JOIN session s ON s.id = p.session";
const SELECT_WITH_MAIL: &str = "SELECT p.id, p.project, p.name, p.agent, p.session, s.native, s.cwd, s.transcript, s.state, s.state_since, s.pid,
    s.pid_start, (SELECT count(*) FROM delivery d WHERE d.recipient = p.id AND d.state < 2),
    (SELECT group_concat(t.tag, ' ') FROM tag t WHERE t.participant = p.id), p.created_at
    FROM participant p LEFT JOIN session s ON s.id = p.session";

fn participant(row: &Row<'_>) -> rusqlite::Result<Participant> {
    let state: Option<String> = row.get(8)?;
    let since: Option<i64> = row.get(9)?;
    let pid: Option<i32> = row.get(10)?;
    let start: Option<i64> = row.get(11)?;
    let tags: Option<String> = row.get(13)?;
    Ok(Participant {
        id: ParticipantId(row.get(0)?),
        project: row.get(1)?,
        name: row.get(2)?,
        agent: row.get(3)?,
        session: row.get::<_, Option<i64>>(4)?.map(SessionRow),
        native: row.get(5)?,
        cwd: row.get(6)?,
        transcript: row.get(7)?,
        // Whoever has no session (the person, a script) is never busy.
        state: state.as_deref().and_then(State::parse).unwrap_or(State::Idle),
        state_since: Moment(since.unwrap_or(row.get(14)?)),
        process: pid.zip(start.map(i64::cast_unsigned)),
        unread: row.get(12)?,
        tags: tags.map(|tags| tags.split(' ').map(str::to_owned).collect()).unwrap_or_default(),
    })
}

pub(crate) fn one(
    conn: &Connection,
    which: &str,
    by: impl rusqlite::Params,
) -> Result<Option<Participant>, Error> {
    conn.prepare(&format!("{SELECT} WHERE {which}"))
        .and_then(|mut select| select.query_row(by, participant).optional())
        .map_err(failure)
}

pub(crate) fn all(
    conn: &Connection,
    which: &str,
    by: impl rusqlite::Params,
) -> Result<Vec<Participant>, Error> {
    let mut select = conn.prepare(&format!("{SELECT} WHERE {which}")).map_err(failure)?;
    let rows = select.query_map(by, participant).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}

impl Store {
    fn participants(&self, which: &str, by: impl rusqlite::Params) -> Result<Vec<Participant>, Error> {
        let mut select = self
            .conn
            .prepare(&format!("{SELECT_WITH_MAIL} WHERE {which} ORDER BY p.project, p.name"))
            .map_err(failure)?;
        let rows = select.query_map(by, participant).map_err(failure)?;
        rows.collect::<Result<_, _>>().map_err(failure)
    }

    /// Everybody of a project, or of all, the gone ones included.
    pub fn everybody(&self, project: Option<&str>) -> Result<Vec<Participant>, Error> {
        self.participants("?1 IS NULL OR p.project = ?1 OR p.project = ''", [project])
    }

    /// A participant by its row.
    pub fn participant(&self, id: ParticipantId) -> Result<Option<Participant>, Error> {
        self.participants("p.id = ?1", [id.0]).map(|mut found| found.pop())
    }

    /// The participant that a session belongs to, by the agent's own id.
    pub fn participant_of(
        &self,
        agent: Option<&str>,
        native: &str,
    ) -> Result<Option<(Participant, SessionRow)>, Error> {
        let found = match agent {
            Some(agent) => self.by_session("me.agent = ?1 AND me.native = ?2", (agent, native)),
            None => self.by_session("me.native = ?1", [native]),
        };
        Ok(found?.into_iter().next())
    }

    /// The sessions that a process runs, the newest first.
    pub fn sessions_of_process(&self, pid: i32, start: u64) -> Result<Vec<(Participant, SessionRow)>, Error> {
        self.by_session(
            "me.pid = ?1 AND me.pid_start = ?2 AND me.state <> 'gone' ORDER BY me.started_at DESC, me.id DESC",
            (pid, start.cast_signed()),
        )
    }

    /// The newest session that the first of these processes runs which runs any.
    pub fn nearest_session(&self, processes: &[Process]) -> Result<Option<(Participant, SessionRow)>, Error> {
        // One read lock for all of them, not one for each.
        let snapshot = self.conn.unchecked_transaction().map_err(failure)?;
        let mut select = snapshot
            .prepare("SELECT 1 FROM session WHERE pid = ?1 AND pid_start = ?2 AND state <> 'gone'")
            .map_err(failure)?;
        for process in processes {
            if select.exists((process.pid, process.start.cast_signed())).map_err(failure)? {
                return Ok(self.sessions_of_process(process.pid, process.start)?.into_iter().next());
            }
        }
        Ok(None)
    }

    fn by_session(
        &self,
        which: &str,
        by: impl rusqlite::Params,
    ) -> Result<Vec<(Participant, SessionRow)>, Error> {
        let mut select = self.conn.prepare(&format!("{SELECT_BY_SESSION} WHERE {which}")).map_err(failure)?;
        let rows =
            select.query_map(by, |row| Ok((participant(row)?, SessionRow(row.get(15)?)))).map_err(failure)?;
        rows.collect::<Result<_, _>>().map_err(failure)
    }

    /// Whom a name means in a project. `user` and `script` exist everywhere.
    pub fn find_name(&self, project: &str, name: &str) -> Result<Found, Error> {
        if let Some(found) = one(&self.conn, "p.name = ?2 AND p.project IN (?1, '')", (project, name))? {
            return Ok(Found::One(Box::new(found)));
        }
        let elsewhere: Vec<String> =
            self.participants("p.name = ?1", [name])?.into_iter().map(|found| found.project).collect();
        Ok(if elsewhere.is_empty() { Found::Nobody } else { Found::Elsewhere(elsewhere) })
    }

    /// Those of a project whose agent is of a kind, without those that carry a tag.
    pub fn of_kind(&self, project: &str, agent: &str, but_tagged: &str) -> Result<Vec<Participant>, Error> {
        self.participants(
            "p.project = ?1 AND p.agent = ?2 AND p.id NOT IN (SELECT participant FROM tag WHERE tag = ?3)",
            (project, agent, but_tagged),
        )
    }

    /// Those of a project that carry a tag.
    pub fn tagged(&self, project: &str, tag: &str) -> Result<Vec<Participant>, Error> {
        self.participants(
            "p.project = ?1 AND p.id IN (SELECT participant FROM tag WHERE tag = ?2)",
            (project, tag),
        )
    }

    /// Every project that has participants.
    pub fn projects(&self) -> Result<Vec<String>, Error> {
        let mut select = self
            .conn
            .prepare("SELECT DISTINCT project FROM participant WHERE project <> '' ORDER BY 1")
            .map_err(failure)?;
        let rows = select.query_map([], |row| row.get(0)).map_err(failure)?;
        rows.collect::<Result<_, _>>().map_err(failure)
    }

    /// The mailbox of the person or of scripts, made when it is first needed.
    pub fn ensure_outsider(&mut self, name: &'static str, now: Moment) -> Result<Participant, Error> {
        if let Some(found) = one(&self.conn, "p.project = '' AND p.name = ?1", [name])? {
            return Ok(found);
        }
        self.conn
            .execute(
                "INSERT INTO participant (project, name, agent, created_at) VALUES ('', ?1, ?1, ?2) ON CONFLICT DO NOTHING",
                (name, now.0),
            )
            .map_err(failure)?;
        one(&self.conn, "p.project = '' AND p.name = ?1", [name])?
            .ok_or_else(|| foreign("no mailbox for the person"))
    }

    /// Gives a participant another name; its mail and history stay with it.
    pub fn rename(&mut self, id: ParticipantId, new: &str, now: Moment) -> Result<(), Error> {
        name::check(new)?;
        let tx = self.begin()?;
        let taken: Option<i64> = tx
            .query_row(
                "SELECT o.id FROM participant p JOIN participant o ON o.project = p.project AND o.name = ?2 WHERE p.id = ?1",
                (id.0, new),
                |row| row.get(0),
            )
            .optional()
            .map_err(failure)?;
        match taken {
            Some(owner) if owner == id.0 => return Ok(()),
            Some(_) => {
                return Err(Error::new(Code::NameTaken, format!("the name {new} is taken in this project"))
                    .hint("`baton who --all` lists the names"));
            }
            None => {}
        }
        tx.execute("UPDATE participant SET name = ?2 WHERE id = ?1", (id.0, new)).map_err(failure)?;
        crate::trail::note(&tx, now, "renamed", Some(id), None, Some(new))?;
        tx.commit().map_err(failure)
    }

    /// Puts a tag on a participant.
    pub fn add_tag(&mut self, id: ParticipantId, tag: &str) -> Result<(), Error> {
        name::check_tag(tag)?;
        self.conn
            .execute("INSERT INTO tag (participant, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING", (id.0, tag))
            .map(drop)
            .map_err(failure)
    }

    /// Takes a tag off; says whether it was there.
    pub fn remove_tag(&mut self, id: ParticipantId, tag: &str) -> Result<bool, Error> {
        self.conn
            .execute("DELETE FROM tag WHERE participant = ?1 AND tag = ?2", (id.0, tag))
            .map(|count| count > 0)
            .map_err(failure)
    }
}
