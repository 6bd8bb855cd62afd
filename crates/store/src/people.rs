//! Participants: their names, their sessions, and which of them an address means.

use crate::failure::{failure, foreign};
use crate::open::Store;
use crate::states::is_waiting;
use baton_core::id::{ParticipantId, SessionRow};
use baton_core::process::Process;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::{Code, Error, name};
use rusqlite::{Connection, OptionalExtension as _, Row, Statement};

/// The owner of a mailbox, with what its present session does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    pub id: ParticipantId,
    /// The project that it belongs to; empty for [outsiders](Self::is_outsider).
    pub project: String,
    pub name: String,
    /// An agent's name, `user` or `script`.
    pub agent: String,
    pub session: Option<SessionRow>,
    /// The agent's own id of that session.
    pub native: Option<String>,
    pub cwd: Option<String>,
    pub transcript: Option<String>,
    /// What it does, by its last event.
    pub state: State,
    pub state_since: Moment,
    pub process: Option<Process>,
    /// Messages that are queued or offered. Only [`Store::everybody`] and [`Store::participant`]
    /// count them.
    pub unread: u32,
    /// Only read there too.
    pub tags: Vec<String>,
}

impl Participant {
    /// Whether it is a person or a script. Such a participant has a mailbox but no project and no
    /// session, and reads its mail itself.
    pub fn is_outsider(&self) -> bool {
        self.project.is_empty()
    }
}

/// A session, and the process that runs it.
#[derive(Clone, Debug)]
pub struct RunningSession {
    pub session: SessionRow,
    pub participant: ParticipantId,
    pub agent: String,
    /// The agent's own id of the session.
    pub native: String,
    pub process: Process,
}

/// The result of a search for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    One(Box<Participant>),
    /// None in this project, but some in these others.
    Elsewhere(Vec<String>),
    /// None in any project.
    Nobody,
}

/// A participant's own row. Its session is looked up by its key: SQLite takes longer to plan a join
/// of the two.
const SELECT: &str = "SELECT p.id, p.project, p.name, p.agent, p.session, p.created_at FROM participant p";

/// Reads participants, each with its present session.
struct People<'a> {
    sessions: Statement<'a>,
    /// Counting mail and reading tags costs more than all the rest, so only callers that show them
    /// ask for it.
    mail: Option<(Statement<'a>, Statement<'a>)>,
}

impl<'a> People<'a> {
    fn new(conn: &'a Connection) -> rusqlite::Result<Self> {
        let sessions = conn.prepare(
            "SELECT native, cwd, transcript, state, state_since, pid, pid_start FROM session WHERE id = ?1",
        )?;
        Ok(Self { sessions, mail: None })
    }

    fn with_mail(conn: &'a Connection) -> rusqlite::Result<Self> {
        let unread =
            conn.prepare(concat!("SELECT count(*) FROM delivery WHERE recipient = ?1 AND ", is_waiting!()))?;
        let tags = conn.prepare("SELECT tag FROM tag WHERE participant = ?1")?;
        Ok(Self { mail: Some((unread, tags)), ..Self::new(conn)? })
    }

    fn read(&mut self, row: &Row<'_>) -> rusqlite::Result<Participant> {
        let id: i64 = row.get(0)?;
        let session: Option<i64> = row.get(4)?;
        let mut found = Participant {
            id: ParticipantId(id),
            project: row.get(1)?,
            name: row.get(2)?,
            agent: row.get(3)?,
            session: session.map(SessionRow),
            native: None,
            cwd: None,
            transcript: None,
            // A participant without a session (a person, a script) is never busy.
            state: State::Idle,
            state_since: Moment(row.get(5)?),
            process: None,
            unread: 0,
            tags: Vec::new(),
        };
        if let Some(session) = session {
            self.sessions.query_row([session], |row| fill_in(&mut found, row)).optional()?;
        }
        if let Some((unread, tags)) = &mut self.mail {
            found.unread = unread.query_row([id], |row| row.get(0))?;
            found.tags = tags.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        }
        Ok(found)
    }
}

