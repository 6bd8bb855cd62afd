//! Jobs: a file of their own, because hooks open the other one for each tool call and don't need them.
//!
//! The record is there before the worker is. Every change goes through the table of legal steps (`baton_core::job::Status`) inside one
//! transaction, so the first end stays, whoever else comes to one.

use crate::failure::{failure, foreign};
use crate::open::{Role, Store};
use crate::schema::JOBS;
use crate::sessions::Process;
use baton_core::id::{JobId, ParticipantId};
use baton_core::job::{Fault, Status};
use baton_core::time::{Moment, Span};
use baton_core::{Code, Error};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::path::Path;

/// The open store of jobs.
#[derive(Debug)]
pub struct Jobs(Store);

/// A job to be accepted.
#[derive(Debug)]
pub struct NewJob<'a> {
    /// Its id, made from fresh randomness.
    pub id: JobId,
    /// The project that it belongs to.
    pub project: &'a str,
    /// The agent that shall do it.
    pub agent: &'a str,
    /// What it shall do, byte for byte.
    pub prompt: &'a str,
    /// Everything else that was asked for, as JSON.
    pub request: &'a str,
    /// Where it works.
    pub cwd: &'a str,
    /// The backend's session that goes on.
    pub resumes: Option<&'a str>,
    /// Who asks.
    pub asker: ParticipantId,
    /// The asker's name.
    pub asker_name: &'a str,
    /// The asker's key for retries, with a digest of the whole request.
    pub key: Option<(&'a str, [u8; 32])>,
    /// The asker waits for its end himself, and need not be told.
    pub told: bool,
    /// Now.
    pub now: Moment,
}

impl NewJob<'_> {
    /// As its row will be.
    pub fn as_row(&self) -> JobRow {
        JobRow {
            id: self.id.clone(),
            project: self.project.to_owned(),
            agent: self.agent.to_owned(),
            status: Status::Queued,
            phase: String::new(),
            prompt: self.prompt.to_owned(),
            request: self.request.to_owned(),
            cwd: self.cwd.to_owned(),
            worktree: None,
            asker: self.asker,
            asker_name: self.asker_name.to_owned(),
            worker: None,
            backend: None,
            session: None,
            activity: None,
            questions: None,
            result: None,
            fault: None,
            exit: None,
            changes: None,
            created_at: self.now,
            started_at: None,
            ended_at: None,
            elapsed: None,
            cancel: false,
            told: self.told,
            read_at: None,
        }
    }
}

/// One job as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// Its project.
    pub project: String,
    /// The agent that does it.
    pub agent: String,
    /// Where it stands.
    pub status: Status,
    /// What it is about to do, in a word or two.
    pub phase: String,
    /// What it shall do.
    pub prompt: String,
    /// Everything else that was asked for, as JSON.
    pub request: String,
    /// Where it works.
    pub cwd: String,
    /// Its own worktree.
    pub worktree: Option<String>,
    /// Who asked.
    pub asker: ParticipantId,
    /// The asker's name at that time.
    pub asker_name: String,
    /// The process that watches it.
    pub worker: Option<Process>,
    /// The agent's program.
    pub backend: Option<Process>,
    /// The backend's own session.
    pub session: Option<String>,
    /// The last thing that it did, and when.
    pub activity: Option<(String, Moment)>,
    /// What it waits for, as JSON.
    pub questions: Option<String>,
    /// Its last words: the result if it is completed.
    pub result: Option<String>,
    /// Why it failed.
    pub fault: Option<Fault>,
    /// How its program ended, and what was done to end it.
    pub exit: Option<String>,
    /// What it changed in its worktree, as JSON.
    pub changes: Option<String>,
    /// When it was accepted.
    pub created_at: Moment,
    /// When its worker began.
    pub started_at: Option<Moment>,
    /// When it ended.
    pub ended_at: Option<Moment>,
    /// How long it took, by a clock that nobody sets.
    pub elapsed: Option<Span>,
    /// Somebody wants it to stop.
    pub cancel: bool,
    /// Its asker knows of its end.
    pub told: bool,
    /// When its result was read first.
    pub read_at: Option<Moment>,
}

