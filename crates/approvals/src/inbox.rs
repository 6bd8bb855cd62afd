//! The inbox: all open questions of sessions and of jobs, and the answers to them.

use crate::look;
use crate::trail::{self, Kind};
use baton_core::approval::{Answer, Digest, Extent, Line, Question, QuestionKind, State, Step, Subject};
use baton_core::id::ApprovalId;
use baton_core::job::JOB_TAG;
use baton_core::session;
use baton_core::time::{Moment, Span};
use baton_core::{Code, Error, frame};
use baton_jobs::{Runtime, approve};
use baton_mail::directory;
use baton_store::{ApprovalRow, Approvals, CHANGED_NOTE, JobRow, Jobs, Participant, Role, Store};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// An answer must take effect within this time.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two looks at the agent's own files after the answer was handed over. No event
/// reports what they say.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How soon a hook reports the question after it has reported that its agent waits.
const DETAILS_DELAY: Span = Span::seconds(3);

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pending {
    /// A session's question.
    Session(Box<ApprovalRow>, Question),
    Job(Box<approve::Pending>),
    /// What a session shows in its own terminal. Its agent only reports that it waits.
    Shown(Box<Participant>, Question),
}

impl Pending {
    fn of_session(row: ApprovalRow) -> Self {
        let question = crate::question(&row);
        Self::Session(Box::new(row), question)
    }

    /// The id by which it is answered.
    pub fn id(&self) -> String {
        match self {
            Self::Session(row, _) => row.id.to_string(),
            Self::Job(pending) => pending.id(),
            Self::Shown(participant, _) => participant.name.clone(),
        }
    }

    pub fn question(&self) -> &Question {
        match self {
            Self::Session(_, question) | Self::Shown(_, question) => question,
            Self::Job(pending) => &pending.question,
        }
    }

    /// What an answer must name; `None` if it can't be answered here.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Session(row, _) => Some(crate::digest(row)),
            Self::Job(pending) => Some(pending.digest()),
            Self::Shown(..) => None,
        }
    }

    pub fn agent(&self) -> &str {
        match self {
            Self::Session(row, _) => &row.agent,
            Self::Job(pending) => &pending.job.agent,
            Self::Shown(participant, _) => &participant.agent,
        }
    }

    /// A session by its name, a job by its id.
    pub fn who(&self) -> &str {
        match self {
            Self::Session(row, _) => &row.name,
            Self::Job(pending) => pending.job.id.as_str(),
            Self::Shown(participant, _) => &participant.name,
        }
    }

    pub fn project(&self) -> &str {
        match self {
            Self::Session(row, _) => &row.project,
            Self::Job(pending) => &pending.job.project,
            Self::Shown(participant, _) => &participant.project,
        }
    }

    pub fn cwd(&self) -> &str {
        match self {
            Self::Session(row, _) => &row.cwd,
            Self::Job(pending) => &pending.job.cwd,
            Self::Shown(participant, _) => participant.cwd.as_deref().unwrap_or_default(),
        }
    }

    /// What every list shows of it, and whether that is everything.
    pub fn line(&self) -> Line {
        match self {
            Self::Session(row, _) => crate::line(row),
            Self::Job(pending) => pending.line(),
            Self::Shown(_, question) => question.line(None),
        }
    }

    /// The reason, if a guard rule wants the question to be asked.
    pub fn why(&self) -> Option<&str> {
        self.question().why.as_deref()
    }

    pub fn since(&self) -> Moment {
        match self {
            Self::Session(row, _) => row.asked_at,
            // A job that waits does nothing else.
            Self::Job(pending) => {
                pending.job.activity.as_ref().map_or(pending.job.created_at, |activity| activity.at)
            }
            Self::Shown(participant, _) => participant.state_since,
        }
    }

    pub fn state(&self) -> State {
        match self {
            Self::Session(row, _) => row.state,
            Self::Job(_) => State::Waiting,
            Self::Shown(..) => State::Terminal,
        }
    }
}

