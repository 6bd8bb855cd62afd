//! Telling the asker: mail when a job has ended, or when it waits for an answer.
//!
//! The end is written first, into the store of jobs; the mail goes into the other one under a key that makes it once. Whoever comes upon an end that
//! was not told yet tells it, so a worker that is killed in between leaves nobody in the dark.

use crate::worker::head;
use crate::{Host, notify};
use baton_core::approval::Question;
use baton_core::id::JobId;
use baton_core::job::Status;
use baton_mail::bell;
use baton_mail::wake::{self, Wish};
use baton_store::{JobRow, Jobs, Role, Store};

/// How much of a result the mail carries.
const RESULT_CHARS: usize = 1500;

/// Tells the asker of a job's end, if it has ended and that was not done. Best effort: who reads the job next tries again.
pub fn ended(host: &Host, jobs: &mut Jobs, id: &JobId) {
    let Ok(Some(row)) = jobs.get(id) else { return };
    if !row.status.is_end() || row.told {
        return;
    }
    let said = say(host, &row, &format!("job:{}:end", row.id), &end_in_words(&row));
    if said == Said::Mailed && row.result.as_ref().is_none_or(|result| fits(result)) {
        // All there is to read stands in the mail.
        jobs.set_read(id, baton_mail::now()).ok();
    }
    if said != Said::NotYet {
        jobs.set_told(id).ok();
    }
}

/// Tells the asker what a job waits for.
pub fn blocked(host: &Host, row: &JobRow, questions: &[Question]) {
    for question in questions {
        let body = format!(
            "Job {} ({}) waits for an answer: {}. `baton job status {}` shows it; the person answers with `baton approve {}` or `baton deny {}`.",
            row.id,
            row.agent,
            head(&question.what, 300),
            row.id,
            row.id,
            row.id
        );
        say(host, row, &format!("job:{}:asks:{}", row.id, question.id), &body);
    }
    if !questions.is_empty() {
        notify::of_job(host, &row.id);
    }
}

/// Notes in the trail that a rule has answered a question. Best effort: the answer stands in the record.
pub fn answered(host: &Host, row: &JobRow, question: &Question, by: &str) {
    if let Ok(mut store) = Store::open(&host.home, Role::Command) {
        let detail = format!("{}:{} allow by {by}: {}", row.id, question.id, head(&question.what, 120));
        store.note(baton_mail::now(), "approval-answered", Some(row.asker), &detail).ok();
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

/// What became of telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// The asker has mail.
    Mailed,
    /// It needs none: a person or a script looks for himself.
    NotNeeded,
    /// It could not be said now.
    NotYet,
}

fn say(host: &Host, row: &JobRow, key: &str, body: &str) -> Said {
    let Ok(mut store) = Store::open(&host.home, Role::Command) else { return Said::NotYet };
    let Ok(Some(mut asker)) = store.participant(row.asker) else { return Said::NotNeeded };
    if asker.project.is_empty() {
        return Said::NotNeeded;
    }
    match store.tell_of_job(row.asker, key, body, baton_mail::now()) {
        Ok(false) => Said::Mailed,
        Ok(true) => {
            bell::ring(&host.home, row.asker);
            let wish = Wish { home: &host.home, rules: &host.limits, wanted: true, by_hand: false };
            // Waking only makes it faster; the mail is there.
            wake::wake(&mut store, &mut asker, &wish).ok();
            store.tidy();
            Said::Mailed
        }
        Err(_) => Said::NotYet,
    }
}
