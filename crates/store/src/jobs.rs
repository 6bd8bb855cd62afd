//! Jobs. They have a file of their own, because hooks open the mail store for each tool call and
//! don't need jobs.
//!
//! The record exists before the worker does. Every change goes through the table of legal steps
//! (`baton_core::job::Status`) in one transaction, so the first end stays.

use crate::accept::RetryKey;
use crate::failure::{failure, foreign};
use crate::open::{Role, Store};
use crate::schema::JOBS_LAYOUT;
use baton_core::approval::Digest;
use baton_core::id::{JobId, ParticipantId};
use baton_core::job::{Fault, Status};
use baton_core::process::Process;
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
    /// Made from fresh randomness.
    pub id: JobId,
    pub project: &'a str,
    /// The agent that does it.
    pub agent: &'a str,
    /// The task, byte for byte.
    pub prompt: &'a str,
    /// Everything besides the prompt that was asked for, as JSON.
    pub request: &'a str,
    pub cwd: &'a str,
    /// The backend's session that it resumes.
    pub resumes: Option<&'a str>,
    pub asker: ParticipantId,
    pub asker_name: &'a str,
    pub key: Option<RetryKey<'a>>,
    /// The asker waits for its end, and gets no mail about it.
    pub told: bool,
    pub now: Moment,
}

/// Something that a job did, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    pub what: String,
    pub at: Moment,
}

/// One job as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    pub id: JobId,
    pub project: String,
    pub agent: String,
    pub status: Status,
    /// What it does now, in a word or two.
    pub phase: String,
    /// The task.
    pub prompt: String,
    /// Everything else that was asked for, as JSON.
    pub request: String,
    pub cwd: String,
    pub worktree: Option<String>,
    pub asker: ParticipantId,
    /// The asker's name at that time.
    pub asker_name: String,
    /// The process that watches it.
    pub worker: Option<Process>,
    /// The process of the agent's program.
    pub backend: Option<Process>,
    /// The backend's id of its session.
    pub session: Option<String>,
    /// The last thing that it did.
    pub activity: Option<Activity>,
    /// The questions that it waits with, as JSON.
    pub questions: Option<String>,
    /// Its last message: the result if it is completed.
    pub result: Option<String>,
    pub fault: Option<Fault>,
    /// How its program ended, and what was done to end it.
    pub exit: Option<String>,
    /// What it changed in its worktree, as JSON.
    pub changes: Option<String>,
    /// When it was accepted.
    pub created_at: Moment,
    /// When its worker began.
    pub started_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    /// How long it took, by the monotonic clock.
    pub elapsed: Option<Span>,
    /// A person or an agent wants it to stop.
    pub cancel: bool,
    /// Its asker knows of its end, or needs no mail about it.
    pub told: bool,
    /// When its result was first read.
    pub read_at: Option<Moment>,
}

/// What a worker has learnt about a running job. `None` keeps what is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress<'a> {
    pub status: Option<Status>,
    /// What it does now.
    pub phase: Option<&'a str>,
    /// The process of the agent's program.
    pub backend: Option<Process>,
    /// The backend's id of its session.
    pub session: Option<&'a str>,
    /// The last thing that it did.
    pub activity: Option<&'a Activity>,
    /// The questions that it waits with, as JSON; empty if there are none.
    pub questions: Option<&'a str>,
    pub worktree: Option<&'a str>,
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd<'a> {
    pub status: Status,
    /// Its last message.
    pub result: Option<&'a str>,
    pub fault: Option<&'a Fault>,
    /// How its program ended, and what was done to end it.
    pub exit: Option<&'a str>,
    /// What it changed in its worktree, as JSON.
    pub changes: Option<&'a str>,
    pub elapsed: Option<Span>,
    pub now: Moment,
}

/// Which jobs to list.
#[derive(Clone, Copy, Debug)]
pub enum JobFilter<'a> {
    Project(&'a str),
    Everywhere,
    /// Those that have not ended.
    Open,
    /// Those of an asker that have not ended, or whose end it does not know.
    Owed(ParticipantId),
}