/// All open questions, the oldest first.
pub fn pending(runtime: &Runtime) -> Result<Vec<Pending>, Error> {
    let mut waiting = Vec::new();
    if let Some(mut store) = Approvals::open_if_any(&runtime.home, Role::Command)? {
        for row in store.pending()? {
            let row = look::reconcile(&mut store, &runtime.home, row)?;
            if !row.state.is_end() {
                waiting.push(Pending::of_session(row));
            }
        }
    }
    if let Some(mut jobs) = Jobs::open_if_any(&runtime.home)? {
        waiting
            .extend(approve::pending(runtime, &mut jobs)?.into_iter().map(|one| Pending::Job(Box::new(one))));
    }
    let shown = shown(runtime, &waiting)?;
    waiting.extend(shown);
    waiting.sort_by_key(Pending::since);
    Ok(waiting)
}

/// The open questions of these jobs.
pub fn of_jobs(rows: &[JobRow]) -> Vec<Pending> {
    approve::questions(rows.to_vec()).into_iter().map(|one| Pending::Job(Box::new(one))).collect()
}

/// The same by the records alone, without reconciling them, for callers that only look.
pub fn glance(runtime: &Runtime) -> Result<Vec<Pending>, Error> {
    let mut waiting = Vec::new();
    if let Some(store) = Approvals::open_if_any(&runtime.home, Role::Command)? {
        let rows = store.pending()?.into_iter();
        let open = rows.filter(|row| matches!(look::step(row), None | Some(Step::Release)));
        waiting.extend(open.map(Pending::of_session));
    }
    if let Some(jobs) = Jobs::open_if_any(&runtime.home)? {
        waiting.extend(approve::recorded(&jobs)?.into_iter().map(|one| Pending::Job(Box::new(one))));
    }
    waiting.sort_by_key(Pending::since);
    Ok(waiting)
}

/// Sessions that wait for their person, by what their agents report, with a question that was not
/// reported.
fn shown(runtime: &Runtime, told: &[Pending]) -> Result<Vec<Pending>, Error> {
    if !Store::path(&runtime.home).exists() {
        return Ok(Vec::new());
    }
    let mut store = Store::open(&runtime.home, Role::Command)?;
    let mut everybody = directory::who(&mut store, None, false)?;
    let now = baton_machine::clock::now();
    let is_told = |participant: &Participant| {
        let session = participant.native.as_deref();
        told.iter()
            .any(|one| matches!(one, Pending::Session(row, _) if session == Some(row.session.as_str())))
    };
    everybody.retain(|participant| {
        let a_jobs = participant.tags.iter().any(|tag| tag == JOB_TAG);
        let waits =
            participant.state == session::State::Blocked && participant.state_since.plus(DETAILS_DELAY) < now;
        waits && !a_jobs && !is_told(participant)
    });
    let question = || Question::new("", Subject::told_only("something that it shows in its own terminal"));
    Ok(everybody.into_iter().map(|one| Pending::Shown(Box::new(one), question())).collect())
}

/// How a closed question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub state: State,
    /// Who answered it.
    pub by: Option<String>,
}

/// How a closed question ended; `None` if nothing is kept of it.
pub fn end_of(runtime: &Runtime, pending: &Pending) -> Result<Option<End>, Error> {
    match pending {
        Pending::Session(row, _) => {
            let row = Approvals::open(&runtime.home, Role::Command)?.get(&row.id)?;
            Ok(row.map(|row| End { state: row.state, by: row.by }))
        }
        Pending::Job(one) => {
            let jobs = Jobs::open(&runtime.home)?;
            let job = &one.job.id;
            if let Some((word, by)) = jobs.taken_answer(job, &one.question.id, &one.digest())? {
                let state = Answer::read(&word, "").map_or(State::Elsewhere, |answer| taken_as(&answer));
                return Ok(Some(End { state, by: Some(by) }));
            }
            let has_ended = jobs.get(job)?.is_none_or(|row| row.status.is_end());
            Ok(Some(End { state: if has_ended { State::Gone } else { State::Elsewhere }, by: None }))
        }
        Pending::Shown(..) => Ok(None),
    }
}

/// The end of a question of which the agent has taken this answer.
fn taken_as(answer: &Answer) -> State {
    match answer {
        Answer::Deny(_) => State::Denied,
        Answer::Words(_) => State::Replied,
        Answer::Allow | Answer::AllowAlways => State::Approved,
    }
}