/// Adds what its present session does.
fn fill_in(found: &mut Participant, row: &Row<'_>) -> rusqlite::Result<()> {
    let state: String = row.get(3)?;
    let pid: Option<i32> = row.get(5)?;
    let start: Option<i64> = row.get(6)?;
    found.native = row.get(0)?;
    found.cwd = row.get(1)?;
    found.transcript = row.get(2)?;
    found.state = State::parse(&state).unwrap_or(State::Idle);
    found.state_since = Moment(row.get(4)?);
    found.process = pid.zip(start).map(|(pid, start)| Process { pid, start: start.cast_unsigned() });
    Ok(())
}

pub(crate) fn one(
    conn: &Connection,
    which: &str,
    by: impl rusqlite::Params,
) -> Result<Option<Participant>, Error> {
    let read = |mut people: People<'_>| {
        conn.prepare(&format!("{SELECT} WHERE {which}"))?.query_row(by, |row| people.read(row)).optional()
    };
    People::new(conn).and_then(read).map_err(failure)
}

pub(crate) fn all(
    conn: &Connection,
    which: &str,
    by: impl rusqlite::Params,
) -> Result<Vec<Participant>, Error> {
    People::new(conn).and_then(|people| each(conn, people, which, by)).map_err(failure)
}

/// A participant with everything that is known of it.
pub(crate) fn whole(conn: &Connection, id: ParticipantId) -> Result<Option<Participant>, Error> {
    let found = People::with_mail(conn).and_then(|people| each(conn, people, "p.id = ?1", [id.0]));
    found.map_err(failure).map(|mut found| found.pop())
}

fn each(
    conn: &Connection,
    mut people: People<'_>,
    which: &str,
    by: impl rusqlite::Params,
) -> rusqlite::Result<Vec<Participant>> {
    let mut select = conn.prepare(&format!("{SELECT} WHERE {which}"))?;
    select.query_map(by, |row| people.read(row))?.collect()
}

impl Store {
    fn participants(&self, which: &str, by: impl rusqlite::Params) -> Result<Vec<Participant>, Error> {
        let which = format!("{which} ORDER BY p.project, p.name");
        People::with_mail(&self.conn).and_then(|people| each(&self.conn, people, &which, by)).map_err(failure)
    }

    /// All participants of a project, or of every project, including those whose session is gone.
    pub fn everybody(&self, project: Option<&str>) -> Result<Vec<Participant>, Error> {
        self.participants("(?1 IS NULL OR p.project = ?1 OR p.project = '')", [project])
    }

    pub fn participant(&self, id: ParticipantId) -> Result<Option<Participant>, Error> {
        whole(&self.conn, id)
    }

    /// The participant that a session belongs to, by the agent's own id.
    pub fn participant_of(
        &self,
        agent: Option<&str>,
        native: &str,
    ) -> Result<Option<(Participant, SessionRow)>, Error> {
        let found = match agent {
            Some(agent) => self.by_session("agent = ?1 AND native = ?2", (agent, native)),
            None => self.by_session("native = ?1", [native]),
        };
        Ok(found?.into_iter().next())
    }

    /// The sessions that a process runs, the newest first.
    pub fn sessions_of_process(&self, pid: i32, start: u64) -> Result<Vec<(Participant, SessionRow)>, Error> {
        self.by_session(
            "pid = ?1 AND pid_start = ?2 AND state <> 'gone' ORDER BY started_at DESC, id DESC",
            (pid, start.cast_signed()),
        )
    }

