//! A job as programs see it: one shape for the command line and the MCP server.

use crate::backend::PROMPT_FILE;
use crate::place::Place;
use crate::worker::head;
use crate::{Host, answers};
use baton_core::approval::QuestionKind;
use baton_core::time::{Moment, Span};
use baton_store::JobRow;
use serde_json::{Value, json};

/// How much of a prompt a list shows.
const PROMPT_CHARS: usize = 100;

/// All of a job.
pub fn job(host: &Host, row: &JobRow) -> Value {
    let moment = |at: Option<Moment>| at.map(Moment::to_rfc3339);
    let error = row.fault.as_ref().map(|fault| {
        json!({
            "code": fault.error.code().as_str(),
            "message": fault.error.message(),
            "hint": fault.error.hint_text(),
            "again_at": moment(fault.again_at),
        })
    });
    json!({
        "job_id": row.id.as_str(),
        "agent": row.agent,
        "status": row.status.as_str(),
        "phase": row.phase,
        "prompt_file": prompt_file(host, row),
        "prompt_head": head(&row.prompt, PROMPT_CHARS),
        "cwd": row.cwd,
        "worktree": row.worktree,
        "created_at": row.created_at.to_rfc3339(),
        "started_at": moment(row.started_at),
        "ended_at": moment(row.ended_at),
        "elapsed_ms": elapsed(row).0,
        "last_activity": row.activity.as_ref().map(|(what, at)| json!({"what": what, "at": at.to_rfc3339()})),
        "questions": questions(row),
        "backend_session": row.session,
        "result": row.result,
        "changes": row.changes.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()),
        "error": error,
        "exit": row.exit,
        "requested_by": row.asker_name,
        "log": Place::of(&host.home, &row.id).log().to_string_lossy(),
    })
}

/// What is said when a wait has run out.
pub fn not_yet(host: &Host, row: &JobRow) -> Value {
    json!({
        "job_id": row.id.as_str(),
        "status": row.status.as_str(),
        "phase": row.phase,
        "elapsed_ms": elapsed(row).0,
        "last_activity": row.activity.as_ref().map(|(what, at)| json!({"what": what, "at": at.to_rfc3339()})),
        "log": Place::of(&host.home, &row.id).log().to_string_lossy(),
    })
}

/// The file in which its prompt travelled, where that was too long for its agent.
fn prompt_file(host: &Host, row: &JobRow) -> Option<String> {
    let file = Place::of(&host.home, &row.id).folder().join(PROMPT_FILE);
    file.exists().then(|| file.to_string_lossy().into_owned())
}

/// How long it took, or has taken so far; a clock that was set back shows as no time at all.
pub fn elapsed(row: &JobRow) -> Span {
    row.elapsed.unwrap_or_else(|| row.ended_at.unwrap_or_else(baton_mail::now).since(row.created_at))
}

fn questions(row: &JobRow) -> Vec<Value> {
    let kind = |kind| if kind == QuestionKind::Permission { "permission" } else { "input" };
    let found = answers::parse(row.questions.as_deref().unwrap_or_default());
    found
        .iter()
        .map(|question| {
            json!({"id": question.id, "kind": kind(question.kind), "what": question.what, "choices": question.choices})
        })
        .collect()
}
