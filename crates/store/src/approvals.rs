//! What agents wait for: a file of its own, which a hook opens only when its agent asks for something, or has asked.
//!
//! Every change is a move of the table in `baton_core::approval`, read and made inside one transaction. A file per session under `asking/` in the
//! home says that something of it is open; it changes inside the same transactions, and spares all other hooks a look.

use crate::failure::{failure, foreign};
use crate::open::{Role, Store};
use crate::schema::APPROVALS;
use crate::sessions::Process;
use baton_core::Error;
use baton_core::approval::{Answer, State, Step};
use baton_core::id::{ApprovalId, ParticipantId};
use baton_core::time::{Moment, Span};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// How long a question stays to be looked up after it was closed.
const KEEP: Span = Span::days(30);

/// The open store of questions.
#[derive(Debug)]
pub struct Approvals {
    store: Store,
    home: PathBuf,
}

/// A question to be recorded.
#[derive(Clone, Debug)]
pub struct NewApproval<'a> {
    /// Its id, made from fresh randomness.
    pub id: ApprovalId,
    /// The project of whoever asks.
    pub project: &'a str,
    /// Where it works.
    pub cwd: &'a str,
    /// The agent.
    pub agent: &'a str,
    /// Its own session id.
    pub session: &'a str,
    /// The subagent that asks.
    pub subagent: Option<&'a str>,
    /// Who asks, in the mail store.
    pub participant: Option<ParticipantId>,
    /// Its name.
    pub name: &'a str,
    /// Where the agent writes the conversation down.
    pub transcript: Option<&'a str>,
    /// What is asked, as JSON.
    pub question: &'a str,
    /// Why it is asked, where a rule of ours wants it.
    pub why: Option<&'a str>,
    /// The agent's own id of the question; empty where it has none.
    pub asked: &'a str,
    /// The agent's id of the tool call.
    pub call: Option<&'a str>,
    /// Tells the tool and its input from others.
    pub input: u64,
    /// The agent's process.
    pub asker: Option<Process>,
    /// The process that hands an answer over; `None` where nobody of ours can.
    pub holder: Option<Process>,
    /// Until when it is held.
    pub until: Option<Moment>,
    /// Now.
    pub now: Moment,
}

/// One question as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    /// Its id.
    pub id: ApprovalId,
    /// The project of whoever asks.
    pub project: String,
    /// Where it works.
    pub cwd: String,
    /// The agent.
    pub agent: String,
    /// Its own session id.
    pub session: String,
    /// The subagent that asks.
    pub subagent: Option<String>,
    /// Who asks, in the mail store.
    pub participant: Option<ParticipantId>,
    /// Its name.
    pub name: String,
    /// Where the agent writes the conversation down.
    pub transcript: Option<String>,
    /// What is asked, as JSON.
    pub question: String,
    /// Why it is asked, where a rule of ours wants it.
    pub why: Option<String>,
    /// The agent's own id of the question; empty where it has none.
    pub asked: String,
    /// The agent's id of the tool call.
    pub call: Option<String>,
    /// Tells the tool and its input from others.
    pub input: u64,
    /// The agent's process.
    pub asker: Option<Process>,
    /// The process that hands an answer over.
    pub holder: Option<Process>,
    /// Where it stands.
    pub state: State,
    /// The answer that was given.
    pub answer: Option<Answer>,
    /// Who gave it.
    pub by: Option<String>,
    /// More about how it ended.
    pub note: Option<String>,
    /// When it was asked.
    pub asked_at: Moment,
    /// Until when it is held.
    pub until: Option<Moment>,
    /// When the answer was taken to be handed over.
    pub handed_at: Option<Moment>,
    /// When it was closed.
    pub closed_at: Option<Moment>,
}

/// What came of the wish to tell somebody that a question waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It is the caller's to tell.
    Made,
    /// Somebody has told since it was asked.
    Told,
    /// Somebody has told just before; to be tried again after this.
    Wait(Span),
}

/// What a step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Whether it was one.
    pub moved: bool,
    /// The question as it stands now.
    pub row: ApprovalRow,
}

const COLUMNS: &str = "public, project, cwd, agent, session, subagent, participant, name, transcript, question, why, asked, call, input, \
    asker, asker_start, holder, holder_start, state, answer, words, by, note, asked_at, until, handed_at, closed_at";