/// The question that a text means, by its id or the beginning of it. For a question that is closed,
/// the error says what became of it.
pub fn find(runtime: &Runtime, text: &str) -> Result<Pending, Error> {
    let typed = text.trim();
    if typed.starts_with('j') {
        return approve::find(runtime, &mut Jobs::open(&runtime.home)?, typed)
            .map(|one| Pending::Job(Box::new(one)));
    }
    if let Some(shown) = shown(runtime, &[])?.into_iter().find(|one| one.who() == typed) {
        return Ok(shown);
    }
    let mut store = Approvals::open_if_any(&runtime.home, Role::Command)?.ok_or_else(|| unknown(text))?;
    let mut found = if typed.len() > 1 { store.beginning_with(typed, 20)? } else { Vec::new() };
    if found.len() > 1 {
        // A closed question is meant only by its whole id.
        found.retain(|row| !row.state.is_end());
    }
    match found.len() {
        0 => Err(unknown(text)),
        1 => {
            let row = look::reconcile(&mut store, &runtime.home, found.remove(0))?;
            if row.state.is_end() { Err(over(&row)) } else { Ok(Pending::of_session(row)) }
        }
        _ => {
            let ids: Vec<&str> = found.iter().map(|row| row.id.as_str()).collect();
            let which = format!("several questions begin with that: {}", ids.join(", "));
            Err(Error::new(Code::AmbiguousApproval, which).hint("write the whole id"))
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::new(Code::UnknownApproval, format!("nothing waits for an answer as {}", frame::shown(text, 60)))
        .hint("`baton approvals` lists what waits")
}

/// Why a question takes no more answers.
fn over(row: &ApprovalRow) -> Error {
    let by = row.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    match row.state {
        State::Gone => {
            Error::new(Code::AskerGone, format!("{} is gone, and waits for no answer any more", row.name))
                .hint("`baton approvals` lists what waits")
        }
        State::Terminal => only_in_terminal(&row.name),
        State::Elsewhere => {
            Error::new(Code::AlreadyAnswered, "it was answered or dropped in its own terminal")
                .hint("`baton approvals` lists what waits")
        }
        state => Error::new(Code::AlreadyAnswered, format!("it was {state} already{by}"))
            .hint("`baton approvals` lists what waits"),
    }
}

fn only_in_terminal(name: &str) -> Error {
    let what = format!("{name} shows that in its own terminal, and takes the answer only there");
    Error::new(Code::OnlyInTerminal, what)
        .hint("while `baton approvals --watch` runs, the next question waits there for your answer")
}

/// An error if a question does not take this answer as it is now. Nothing is shown or confirmed for
/// this check.
pub fn check(pending: &Pending, answer: &Answer) -> Result<(), Error> {
    match pending {
        Pending::Shown(participant, _) => return Err(only_in_terminal(&participant.name)),
        Pending::Session(row, _) if row.state != State::Waiting => return Err(over(row)),
        Pending::Session(..) | Pending::Job(_) => {}
    }
    approve::check(pending.question(), answer)
}

/// An answer that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub id: String,
    pub state: State,
    /// The job's status, if it is a job's question.
    pub job: Option<String>,
}

/// Answers a question, for what was shown and nothing else. If this returns without an error, the
/// answer has taken effect.
pub fn answer(
    runtime: &Runtime,
    pending: &Pending,
    shown: &Digest,
    answer: &Answer,
    by: &str,
) -> Result<Effect, Error> {
    approve::check(pending.question(), answer)?;
    match pending {
        Pending::Shown(participant, _) => Err(only_in_terminal(&participant.name)),
        Pending::Job(waiting) => {
            let mut jobs = Jobs::open(&runtime.home)?;
            let job = approve::answer(runtime, &mut jobs, waiting, shown, answer, by)?;
            let said = format!("{} by {by}", answer.in_words().0);
            trail::note_job(&runtime.home, job.asker, &pending.id(), &said, &pending.line().text);
            Ok(Effect {
                id: pending.id(),
                state: taken_as(answer),
                job: Some(job.status.as_str().to_owned()),
            })
        }
        Pending::Session(row, _) => {
            let mut bell = crate::listen(&runtime.home)?;
            let mut store = Approvals::open(&runtime.home, Role::Command)?;
            let moved = store.answer(&row.id, shown, answer, by, baton_machine::clock::now())?;
            let moved = moved.ok_or_else(|| unknown(row.id.as_str()))?;
            if !moved.moved {
                return Err(over(&moved.row));
            }
            crate::ring(&runtime.home);
            trail::note(&runtime.home, Kind::Answered, &moved.row);
            let deadline = Instant::now() + EFFECT_TIMEOUT;
            let mut last = moved.row;
            loop {
                // The answer is recorded. An error from here on only means that its effect is not
                // known yet.
                if let Ok(row) =
                    current(&store, &row.id).and_then(|row| look::reconcile(&mut store, &runtime.home, row))
                {
                    last = row;
                }
                let row = &last;
                if let Some(outcome) = outcome(row, answer) {
                    return outcome;
                }
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(unconfirmed(row));
                }
                let pause = if row.state == State::Handed { LOOK_INTERVAL } else { Duration::from_secs(1) };
                bell.wait_or_end(None, left.min(pause));
            }
        }
    }
}