/// What a worker has to say about a job that goes on; `None` leaves what stands there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Where it stands now.
    pub status: Option<Status>,
    /// What it is about to do.
    pub phase: Option<&'a str>,
    /// The agent's program.
    pub backend: Option<Process>,
    /// The backend's own session.
    pub session: Option<&'a str>,
    /// The last thing that it did, and when.
    pub activity: Option<(&'a str, Moment)>,
    /// What it waits for, as JSON; empty for nothing.
    pub questions: Option<&'a str>,
    /// Its own worktree.
    pub worktree: Option<&'a str>,
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd<'a> {
    /// Completed, failed or cancelled.
    pub status: Status,
    /// Its last words.
    pub result: Option<&'a str>,
    /// Why it failed.
    pub fault: Option<&'a Fault>,
    /// How its program ended, and what was done to end it.
    pub exit: Option<&'a str>,
    /// What it changed in its worktree, as JSON.
    pub changes: Option<&'a str>,
    /// How long it took.
    pub elapsed: Option<Span>,
    /// Now.
    pub now: Moment,
}

/// Which jobs are meant.
#[derive(Clone, Copy, Debug)]
pub enum JobFilter<'a> {
    /// Those of a project.
    Project(&'a str),
    /// All of them.
    Everywhere,
    /// Those that have not ended, everywhere.
    Open,
    /// Those of an asker that have not ended, or whose end it does not know of.
    Owed(ParticipantId),
}

/// An answer that waits for its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRow {
    /// Its row.
    pub id: i64,
    /// The question's id.
    pub question: String,
    /// `allow`, `always`, `deny` or `words`.
    pub answer: String,
    /// What goes along.
    pub words: String,
}

const COLUMNS: &str = "public, project, agent, status, phase, prompt, request, cwd, worktree, asker, asker_name, worker, worker_start, \
    backend, backend_start, session, activity, activity_at, questions, result, error_code, error, hint, again_at, exit, changes, created_at, \
    started_at, ended_at, elapsed, cancel, told, read_at";

impl Jobs {
    /// Opens the jobs of a home, creating what is missing.
    pub fn open(home: &Path) -> Result<Self, Error> {
        Store::open_as(home, Role::Command, &JOBS).map(Self)
    }

    /// Opens them if there have ever been any.
    pub fn open_if_any(home: &Path) -> Result<Option<Self>, Error> {
        if home.join(JOBS.file).exists() { Self::open(home).map(Some) } else { Ok(None) }
    }

    /// Accepts a job: durable when this returns. The job of the same key, if there was one.
    pub fn accept(&mut self, job: &NewJob<'_>) -> Result<Option<JobId>, Error> {
        let tx = self.0.begin()?;
        if let Some((key, digest)) = job.key
            && let Some(found) = before(&tx, job.asker, key, digest)?
        {
            return Ok(Some(found));
        }
        if let Some(session) = job.resumes {
            // A session has one turn at a time, whoever else wants to go on with it in this moment.
            let busy: Option<String> = tx
                .query_row(
                    "SELECT public FROM job WHERE ended_at IS NULL AND agent = ?1 AND (session = ?2 OR resumes = ?2)",
                    (job.agent, session),
                    |row| row.get(0),
                )
                .optional()
                .map_err(failure)?;
            if let Some(other) = busy {
                return Err(Error::new(
                    Code::JobRunning,
                    format!("job {other} goes on with that session just now"),
                )
                .hint(format!("wait for it (`baton job wait {other}`) or cancel it first")));
            }
        }
        tx.execute(
            "INSERT INTO job (public, project, agent, status, prompt, request, cwd, asker, asker_name, key, digest, created_at, resumes, told)
             VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            (
                job.id.as_str(),
                job.project,
                job.agent,
                job.prompt,
                job.request,
                job.cwd,
                job.asker.0,
                job.asker_name,
                job.key.map(|(key, _)| key),
                job.key.map(|(_, digest)| digest.to_vec()),
                job.now.0,
                job.resumes,
                job.told,
            ),
        )
        .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(None)
    }

