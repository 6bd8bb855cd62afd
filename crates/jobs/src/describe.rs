//! A job as JSON, in one shape for the command line and the MCP server.

use crate::answers::Open;
use crate::backend::PROMPT_FILE;
use crate::place::Place;
use crate::worker::head;
use crate::{Runtime, answers};
use baton_core::time::{Moment, Span};
use baton_store::JobRow;
use serde_json::{Value, json};

/// How much of a prompt a list shows.
const PROMPT_CHARS: usize = 100;

/// Everything about a job.
pub fn job(runtime: &Runtime, row: &JobRow) -> Value {
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
        "prompt_file": prompt_file(runtime, row),
        "prompt_head": head(&row.prompt, PROMPT_CHARS),
        "cwd": row.cwd,
        "worktree": row.worktree,
        "created_at": row.created_at.to_rfc3339(),
        "started_at": moment(row.started_at),
        "ended_at": moment(row.ended_at),
        "elapsed_ms": elapsed(row).0,
        "last_activity": last_activity(row),
        "questions": questions(row),
        "backend_session": row.session,
        "result": row.result,
        "changes": row.changes.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()),
        "error": error,
        "exit": row.exit,
        "requested_by": row.asker_name,
        "log": Place::of(&runtime.home, &row.id).log().to_string_lossy(),
    })
}

/// What a wait returns when its time is over.
pub fn not_yet(runtime: &Runtime, row: &JobRow) -> Value {
    json!({
        "job_id": row.id.as_str(),
        "status": row.status.as_str(),
        "phase": row.phase,
        "elapsed_ms": elapsed(row).0,
        "last_activity": last_activity(row),
        "log": Place::of(&runtime.home, &row.id).log().to_string_lossy(),
    })
}

fn last_activity(row: &JobRow) -> Option<Value> {
    row.activity.as_ref().map(|activity| json!({"what": activity.what, "at": activity.at.to_rfc3339()}))
}

/// The file that holds its prompt, if the prompt was too long for its agent.
fn prompt_file(runtime: &Runtime, row: &JobRow) -> Option<String> {
    let file = Place::of(&runtime.home, &row.id).folder().join(PROMPT_FILE);
    file.exists().then(|| file.to_string_lossy().into_owned())
}

/// How long it took, or has taken so far. If the clock was set back, this is zero.
pub fn elapsed(row: &JobRow) -> Span {
    row.elapsed
        .unwrap_or_else(|| row.ended_at.unwrap_or_else(baton_machine::clock::now).since(row.created_at))
}

fn questions(row: &JobRow) -> Vec<Value> {
    let found = answers::parse(row.questions.as_deref().unwrap_or_default());
    found
        .iter()
        .map(|Open { key, question }| {
            let (subject, line) = (&question.subject, answers::line(row, question));
            json!({
                "id": Open::id(&row.id, key), "kind": subject.kind().as_str(), "what": line.text, "what_is_whole": line.is_whole, "detail": subject.text(),
                "why": question.why,
                "choices": subject.choices(),
            })
        })
        .collect()
}
