//! Answering a job's question. The answer goes to the worker that holds the question, and counts
//! once the question is gone.

use crate::answers::Open;
use crate::place::Place;
use crate::wait::{self, Until};
use crate::{Runtime, answers, reconcile};
use baton_core::approval::{Answer, Digest, Line, Question, QuestionKind};
use baton_core::id::JobId;
use baton_core::{Code, Error, frame};
use baton_machine::bell;
use baton_store::{JobFilter, JobRow, Jobs, NewAnswer};
use std::time::{Duration, Instant};

/// How soon after its answer a question must be gone.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A question of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub job: JobRow,
    pub question: Question,
    /// The question's number in its job.
    pub key: String,
}

impl Pending {
    /// The id by which it is answered: the job, and the key of this question.
    pub fn id(&self) -> String {
        Open::id(&self.job.id, &self.key)
    }

    /// What every list shows of it, and whether that is everything.
    pub fn line(&self) -> Line {
        answers::line(&self.job, &self.question)
    }

    /// Identifies what is asked.
    pub fn digest(&self) -> Digest {
        answers::digest(&self.job, &self.question)
    }
}

/// The open questions of all jobs, those of the oldest job first.
pub fn pending(runtime: &Runtime, jobs: &mut Jobs) -> Result<Vec<Pending>, Error> {
    let open = jobs.list(JobFilter::Open, usize::MAX)?;
    let mut rows = reconcile::all(runtime, jobs, open);
    rows.reverse();
    Ok(questions(rows))
}

/// The same by the records alone, without checking whether the workers live.
pub fn recorded(jobs: &Jobs) -> Result<Vec<Pending>, Error> {
    let mut rows = jobs.list(JobFilter::Open, usize::MAX)?;
    rows.reverse();
    Ok(questions(rows))
}

/// The open questions of these jobs.
pub fn questions(rows: Vec<JobRow>) -> Vec<Pending> {
    let of = |row: JobRow| {
        let asked = answers::parse(row.questions.as_deref().unwrap_or_default());
        asked
            .into_iter()
            .map(move |Open { key, question }| Pending { job: row.clone(), question, key })
            .collect::<Vec<_>>()
    };
    rows.into_iter().filter(|row| !row.status.is_end()).flat_map(of).collect()
}

