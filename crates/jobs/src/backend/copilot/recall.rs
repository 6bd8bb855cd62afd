//! What Copilot has written down of a turn: the session's `events.jsonl`.

use super::super::{Task, describe};
use baton_core::job::{Fault, Finish, Said, Snapshot, Tool, ToolState};
use baton_core::limits;
use baton_machine::files;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where it keeps its files.
pub(super) fn home(task: &Task) -> Option<PathBuf> {
    let set = task.variable("COPILOT_HOME").filter(|folder| !folder.is_empty());
    set.map(PathBuf::from).or_else(|| Some(task.user_home()?.join(".copilot")))
}

/// The transcript of a session.
pub(super) fn transcript(task: &Task, session: &str) -> Option<PathBuf> {
    let is_id = !session.is_empty() && session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let file = home(task).filter(|_| is_id)?.join("session-state").join(session).join("events.jsonl");
    file.is_file().then_some(file)
}

/// What it has of the turn that began with this prompt.
pub(super) fn recall(file: &Path, prompt: &str) -> Option<Snapshot> {
    let bytes = files::read(file, limits::TRANSCRIPT_BYTES).ok()?;
    let mut turn: Option<Snapshot> = None;
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let Ok(event) = serde_json::from_slice::<Value>(line) else { continue };
        // Subagents have an id.
        if event["agentId"].is_string() {
            continue;
        }
        let data = &event["data"];
        if event["type"] == "user.message" && data["content"] == prompt {
            turn = Some(Snapshot::default());
        } else if let Some(turn) = &mut turn {
            take(turn, event["type"].as_str().unwrap_or_default(), data);
        }
        if let Some(turn) = &mut turn {
            turn.version = number as u64;
        }
    }
    turn
}

fn take(turn: &mut Snapshot, kind: &str, data: &Value) {
    let text = |name: &str| data[name].as_str().unwrap_or_default();
    match kind {
        // A stop hook or a background task makes it go on.
        "user.message" => *turn = Snapshot::default(),
        "assistant.message" if data["model"].is_string() => {
            let calls: Vec<Tool> = data["toolRequests"].as_array().into_iter().flatten().map(tool).collect();
            let finish = if calls.is_empty() { Finish::End } else { Finish::ToolCalls };
            turn.idle = calls.is_empty().then_some(true);
            turn.said = Some(Said { text: text("content").to_owned(), finish });
            turn.fault = None;
            turn.tools.extend(calls);
        }
        "tool.execution_complete" => turn.tools.retain(|tool| tool.call != text("toolCallId")),
        "session.error" => {
            turn.fault = Some(fault(data["statusCode"].as_u64(), text("message")));
            turn.said = None;
            turn.idle = Some(true);
        }
        "abort" => {
            turn.aborted = true;
            turn.idle = Some(true);
        }
        _ => {}
    }
}

fn tool(call: &Value) -> Tool {
    let text = |name: &str| call[name].as_str().unwrap_or_default();
    describe::tool("copilot", text("toolCallId"), text("name"), &call["arguments"], ToolState::Running)
}

fn fault(named: Option<u64>, message: &str) -> Fault {
    describe::fault("copilot", named.or_else(|| status(message)), message, baton_machine::clock::now())
}

/// The HTTP status in texts like `(HTTP 401)`, `Last error: 429 slow down` or `429 slow down`.
pub(super) fn status(message: &str) -> Option<u64> {
    let behind = |mark: &&str| Some(message.split_once(*mark)?.1);
    ["HTTP ", "Last error: ", "status "].iter().filter_map(behind).chain([message]).find_map(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
        digits.parse().ok().filter(|status| (400..600).contains(status))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_turn_is_over_when_the_model_or_an_error_has_the_last_word() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        let recalled = |events: &[Value]| {
            let lines: Vec<String> = events.iter().map(Value::to_string).collect();
            std::fs::write(&file, lines.join("\n")).unwrap();
            recall(&file, "do it")
        };
        let event = |kind: &str, data: Value| json!({"type": kind, "data": data});
        let before = event("assistant.message", json!({"model": "m", "content": "old", "toolRequests": []}));
        let prompt = event("user.message", json!({"content": "do it"}));
        let call = json!([{"toolCallId": "c", "name": "bash", "arguments": {"command": "make"}}]);
        let step = event("assistant.message", json!({"model": "m", "content": "", "toolRequests": call}));
        let result = event("tool.execution_complete", json!({"toolCallId": "c"}));
        let last = event("assistant.message", json!({"model": "m", "content": "new", "toolRequests": []}));
        let limit = event("session.error", json!({"message": "retried 5 times Last error: 429 slow down"}));
        assert_eq!(recalled(std::slice::from_ref(&before)), None);
        let begun = recalled(&[before.clone(), prompt.clone()]).unwrap();
        assert_eq!((begun.idle, begun.said), (None, None));
        let working = recalled(&[prompt.clone(), step.clone()]).unwrap();
        assert_eq!((working.idle, working.tools.len()), (None, 1));
        let done = recalled(&[prompt.clone(), step, result, last]).unwrap();
        assert_eq!((done.idle, done.tools.len(), done.said.unwrap().text.as_str()), (Some(true), 0, "new"));
        let failed = recalled(&[prompt, limit]).unwrap();
        assert_eq!(failed.fault.unwrap().error.code(), baton_core::Code::RateLimited);
        let named = event("session.error", json!({"message": "slow down", "statusCode": 429}));
        let failed = recalled(&[event("user.message", json!({"content": "do it"})), named]).unwrap();
        assert_eq!(failed.fault.unwrap().error.code(), baton_core::Code::RateLimited);
    }

    #[test]
    fn the_status_is_found_in_the_words() {
        assert_eq!(
            status("Authentication failed with provider at http://127.0.0.1:9214/v1 (HTTP 401)."),
            Some(401)
        );
        assert_eq!(
            status("retried 5 times (total retry wait time: 16 seconds) Last error: 429 slow"),
            Some(429)
        );
        assert_eq!(status("429 slow down"), Some(429));
        assert_eq!(status("Last error: inside boom"), None);
    }
}
