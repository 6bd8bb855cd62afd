//! Claude Code's transcript: JSONL, one line per content block, written about 100 ms late but in
//! order.
//!
//! The text of a hook is in an `attachment` of type `hook_additional_context`. The raw output of
//! the same hook is in a `hook_success` line, whether it was used or not. That line only proves
//! that the hook ran.
//!
//! Not every `assistant` line is an answer in this conversation. The program writes some itself
//! (errors, "No response requested." after a resume). A fork begins with copies of its parent's
//! lines, whose responses answered the parent: they name a request (`requestRef`) that this file
//! does not record.
//!
//! Not every `user` line of a turn is its prompt: the summary of a compaction, the note that the
//! user interrupted, and commands that the program runs itself have a `promptId` too. `last-prompt`
//! lines prove nothing: the line about a prompt that was taken back comes after the next prompt.
//! What was taken back with that prompt is missing in the next request.

use super::requests::Requests;
use crate::surrogates;
use baton_core::mail::Item;
use serde::Deserialize;
use serde::de::IgnoredAny;
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
    is_compact_summary: bool,
    #[serde(default)]
    is_api_error_message: bool,
    #[serde(borrow, default)]
    prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    request_ref: Option<Cow<'a, str>>,
    #[serde(default)]
    forked_from: Option<IgnoredAny>,
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
    model: Option<String>,
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

/// The model in lines that the program wrote itself.
const SYNTHETIC_MODEL: &str = "<synthetic>";
/// How user lines begin that are not prompts: notes about an interruption, and commands that never
/// reach the model.
const NO_PROMPT_STARTS: [&str; 3] = ["[Request interrupted by user", "<command-name>", "<local-command-"];

/// Reads a transcript, from any line on.
#[derive(Debug, Default)]
pub(super) struct Reader {
    requests: Requests,
}

impl Reader {
    /// The items of one line. A line that can't be read has none.
    pub(super) fn items(&mut self, line: &str) -> Vec<Item> {
        if self.requests.take(line) {
            return Vec::new();
        }
        if let Ok(line) = serde_json::from_str(line) {
            return self.meaning(line);
        }
        match surrogates::mended(line.as_bytes()) {
            Some(whole) => {
                serde_json::from_slice(&whole).map_or_else(|_| Vec::new(), |line| self.meaning(line))
            }
            None => Vec::new(),
        }
    }

    fn meaning(&self, line: Line<'_>) -> Vec<Item> {
        if line.is_sidechain {
            return Vec::new();
        }
        match line.kind.as_ref() {
            "user" => user(line),
            "assistant" => self.response(line).into_iter().collect(),
            "attachment" => line.attachment.and_then(attachment).into_iter().collect(),
            "system" if line.subtype.as_deref() == Some("stop_hook_summary") => vec![Item::StopHandled],
            _ => Vec::new(),
        }
    }

    fn response(&self, line: Line<'_>) -> Option<Item> {
        let message = line.message?;
        let by_program = line.is_api_error_message || message.model.as_deref() == Some(SYNTHETIC_MODEL);
        if by_program || line.forked_from.is_some() {
            return None;
        }
        let request = match line.request_ref {
            Some(id) => Some(self.requests.marks(&id)?),
            None => None,
        };
        let calls = blocks(&message.content, "tool_use")
            .filter_map(|block| Some(block.get("id")?.as_str()?.to_owned()))
            .collect();
        Some(Item::Response { id: message.id?, calls, request })
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
        Some(id)
            if results.is_empty()
                && !line.is_meta
                && !line.is_compact_summary
                && !is_note(&message.content) =>
        {
            vec![Item::Prompt { id: id.into_owned() }]
        }
        _ => results,
    }
}

fn is_note(content: &Value) -> bool {
    let text = content.as_str().or_else(|| content.pointer("/0/text")?.as_str());
    text.is_some_and(|text| NO_PROMPT_STARTS.iter().any(|note| text.starts_with(note)))
}

fn attachment(attachment: Attachment) -> Option<Item> {
    match attachment.kind.as_str() {
        "hook_additional_context" => Some(Item::Injected { text: text_of(&attachment.content) }),
        "hook_success" => Some(Item::HookRan { output: attachment.stdout.unwrap_or_default() }),
        _ => None,
    }
}

fn blocks<'a>(content: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    content
        .as_array()
        .into_iter()
        .flatten()
        .filter(move |block| block.get("type").and_then(Value::as_str) == Some(kind))
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