impl Approvals {
    /// Opens the questions of a home, creating what is missing.
    pub fn open(home: &Path, role: Role) -> Result<Self, Error> {
        Store::open_as(home, role, &APPROVALS).map(|store| Self { store, home: home.to_owned() })
    }

    /// Opens them if there have ever been any.
    pub fn open_if_any(home: &Path, role: Role) -> Result<Option<Self>, Error> {
        if home.join(APPROVALS.file).exists() { Self::open(home, role).map(Some) } else { Ok(None) }
    }

    /// Opens them for a hook if its session has an open question. Costs those that have none a look at a folder.
    pub fn open_if_asking(home: &Path, agent: &str, session: &str) -> Result<Option<Self>, Error> {
        if mark(home, agent, session).exists() { Self::open(home, Role::Hook).map(Some) } else { Ok(None) }
    }

    /// Records a question: durable when this returns. The one that is open already if the agent tells of it twice.
    pub fn record(&mut self, new: &NewApproval<'_>) -> Result<Moved, Error> {
        let mark = mark(&self.home, new.agent, new.session);
        let tx = self.store.begin()?;
        tx.execute("DELETE FROM approval WHERE closed_at < ?1", [new.now.0 - KEEP.0]).map_err(failure)?;
        let state = if new.holder.is_some() { State::Waiting } else { State::Terminal };
        let process = |process: Option<Process>| (process.map(|one| one.pid), process.map(start));
        let ((asker, asker_start), (holder, holder_start)) = (process(new.asker), process(new.holder));
        let sql = "INSERT INTO approval (public, project, cwd, agent, session, subagent, participant, name, transcript, question, why, asked,
             call, input, asker, asker_start, holder, holder_start, state, asked_at, until)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)
             ON CONFLICT (agent, session, asked) WHERE closed_at IS NULL AND asked <> '' DO NOTHING";
        let made = tx
            .execute(
                sql,
                rusqlite::params![
                    new.id.as_str(),
                    new.project,
                    new.cwd,
                    new.agent,
                    new.session,
                    new.subagent,
                    new.participant.map(|participant| participant.0),
                    new.name,
                    new.transcript,
                    new.question,
                    new.why,
                    new.asked,
                    new.call,
                    new.input.cast_signed(),
                    asker,
                    asker_start,
                    holder,
                    holder_start,
                    state.as_str(),
                    new.now.0,
                    new.until.map(|until| until.0),
                ],
            )
            .map_err(failure)?;
        let row = if made == 1 {
            get(&tx, "public = ?1", [new.id.as_str()])?
        } else {
            let open = "agent = ?1 AND session = ?2 AND asked = ?3 AND closed_at IS NULL";
            get(&tx, open, [new.agent, new.session, new.asked])?
        };
        let row = row.ok_or_else(|| foreign("a question"))?;
        set_mark(&mark);
        tx.commit().map_err(failure)?;
        Ok(Moved { moved: made == 1, row })
    }

    /// One question.
    pub fn get(&self, id: &ApprovalId) -> Result<Option<ApprovalRow>, Error> {
        get(&self.store.conn, "public = ?1", [id.as_str()])
    }

    /// The open question that an agent knows under its own id.
    pub fn asked_as(&self, agent: &str, session: &str, asked: &str) -> Result<Option<ApprovalRow>, Error> {
        let open = "agent = ?1 AND session = ?2 AND asked = ?3 AND closed_at IS NULL";
        get(&self.store.conn, open, [agent, session, asked])
    }

    /// Questions whose ids begin with a text, at most so many, the newest first.
    pub fn beginning_with(&self, prefix: &str, most: usize) -> Result<Vec<ApprovalRow>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let fits = "substr(public, 1, length(?1)) = ?1 ORDER BY id DESC LIMIT ?2";
        list(&self.store.conn, fits, (prefix, most))
    }

    /// Everything that is open, the oldest first.
    pub fn pending(&self) -> Result<Vec<ApprovalRow>, Error> {
        list(&self.store.conn, "closed_at IS NULL ORDER BY id", ())
    }

    /// What a session has open, the oldest first.
    pub fn of_session(&self, agent: &str, session: &str) -> Result<Vec<ApprovalRow>, Error> {
        list(
            &self.store.conn,
            "closed_at IS NULL AND agent = ?1 AND session = ?2 ORDER BY id",
            [agent, session],
        )
    }

    /// What was asked lately, open or closed, the newest first.
    pub fn latest(&self, most: usize) -> Result<Vec<ApprovalRow>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        list(&self.store.conn, "1 ORDER BY id DESC LIMIT ?1", [most])
    }

    /// Gives a question its answer. Not moved: it has one, has ended, or can't be answered here.
    pub fn answer(
        &mut self,
        id: &ApprovalId,
        answer: &Answer,
        by: &str,
        now: Moment,
    ) -> Result<Option<Moved>, Error> {
        let (word, words) = answer.in_words();
        self.step(id, Step::Answer, |tx| {
            tx.execute(
                "UPDATE approval SET answer = ?2, words = ?3, by = ?4, answered_at = ?5, note = NULL WHERE public = ?1",
                (id.as_str(), word, words, by, now.0),
            )
        })
    }

    /// Takes the answer, to hand it over. Moved for one caller, once.
    pub fn take(&mut self, id: &ApprovalId, now: Moment) -> Result<Option<Moved>, Error> {
        self.step(id, Step::Take, |tx| {
            tx.execute("UPDATE approval SET handed_at = ?2 WHERE public = ?1", (id.as_str(), now.0))
        })
    }

    /// The holder lets go of it. Not moved: an answer was taken before.
    pub fn release(&mut self, id: &ApprovalId) -> Result<Option<Moved>, Error> {
        self.step(id, Step::Release, |tx| {
            tx.execute(
                "UPDATE approval SET holder = NULL, holder_start = NULL, until = NULL, answer = NULL, words = NULL, by = NULL WHERE public = ?1",
                [id.as_str()],
            )
        })
    }

    /// The agent refused the answer for certain and still asks.
    pub fn refused(&mut self, id: &ApprovalId, note: &str) -> Result<Option<Moved>, Error> {
        self.step(id, Step::Refused, |tx| {
            tx.execute(
                "UPDATE approval SET answer = NULL, words = NULL, by = NULL, handed_at = NULL, note = ?2 WHERE public = ?1",
                (id.as_str(), note),
            )
        })
    }

    /// What was seen of a question, with more about it: `Ran`, `RefusedThere`, `Over` or `Gone`.
    pub fn close(
        &mut self,
        id: &ApprovalId,
        step: Step,
        note: Option<&str>,
        now: Moment,
    ) -> Result<Option<Moved>, Error> {
        self.step(id, step, |tx| {
            tx.execute(
                "UPDATE approval SET closed_at = ?2, note = coalesce(?3, note) WHERE public = ?1",
                (id.as_str(), now.0, note),
            )
        })
    }

    /// Makes a step if it is one.
    fn step(
        &mut self,
        id: &ApprovalId,
        step: Step,
        change: impl FnOnce(&Connection) -> rusqlite::Result<usize>,
    ) -> Result<Option<Moved>, Error> {
        let tx = self.store.begin()?;
        let Some(row) = get(&tx, "public = ?1", [id.as_str()])? else { return Ok(None) };
        let Some(next) = row.state.after(step, row.answer.as_ref()) else {
            return Ok(Some(Moved { moved: false, row }));
        };
        change(&tx).map_err(failure)?;
        tx.execute("UPDATE approval SET state = ?2 WHERE public = ?1", (id.as_str(), next.as_str()))
            .map_err(failure)?;
        if next.is_end() && !is_asking(&tx, &row.agent, &row.session)? {
            // Nobody else writes now: whoever records the next question waits for this transaction.
            std::fs::remove_file(mark(&self.home, &row.agent, &row.session)).ok();
        }
        let row = get(&tx, "public = ?1", [id.as_str()])?.ok_or_else(|| foreign("a question"))?;
        tx.commit().map_err(failure)?;
        Ok(Some(Moved { moved: true, row }))
    }

    /// Whether somebody is to be told of a question of `who`, asked at that time: once within a window, by whoever asks here first.
    pub fn claim_notice(
        &mut self,
        who: &str,
        asked: Moment,
        now: Moment,
        window: Span,
    ) -> Result<Notice, Error> {
        let tx = self.store.begin()?;
        tx.execute("DELETE FROM notice WHERE at < ?1", [now.0 - Span::days(1).0]).map_err(failure)?;
        let told: Option<i64> = tx
            .query_row("SELECT at FROM notice WHERE who = ?1", [who], |row| row.get(0))
            .optional()
            .map_err(failure)?;
        // A clock that was set back must not silence anybody.
        if let Some(told) = told.filter(|told| *told <= now.0) {
            if told > asked.0 {
                return Ok(Notice::Told);
            }
            let left = told + window.0 - now.0;
            if left > 0 {
                return Ok(Notice::Wait(Span(left)));
            }
        }
        tx.execute(
            "INSERT INTO notice (who, at) VALUES (?1, ?2) ON CONFLICT (who) DO UPDATE SET at = ?2",
            (who, now.0),
        )
        .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(Notice::Made)
    }

    /// Folds the WAL if it has grown.
    pub fn tidy(&mut self) {
        self.store.tidy();
    }

    /// Whether the file is sound, by SQLite's own check.
    pub fn check(&self) -> Result<(), Error> {
        self.store.check()
    }
}

