//! `approvals`, `approve` and `deny`: what jobs wait for, and the person's answer.

use super::Session;
use super::job::host;
use crate::print::{Out, Tone, done, table};
use baton_core::approval::{Answer, QuestionKind};
use baton_core::error::Exit;
use baton_core::{Code, Error};
use baton_jobs::approve::{self, Pending};
use baton_jobs::worker::head;
use baton_mail::identity::Kind;
use baton_store::Jobs;
use clap::Args;
use serde_json::{Value, json};

// `baton approvals`
#[derive(Debug, Args)]
pub struct Approvals {}

// `baton approve`
#[derive(Debug, Args)]
pub struct Approve {
    /// The question, or the job that waits for one
    id: String,
    /// And whatever is like it from now on in that session
    #[arg(long)]
    always: bool,
    /// The words that it waits for
    #[arg(long, value_name = "TEXT", conflicts_with = "always")]
    answer: Option<String>,
}

// `baton deny`
#[derive(Debug, Args)]
pub struct Deny {
    /// The question, or the job that waits for one
    id: String,
    /// What the agent is told
    #[arg(long, default_value = "the person said no", value_name = "TEXT")]
    reason: String,
}

impl Approvals {
    /// Lists what waits.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let host = host(session)?;
        let waiting = match Jobs::open_if_any(&host.home)? {
            Some(mut jobs) => approve::pending(&host, &mut jobs)?,
            None => Vec::new(),
        };
        out.data(&Value::from_iter(waiting.iter().map(describe)), || {
            if waiting.is_empty() {
                return "nothing waits for an answer".to_owned();
            }
            let rows: Vec<Vec<String>> = waiting
                .iter()
                .map(|one| {
                    vec![one.id(), one.job.agent.clone(), kind(one).to_owned(), head(&one.question.what, 80)]
                })
                .collect();
            table(*out, &["ID", "AGENT", "KIND", "WHAT"], &rows, &[Some(Tone::Bold)])
        })?;
        done()
    }
}

fn kind(one: &Pending) -> &'static str {
    match one.question.kind {
        QuestionKind::Permission => "permission",
        QuestionKind::Input => "question",
    }
}

fn describe(one: &Pending) -> Value {
    json!({
        "id": one.id(),
        "job_id": one.job.id.as_str(),
        "agent": one.job.agent,
        "kind": kind(one),
        "what": one.question.what,
        "choices": one.question.choices,
        "cwd": one.job.cwd,
        "requested_by": one.job.asker_name,
    })
}

impl Approve {
    /// Says yes.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let answer = match (self.answer, self.always) {
            (Some(words), _) => Answer::Words(words),
            (None, true) => Answer::AllowAlways,
            (None, false) => Answer::Allow,
        };
        give(session, out, &self.id, &answer, "approved")
    }
}

impl Deny {
    /// Says no.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        give(session, out, &self.id, &Answer::Deny(self.reason), "denied")
    }
}

/// Only the person answers: neither an agent, which could answer its own questions, nor a script.
fn give(session: &Session, out: &Out, id: &str, answer: &Answer, word: &str) -> Result<Exit, Error> {
    let mut store = session.store()?;
    let me = session.identity(&mut store)?;
    if me.kind != Kind::Person {
        return Err(Error::new(Code::NotAPerson, "only the person at a terminal answers what agents ask")
            .hint("`baton approvals` shows what waits; leave the answer to the person"));
    }
    let host = host(session)?;
    let mut jobs = Jobs::open(&host.home)?;
    let pending = approve::find(&host, &mut jobs, id)?;
    let row = approve::answer(&host, &mut jobs, &pending, answer, &me.participant.name)?;
    let document =
        json!({"id": pending.id(), "answer": word, "effective": true, "job_status": row.status.as_str()});
    out.data(&document, || format!("{word}: {}", head(&pending.question.what, 100)))?;
    done()
}