/// An answer to be left for a worker.
#[derive(Clone, Copy, Debug)]
pub struct NewAnswer<'a> {
    pub question: &'a str,
    /// The digest of what was shown to the person or agent that answers.
    pub shown: &'a Digest,
    /// `allow`, `always`, `deny` or `words`.
    pub answer: &'a str,
    /// The reason or the words that go with it.
    pub words: &'a str,
    pub by: &'a str,
    pub now: Moment,
}

/// An answer that waits for its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRow {
    pub id: i64,
    pub question: String,
    /// `allow`, `always`, `deny` or `words`.
    pub answer: String,
    /// The reason or the words that go with it.
    pub words: String,
    /// The digest of what was shown to the person or agent that answered.
    pub digest: Option<Digest>,
}

const COLUMNS: &str = "public, project, agent, status, phase, prompt, request, cwd, worktree, asker, asker_name, worker, worker_start, \
    backend, backend_start, session, activity, activity_at, questions, result, error_code, error, hint, again_at, exit, changes, created_at, \
    started_at, ended_at, elapsed, cancel, told, read_at";

impl Jobs {
    /// Opens the jobs of a home. Creates what is missing.
    pub fn open(home: &Path) -> Result<Self, Error> {
        Store::open_as(home, Role::Command, &JOBS_LAYOUT).map(Self)
    }

    /// Opens them if a job was ever started.
    pub fn open_if_any(home: &Path) -> Result<Option<Self>, Error> {
        if home.join(JOBS_LAYOUT.file).exists() { Self::open(home).map(Some) } else { Ok(None) }
    }

    /// Accepts a job. It is on the disk when this returns. If a job with the same key exists, this
    /// is its id, and nothing is accepted.
    pub fn accept(&mut self, job: &NewJob<'_>) -> Result<Option<JobId>, Error> {
        let tx = self.0.begin()?;
        if let Some(key) = job.key
            && let Some(found) = before(&tx, job.asker, key)?
        {
            return Ok(Some(found));
        }
        if let Some(session) = job.resumes {
            // A session has one turn at a time, even if two callers resume it at once.
            let busy: Option<String> = tx
                .query_row(
                    "SELECT public FROM job WHERE ended_at IS NULL AND agent = ?1 AND (session = ?2 OR resumes = ?2)",
                    (job.agent, session),
                    |row| row.get(0),
                )
                .optional()
                .map_err(failure)?;
            if let Some(other) = busy {
                return Err(Error::new(Code::JobRunning, format!("job {other} uses that session now"))
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
                job.key.map(|key| key.text),
                job.key.map(|key| key.digest.to_vec()),
                job.now.0,
                job.resumes,
                job.told,
            ),
        )
        .map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(None)
    }

    /// The job that was accepted under a key, if there is one. An error if it was another job.
    pub fn accepted_before(&self, asker: ParticipantId, key: RetryKey<'_>) -> Result<Option<JobId>, Error> {
        before(&self.0.conn, asker, key)
    }

    pub fn get(&self, id: &JobId) -> Result<Option<JobRow>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM job WHERE public = ?1");
        let found = self.0.conn.query_row(&sql, [id.as_str()], |row| Ok(job(row))).optional();
        found.map_err(failure)?.transpose()
    }

    /// The ids that begin with a prefix.
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

    /// Jobs, the newest first.
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

    /// Records the worker. `false` if the job has ended or has another worker.
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