/// The file that says that a session has an open question.
fn mark(home: &Path, agent: &str, session: &str) -> PathBuf {
    // An id comes from outside: no file is named by it.
    let mut name = format!("{agent}-");
    for byte in session.bytes().take(100) {
        name.push(if byte.is_ascii_alphanumeric() || byte == b'-' { char::from(byte) } else { '_' });
    }
    home.join("asking").join(name)
}

/// Without it events don't close the session's questions; whoever looks at them still does.
fn set_mark(mark: &Path) {
    if let Some(folder) = mark.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok();
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(mark).ok();
}

fn is_asking(conn: &Connection, agent: &str, session: &str) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM approval WHERE closed_at IS NULL AND agent = ?1 AND session = ?2";
    let found = conn.query_row(sql, [agent, session], |_| Ok(())).optional().map_err(failure)?;
    Ok(found.is_some())
}

fn start(process: Process) -> i64 {
    i64::try_from(process.start).unwrap_or(i64::MAX)
}

fn get(conn: &Connection, which: &str, values: impl rusqlite::Params) -> Result<Option<ApprovalRow>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM approval WHERE {which}");
    let found = conn.query_row(&sql, values, |row| Ok(approval(row))).optional();
    found.map_err(failure)?.transpose()
}

fn list(conn: &Connection, which: &str, values: impl rusqlite::Params) -> Result<Vec<ApprovalRow>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM approval WHERE {which}");
    let mut statement = conn.prepare(&sql).map_err(failure)?;
    let rows = statement.query_map(values, |row| Ok(approval(row))).map_err(failure)?;
    rows.map(|row| row.map_err(failure)?).collect()
}

