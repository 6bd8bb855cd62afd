//! Questions that agents ask. They have a file of their own, which a hook opens only when its agent
//! asks something or has asked.
//!
//! Every change is a step of the table in `baton_core::approval`, read and made in one transaction.
//! A file per session under `asking/` in the home says that the session has an open question. It
//! changes inside the same transactions, so that all other hooks need not open the store.

use crate::failure::{failure, foreign};
use crate::open::{Role, Store};
use crate::schema::APPROVALS_LAYOUT;
use baton_core::approval::{Answer, Digest, State, Step};
use baton_core::id::{ApprovalId, ParticipantId};
use baton_core::process::Process;
use baton_core::time::{Moment, Span};
use baton_core::{Code, Error};
use baton_machine::own;
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::path::{Path, PathBuf};

/// How long a closed question can still be looked up.
const KEEP_CLOSED_FOR: Span = Span::days(30);

/// The note of a question whose answer was withdrawn because it answered something else.
pub const CHANGED_NOTE: &str = "it now asks something other than what was shown";

/// The open store of questions.
#[derive(Debug)]
pub struct Approvals {
    store: Store,
    home: PathBuf,
}

/// A question to be recorded.
#[derive(Clone, Debug)]
pub struct NewApproval<'a> {
    /// Made from fresh randomness.
    pub id: ApprovalId,
    pub project: &'a str,
    pub cwd: &'a str,
    pub agent: &'a str,
    /// The agent's own id of its session.
    pub session: &'a str,
    pub subagent: Option<&'a str>,
    /// Who asks, as a participant of the mail store.
    pub participant: Option<ParticipantId>,
    /// The participant's name.
    pub name: &'a str,
    pub transcript: Option<&'a str>,
    /// What is asked, as JSON.
    pub question: &'a str,
    /// Identifies what is asked.
    pub digest: &'a Digest,
    /// The reason, if a guard rule wants the question to be asked.
    pub why: Option<&'a str>,
    /// The agent's own id of the question; empty if it has none.
    pub asked: &'a str,
    /// The agent's id of the tool call.
    pub call: Option<&'a str>,
    /// A fingerprint of the tool and its input.
    pub input: u64,
    /// The agent's process.
    pub asker: Option<Process>,
    /// The process that hands an answer over; `None` if none can.
    pub holder: Option<Process>,
    pub until: Option<Moment>,
    pub now: Moment,
}

/// One question as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    pub id: ApprovalId,
    pub project: String,
    pub cwd: String,
    pub agent: String,
    /// The agent's own id of its session.
    pub session: String,
    pub subagent: Option<String>,
    /// Who asks, as a participant of the mail store.
    pub participant: Option<ParticipantId>,
    /// The participant's name.
    pub name: String,
    pub transcript: Option<String>,
    /// What is asked, as JSON.
    pub question: String,
    /// Identifies what is asked; `None` in rows of an earlier version.
    pub digest: Option<Digest>,
    /// The reason, if a guard rule wants the question to be asked.
    pub why: Option<String>,
    /// The agent's own id of the question; empty if it has none.
    pub asked: String,
    /// The agent's id of the tool call.
    pub call: Option<String>,
    /// A fingerprint of the tool and its input.
    pub input: u64,
    /// The agent's process.
    pub asker: Option<Process>,
    /// The process that hands an answer over.
    pub holder: Option<Process>,
    pub state: State,
    pub answer: Option<Answer>,
    /// The digest of what was shown to the person or agent that answered.
    pub answered: Option<Digest>,
    pub by: Option<String>,
    /// More about how it ended.
    pub note: Option<String>,
    pub asked_at: Moment,
    pub until: Option<Moment>,
    /// When the answer was taken to be handed over.
    pub handed_at: Option<Moment>,
    pub closed_at: Option<Moment>,
}

/// The result of a claim to notify people of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeClaim {
    /// The caller notifies.
    Granted,
    /// A notification since the question was asked has covered it.
    Covered,
    /// A notification went out shortly before the question was asked. Try again after this time.
    Wait(Span),
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Whether the step was legal, and made.
    pub moved: bool,
    /// The question as it is now.
    pub row: ApprovalRow,
}

const COLUMNS: &str = "public, project, cwd, agent, session, subagent, participant, name, transcript, question, digest, answered, why, asked, call, input, \
    asker, asker_start, holder, holder_start, state, answer, words, by, note, asked_at, until, handed_at, closed_at";

impl Approvals {
    /// Opens the questions of a home. Creates what is missing.
    pub fn open(home: &Path, role: Role) -> Result<Self, Error> {
        Store::open_as(home, role, &APPROVALS_LAYOUT).map(|store| Self { store, home: home.to_owned() })
    }

    /// Opens them if a question was ever asked.
    pub fn open_if_any(home: &Path, role: Role) -> Result<Option<Self>, Error> {
        if home.join(APPROVALS_LAYOUT.file).exists() { Self::open(home, role).map(Some) } else { Ok(None) }
    }