    /// The sessions of the first of these processes that runs any, the newest first. Every command
    /// in an agent's shell asks this, and to plan a statement takes longer than to run it: so there
    /// is one, and the caller reads the one participant that it needs.
    pub fn nearest_sessions(
        &self,
        processes: impl IntoIterator<Item = Process>,
    ) -> Result<Vec<RunningSession>, Error> {
        // One read lock for all of them, not one for each.
        let snapshot = self.conn.unchecked_transaction().map_err(failure)?;
        let mut select = snapshot
            .prepare(
                "SELECT id, participant, agent, native FROM session
                 WHERE pid = ?1 AND pid_start = ?2 AND state <> 'gone' ORDER BY started_at DESC, id DESC",
            )
            .map_err(failure)?;
        for process in processes {
            let of_it = select.query_map((process.pid, process.start.cast_signed()), |row| {
                Ok(RunningSession {
                    session: SessionRow(row.get(0)?),
                    participant: ParticipantId(row.get(1)?),
                    agent: row.get(2)?,
                    native: row.get(3)?,
                    process,
                })
            });
            let found: Vec<_> = of_it.and_then(Iterator::collect).map_err(failure)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// The participant of a session, without its mail and its tags.
    pub fn owner(&self, id: ParticipantId) -> Result<Participant, Error> {
        one(&self.conn, "p.id = ?1", [id.0])?.ok_or_else(|| foreign("a session without its participant"))
    }

    /// Participants by any of their sessions, with the row of that session.
    fn by_session(
        &self,
        which: &str,
        by: impl rusqlite::Params,
    ) -> Result<Vec<(Participant, SessionRow)>, Error> {
        let read = |mut people: People<'_>| {
            let mut sessions =
                self.conn.prepare(&format!("SELECT id, participant FROM session WHERE {which}"))?;
            let mut owners = self.conn.prepare(&format!("{SELECT} WHERE p.id = ?1"))?;
            let owned = sessions.query_map(by, |row| {
                let owner: i64 = row.get(1)?;
                let session = SessionRow(row.get(0)?);
                let found = owners.query_row([owner], |row| people.read(row)).optional()?;
                Ok(found.map(|found| (found, session)))
            })?;
            owned.filter_map(Result::transpose).collect()
        };
        People::new(&self.conn).and_then(read).map_err(failure)
    }

    /// The participant that a name means in a project. `user` and `script` exist in every project.
    pub fn find_name(&self, project: &str, name: &str) -> Result<Found, Error> {
        for home in [project, ""] {
            if let Some(found) = one(&self.conn, "p.project = ?1 AND p.name = ?2", (home, name))? {
                return Ok(Found::One(Box::new(found)));
            }
        }
        let elsewhere: Vec<String> =
            self.participants("p.name = ?1", [name])?.into_iter().map(|found| found.project).collect();
        Ok(if elsewhere.is_empty() { Found::Nobody } else { Found::Elsewhere(elsewhere) })
    }

    /// The participants of a project that run an agent, without those that carry a tag.
    pub fn of_kind(&self, project: &str, agent: &str, but_tagged: &str) -> Result<Vec<Participant>, Error> {
        self.participants(
            "p.project = ?1 AND p.agent = ?2 AND p.id NOT IN (SELECT participant FROM tag WHERE tag = ?3)",
            (project, agent, but_tagged),
        )
    }

    /// The participants of a project that carry a tag.
    pub fn tagged(&self, project: &str, tag: &str) -> Result<Vec<Participant>, Error> {
        self.participants(
            "p.project = ?1 AND p.id IN (SELECT participant FROM tag WHERE tag = ?2)",
            (project, tag),
        )
    }

    /// The names of a project's participants.
    pub fn names(&self, project: &str) -> Result<Vec<String>, Error> {
        let mut select = self
            .conn
            .prepare("SELECT name FROM participant WHERE project = ?1 ORDER BY name")
            .map_err(failure)?;
        let rows = select.query_map([project], |row| row.get(0)).map_err(failure)?;
        rows.collect::<Result<_, _>>().map_err(failure)
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

    /// The mailbox of the person or of scripts. Created when it is first needed.
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

    /// How many messages wait for the person; `None` if no one ever wrote to the person.
    pub fn unread_of_person(&self) -> Result<Option<u32>, Error> {
        let found = one(&self.conn, "p.project = '' AND p.name = ?1", [name::USER])?;
        let whole = found.map(|found| whole(&self.conn, found.id)).transpose()?.flatten();
        Ok(whole.map(|found| found.unread))
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

    pub fn add_tag(&mut self, id: ParticipantId, tag: &str) -> Result<(), Error> {
        name::check_tag(tag)?;
        self.conn
            .execute("INSERT INTO tag (participant, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING", (id.0, tag))
            .map(drop)
            .map_err(failure)
    }

    /// Removes a tag, and says whether it was there.
    pub fn remove_tag(&mut self, id: ParticipantId, tag: &str) -> Result<bool, Error> {
        self.conn
            .execute("DELETE FROM tag WHERE participant = ?1 AND tag = ?2", (id.0, tag))
            .map(|count| count > 0)
            .map_err(failure)
    }
}