fn current(store: &Approvals, id: &ApprovalId) -> Result<ApprovalRow, Error> {
    store.get(id)?.ok_or_else(|| unknown(id.as_str()))
}

/// What became of the answer; `None` while it is on its way.
fn outcome(row: &ApprovalRow, answer: &Answer) -> Option<Result<Effect, Error>> {
    match row.state {
        State::Answered | State::Handed => None,
        State::Waiting if row.note.as_deref() == Some(CHANGED_NOTE) => {
            Some(Err(Error::new(Code::QuestionChanged, format!("{}: {CHANGED_NOTE}", row.name))
                .hint("`baton approvals` shows what it asks now")))
        }
        // The agent refused it.
        State::Waiting => {
            let why = row.note.as_deref().unwrap_or("it still asks");
            Some(Err(Error::new(Code::NotConfirmed, format!("{} did not take the answer: {why}", row.name))
                .hint("`baton approvals` shows whether it still waits")))
        }
        State::Approved | State::Denied | State::Replied if row.answer.as_ref() == Some(answer) => {
            Some(Ok(Effect { id: row.id.to_string(), state: row.state, job: None }))
        }
        _ => Some(Err(over(row))),
    }
}

fn unconfirmed(row: &ApprovalRow) -> Error {
    let what = match row.state {
        State::Handed => "the answer was handed over, but nothing shows that it took effect",
        _ => "the process that holds the question has not taken the answer",
    };
    Error::new(Code::NotConfirmed, what).hint("`baton approvals` shows whether it still waits")
}

pub fn describe(one: &Pending) -> Value {
    let (question, subject, line) = (one.question(), &one.question().subject, one.line());
    let job = match one {
        Pending::Job(pending) => json!(pending.job.id.as_str()),
        Pending::Session(..) | Pending::Shown(..) => Value::Null,
    };
    json!({
        "id": one.id(),
        "job_id": job,
        "who": one.who(),
        "agent": one.agent(),
        "state": one.state().as_str(),
        "kind": kind(question),
        "tool": subject.tool(),
        "what": line.text,
        "what_is_whole": line.is_whole,
        "detail": subject.text(),
        "parts": subject.parts(),
        "paths": subject.paths(),
        "choices": subject.choices(),
        "notes": subject.notes(),
        "agent_says_all": subject.extent() == Extent::Whole,
        "left_out_bytes": subject.beyond(),
        "always": subject.always(),
        "digest": one.digest().map(|digest| digest.to_string()),
        "why": one.why(),
        "since": one.since().to_rfc3339(),
        "project": one.project(),
        "cwd": one.cwd(),
    })
}

/// What kind of answer a question takes.
pub fn kind(question: &Question) -> &'static str {
    match question.kind() {
        QuestionKind::Permission => "permission",
        QuestionKind::Input => "question",
    }
}