    /// Opens them for a hook if its session has an open question. Otherwise this costs one look at
    /// a folder.
    pub fn open_if_asking(home: &Path, agent: &str, session: &str) -> Result<Option<Self>, Error> {
        if mark(home, agent, session).exists() { Self::open(home, Role::Hook).map(Some) } else { Ok(None) }
    }

    /// Records a question. It is on the disk when this returns. If the agent reports the same
    /// question twice, this is the open one.
    pub fn record(&mut self, new: &NewApproval<'_>) -> Result<Moved, Error> {
        let mark = mark(&self.home, new.agent, new.session);
        let tx = self.store.begin()?;
        tx.execute("DELETE FROM approval WHERE closed_at < ?1", [new.now.0 - KEEP_CLOSED_FOR.0])
            .map_err(failure)?;
        let state = if new.holder.is_some() { State::Waiting } else { State::Terminal };
        let process = |process: Option<Process>| (process.map(|one| one.pid), process.map(start));
        let ((asker, asker_start), (holder, holder_start)) = (process(new.asker), process(new.holder));
        // The agent asks something else under the same id. An answer to the old question must not
        // count for the new one.
        tx.execute(
            "UPDATE approval SET state = ?5, closed_at = ?6, note = 'it now asks something else' WHERE agent = ?1 AND session = ?2
             AND asked = ?3 AND asked <> '' AND closed_at IS NULL AND digest IS NOT ?4 AND state <> 'handed'",
            (new.agent, new.session, new.asked, new.digest.as_str(), State::Elsewhere.as_str(), new.now.0),
        )
        .map_err(failure)?;
        let sql = "INSERT INTO approval (public, project, cwd, agent, session, subagent, participant, name, transcript, question, why, asked,
             call, input, asker, asker_start, holder, holder_start, state, asked_at, until, digest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)
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
                    new.digest.as_str(),
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

    pub fn get(&self, id: &ApprovalId) -> Result<Option<ApprovalRow>, Error> {
        get(&self.store.conn, "public = ?1", [id.as_str()])
    }

    /// Questions whose ids begin with a prefix, the newest first.
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

