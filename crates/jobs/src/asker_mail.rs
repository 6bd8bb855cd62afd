//! Mail to the asker, when a job has ended or waits for an answer. The asker is a session or the
//! person; a script looks for itself.
//!
//! The end is written into the jobs store first. The mail then goes into the mail store, under a
//! key that lets it in once. A worker that is killed in between does no harm: the next process that
//! reads the job finds an end without mail, and sends it.

use crate::answers::{self, Open};
use crate::{Runtime, spawn_notifier};
use baton_core::id::JobId;
use baton_core::job::Status;
use baton_core::{Error, name};
use baton_machine::bell;
use baton_mail::identity::{Identity, Kind};
use baton_mail::wake::{self, WakeRequest};
use baton_store::{JobRow, Jobs, Role, Store};

/// How much of a result the mail carries.
const RESULT_CHARS: usize = 1500;

/// Sends the asker mail about a job's end, if the job has ended and that was not done. Best effort:
/// the next reader of the job tries again.
pub fn send_end(runtime: &Runtime, jobs: &mut Jobs, id: &JobId) {
    let Ok(Some(row)) = jobs.get(id) else { return };
    if !row.status.is_end() || row.told {
        return;
    }
    questions_are_over(runtime, &row, None);
    let sent = send(runtime, &row, &end_key(&row.id), &end_in_words(&row));
    if sent == Sent::ToSession && row.result.as_ref().is_none_or(|result| fits(result)) {
        // The mail has all of the result.
        jobs.set_read(id, baton_machine::clock::now()).ok();
    }
    if sent != Sent::NotYet {
        jobs.set_told(id).ok();
    }
    if sent == Sent::ToPerson {
        spawn_notifier::for_job(runtime, id);
    }
}

/// Records that the person has seen the end of a job that it started, because a command printed it.
/// Mail about it is seen, also if the worker sends it only after this.
pub fn person_saw_end(runtime: &Runtime, row: &JobRow, me: &Identity) -> Result<(), Error> {
    if me.kind != Kind::Person || me.participant.id != row.asker || !row.status.is_end() {
        return Ok(());
    }
    let mut store = Store::open(&runtime.home, Role::Command)?;
    store.note_was_read(row.asker, &end_key(&row.id), &end_in_words(row), baton_machine::clock::now())
}

/// The questions of a job, or the one with this key, need no answer any more. Mail to the person
/// about them that was not read is out of date.
pub fn questions_are_over(runtime: &Runtime, row: &JobRow, key: Option<&str>) {
    if row.asker_name != name::USER {
        return;
    }
    if let Ok(mut store) = Store::open(&runtime.home, Role::Command) {
        let key = key.map_or_else(|| questions_key(&row.id), |key| question_key(&row.id, key));
        // At worst the person reads about a question that is gone.
        store.expire_notes(row.asker, &key, baton_machine::clock::now()).ok();
    }
}

fn end_key(id: &JobId) -> String {
    format!("job:{id}:end")
}

/// What the keys of all its questions begin with.
fn questions_key(id: &JobId) -> String {
    format!("job:{id}:asks:")
}

/// It ends with a colon, so that it is no beginning of another one.
fn question_key(id: &JobId, key: &str) -> String {
    format!("{}{key}:", questions_key(id))
}

/// Sends the asker mail about each question that a job waits with, and notifies people.
pub fn send_questions(runtime: &Runtime, row: &JobRow, questions: &[Open]) {
    for Open { key, question } in questions {
        let body = format!(
            "Job {2} ({0}) waits for an answer: {1}. `baton approvals {id}` shows all of it; the person answers with `baton approve {id}` or `baton deny {id}`.",
            row.agent,
            answers::line(row, question).text,
            row.id,
            id = Open::id(&row.id, key),
        );
        send(runtime, row, &question_key(&row.id, key), &body);
    }
    if !questions.is_empty() {
        spawn_notifier::for_job(runtime, &row.id);
    }
}

fn end_in_words(row: &JobRow) -> String {
    let took = row.elapsed.map_or_else(String::new, |elapsed| format!(" after {}", elapsed.coarse()));
    let mut body = format!("Job {} ({}) {}{took}.", row.id, row.agent, row.status);
    if let Some(fault) = row.fault.as_ref().filter(|_| row.status != Status::Completed) {
        body.push_str(&format!(" {}: {}.", fault.error.code(), fault.error.message()));
        if let Some(hint) = fault.error.hint_text() {
            body.push_str(&format!(" Hint: {hint}."));
        }
    }
    if let Some(result) = &row.result {
        let beginning: String = result.chars().take(RESULT_CHARS).collect();
        body.push_str(&format!(
            "\n{}:\n{beginning}",
            if row.status == Status::Completed { "Result" } else { "It had said" }
        ));
        if !fits(result) {
            body.push_str(&format!("\n[… the rest: `baton job result {}`]", row.id));
        }
    } else {
        body.push_str(&format!(" `baton job logs {}` shows what it did.", row.id));
    }
    body
}

fn fits(result: &str) -> bool {
    result.chars().count() <= RESULT_CHARS
}

/// What became of the mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    ToSession,
    ToPerson,
    /// The asker is a script, and looks for itself.
    NotNeeded,
    /// The store could not be written.
    NotYet,
}

fn send(runtime: &Runtime, row: &JobRow, key: &str, body: &str) -> Sent {
    let Ok(mut store) = Store::open(&runtime.home, Role::Command) else { return Sent::NotYet };
    let Ok(Some(mut asker)) = store.participant(row.asker) else { return Sent::NotNeeded };
    if asker.agent == name::SCRIPT {
        return Sent::NotNeeded;
    }
    let sent = if asker.is_outsider() { Sent::ToPerson } else { Sent::ToSession };
    match store.send_note_once(row.asker, key, body, baton_machine::clock::now()) {
        Ok(false) => sent,
        Ok(true) => {
            bell::ring(&runtime.home, row.asker);
            if sent == Sent::ToPerson {
                return sent;
            }
            let request = WakeRequest {
                home: &runtime.home,
                rules: &runtime.limits,
                wanted: true,
                by_hand: false,
                follower: Some(&runtime.program),
            };
            // Waking only makes it faster: the mail is in the store.
            wake::wake(&mut store, &mut asker, &request).ok();
            store.tidy();
            sent
        }
        Err(_) => Sent::NotYet,
    }
}
