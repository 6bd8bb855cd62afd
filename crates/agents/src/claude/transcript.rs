//! Claude Code's transcript: JSONL, one line per content block, written about 100 ms late but in order.
//!
//! What a hook added stands in an `attachment` of type `hook_additional_context`. The raw output of the same hook stands in a
//! `hook_success` line, taken or not, and counts for nothing but that the hook ran.

use baton_core::mail::Item;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_api_error_message: bool,
    #[serde(borrow, default)]
    prompt_id: Option<Cow<'a, str>>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    attachment: Option<Attachment>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    stdout: Option<String>,
}

/// What one line means. A line that can't be read means nothing.
pub(super) fn items(line: &str) -> Vec<Item> {
    let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return Vec::new() };
    if line.is_sidechain {
        return Vec::new();
    }
    match line.kind.as_ref() {
        "user" => user(line),
        "assistant" if !line.is_api_error_message => line.message.and_then(response).into_iter().collect(),
        "attachment" => line.attachment.and_then(attachment).into_iter().collect(),
        "system" if line.subtype.as_deref() == Some("stop_hook_summary") => vec![Item::StopHandled],
        _ => Vec::new(),
    }
}

fn user(line: Line<'_>) -> Vec<Item> {
    let Some(message) = line.message else { return Vec::new() };
    let results: Vec<Item> = blocks(&message.content, "tool_result")
        .filter_map(|block| {
            let call = block.get("tool_use_id")?.as_str()?.to_owned();
            Some(Item::ToolResult { call, text: text_of(block.get("content")?) })
        })
        .collect();
    match line.prompt_id {
        Some(id) if results.is_empty() && !line.is_meta => {
            vec![Item::Prompt { id: id.into_owned() }]
        }
        _ => results,
    }
}

fn response(message: Message) -> Option<Item> {
    let calls = blocks(&message.content, "tool_use").filter_map(|block| Some(block.get("id")?.as_str()?.to_owned())).collect();
    Some(Item::Response { id: message.id?, calls, request: None })
}

fn attachment(attachment: Attachment) -> Option<Item> {
    match attachment.kind.as_str() {
        "hook_additional_context" => Some(Item::Injected { text: text_of(&attachment.content) }),
        "hook_success" => Some(Item::HookRan { output: attachment.stdout.unwrap_or_default() }),
        _ => None,
    }
}

fn blocks<'a>(content: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    content.as_array().into_iter().flatten().filter(move |block| block.get("type").and_then(Value::as_str) == Some(kind))
}

/// All text of a content value: a string, or a list of strings and text blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part.get("text").and_then(Value::as_str)))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}
