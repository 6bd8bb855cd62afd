//! The inbox: everything that waits, of sessions and of jobs, and the answers to it.

use crate::look;
use crate::trail::{self, Kind};
use baton_core::approval::{Answer, Question, QuestionKind, State, Step};
use baton_core::id::ApprovalId;
use baton_core::session;
use baton_core::time::{Moment, Span};
use baton_core::{Code, Error, frame};
use baton_jobs::{Host, approve};
use baton_mail::directory;
use baton_mail::line::JOB_TAG;
use baton_store::{ApprovalRow, Approvals, Jobs, Participant, Role, Store};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// An answer must be seen to have taken effect within this time.
const EFFECTIVE: Duration = Duration::from_secs(10);
/// Between two looks at the agent's own files once the answer has left our hands: nothing announces what they say.
const LOOK: Duration = Duration::from_millis(20);

/// A hook that says that its agent waits says within this time for what.
const TOLD: Span = Span::seconds(3);

/// Something that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pending {
    /// A session's question.
    Session(Box<ApprovalRow>, Question),
    /// A job's.
    Job(Box<approve::Pending>),
    /// What a session shows in its own terminal, and nobody told us: its agent only says that it waits.
    Shown(Box<Participant>, Question),
}

impl Pending {
    fn of_session(row: ApprovalRow) -> Self {
        let question = crate::question(&row);
        Self::Session(Box::new(row), question)
    }

    /// By what it is answered.
    pub fn id(&self) -> String {
        match self {
            Self::Session(row, _) => row.id.to_string(),
            Self::Job(pending) => pending.id(),
            Self::Shown(participant, _) => participant.name.clone(),
        }
    }

    /// What is asked.
    pub fn question(&self) -> &Question {
        match self {
            Self::Session(_, question) | Self::Shown(_, question) => question,
            Self::Job(pending) => &pending.question,
        }
    }

    /// The agent that asks.
    pub fn agent(&self) -> &str {
        match self {
            Self::Session(row, _) => &row.agent,
            Self::Job(pending) => &pending.job.agent,
            Self::Shown(participant, _) => &participant.agent,
        }
    }

    /// Who asks: a session by its name, a job by its id.
    pub fn who(&self) -> &str {
        match self {
            Self::Session(row, _) => &row.name,
            Self::Job(pending) => pending.job.id.as_str(),
            Self::Shown(participant, _) => &participant.name,
        }
    }

    /// Its project.
    pub fn project(&self) -> &str {
        match self {
            Self::Session(row, _) => &row.project,
            Self::Job(pending) => &pending.job.project,
            Self::Shown(participant, _) => &participant.project,
        }
    }

    /// Where it works.
    pub fn cwd(&self) -> &str {
        match self {
            Self::Session(row, _) => &row.cwd,
            Self::Job(pending) => &pending.job.cwd,
            Self::Shown(participant, _) => participant.cwd.as_deref().unwrap_or_default(),
        }
    }

    /// Why it is asked, where a rule of ours wants it.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Session(row, _) => row.why.as_deref(),
            Self::Job(_) | Self::Shown(..) => None,
        }
    }

    /// Since when.
    pub fn since(&self) -> Moment {
        match self {
            Self::Session(row, _) => row.asked_at,
            // A job that waits does nothing else.
            Self::Job(pending) => pending.job.activity.as_ref().map_or(pending.job.created_at, |(_, at)| *at),
            Self::Shown(participant, _) => participant.state_since,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        match self {
            Self::Session(row, _) => row.state,
            Self::Job(_) => State::Waiting,
            Self::Shown(..) => State::Terminal,
        }
    }
}

