//! Answering what a job waits for: the answer goes to the very worker that holds the question, and counts once the question is gone.

use crate::place::Place;
use crate::wait::{self, Until};
use crate::{Host, answers, reconcile};
use baton_core::approval::{Answer, Question, QuestionKind};
use baton_core::{Code, Error, frame};
use baton_mail::bell;
use baton_store::{JobFilter, JobRow, Jobs};
use std::time::{Duration, Instant};

/// A question must be gone so long after its answer.
const EFFECTIVE: Duration = Duration::from_secs(10);

/// Something that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The job that waits.
    pub job: JobRow,
    /// What it waits for.
    pub question: Question,
}

impl Pending {
    /// By what it is answered: the job and the backend's own id of the question.
    pub fn id(&self) -> String {
        format!("{}:{}", self.job.id, self.question.id)
    }
}

/// Everything that jobs wait for now, the oldest job first.
pub fn pending(host: &Host, jobs: &mut Jobs) -> Result<Vec<Pending>, Error> {
    let open = jobs.list(JobFilter::Open, usize::MAX)?;
    let mut rows = reconcile::all(host, jobs, open);
    rows.reverse();
    Ok(questions(rows))
}

/// The same as it stands in the records, whether or not somebody is still there.
pub fn recorded(jobs: &Jobs) -> Result<Vec<Pending>, Error> {
    let mut rows = jobs.list(JobFilter::Open, usize::MAX)?;
    rows.reverse();
    Ok(questions(rows))
}

fn questions(rows: Vec<JobRow>) -> Vec<Pending> {
    let of = |row: JobRow| {
        let asked = answers::parse(row.questions.as_deref().unwrap_or_default());
        asked.into_iter().map(move |question| Pending { job: row.clone(), question }).collect::<Vec<_>>()
    };
    rows.into_iter().filter(|row| !row.status.is_end()).flat_map(of).collect()
}

/// The one question that is meant: by its whole id, the job's id, or the beginning of either.
pub fn find(host: &Host, jobs: &mut Jobs, text: &str) -> Result<Pending, Error> {
    let typed = text.trim();
    let waiting = pending(host, jobs)?;
    let mut found: Vec<Pending> = waiting.iter().filter(|one| one.id() == typed).cloned().collect();
    if found.is_empty() && typed.len() > 1 {
        found = waiting.into_iter().filter(|one| one.id().starts_with(typed)).collect();
    }
    match found.len() {
        1 => found.pop().ok_or_else(|| unknown(text)),
        0 => Err(no_question(host, jobs, typed).unwrap_or_else(|| unknown(text))),
        _ => {
            let ids: Vec<String> = found.iter().map(Pending::id).collect();
            Err(Error::new(
                Code::AmbiguousJob,
                format!("several questions begin with that: {}", ids.join(", ")),
            )
            .hint("write the whole id"))
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::new(Code::UnknownApproval, format!("nothing waits for an answer as {}", frame::shown(text, 60)))
        .hint("`baton approvals` lists what waits")
}

/// Why a job that exists has no such question any more.
fn no_question(host: &Host, jobs: &mut Jobs, typed: &str) -> Option<Error> {
    let job = typed.split(':').next()?;
    let row = crate::start::find(host, jobs, job).ok()?;
    if row.status.is_end() {
        return Some(
            Error::new(
                Code::AskerGone,
                format!("job {} {}: nobody waits there any more", row.id, row.status),
            )
            .hint(format!("`baton job result {}` shows what became of it", row.id)),
        );
    }
    Some(
        Error::new(
            Code::AlreadyAnswered,
            format!("job {} waits for nothing, or for something else by now", row.id),
        )
        .hint(format!("`baton job status {}` shows how it stands", row.id)),
    )
}

/// An error if an answer is not of the kind that a question waits for.
pub fn check(question: &Question, answer: &Answer) -> Result<(), Error> {
    if question.takes(answer) {
        return Ok(());
    }
    Err(match question.kind {
        QuestionKind::Input => Error::new(Code::Usage, "it waits for words, not for a permission")
            .hint("--answer \"…\" gives them; the choices are in `baton approvals`"),
        QuestionKind::Permission => Error::new(Code::Usage, "it waits for a permission, not for words")
            .hint("leave --answer out; `baton deny --reason` tells it why not"),
    })
}

/// Answers a question. When this returns the question is gone; the job as it stands then.
pub fn answer(
    host: &Host,
    jobs: &mut Jobs,
    pending: &Pending,
    answer: &Answer,
    by: &str,
) -> Result<JobRow, Error> {
    check(&pending.question, answer)?;
    let (id, question) = (&pending.job.id, &pending.question.id);
    let (word, words) = answer.in_words();
    let row = jobs.answer(id, question, word, words, by, baton_mail::now())?;
    bell::ring_at(&Place::of(&host.home, id).bell());
    let is_gone = |row: &JobRow| {
        let open = answers::parse(row.questions.as_deref().unwrap_or_default());
        row.status.is_end() || !open.iter().any(|one| one.id == *question)
    };
    let rows = wait::wait(
        host,
        jobs,
        std::slice::from_ref(id),
        Until::All,
        Instant::now() + EFFECTIVE,
        &mut |rows| !rows.iter().all(is_gone),
    )?;
    let outcome = jobs.outcome_of(row)?;
    let job = rows.into_iter().next().ok_or_else(|| unknown(&pending.id()))?;
    match outcome.as_deref() {
        Some(answers::DELIVERED) if is_gone(&job) => Ok(job),
        Some(answers::GONE) => {
            Err(Error::new(Code::AlreadyAnswered, "the question was answered or withdrawn in the meantime")
                .hint(format!("`baton job status {id}` shows how it stands")))
        }
        None if job.status.is_end() => {
            Err(Error::new(Code::AskerGone, format!("job {id} {} before it took the answer", job.status))
                .hint(format!("`baton job result {id}` shows what became of it")))
        }
        Some(refused) if refused != answers::DELIVERED => {
            Err(Error::new(Code::NotConfirmed, format!("the agent did not take the answer: {refused}"))
                .hint(format!("`baton job logs {id}` shows more; the question may still be open")))
        }
        _ => {
            Err(Error::new(Code::NotConfirmed, "the answer was handed over, but the question is still open")
                .hint(format!("`baton job status {id}` shows whether it is gone by now")))
        }
    }
}