    /// The job that was accepted under a key, if there is one; an error if it was another.
    pub fn accepted_before(
        &self,
        asker: ParticipantId,
        key: &str,
        digest: [u8; 32],
    ) -> Result<Option<JobId>, Error> {
        before(&self.0.conn, asker, key, digest)
    }

    /// One job.
    pub fn get(&self, id: &JobId) -> Result<Option<JobRow>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM job WHERE public = ?1");
        let found = self.0.conn.query_row(&sql, [id.as_str()], |row| Ok(job(row))).optional();
        found.map_err(failure)?.transpose()
    }

    /// The ids that begin with a text, at most so many.
    pub fn beginning_with(&self, prefix: &str, most: usize) -> Result<Vec<JobId>, Error> {
        let sql = "SELECT public FROM job WHERE substr(public, 1, length(?1)) = ?1 ORDER BY id DESC LIMIT ?2";
        let mut statement = self.0.conn.prepare(sql).map_err(failure)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = statement.query_map((prefix, most), |row| row.get::<_, String>(0)).map_err(failure)?;
        rows.map(|row| {
            row.map_err(failure).and_then(|text| JobId::parse(&text).ok_or_else(|| foreign("a job id")))
        })
        .collect()
    }

    /// Jobs, the newest first, at most so many.
    pub fn list(&self, filter: JobFilter<'_>, most: usize) -> Result<Vec<JobRow>, Error> {
        let (condition, value): (&str, rusqlite::types::Value) = match filter {
            JobFilter::Project(project) => ("project = ?1", project.to_owned().into()),
            JobFilter::Everywhere => ("?1", 1.into()),
            JobFilter::Open => ("?1 AND ended_at IS NULL", 1.into()),
            JobFilter::Owed(asker) => ("asker = ?1 AND (ended_at IS NULL OR told = 0)", asker.0.into()),
        };
        let sql = format!("SELECT {COLUMNS} FROM job WHERE {condition} ORDER BY id DESC LIMIT ?2");
        let mut statement = self.0.conn.prepare(&sql).map_err(failure)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = statement.query_map((value, most), |row| Ok(job(row))).map_err(failure)?;
        rows.map(|row| row.map_err(failure)?).collect()
    }

    /// The worker says who it is, once. `false` if the job has ended already or has another worker.
    pub fn begin_work(&mut self, id: &JobId, worker: Process, now: Moment) -> Result<bool, Error> {
        let changed = self.0.begin().and_then(|tx| {
            let changed = tx
                .execute(
                    "UPDATE job SET status = 'starting', worker = ?2, worker_start = ?3, started_at = ?4
                     WHERE public = ?1 AND status = 'queued'",
                    (id.as_str(), worker.pid, start(worker), now.0),
                )
                .map_err(failure)?;
            tx.commit().map_err(failure).map(|()| changed)
        })?;
        Ok(changed == 1)
    }

    /// Notes how a job goes on. `false` if it has ended, and nothing was changed.
    pub fn note(&mut self, id: &JobId, progress: &Progress<'_>) -> Result<bool, Error> {
        let tx = self.0.begin()?;
        let Some(now) = status(&tx, id)? else { return Ok(false) };
        if now.is_end() {
            return Ok(false);
        }
        let next = progress.status.filter(|next| now.may_become(*next));
        tx.execute(
            "UPDATE job SET status = coalesce(?2, status), phase = coalesce(?3, phase), backend = coalesce(?4, backend),
             backend_start = coalesce(?5, backend_start), session = coalesce(?6, session), activity = coalesce(?7, activity),
             activity_at = coalesce(?8, activity_at), questions = coalesce(?9, questions), worktree = coalesce(?10, worktree) WHERE public = ?1",
            (
                id.as_str(),
                next.map(Status::as_str),
                progress.phase,
                progress.backend.map(|process| process.pid),
                progress.backend.map(start),
                progress.session,
                progress.activity.map(|(what, _)| what),
                progress.activity.map(|(_, at)| at.0),
                progress.questions,
                progress.worktree,
            ),
        )
        .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(true)
    }

    /// Ends a job. `false` if it had ended before: the first end stays.
    pub fn end(&mut self, id: &JobId, end: &JobEnd<'_>) -> Result<bool, Error> {
        debug_assert!(end.status.is_end(), "an end is one of three");
        let tx = self.0.begin()?;
        if status(&tx, id)?.is_none_or(|now| !now.may_become(end.status)) {
            // From queued straight to completed: its worker was killed before it said a word, and its backend has finished. Failed is the only way.
            return Ok(false);
        }
        let error = end.fault.map(|fault| &fault.error);
        tx.execute(
            "UPDATE job SET status = ?2, phase = '', result = ?3, error_code = ?4, error = ?5, hint = ?6, again_at = ?7, exit = ?8, changes = ?9,
             elapsed = ?10, ended_at = ?11, questions = NULL WHERE public = ?1",
            (
                id.as_str(),
                end.status.as_str(),
                end.result,
                error.map(|error| error.code().as_str()),
                error.map(Error::message),
                error.and_then(Error::hint_text),
                end.fault.and_then(|fault| fault.again_at).map(|at| at.0),
                end.exit,
                end.changes,
                end.elapsed.map(|elapsed| elapsed.0),
                end.now.0,
            ),
        )
        .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(true)
    }

    /// Asks the worker to stop. `false` if the job has ended.
    pub fn ask_cancel(&mut self, id: &JobId) -> Result<bool, Error> {
        self.change("UPDATE job SET cancel = 1 WHERE public = ?1 AND ended_at IS NULL", id)
    }

    /// The asker knows of the end.
    pub fn set_told(&mut self, id: &JobId) -> Result<(), Error> {
        self.change("UPDATE job SET told = 1 WHERE public = ?1", id).map(drop)
    }

    /// Somebody has read the result.
    pub fn set_read(&mut self, id: &JobId, now: Moment) -> Result<(), Error> {
        let sql = format!("UPDATE job SET read_at = {} WHERE public = ?1 AND read_at IS NULL", now.0);
        self.change(&sql, id).map(drop)
    }

    /// Forgets an ended job. `false` if it has not ended.
    pub fn forget(&mut self, id: &JobId) -> Result<bool, Error> {
        let tx = self.0.begin()?;
        // Its answers go with it: SQLite may give its row's number to the next job, whose questions they must never answer.
        let ended = "(SELECT id FROM job WHERE public = ?1 AND ended_at IS NOT NULL)";
        tx.execute(&format!("DELETE FROM answer WHERE job = {ended}"), [id.as_str()]).map_err(failure)?;
        let gone =
            tx.execute(&format!("DELETE FROM job WHERE id = {ended}"), [id.as_str()]).map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(gone == 1)
    }

    /// Leaves an answer for the worker. The first one counts; an error also if the job has ended, so that no other answer is taken for this one.
    pub fn answer(
        &mut self,
        id: &JobId,
        question: &str,
        answer: &str,
        words: &str,
        by: &str,
        now: Moment,
    ) -> Result<i64, Error> {
        let tx = self.0.begin()?;
        let left = tx
            .execute(
            "INSERT INTO answer (job, question, answer, words, by, at) SELECT id, ?2, ?3, ?4, ?5, ?6 FROM job WHERE public = ?1 AND ended_at IS NULL
             AND NOT EXISTS (SELECT 1 FROM answer WHERE answer.job = job.id AND question = ?2 AND (outcome IS NULL OR outcome = 'delivered'))",
            (id.as_str(), question, answer, words, by, now.0),
        )
        .map_err(failure)?;
        if left == 0 && status(&tx, id)?.is_some_and(|status| !status.is_end()) {
            return Err(Error::new(Code::AlreadyAnswered, "somebody has answered that already")
                .hint(format!("`baton job status {id}` shows how it stands")));
        }
        if left == 0 {
            return Err(Error::new(
                Code::AskerGone,
                format!("job {id} has ended: nobody waits there any more"),
            )
            .hint(format!("`baton job result {id}` shows what became of it")));
        }
        let row = tx.last_insert_rowid();
        tx.commit().map_err(failure)?;
        Ok(row)
    }

    /// The answers that no worker has dealt with, the oldest first.
    pub fn answers(&self, id: &JobId) -> Result<Vec<AnswerRow>, Error> {
        let sql = "SELECT a.id, a.question, a.answer, a.words FROM answer a JOIN job j ON j.id = a.job
                   WHERE j.public = ?1 AND a.outcome IS NULL ORDER BY a.id";
        let mut statement = self.0.conn.prepare(sql).map_err(failure)?;
        let rows = statement
            .query_map([id.as_str()], |row| {
                Ok(AnswerRow {
                    id: row.get(0)?,
                    question: row.get(1)?,
                    answer: row.get(2)?,
                    words: row.get(3)?,
                })
            })
            .map_err(failure)?;
        rows.map(|row| row.map_err(failure)).collect()
    }

    /// What became of an answer, as its worker says.
    pub fn settle_answer(&mut self, answer: i64, outcome: &str) -> Result<(), Error> {
        let tx = self.0.begin()?;
        tx.execute("UPDATE answer SET outcome = ?2 WHERE id = ?1 AND outcome IS NULL", (answer, outcome))
            .map_err(failure)?;
        tx.commit().map_err(failure)
    }

    /// What became of an answer; `None` as long as nobody has dealt with it.
    pub fn outcome_of(&self, answer: i64) -> Result<Option<String>, Error> {
        self.0
            .conn
            .query_row("SELECT outcome FROM answer WHERE id = ?1", [answer], |row| row.get(0))
            .map_err(failure)
    }

    /// Folds the WAL if it has grown. To be called after the answer is out.
    pub fn tidy(&mut self) {
        self.0.tidy();
    }

    /// Whether the file is sound, by SQLite's own check.
    pub fn check(&self) -> Result<(), Error> {
        self.0.check()
    }

    fn change(&mut self, sql: &str, id: &JobId) -> Result<bool, Error> {
        let tx = self.0.begin()?;
        let changed = tx.execute(sql, [id.as_str()]).map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(changed == 1)
    }
}