fn approval(row: &Row<'_>) -> Result<ApprovalRow, Error> {
    let text = |name: &str| row.get::<_, Option<String>>(name).map_err(failure);
    let whole = |name: &str| row.get::<_, String>(name).map_err(failure);
    let number = |name: &str| row.get::<_, Option<i64>>(name).map_err(failure);
    let moment = |name: &str| number(name).map(|at| at.map(Moment));
    let process = |pid: &str, start: &str| -> Result<Option<Process>, Error> {
        let (pid, start) = (number(pid)?, number(start)?);
        Ok(pid.zip(start).and_then(|(pid, start)| {
            Some(Process { pid: i32::try_from(pid).ok()?, start: u64::try_from(start).ok()? })
        }))
    };
    let answer = match (text("answer")?, text("words")?) {
        (Some(word), words) => Some(
            Answer::read(&word, words.as_deref().unwrap_or_default()).ok_or_else(|| foreign("an answer"))?,
        ),
        (None, _) => None,
    };
    Ok(ApprovalRow {
        id: ApprovalId::parse(&whole("public")?).ok_or_else(|| foreign("a question's id"))?,
        project: whole("project")?,
        cwd: whole("cwd")?,
        agent: whole("agent")?,
        session: whole("session")?,
        subagent: text("subagent")?,
        participant: number("participant")?.map(ParticipantId),
        name: whole("name")?,
        transcript: text("transcript")?,
        question: whole("question")?,
        why: text("why")?,
        asked: whole("asked")?,
        call: text("call")?,
        input: number("input")?.unwrap_or_default().cast_unsigned(),
        asker: process("asker", "asker_start")?,
        holder: process("holder", "holder_start")?,
        state: State::parse(&whole("state")?).ok_or_else(|| foreign("a state"))?,
        answer,
        by: text("by")?,
        note: text("note")?,
        asked_at: moment("asked_at")?.unwrap_or(Moment(0)),
        until: moment("until")?,
        handed_at: moment("handed_at")?,
        closed_at: moment("closed_at")?,
    })
}

#[cfg(test)]
mod tests;
