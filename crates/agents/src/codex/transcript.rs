//! Codex's rollout file: JSONL, written within milliseconds.
//!
//! The text of a hook is a message of role `developer`; at a stop, of role `user`, as the escaped
//! text of `<hook_prompt>` elements. Responses have no id, so the reader counts them: what the
//! model says after a tool's result or after a message to it is a new response. What the model says
//! to compact the conversation (`compaction_output`) is not an answer in it.

use crate::surrogates;
use baton_core::mail::Item;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    payload: Payload,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize)]
struct Payload {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    turn_id: Option<String>,
    #[serde(default)]
    replacement_history: Value,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    compaction_output: bool,
}

/// Reads a rollout, from any line on.
#[derive(Debug, Default)]
pub(super) struct Reader {
    response: u64,
    /// Whether the model got something since it last spoke.
    spoken_to: bool,
}

impl Reader {
    /// The items of one line. A line that can't be read has none.
    pub(super) fn items(&mut self, line: &str) -> Vec<Item> {
        if let Ok(line) = serde_json::from_str(line) {
            return self.meaning(line).into_iter().collect();
        }
        let whole = surrogates::mended(line.as_bytes());
        let line = whole.and_then(|whole| serde_json::from_slice(&whole).ok());
        line.and_then(|line| self.meaning(line)).into_iter().collect()
    }

    fn meaning(&mut self, line: Line) -> Option<Item> {
        match line.kind.as_str() {
            "compacted" => Some(Item::Replaced { text: line.payload.replacement_history.to_string() }),
            "turn_context" => line.payload.turn_id.map(|id| Item::Prompt { id }),
            "response_item" if !line.metadata.is_some_and(|metadata| metadata.compaction_output) => {
                self.response_item(line.payload)
            }
            _ => None,
        }
    }

    fn response_item(&mut self, payload: Payload) -> Option<Item> {
        match (payload.kind.as_str(), payload.role.as_str()) {
            ("message", "developer") => Some(Item::Injected { text: text_of(&payload.content) }),
            ("message", "user") => {
                self.spoken_to = true;
                // Its text is escaped; a mark is not.
                let text = text_of(&payload.content);
                text.starts_with("<hook_prompt").then_some(Item::Injected { text })
            }
            ("function_call_output" | "custom_tool_call_output" | "tool_search_output", _) => {
                self.spoken_to = true;
                Some(Item::ToolResult { call: payload.call_id?, text: text_of(&payload.output) })
            }
            ("message", "assistant")
            | (
                "reasoning"
                | "function_call"
                | "custom_tool_call"
                | "local_shell_call"
                | "web_search_call"
                | "tool_search_call"
                | "image_generation_call",
                _,
            ) => {
                if std::mem::take(&mut self.spoken_to) {
                    self.response += 1;
                }
                Some(Item::Response {
                    id: self.response.to_string(),
                    calls: payload.call_id.into_iter().collect(),
                    request: None,
                })
            }
            _ => None,
        }
    }
}

/// All text of a content or output value.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Object(map) => map.values().map(text_of).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