    /// Records what has changed. `false` if the job has ended, and nothing was changed.
    pub fn record_progress(&mut self, id: &JobId, progress: &Progress<'_>) -> Result<bool, Error> {
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
                progress.activity.map(|activity| &activity.what),
                progress.activity.map(|activity| activity.at.0),
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
            // A queued job can't become completed: its worker was killed before it began, so failed
            // is the only end.
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

    /// Records that the asker knows of the end.
    pub fn set_told(&mut self, id: &JobId) -> Result<(), Error> {
        self.change("UPDATE job SET told = 1 WHERE public = ?1", id).map(drop)
    }

    /// Records that the result was read.
    pub fn set_read(&mut self, id: &JobId, now: Moment) -> Result<(), Error> {
        let sql = format!("UPDATE job SET read_at = {} WHERE public = ?1 AND read_at IS NULL", now.0);
        self.change(&sql, id).map(drop)
    }

    /// Removes an ended job. `false` if it has not ended.
    pub fn forget(&mut self, id: &JobId) -> Result<bool, Error> {
        let tx = self.0.begin()?;
        // Its answers go with it. SQLite may give its row number to the next job, and they must
        // never answer that job's questions.
        let ended = "(SELECT id FROM job WHERE public = ?1 AND ended_at IS NOT NULL)";
        tx.execute(&format!("DELETE FROM answer WHERE job = {ended}"), [id.as_str()]).map_err(failure)?;
        let gone =
            tx.execute(&format!("DELETE FROM job WHERE id = {ended}"), [id.as_str()]).map_err(failure)?;
        tx.commit().map_err(failure)?;
        Ok(gone == 1)
    }

    /// Leaves an answer for the worker. The first answer to a question counts. An error if the job
    /// has ended.
    pub fn answer(&mut self, id: &JobId, new: &NewAnswer<'_>) -> Result<i64, Error> {
        let tx = self.0.begin()?;
        let left = tx
            .execute(
            "INSERT INTO answer (job, question, answer, words, by, at, digest) SELECT id, ?2, ?3, ?4, ?5, ?6, ?7 FROM job WHERE public = ?1 AND ended_at IS NULL
             AND NOT EXISTS (SELECT 1 FROM answer WHERE answer.job = job.id AND question = ?2 AND (outcome IS NULL OR outcome = 'delivered'))",
            (id.as_str(), new.question, new.answer, new.words, new.by, new.now.0, new.shown.as_str()),
        )
        .map_err(failure)?;
        if left == 0 && status(&tx, id)?.is_some_and(|status| !status.is_end()) {
            return Err(Error::new(Code::AlreadyAnswered, "that question has an answer already")
                .hint(format!("`baton job status {id}` shows its status")));
        }
        if left == 0 {
            return Err(Error::new(
                Code::AskerGone,
                format!("job {id} has ended, and waits for no answer any more"),
            )
            .hint(format!("`baton job result {id}` shows what became of it")));
        }
        let row = tx.last_insert_rowid();
        tx.commit().map_err(failure)?;
        Ok(row)
    }

    /// The answers that no worker has handled, the oldest first.
    pub fn answers(&self, id: &JobId) -> Result<Vec<AnswerRow>, Error> {
        let sql =
            "SELECT a.id, a.question, a.answer, a.words, a.digest FROM answer a JOIN job j ON j.id = a.job
                   WHERE j.public = ?1 AND a.outcome IS NULL ORDER BY a.id";
        let mut statement = self.0.conn.prepare(sql).map_err(failure)?;
        let rows = statement
            .query_map([id.as_str()], |row| {
                Ok(AnswerRow {
                    id: row.get(0)?,
                    question: row.get(1)?,
                    answer: row.get(2)?,
                    words: row.get(3)?,
                    digest: row.get::<_, Option<String>>(4)?.and_then(|digest| Digest::parse(&digest)),
                })
            })
            .map_err(failure)?;
        rows.map(|row| row.map_err(failure)).collect()
    }

    /// The answer that a question's agent has taken, and who gave it.
    pub fn taken_answer(
        &self,
        id: &JobId,
        question: &str,
        shown: &Digest,
    ) -> Result<Option<(String, String)>, Error> {
        self.0
            .conn
            .query_row(
                "SELECT a.answer, a.by FROM answer a JOIN job j ON j.id = a.job WHERE j.public = ?1 AND a.question = ?2
                 AND a.digest = ?3 AND a.outcome = 'delivered' ORDER BY a.id DESC LIMIT 1",
                (id.as_str(), question, shown.as_str()),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(failure)
    }

    /// Records what became of an answer.
    pub fn settle_answer(&mut self, answer: i64, outcome: &str) -> Result<(), Error> {
        let tx = self.0.begin()?;
        tx.execute("UPDATE answer SET outcome = ?2 WHERE id = ?1 AND outcome IS NULL", (answer, outcome))
            .map_err(failure)?;
        tx.commit().map_err(failure)
    }

    /// What became of an answer; `None` until a worker has handled it.
    pub fn outcome_of(&self, answer: i64) -> Result<Option<String>, Error> {
        self.0
            .conn
            .query_row("SELECT outcome FROM answer WHERE id = ?1", [answer], |row| row.get(0))
            .map_err(failure)
    }

    /// Folds the WAL if it has grown. To be called after the caller has answered.
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

/// The kernel's number fits. If it did not, no process would have the number that replaces it.
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

fn before(conn: &Connection, asker: ParticipantId, key: RetryKey<'_>) -> Result<Option<JobId>, Error> {
    let found: Option<(String, Option<Vec<u8>>)> = conn
        .query_row(
            "SELECT public, digest FROM job WHERE asker = ?1 AND key = ?2",
            (asker.0, key.text),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()
        .map_err(failure)?;
    let Some((public, known)) = found else { return Ok(None) };
    if known.as_deref() != Some(key.digest.as_slice()) {
        return Err(Error::new(
            Code::KeyConflict,
            format!("the key {} was used for another job", baton_core::frame::shown(key.text, 60)),
        )
        .hint("use a new key for a new job; the same key only repeats the same job"));
    }
    JobId::parse(&public).map(Some).ok_or_else(|| foreign("a job id"))
}

fn job(row: &Row<'_>) -> Result<JobRow, Error> {
    let status: String = row.get("status").map_err(failure)?;
    let id: String = row.get("public").map_err(failure)?;
    let id = JobId::parse(&id).ok_or_else(|| foreign("a job id"))?;
    let status = Status::parse(&status).ok_or_else(|| foreign("a status"))?;
    job_row(row, id, status).map_err(failure)
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

fn job_row(row: &Row<'_>, id: JobId, status: Status) -> rusqlite::Result<JobRow> {
    let moment = |name: &str| row.get::<_, Option<i64>>(name).map(|at| at.map(Moment));
    let process = |pid: &str, start: &str| -> rusqlite::Result<Option<Process>> {
        let (pid, start): (Option<i32>, Option<i64>) = (row.get(pid)?, row.get(start)?);
        Ok(pid.zip(start).map(|(pid, start)| Process { pid, start: start.unsigned_abs() }))
    };
    let activity: Option<String> = row.get("activity")?;
    Ok(JobRow {
        id,
        project: row.get("project")?,
        agent: row.get("agent")?,
        status,
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
        activity: activity.zip(moment("activity_at")?).map(|(what, at)| Activity { what, at }),
        questions: row.get::<_, Option<String>>("questions")?.filter(|text| !text.is_empty()),
        result: row.get("result")?,
        fault: fault(row)?,
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
        let shown = Digest::parse(&"0".repeat(32)).unwrap();
        let answer =
            |now| NewAnswer { question: "0", shown: &shown, answer: "allow", words: "", by: "user", now };
        jobs.answer(&first, &answer(Moment(2))).unwrap();
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
        let late = jobs.answer(&first, &answer(Moment(4))).unwrap_err();
        assert_eq!(late.code(), Code::AskerGone);
        assert!(jobs.forget(&first).unwrap());
        // SQLite may give it the same row number.
        let second = accept(&mut jobs, 2);
        assert_eq!(jobs.answers(&second).unwrap(), []);
    }
}