/// The question that a text means: its whole id, the job's id, or the beginning of the job's id
/// with or without the question's number. The number itself has no beginning: `.1` is never `.11`.
pub fn find(runtime: &Runtime, jobs: &mut Jobs, text: &str) -> Result<Pending, Error> {
    let typed = text.trim();
    let waiting = pending(runtime, jobs)?;
    let (job, key) = parted(typed);
    let is_meant = |one: &Pending| {
        one.job.id.as_str().starts_with(job) && key.is_none_or(|key| one.key == key) && job.len() > 1
    };
    let mut found: Vec<Pending> = waiting.iter().filter(|one| one.id() == typed).cloned().collect();
    if found.is_empty() {
        found = waiting.into_iter().filter(is_meant).collect();
    }
    match found.len() {
        1 => found.pop().ok_or_else(|| unknown(text)),
        0 => Err(no_question(runtime, jobs, typed).unwrap_or_else(|| unknown(text))),
        _ => {
            let ids: Vec<String> = found.iter().map(Pending::id).collect();
            Err(Error::new(
                Code::AmbiguousJob,
                format!("several questions are meant by that: {}", ids.join(", ")),
            )
            .hint("write the whole id"))
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::new(Code::UnknownApproval, format!("nothing waits for an answer as {}", frame::shown(text, 60)))
        .hint("`baton approvals` lists what waits")
}

/// A job, and one of its questions.
fn parted(typed: &str) -> (&str, Option<&str>) {
    typed.split_once(['.', ':']).map_or((typed, None), |(job, key)| (job, Some(key)))
}

/// Why an existing job has no such question.
fn no_question(runtime: &Runtime, jobs: &mut Jobs, typed: &str) -> Option<Error> {
    let row = crate::start::find(runtime, jobs, parted(typed).0).ok()?;
    if row.status.is_end() {
        return Some(
            Error::new(
                Code::AskerGone,
                format!("job {} {}, and waits for no answer any more", row.id, row.status),
            )
            .hint(format!("`baton job result {}` shows what became of it", row.id)),
        );
    }
    Some(
        Error::new(
            Code::AlreadyAnswered,
            format!("job {} waits for no answer, or now asks something else", row.id),
        )
        .hint(format!("`baton job status {}` shows its status", row.id)),
    )
}

/// An error if the question does not take this kind of answer, or if the answer grants more than
/// can be shown.
pub fn check(question: &Question, answer: &Answer) -> Result<(), Error> {
    let subject = &question.subject;
    if subject.beyond() > 0 && !matches!(answer, Answer::Deny(_)) {
        let what = format!("the question is {} bytes longer than what can be shown here", subject.beyond());
        return Err(Error::new(Code::QuestionTooLarge, what)
            .hint("deny it, or answer it in the agent's own terminal"));
    }
    if question.takes(answer) {
        if *answer == Answer::AllowAlways && subject.always().is_none() {
            return Err(Error::new(Code::NoSuchRule, "its agent names no exact rule for \"always\" here")
                .hint(
                    "leave --always out to approve it this once; [approvals] auto_approve answers by rule",
                ));
        }
        return Ok(());
    }
    Err(match question.kind() {
        QuestionKind::Input => Error::new(Code::Usage, "it needs an answer in words, not a permission")
            .hint("--answer \"…\" gives them; the choices are in `baton approvals`"),
        QuestionKind::Permission => Error::new(Code::Usage, "it needs a permission, not an answer in words")
            .hint("leave --answer out; `baton deny --reason` tells it why not"),
    })
}

fn changed(id: &JobId) -> Error {
    Error::new(Code::QuestionChanged, format!("job {id} now asks something other than what was shown"))
        .hint("`baton approvals` shows what it asks now")
}

/// Answers a question, for what was shown and nothing else. When this returns, the question is
/// gone. Returns the job as it is then.
pub fn answer(
    runtime: &Runtime,
    jobs: &mut Jobs,
    pending: &Pending,
    shown: &Digest,
    answer: &Answer,
    by: &str,
) -> Result<JobRow, Error> {
    check(&pending.question, answer)?;
    let (id, question) = (&pending.job.id, &pending.question.id);
    if *shown != pending.digest() {
        return Err(changed(id));
    }
    let (word, words) = answer.in_words();
    let now = baton_machine::clock::now();
    let row = jobs.answer(id, &NewAnswer { question, shown, answer: word, words, by, now })?;
    bell::ring_at(&Place::of(&runtime.home, id).bell());
    let is_gone = |row: &JobRow| {
        let open = answers::parse(row.questions.as_deref().unwrap_or_default());
        row.status.is_end() || !open.iter().any(|one| one.key == pending.key)
    };
    let rows = wait::wait(
        runtime,
        jobs,
        std::slice::from_ref(id),
        Until::All,
        Instant::now() + EFFECT_TIMEOUT,
        &mut |rows| !rows.iter().all(is_gone),
    )?;
    let outcome = jobs.outcome_of(row)?;
    let job = rows.into_iter().next().ok_or_else(|| unknown(&pending.id()))?;
    match outcome.as_deref() {
        Some(answers::DELIVERED) if is_gone(&job) => Ok(job),
        Some(answers::GONE) => {
            Err(Error::new(Code::AlreadyAnswered, "the question was answered or withdrawn in the meantime")
                .hint(format!("`baton job status {id}` shows its status")))
        }
        Some(answers::CHANGED) => Err(changed(id)),
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
                .hint(format!("`baton job status {id}` shows whether it is still open")))
        }
    }
}