/// Everything that waits now, the oldest first.
pub fn pending(host: &Host) -> Result<Vec<Pending>, Error> {
    let mut waiting = Vec::new();
    if let Some(mut store) = Approvals::open_if_any(&host.home, Role::Command)? {
        for row in store.pending()? {
            let row = look::reconcile(&mut store, &host.home, row)?;
            if !row.state.is_end() {
                waiting.push(Pending::of_session(row));
            }
        }
    }
    if let Some(mut jobs) = Jobs::open_if_any(&host.home)? {
        waiting.extend(approve::pending(host, &mut jobs)?.into_iter().map(|one| Pending::Job(Box::new(one))));
    }
    let shown = shown(host, &waiting)?;
    waiting.extend(shown);
    waiting.sort_by_key(Pending::since);
    Ok(waiting)
}

/// The same by the records alone: nothing is brought up to date, for those who only look.
pub fn glance(host: &Host) -> Result<Vec<Pending>, Error> {
    let mut waiting = Vec::new();
    if let Some(store) = Approvals::open_if_any(&host.home, Role::Command)? {
        let rows = store.pending()?.into_iter();
        let open = rows.filter(|row| matches!(look::step(row), None | Some(Step::Release)));
        waiting.extend(open.map(Pending::of_session));
    }
    if let Some(jobs) = Jobs::open_if_any(&host.home)? {
        waiting.extend(approve::recorded(&jobs)?.into_iter().map(|one| Pending::Job(Box::new(one))));
    }
    waiting.sort_by_key(Pending::since);
    Ok(waiting)
}

/// Sessions that wait for their person, by what their agents say, with something that we have not been told.
fn shown(host: &Host, told: &[Pending]) -> Result<Vec<Pending>, Error> {
    if !Store::path(&host.home).exists() {
        return Ok(Vec::new());
    }
    let mut store = Store::open(&host.home, Role::Command)?;
    let mut everybody = directory::who(&mut store, None, false)?;
    let now = baton_mail::now();
    let is_told = |participant: &Participant| {
        let session = participant.native.as_deref();
        told.iter()
            .any(|one| matches!(one, Pending::Session(row, _) if session == Some(row.session.as_str())))
    };
    everybody.retain(|participant| {
        let a_jobs = participant.tags.iter().any(|tag| tag == JOB_TAG);
        let waits = participant.state == session::State::Blocked && participant.state_since.plus(TOLD) < now;
        waits && !a_jobs && !is_told(participant)
    });
    let question = || Question::permission("", "something that it shows in its own terminal");
    Ok(everybody.into_iter().map(|one| Pending::Shown(Box::new(one), question())).collect())
}

/// How a question ended that is not pending any more; `None` where nothing is kept of it.
pub fn end_of(host: &Host, pending: &Pending) -> Result<Option<String>, Error> {
    let Pending::Session(row, _) = pending else { return Ok(None) };
    let row = Approvals::open(&host.home, Role::Command)?.get(&row.id)?;
    Ok(row.map(|row| row.state.as_str().to_owned()))
}

