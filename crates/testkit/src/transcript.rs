//! What the agents left on disk about their conversations.
//!
//! Only reads. A last line that is not complete yet is left out, as any reader of a growing file
//! must. [`Context`] is the text that a hook added to the conversation, read from the one place in
//! each transcript that proves it. The raw output of hooks is recorded too, but proves nothing.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Text that a hook put into a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Claude Code: the hook's event. Codex: the role it got, as it does not record the event.
    pub place: String,
    /// The text.
    pub text: String,
}

/// The complete lines of a JSONL file; none if there is no such file.
pub fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read(path).unwrap_or_default();
    let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = text[..complete].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a transcript line is JSON")).collect()
}

/// What hooks put into a Claude Code conversation.
pub fn claude_contexts(lines: &[Value]) -> Vec<Context> {
    let mut contexts = Vec::new();
    for line in lines {
        let attachment = &line["attachment"];
        if attachment["type"] == "hook_additional_context" {
            let place = attachment["hookEvent"].as_str().unwrap_or_default();
            for text in attachment["content"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                contexts.push(Context { place: place.to_owned(), text: text.to_owned() });
            }
        }
        let feedback =
            line["message"]["content"].as_str().and_then(|c| c.strip_prefix("Stop hook feedback:\n"));
        if let (Some(text), true) = (feedback, line["isMeta"] == true) {
            contexts.push(Context { place: "Stop".to_owned(), text: text.to_owned() });
        }
    }
    contexts
}

/// What hooks put into a Codex conversation.
pub fn codex_contexts(lines: &[Value]) -> Vec<Context> {
    let mut contexts = Vec::new();
    for payload in lines.iter().filter(|line| line["type"] == "response_item").map(|line| &line["payload"]) {
        let role = payload["role"].as_str().unwrap_or_default();
        let kinds = &payload["internal_chat_message_metadata_passthrough"]["content_item_kinds"];
        for (index, item) in payload["content"].as_array().into_iter().flatten().enumerate() {
            let text = item["text"].as_str().unwrap_or_default();
            let by_hook = kinds[index] == "hooks.additional_context"
                || (role == "user" && text.starts_with("<hook_prompt "));
            if by_hook {
                contexts.push(Context { place: role.to_owned(), text: text.to_owned() });
            }
        }
    }
    contexts
}

/// All files below `folder` whose names end with `suffix`, oldest first.
pub fn files_below(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unfinished_last_line_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        fs::write(&path, "{\"a\":1}\n{\"b\":").unwrap();
        assert_eq!(lines(&path), [json!({"a": 1})]);
        assert!(lines(&dir.path().join("none")).is_empty());
    }

    #[test]
    fn raw_hook_output_is_no_context() {
        let lines = [
            json!({"type": "attachment", "attachment": {"type": "hook_success", "stdout": "N", "hookEvent": "Stop"}}),
            json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["N"], "hookEvent": "Stop"}}),
            json!({"type": "user", "isMeta": true, "message": {"content": "Stop hook feedback:\nM"}}),
            json!({"type": "user", "message": {"content": "Stop hook feedback:\nsaid by the person"}}),
        ];
        let found = claude_contexts(&lines).into_iter().map(|context| context.text).collect::<Vec<_>>();
        assert_eq!(found, ["N", "M"]);
    }

    #[test]
    fn codex_contexts_are_told_from_its_own_instructions() {
        let item = |role: &str, text: &str, kind: &str| {
            json!({"type": "response_item", "payload": {"type": "message", "role": role,
                "content": [{"type": "input_text", "text": text}],
                "internal_chat_message_metadata_passthrough": {"content_item_kinds": [kind]}}})
        };
        let lines = [
            item("developer", "instructions", "other"),
            item("developer", "N", "hooks.additional_context"),
            item("user", "<hook_prompt hook_run_id=\"x\">M</hook_prompt>", "unknown"),
            item("user", "prompt", "unknown"),
        ];
        assert_eq!(codex_contexts(&lines).len(), 2);
    }
}
