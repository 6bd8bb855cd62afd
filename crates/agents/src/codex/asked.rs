//! What Codex asks its person, the answers that its hook takes, and how one sees that a question is over.
//!
//! The `PermissionRequest` hook runs before its person is asked, who sees nothing of it meanwhile; several run at once. A question has no id and names
//! no call, so its call is found in the rollout by the command. While a tool runs nothing is written, and the end of a call that was refused
//! may stand there only when those before it have ended too. A command that runs is known by the shell that runs it.
//! `codex exec` never asks: whatever needs a permission is refused.

use crate::asked::{self, Asked, Asking, Look, Standing, fingerprint, patched};
use crate::history::moment;
use crate::payload;
use baton_core::approval::Answer;
use baton_core::event::Event;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The event whose hook can answer.
const EVENT: &str = "PermissionRequest";
/// Its name for a patch, whichever tool brings it.
const PATCH: &str = "apply_patch";

#[derive(Deserialize)]
struct Payload {
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
}

/// Reads a question. Why the model wants it, which only this event has, is no part of the call.
pub(super) fn asked(payload: &[u8], event: &Event) -> Option<Asked> {
    if event.native != EVENT {
        return None;
    }
    let Payload { tool_name, mut tool_input } = payload::owned(payload).ok()?;
    let has_command = tool_input["command"].is_string();
    let why =
        tool_input.as_object_mut().filter(|_| has_command).and_then(|input| input.remove("description"));
    let mut question = asked::permission(&super::tools::TOOLS, &tool_name, &tool_input);
    if let Some(why) = why.as_ref().and_then(Value::as_str).filter(|why| !why.trim().is_empty()) {
        question.what = format!("{} ({})", question.what, asked::line(why));
    }
    Some(Asked {
        question,
        call: event.calls.first().cloned(),
        input: fingerprint(&tool_name, &tool_input),
        native: Value::Null,
    })
}

/// The answer, as the hook prints it: this one time only, for a hook can't say "always".
pub(super) fn render(answer: &Answer) -> Option<String> {
    let decision = match answer {
        Answer::Allow => json!({"behavior": "allow"}),
        Answer::Deny(why) => {
            let why = if why.trim().is_empty() { "A person said no to that." } else { why };
            json!({"behavior": "deny", "message": why})
        }
        Answer::AllowAlways | Answer::Words(_) => return None,
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": EVENT, "decision": decision}}).to_string())
}

/// Whether nobody sits in front of it. Whoever uses an app-server asks its person itself.
pub(super) fn is_headless(args: &[String]) -> bool {
    args.iter().skip(1).any(|arg| matches!(arg.as_str(), "exec" | "e"))
}

/// How a question stands.
pub(super) fn standing(asking: &Asking<'_>, look: Look<'_>) -> Option<Standing> {
    let command = asking.question.detail.as_deref()?;
    let rollout = asking.transcript.and_then(|file| (look.read)(file));
    rollout
        .and_then(|lines| by_rollout(&String::from_utf8_lossy(&lines), asking, command))
        .or_else(|| by_process(asking, look, command))
}

/// A command runs in a shell below it, which has been given the command as it is.
fn by_process(asking: &Asking<'_>, look: Look<'_>, command: &str) -> Option<Standing> {
    if matches!(asking.handed, Some(Answer::Deny(_))) {
        // It would be another call of the same, or that of somebody who was faster: the rollout will tell.
        return None;
    }
    let started = (look.started_below)(asking.pid?);
    started.iter().flatten().any(|argument| argument == command).then_some(Standing::Ran)
}

#[derive(Deserialize)]
struct Line {
    timestamp: String,
    payload: Value,
}

/// By the end of the call, which stands below it. Where several calls are alike, only by what all of them have come to.
fn by_rollout(lines: &str, asking: &Asking<'_>, command: &str) -> Option<Standing> {
    let is_patch = asking.question.tool.as_deref() == Some(PATCH);
    // By the call's id. Calls that a script makes have ids that stand nowhere else.
    let mut done: HashMap<String, Standing> = HashMap::new();
    // The same; `None` for what ended before this was asked.
    let mut ends: HashMap<String, Option<String>> = HashMap::new();
    let mut found: Vec<Option<Standing>> = Vec::new();
    let wanted = ["\"item_completed\"", "_call\"", "_call_output\""];
    for line in lines.rsplit('\n').filter(|line| wanted.iter().any(|word| line.contains(word))) {
        let Ok(Line { timestamp, payload }) = serde_json::from_str::<Line>(line) else { continue };
        let is_later = moment(&timestamp).is_some_and(|at| at >= asking.since);
        let id = payload["call_id"].as_str().unwrap_or_default();
        match payload["type"].as_str().unwrap_or_default() {
            "item_completed" if is_later => {
                let item = &payload["item"];
                let same = if is_patch { changes(item, &asking.question.paths) } else { runs(item, command) };
                let end = if item["status"] == "declined" { Standing::Refused } else { Standing::Ran };
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
            // A script of the model, which asks for what it calls.
            "custom_tool_call" if found.is_empty() => {
                let refused = matches!(ends.get(id), Some(Some(output)) if output.contains("Rejected("));
                return done.values().next().copied().or(refused.then_some(Standing::Refused));
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

fn changes(item: &Value, paths: &[String]) -> bool {
    let Some(changed) = item["changes"].as_object().filter(|_| item["type"] == "FileChange") else {
        return false;
    };
    !paths.is_empty() && changed.keys().all(|file| paths.iter().any(|path| file.ends_with(path.as_str())))
}

fn calls(payload: &Value, command: &str, is_patch: bool) -> bool {
    let arguments: Value =
        payload["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let given = arguments["cmd"].as_str().or_else(|| arguments["command"].as_str()).unwrap_or_default();
    if is_patch { !patched(command).is_empty() && given.contains(command.trim()) } else { given == command }
}

fn end_of_call(output: &str) -> Standing {
    let refused = output.starts_with("exec_command failed") && output.contains("Rejected(");
    let aborted = output.starts_with("Wall time") && output.ends_with("aborted by user");
    if refused || aborted { Standing::Refused } else { Standing::Ran }
}

/// The text of an output, which may be in parts.
fn words(output: &Value) -> String {
    let part = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
    match output {
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join("\n"),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests;
