//! What Gemini CLI asks its user. It reports when its dialog is open, without an id. No hook can
//! answer, and without a terminal it asks no one.
//!
//! After a yes, the hook after the tool runs. A no, or Esc, takes the turn back: no hook runs, and
//! the transcript is replaced by one without the turn.

use crate::asked::{AgentQuestion, ProcessProbe, QuestionStatus, RecordedQuestion, fingerprint, in_words};
use crate::tools;
use baton_core::approval::{Extent, Part, Question, Subject};
use serde::Deserialize;
use serde_json::{Value, json};

/// The tools that it describes in full.
const SHELL_TOOL: &str = "run_shell_command";
const WRITE_TOOL: &str = "write_file";

#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Value,
}

pub(super) fn asked(payload: &[u8]) -> Option<AgentQuestion> {
    let Payload { timestamp, message, details } = crate::payload::owned(payload).ok()?;
    let text = |name: &str| details[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let id = timestamp;
    let call = |tool: &str, input: Value| Some(tools::tool(&super::tools::TOOLS, tool, &input, &[]));
    let (known, subject, about) = match (details["type"].as_str(), text("command"), text("filePath")) {
        (Some("exec"), Some(command), _) => {
            let about = call(SHELL_TOOL, json!({ "command": command }));
            (command.clone(), Subject::command(SHELL_TOOL, command), about)
        }
        (Some("edit"), _, Some(path)) => {
            let about = call(WRITE_TOOL, json!({ "file_path": path, "content": details["newContent"] }));
            let diff = text("fileDiff");
            let change = diff.clone().or_else(|| text("newContent"));
            let extent = if change.is_some() { Extent::Whole } else { Extent::NoMore };
            let known = diff.unwrap_or_else(|| path.clone());
            let parts = std::iter::once(Part::file(path)).chain(change.map(Part::change)).collect();
            (known, Subject::permission(Some(WRITE_TOOL), parts, extent), about)
        }
        _ => {
            let subject = Subject::permission(None, told(&message, &details), Extent::NoMore);
            (message, subject, None)
        }
    };
    let input = fingerprint(subject.tool().unwrap_or_default(), &json!(known));
    let question = Question::new(id, subject).about(about);
    Some(AgentQuestion { question, call: None, input, native: Value::Null })
}

/// Everything in a dialog of unknown form.
fn told(message: &str, details: &Value) -> Vec<Part> {
    let fields = details.as_object().into_iter().flatten();
    let more = fields.filter(|(name, value)| *name != "type" && !value.is_null());
    let more = more.map(|(name, value)| Part::new(name, in_words(value)));
    std::iter::once(Part::new("it says", message)).chain(more).collect()
}

/// The status of a question, by the lines after it: the tool's result, if the tool ran; a replaced
/// conversation, if the turn was taken back. A message that is written again, because other tools
/// of it have ended, means nothing.
pub(super) fn question_status(
    asking: &RecordedQuestion<'_>,
    probe: ProcessProbe<'_>,
) -> Option<QuestionStatus> {
    let bytes = asking.transcript.and_then(|file| (probe.read)(file))?;
    let text = String::from_utf8_lossy(&bytes);
    let asked_at = asking.question.id.as_str();
    let is_younger = |at: &Value| at.as_str().is_some_and(|at| at > asked_at);
    let mut seen = QuestionStatus::Open;
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let parts = line["content"].as_array().map_or(&[][..], Vec::as_slice);
        let is_result = parts.iter().any(|part| part["functionResponse"].is_object());
        let by_person = line["type"] == "user" && is_younger(&line["timestamp"]);
        let taken_back = line["$set"]["messages"].is_array() && is_younger(&line["$set"]["lastUpdated"]);
        if by_person && is_result {
            return Some(QuestionStatus::Ran);
        }
        if by_person || taken_back {
            seen = QuestionStatus::Over;
        }
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::time::Moment;
    use std::path::Path;

    const EDIT: &str = r#"{"hook_event_name": "Notification", "timestamp": "2026-11-16T10:23:19.903Z", "notification_type": "ToolPermission",
        "message": "Tool Confirm Write: new.txt requires editing", "details": {"type": "edit", "title": "Confirm Write: new.txt", "fileName": "new.txt",
        "filePath": "/p/new.txt", "fileDiff": "+hello", "originalContent": "", "newContent": "hello"}}"#;

    fn command(text: &str) -> AgentQuestion {
        let payload = json!({"timestamp": "2026-11-16T10:23:19.903Z", "message": "Tool Confirm Shell Command requires execution",
            "details": {"type": "exec", "title": "Confirm Shell Command", "command": text, "rootCommand": "touch"}});
        asked(payload.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_question_is_reported_in_full() {
        let edit = asked(EDIT.as_bytes()).unwrap().question.subject;
        assert_eq!((edit.paths(), edit.as_change()), (vec!["/p/new.txt"], Some("+hello")));
        let short = command("touch a");
        assert_eq!(short.question.subject.head(), "run_shell_command: touch a");
        let long = command("touch a\ntouch b");
        assert_eq!(long.question.subject.as_command(), Some("touch a\ntouch b"));
        assert!(!long.question.subject.head_is_whole());
        assert_ne!(short.input, long.input);
    }

    #[test]
    fn the_transcript_tells_how_it_ended() {
        let asked = command("touch a");
        let stands = |lines: &[&str]| {
            let asking = RecordedQuestion {
                session_id: "s",
                subagent: None,
                pid: None,
                transcript: Some(Path::new("/t")),
                question: &asked.question,
                call: None,
                input: asked.input,
                since: Moment(0),
                handed: None,
            };
            let text = lines.join("\n");
            let probe =
                ProcessProbe { read: &|_| Some(text.clone().into_bytes()), started_below: &|_| Vec::new() };
            question_status(&asking, probe)
        };
        let prompt =
            r#"{"id":"1","timestamp":"2026-11-16T10:23:19.100Z","type":"user","content":[{"text":"go"}]}"#;
        let call =
            r#"{"id":"2","timestamp":"2026-11-16T10:23:19.800Z","type":"gemini","content":"","model":"m"}"#;
        let again = r#"{"id":"2","timestamp":"2026-11-16T10:23:20.800Z","type":"gemini","content":"","model":"m","toolCalls":[]}"#;
        let result = r#"{"id":"3","timestamp":"2026-11-16T10:23:25.074Z","type":"user","content":[{"functionResponse":{"id":"x"}}]}"#;
        let back = r#"{"$set":{"messages":[],"lastUpdated":"2026-11-16T10:23:25.310Z"}}"#;
        assert_eq!(stands(&[prompt, call]), Some(QuestionStatus::Open));
        assert_eq!(stands(&[prompt, call, again]), Some(QuestionStatus::Open));
        assert_eq!(stands(&[prompt, call, again, result]), Some(QuestionStatus::Ran));
        assert_eq!(stands(&[prompt, call, back]), Some(QuestionStatus::Over));
        assert_eq!(stands(&["{", "no JSON", ""]), Some(QuestionStatus::Open));
    }
}