/// The one that is meant: by its id, or the beginning of it. A question that is not open any more is an error that says what became of it.
pub fn find(host: &Host, text: &str) -> Result<Pending, Error> {
    let typed = text.trim();
    if typed.starts_with('j') {
        return approve::find(host, &mut Jobs::open(&host.home)?, typed)
            .map(|one| Pending::Job(Box::new(one)));
    }
    if let Some(shown) = shown(host, &[])?.into_iter().find(|one| one.who() == typed) {
        return Ok(shown);
    }
    let mut store = Approvals::open_if_any(&host.home, Role::Command)?.ok_or_else(|| unknown(text))?;
    let mut found = if typed.len() > 1 { store.beginning_with(typed, 20)? } else { Vec::new() };
    if found.len() > 1 {
        // Those that are over are only meant by their whole id.
        found.retain(|row| !row.state.is_end());
    }
    match found.len() {
        0 => Err(unknown(text)),
        1 => {
            let row = look::reconcile(&mut store, &host.home, found.remove(0))?;
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

/// Why a question takes no answer any more.
fn over(row: &ApprovalRow) -> Error {
    let by = row.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    match row.state {
        State::Gone => {
            Error::new(Code::AskerGone, format!("{} is gone: nobody waits there any more", row.name))
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
        .hint("next time it is held for an answer if `baton approvals --watch` runs")
}

/// What an answer came to: it took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The question.
    pub id: String,
    /// Where it stands now.
    pub state: State,
    /// How its job stands, if it is a job's.
    pub job: Option<String>,
}

/// Answers a question. When this returns without an error the answer has taken effect.
pub fn answer(host: &Host, pending: &Pending, answer: &Answer, by: &str) -> Result<Effect, Error> {
    approve::check(pending.question(), answer)?;
    match pending {
        Pending::Shown(participant, _) => Err(only_in_terminal(&participant.name)),
        Pending::Job(waiting) => {
            let mut jobs = Jobs::open(&host.home)?;
            let job = approve::answer(host, &mut jobs, waiting, answer, by)?;
            let said = format!("{} by {by}", answer.in_words().0);
            trail::note_job(&host.home, job.asker, &pending.id(), &said, &waiting.question.what);
            let state = match answer {
                Answer::Deny(_) => State::Denied,
                Answer::Words(_) => State::Replied,
                Answer::Allow | Answer::AllowAlways => State::Approved,
            };
            Ok(Effect { id: pending.id(), state, job: Some(job.status.as_str().to_owned()) })
        }
        Pending::Session(row, question) => {
            if *answer == Answer::AllowAlways && question.always.is_none() {
                return Err(Error::new(
                    Code::UnsupportedOption,
                    "its agent can't be told \"always\" for that",
                )
                .hint("leave --always out; [approvals] auto_approve answers by rule"));
            }
            let mut bell = crate::listen(&host.home)?;
            let mut store = Approvals::open(&host.home, Role::Command)?;
            let moved = store.answer(&row.id, answer, by, baton_mail::now())?;
            let moved = moved.ok_or_else(|| unknown(row.id.as_str()))?;
            if !moved.moved {
                return Err(over(&moved.row));
            }
            crate::ring(&host.home);
            trail::note(&host.home, Kind::Answered, &moved.row);
            let deadline = Instant::now() + EFFECTIVE;
            loop {
                let row = current(&store, &row.id)?;
                let row = look::reconcile(&mut store, &host.home, row)?;
                if let Some(outcome) = outcome(&row, answer) {
                    return outcome;
                }
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(unconfirmed(&row));
                }
                let pause = if row.state == State::Handed { LOOK } else { Duration::from_secs(1) };
                bell.wait_or_end(None, left.min(pause));
            }
        }
    }
}

fn current(store: &Approvals, id: &ApprovalId) -> Result<ApprovalRow, Error> {
    store.get(id)?.ok_or_else(|| unknown(id.as_str()))
}

/// What came of our answer; `None` as long as it is on its way.
fn outcome(row: &ApprovalRow, answer: &Answer) -> Option<Result<Effect, Error>> {
    match row.state {
        State::Answered | State::Handed => None,
        // It came back.
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
        _ => "whoever holds the question has not taken the answer",
    };
    Error::new(Code::NotConfirmed, what).hint("`baton approvals` shows whether it still waits")
}

/// Everything about a question, for programs.
pub fn describe(one: &Pending) -> Value {
    let question = one.question();
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
        "tool": question.tool,
        "what": question.what,
        "detail": question.detail,
        "paths": question.paths,
        "choices": question.choices,
        "always": question.always,
        "why": one.why(),
        "since": one.since().to_rfc3339(),
        "project": one.project(),
        "cwd": one.cwd(),
    })
}

/// What kind of answer a question waits for, in a word.
pub fn kind(question: &Question) -> &'static str {
    match question.kind {
        QuestionKind::Permission => "permission",
        QuestionKind::Input => "question",
    }
}