    /// The latest questions, open or closed, the newest first.
    pub fn latest(&self, most: usize) -> Result<Vec<ApprovalRow>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        list(&self.store.conn, "1 ORDER BY id DESC LIMIT ?1", [most])
    }

    /// Answers a question, for what was shown and nothing else. Not moved if it has an answer, has
    /// ended, or can't be answered here. An error if the agent asks something else by now.
    pub fn answer(
        &mut self,
        id: &ApprovalId,
        shown: &Digest,
        answer: &Answer,
        by: &str,
        now: Moment,
    ) -> Result<Option<Moved>, Error> {
        let (word, words) = answer.in_words();
        self.step(id, Step::Answer, Some(shown), |tx| {
            tx.execute(
                "UPDATE approval SET answer = ?2, words = ?3, by = ?4, answered_at = ?5, answered = ?6, note = NULL WHERE public = ?1",
                (id.as_str(), word, words, by, now.0, shown.as_str()),
            )
        })
    }

    /// Takes the answer, to hand it over. One caller gets it, once. An error if it answers
    /// something other than what its holder holds.
    pub fn take(&mut self, id: &ApprovalId, held: &Digest, now: Moment) -> Result<Option<Moved>, Error> {
        let moved = self.take_if_same(id, held, now);
        if moved.as_ref().is_err_and(|error| error.code() == Code::QuestionChanged) {
            // The answer is withdrawn, because it was for something else. The question waits for
            // another one.
            self.withdraw(id, held)?;
        }
        moved
    }

    fn take_if_same(&mut self, id: &ApprovalId, held: &Digest, now: Moment) -> Result<Option<Moved>, Error> {
        self.step(id, Step::Take, Some(held), |tx| {
            tx.execute("UPDATE approval SET handed_at = ?2 WHERE public = ?1", (id.as_str(), now.0))
        })
    }

    /// Takes back an answer that is not for what the holder holds.
    fn withdraw(&mut self, id: &ApprovalId, held: &Digest) -> Result<(), Error> {
        let tx = self.store.begin()?;
        tx.execute(
            "UPDATE approval SET state = 'waiting', answer = NULL, answered = NULL, words = NULL, by = NULL,
             note = ?3 WHERE public = ?1 AND state = 'answered' AND answered IS NOT ?2",
            (id.as_str(), held.as_str(), CHANGED_NOTE),
        )
        .map_err(failure)?;
        tx.commit().map_err(failure)
    }

    /// The holder stops waiting for an answer. Not moved if an answer was taken before.
    pub fn release(&mut self, id: &ApprovalId) -> Result<Option<Moved>, Error> {
        self.step(id, Step::Release, None, |tx| {
            tx.execute(
                "UPDATE approval SET holder = NULL, holder_start = NULL, until = NULL, answer = NULL, answered = NULL, words = NULL, by = NULL WHERE public = ?1",
                [id.as_str()],
            )
        })
    }

    /// Records that the agent refused the answer for certain and still asks.
    pub fn record_refusal(&mut self, id: &ApprovalId, note: &str) -> Result<Option<Moved>, Error> {
        self.step(id, Step::Refused, None, |tx| {
            tx.execute(
                "UPDATE approval SET answer = NULL, answered = NULL, words = NULL, by = NULL, handed_at = NULL, note = ?2 WHERE public = ?1",
                (id.as_str(), note),
            )
        })
    }

    /// Closes a question by what was seen of it: `Ran`, `RefusedThere`, `Over`, `Abandon`
    /// or `Gone`.
    pub fn close(
        &mut self,
        id: &ApprovalId,
        step: Step,
        note: Option<&str>,
        now: Moment,
    ) -> Result<Option<Moved>, Error> {
        self.step(id, step, None, |tx| {
            tx.execute(
                "UPDATE approval SET closed_at = ?2, note = coalesce(?3, note) WHERE public = ?1",
                (id.as_str(), now.0, note),
            )
        })
    }

    /// Makes a step if it is legal. With a digest, only for that subject.
    fn step(
        &mut self,
        id: &ApprovalId,
        step: Step,
        subject: Option<&Digest>,
        change: impl FnOnce(&Connection) -> rusqlite::Result<usize>,
    ) -> Result<Option<Moved>, Error> {
        let tx = self.store.begin()?;
        let Some(row) = get(&tx, "public = ?1", [id.as_str()])? else { return Ok(None) };
        let Some(next) = row.state.after(step, row.answer.as_ref()) else {
            return Ok(Some(Moved { moved: false, row }));
        };
        let is_other = |known: &Digest| subject.is_some_and(|subject| subject != known);
        let of_answer = row.answered.as_ref().filter(|_| step == Step::Take);
        if row.digest.iter().chain(of_answer).any(is_other) {
            return Err(changed());
        }
        change(&tx).map_err(failure)?;
        tx.execute("UPDATE approval SET state = ?2 WHERE public = ?1", (id.as_str(), next.as_str()))
            .map_err(failure)?;
        if next.is_end() && !is_asking(&tx, &row.agent, &row.session)? {
            // No other process writes now: one that records the next question waits for this
            // transaction.
            std::fs::remove_file(mark(&self.home, &row.agent, &row.session)).ok();
        }
        let row = get(&tx, "public = ?1", [id.as_str()])?.ok_or_else(|| foreign("a question"))?;
        tx.commit().map_err(failure)?;
        Ok(Some(Moved { moved: true, row }))
    }

    /// Claims the notification for a question of `who`. Within a window the first caller gets it.
    pub fn claim_notice(
        &mut self,
        who: &str,
        asked: Moment,
        now: Moment,
        window: Span,
    ) -> Result<NoticeClaim, Error> {
        let tx = self.store.begin()?;
        tx.execute("DELETE FROM notice WHERE at < ?1", [now.0 - Span::days(1).0]).map_err(failure)?;
        let told: Option<i64> = tx
            .query_row("SELECT at FROM notice WHERE who = ?1", [who], |row| row.get(0))
            .optional()
            .map_err(failure)?;
        // If the clock was set back, the old entry must not silence new ones.
        if let Some(told) = told.filter(|told| *told <= now.0) {
            if told > asked.0 {
                return Ok(NoticeClaim::Covered);
            }
            let left = told + window.0 - now.0;
            if left > 0 {
                return Ok(NoticeClaim::Wait(Span(left)));
            }
        }
        tx.execute(
            "INSERT INTO notice (who, at) VALUES (?1, ?2) ON CONFLICT (who) DO UPDATE SET at = ?2",
            (who, now.0),
        )
        .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(NoticeClaim::Granted)
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

fn changed() -> Error {
    Error::new(Code::QuestionChanged, CHANGED_NOTE).hint("`baton approvals` shows what it asks now")
}

/// The file that says that a session has an open question.
fn mark(home: &Path, agent: &str, session: &str) -> PathBuf {
    // The id comes from outside, so it is not used as a file name.
    let mut name = format!("{agent}-");
    for byte in session.bytes().take(100) {
        name.push(if byte.is_ascii_alphanumeric() || byte == b'-' { char::from(byte) } else { '_' });
    }
    home.join("asking").join(name)
}

/// Without the mark, events don't close the session's questions; the next reader of the inbox does.
fn set_mark(mark: &Path) {
    if let Some(folder) = mark.parent() {
        own::folder(folder).ok();
    }
    own::append(mark).ok();
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
        digest: text("digest")?.and_then(|digest| Digest::parse(&digest)),
        answered: text("answered")?.and_then(|digest| Digest::parse(&digest)),
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
