//! What Gemini CLI asks its person. It tells when its dialog is there, without an id; no hook answers it, and without a terminal it asks nobody.
//!
//! A yes is followed by the hook after the tool. A no, or Esc, takes the turn back: no hook runs, and the transcript is replaced by one without it.

use crate::asked::{Asked, Asking, Look, Standing, fingerprint};
use crate::tools;
use baton_core::approval::Question;
use serde::Deserialize;
use serde_json::{Value, json};

/// The tools that it tells in full about.
const SHELL: &str = "run_shell_command";
const WRITE: &str = "write_file";

#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Value,
}

/// What a payload asks.
pub(super) fn asked(payload: &[u8]) -> Option<Asked> {
    let Payload { timestamp, message, details } = crate::payload::owned(payload).ok()?;
    let text = |name: &str| details[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let id = timestamp;
    let call = |tool: &str, input: Value| Some(tools::tool(&super::tools::TOOLS, tool, &input, &[]));
    let (tool, question) = match (details["type"].as_str(), text("command"), text("filePath")) {
        (Some("exec"), Some(command), _) => {
            let first = command.lines().next().unwrap_or_default().to_owned();
            let about = call(SHELL, json!({ "command": command }));
            let detail = (first != command).then_some(command);
            (SHELL, Question { detail, ..Question::permission(id, format!("{SHELL}: {first}")).about(about) })
        }
        (Some("edit"), _, Some(path)) => {
            let about = call(WRITE, json!({ "file_path": path, "content": details["newContent"] }));
            let what = Question::permission(id, format!("{WRITE}: {path}")).about(about);
            (WRITE, Question { detail: text("fileDiff"), paths: vec![path], ..what })
        }
        (Some("mcp"), ..) => {
            let name =
                text("toolName").or_else(|| text("toolDisplayName")).unwrap_or_else(|| message.clone());
            let what = text("serverName").map_or_else(|| name.clone(), |server| format!("{server}: {name}"));
            ("", Question::permission(id, what))
        }
        _ => {
            let what = text("prompt").or_else(|| text("title")).unwrap_or(message);
            ("", Question::permission(id, what))
        }
    };
    let input = fingerprint(tool, &json!(question.detail.as_deref().unwrap_or(&question.what)));
    let tool = (!tool.is_empty()).then(|| tool.to_owned());
    Some(Asked { question: Question { tool, ..question }, call: None, input, native: Value::Null })
}

/// How a question stands, by the lines that are younger than it: the tool's result, if the tool ran; a replaced conversation, if the turn was taken back. A
/// message that is written again, because other tools of it have ended, says nothing.
pub(super) fn standing(asking: &Asking<'_>, look: Look<'_>) -> Option<Standing> {
    let bytes = asking.transcript.and_then(|file| (look.read)(file))?;
    let text = String::from_utf8_lossy(&bytes);
    let asked_at = asking.question.id.as_str();
    let is_younger = |at: &Value| at.as_str().is_some_and(|at| at > asked_at);
    let mut seen = Standing::Open;
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let parts = line["content"].as_array().map_or(&[][..], Vec::as_slice);
        let is_result = parts.iter().any(|part| part["functionResponse"].is_object());
        let by_person = line["type"] == "user" && is_younger(&line["timestamp"]);
        let taken_back = line["$set"]["messages"].is_array() && is_younger(&line["$set"]["lastUpdated"]);
        if by_person && is_result {
            return Some(Standing::Ran);
        }
        if by_person || taken_back {
            seen = Standing::Over;
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

    fn command(text: &str) -> Asked {
        let payload = json!({"timestamp": "2026-11-16T10:23:19.903Z", "message": "Tool Confirm Shell Command requires execution",
            "details": {"type": "exec", "title": "Confirm Shell Command", "command": text, "rootCommand": "touch"}});
        asked(payload.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_whole_of_a_question_is_told() {
        let edit = asked(EDIT.as_bytes()).unwrap().question;
        assert_eq!((edit.what.as_str(), edit.detail.as_deref()), ("write_file: /p/new.txt", Some("+hello")));
        assert_eq!(edit.paths, ["/p/new.txt"]);
        let short = command("touch a");
        assert_eq!(
            (short.question.what.as_str(), &short.question.detail),
            ("run_shell_command: touch a", &None)
        );
        let long = command("touch a\ntouch b");
        assert_eq!(long.question.what, "run_shell_command: touch a");
        assert_eq!(long.question.detail.as_deref(), Some("touch a\ntouch b"));
        assert_ne!(short.input, long.input);
    }

    #[test]
    fn the_transcript_tells_how_it_ended() {
        let asked = command("touch a");
        let stands = |lines: &[&str]| {
            let asking = Asking {
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
            let look = Look { read: &|_| Some(text.clone().into_bytes()), started_below: &|_| Vec::new() };
            standing(&asking, look)
        };
        let prompt =
            r#"{"id":"1","timestamp":"2026-11-16T10:23:19.100Z","type":"user","content":[{"text":"go"}]}"#;
        let call =
            r#"{"id":"2","timestamp":"2026-11-16T10:23:19.800Z","type":"gemini","content":"","model":"m"}"#;
        let again = r#"{"id":"2","timestamp":"2026-11-16T10:23:20.800Z","type":"gemini","content":"","model":"m","toolCalls":[]}"#;
        let result = r#"{"id":"3","timestamp":"2026-11-16T10:23:25.074Z","type":"user","content":[{"functionResponse":{"id":"x"}}]}"#;
        let back = r#"{"$set":{"messages":[],"lastUpdated":"2026-11-16T10:23:25.310Z"}}"#;
        assert_eq!(stands(&[prompt, call]), Some(Standing::Open));
        assert_eq!(stands(&[prompt, call, again]), Some(Standing::Open));
        assert_eq!(stands(&[prompt, call, again, result]), Some(Standing::Ran));
        assert_eq!(stands(&[prompt, call, back]), Some(Standing::Over));
        assert_eq!(stands(&["{", "no JSON", ""]), Some(Standing::Open));
    }
}
