//! What Codex asks its user, which answers its hook takes, and how baton sees that a question is
//! over.
//!
//! The `PermissionRequest` hook runs before the dialog, which appears only afterwards; several
//! hooks run at once. A question has no id and names no call, so baton finds the call in the
//! rollout by its command. While a tool runs, nothing is written. The end of a refused call may be
//! written only after the calls before it have ended. baton recognises a running command by the
//! shell that runs it. `codex exec` never asks: it refuses whatever needs a permission.

use crate::asked::{
    self, AgentQuestion, ProcessProbe, QuestionStatus, RecordedQuestion, fingerprint, patched,
};
use crate::history::moment;
use crate::payload;
use baton_core::approval::{Answer, Question};
use baton_core::event::Event;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The event whose hook can answer.
const QUESTION_EVENT: &str = "PermissionRequest";
/// Its name for a patch, whichever tool makes it.
const PATCH_TOOL: &str = "apply_patch";

#[derive(Deserialize)]
struct Payload {
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
}

/// Reads a question. The model's reason, which only this event has, is not part of the call.
pub(super) fn asked(payload: &[u8], event: &Event) -> Option<AgentQuestion> {
    if event.native != QUESTION_EVENT {
        return None;
    }
    let Payload { tool_name, mut tool_input } = payload::owned(payload).ok()?;
    let has_command = tool_input["command"].is_string();
    let why =
        tool_input.as_object_mut().filter(|_| has_command).and_then(|input| input.remove("description"));
    let subject = asked::permission(&super::tools::TOOLS, &tool_name, &tool_input);
    Some(AgentQuestion {
        question: Question::new("", subject.with_note(why.as_ref().and_then(Value::as_str))),
        call: event.calls.first().cloned(),
        input: fingerprint(&tool_name, &tool_input),
        native: Value::Null,
    })
}

/// The answer as the hook prints it. It holds for this call only, because a hook can't say
/// "always".
pub(super) fn render(answer: &Answer) -> Option<String> {
    let decision = match answer {
        Answer::Allow => json!({"behavior": "allow"}),
        Answer::Deny(why) => {
            let why = if why.trim().is_empty() { "A person said no to that." } else { why };
            json!({"behavior": "deny", "message": why})
        }
        Answer::AllowAlways | Answer::Words(_) => return None,
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": QUESTION_EVENT, "decision": decision}}).to_string())
}

/// Whether no user sits in front of it. The client of an app-server asks its user itself.
pub(super) fn is_headless(args: &[String]) -> bool {
    args.iter().skip(1).any(|arg| matches!(arg.as_str(), "exec" | "e"))
}

pub(super) fn question_status(
    asking: &RecordedQuestion<'_>,
    probe: ProcessProbe<'_>,
) -> Option<QuestionStatus> {
    let subject = &asking.question.subject;
    let command = subject.as_command().or_else(|| subject.as_change())?;
    let rollout = asking.transcript.and_then(|file| (probe.read)(file));
    rollout
        .and_then(|lines| by_rollout(&String::from_utf8_lossy(&lines), asking, command))
        .or_else(|| by_process(asking, probe, command))
}

/// A command runs in a shell below Codex, which gets the command unchanged.
fn by_process(
    asking: &RecordedQuestion<'_>,
    probe: ProcessProbe<'_>,
    command: &str,
) -> Option<QuestionStatus> {
    if matches!(asking.handed, Some(Answer::Deny(_))) {
        // It would be another call of the same command, or an answer that was faster than ours. The
        // rollout will show it.
        return None;
    }
    let started = (probe.started_below)(asking.pid?);
    started.iter().flatten().any(|argument| argument == command).then_some(QuestionStatus::Ran)
}

#[derive(Deserialize)]
struct Line {
    timestamp: String,
    payload: Value,
}

/// By the end of the call, which is below it. If several calls are alike, only by an end that all
/// of them share.
fn by_rollout(lines: &str, asking: &RecordedQuestion<'_>, command: &str) -> Option<QuestionStatus> {
    let is_patch = asking.question.subject.tool() == Some(PATCH_TOOL);
    // By the call's id. Calls that a script makes have ids that appear nowhere else.
    let mut done: HashMap<String, QuestionStatus> = HashMap::new();
    // The same; `None` for a call that ended before the question.
    let mut ends: HashMap<String, Option<String>> = HashMap::new();
    let mut found: Vec<Option<QuestionStatus>> = Vec::new();
    let wanted = ["\"item_completed\"", "_call\"", "_call_output\""];
    for line in lines.rsplit('\n').filter(|line| wanted.iter().any(|word| line.contains(word))) {
        let Ok(Line { timestamp, payload }) = serde_json::from_str::<Line>(line) else { continue };
        let is_later = moment(&timestamp).is_some_and(|at| at >= asking.since);
        let id = payload["call_id"].as_str().unwrap_or_default();
        match payload["type"].as_str().unwrap_or_default() {
            "item_completed" if is_later => {
                let item = &payload["item"];
                let same = if is_patch {
                    changes(item, &asking.question.subject.paths())
                } else {
                    runs(item, command)
                };
                let end =
                    if item["status"] == "declined" { QuestionStatus::Refused } else { QuestionStatus::Ran };
                done.extend(item["id"].as_str().filter(|_| same).map(|id| (id.to_owned(), end)));
            }
            "function_call_output" | "custom_tool_call_output" => {
                ends.insert(id.to_owned(), is_later.then(|| words(&payload["output"])));
            }
            "function_call" if calls(&payload, command, is_patch) => match (done.get(id), ends.get(id)) {
                (Some(end), _) => found.push(Some(*end)),
                (None, Some(None)) => break,
                (None, Some(Some(output))) => found.push(Some(end_of_call(output))),
                (None, None) => found.push(None),
            },
            // A script of the model, which asks about the calls that it makes.
            "custom_tool_call" if found.is_empty() => {
                let refused = matches!(ends.get(id), Some(Some(output)) if output.contains("Rejected("));
                return done.values().next().copied().or(refused.then_some(QuestionStatus::Refused));
            }
            "function_call" => {}
            _ if !found.is_empty() => break,
            _ => {}
        }
    }
    let first = *found.first()?;
    found.iter().all(|one| *one == first).then_some(first)?
}

fn runs(item: &Value, command: &str) -> bool {
    item["type"] == "CommandExecution"
        && item["command"].as_array().and_then(|words| words.last()).is_some_and(|last| last == command)
}

fn changes(item: &Value, paths: &[&str]) -> bool {
    let Some(changed) = item["changes"].as_object().filter(|_| item["type"] == "FileChange") else {
        return false;
    };
    !paths.is_empty() && changed.keys().all(|file| paths.iter().any(|path| file.ends_with(path)))
}

fn calls(payload: &Value, command: &str, is_patch: bool) -> bool {
    let arguments: Value =
        payload["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let given = arguments["cmd"].as_str().or_else(|| arguments["command"].as_str()).unwrap_or_default();
    if is_patch { !patched(command).is_empty() && given.contains(command.trim()) } else { given == command }
}

fn end_of_call(output: &str) -> QuestionStatus {
    let refused = output.starts_with("exec_command failed") && output.contains("Rejected(");
    let aborted = output.starts_with("Wall time") && output.ends_with("aborted by user");
    if refused || aborted { QuestionStatus::Refused } else { QuestionStatus::Ran }
}

/// The text of an output, which may have several parts.
fn words(output: &Value) -> String {
    let part = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
    match output {
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join("\n"),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests;