/// The kernel's count fits, or it is one that no process of ours can have.
fn start(process: Process) -> i64 {
    i64::try_from(process.start).unwrap_or(i64::MAX)
}

fn status(conn: &Connection, id: &JobId) -> Result<Option<Status>, Error> {
    let text: Option<String> = conn
        .query_row("SELECT status FROM job WHERE public = ?1", [id.as_str()], |row| row.get(0))
        .optional()
        .map_err(failure)?;
    text.map(|text| Status::parse(&text).ok_or_else(|| foreign("a status"))).transpose()
}

fn before(
    conn: &Connection,
    asker: ParticipantId,
    key: &str,
    digest: [u8; 32],
) -> Result<Option<JobId>, Error> {
    let found: Option<(String, Option<Vec<u8>>)> = conn
        .query_row("SELECT public, digest FROM job WHERE asker = ?1 AND key = ?2", (asker.0, key), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .map_err(failure)?;
    let Some((public, known)) = found else { return Ok(None) };
    if known.as_deref() != Some(digest.as_slice()) {
        return Err(Error::new(
            Code::KeyConflict,
            format!("the key {} was used for another job", baton_core::frame::shown(key, 60)),
        )
        .hint("use a new key for a new job; the same key only repeats the same one"));
    }
    JobId::parse(&public).map(Some).ok_or_else(|| foreign("a job id"))
}

fn job(row: &Row<'_>) -> Result<JobRow, Error> {
    let status: String = row.get("status").map_err(failure)?;
    let id: String = row.get("public").map_err(failure)?;
    Ok(JobRow {
        id: JobId::parse(&id).ok_or_else(|| foreign("a job id"))?,
        status: Status::parse(&status).ok_or_else(|| foreign("a status"))?,
        fault: fault(row).map_err(failure)?,
        ..plain(row).map_err(failure)?
    })
}

fn fault(row: &Row<'_>) -> rusqlite::Result<Option<Fault>> {
    let (Some(code), Some(message)) =
        (row.get::<_, Option<String>>("error_code")?, row.get::<_, Option<String>>("error")?)
    else {
        return Ok(None);
    };
    let code = Code::ALL.iter().copied().find(|known| known.as_str() == code).unwrap_or(Code::Internal);
    let mut error = Error::new(code, message);
    if let Some(hint) = row.get::<_, Option<String>>("hint")? {
        error = error.hint(hint);
    }
    Ok(Some(Fault { error, again_at: row.get::<_, Option<i64>>("again_at")?.map(Moment) }))
}

/// What needs no reading between the lines.
fn plain(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    let moment = |name: &str| row.get::<_, Option<i64>>(name).map(|at| at.map(Moment));
    let process = |pid: &str, start: &str| -> rusqlite::Result<Option<Process>> {
        let (pid, start): (Option<i32>, Option<i64>) = (row.get(pid)?, row.get(start)?);
        Ok(pid.zip(start).map(|(pid, start)| Process { pid, start: start.unsigned_abs() }))
    };
    let activity: Option<String> = row.get("activity")?;
    Ok(JobRow {
        id: JobId::from_random([0; 8]),
        project: row.get("project")?,
        agent: row.get("agent")?,
        status: Status::Queued,
        phase: row.get("phase")?,
        prompt: row.get("prompt")?,
        request: row.get("request")?,
        cwd: row.get("cwd")?,
        worktree: row.get("worktree")?,
        asker: ParticipantId(row.get("asker")?),
        asker_name: row.get("asker_name")?,
        worker: process("worker", "worker_start")?,
        backend: process("backend", "backend_start")?,
        session: row.get("session")?,
        activity: activity.zip(moment("activity_at")?),
        questions: row.get::<_, Option<String>>("questions")?.filter(|text| !text.is_empty()),
        result: row.get("result")?,
        fault: None,
        exit: row.get("exit")?,
        changes: row.get("changes")?,
        created_at: Moment(row.get("created_at")?),
        started_at: moment("started_at")?,
        ended_at: moment("ended_at")?,
        elapsed: row.get::<_, Option<i64>>("elapsed")?.map(Span),
        cancel: row.get("cancel")?,
        told: row.get("told")?,
        read_at: moment("read_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(jobs: &mut Jobs, seed: u8) -> JobId {
        let id = JobId::from_random([seed; 8]);
        let job = NewJob {
            id: id.clone(),
            project: "/p",
            agent: "claude",
            prompt: "x",
            request: "{}",
            cwd: "/p",
            resumes: None,
            asker: ParticipantId(1),
            asker_name: "a",
            key: None,
            told: false,
            now: Moment(1),
        };
        assert_eq!(jobs.accept(&job).unwrap(), None);
        id
    }

    #[test]
    fn an_answer_never_reaches_another_job() {
        let home = tempfile::tempdir().unwrap();
        let mut jobs = Jobs::open(home.path()).unwrap();
        let first = accept(&mut jobs, 1);
        jobs.answer(&first, "0", "allow", "", "user", Moment(2)).unwrap();
        let end = JobEnd {
            status: Status::Failed,
            result: None,
            fault: None,
            exit: None,
            changes: None,
            elapsed: None,
            now: Moment(3),
        };
        assert!(jobs.end(&first, &end).unwrap());
        let late = jobs.answer(&first, "0", "allow", "", "user", Moment(4)).unwrap_err();
        assert_eq!(late.code(), Code::AskerGone);
        assert!(jobs.forget(&first).unwrap());
        // It may get the same number.
        let second = accept(&mut jobs, 2);
        assert_eq!(jobs.answers(&second).unwrap(), []);
    }
}
