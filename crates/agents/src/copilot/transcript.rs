//! Copilot's `events.jsonl`: one event per line, in order, written when nothing has happened for
//! 100 ms. During much activity it may be a whole turn behind.
//!
//! The text of a hook at a prompt is in the `transformedContent` of its `user.message`; after a
//! tool, it is at the end of the result in `tool.execution_complete`. Our text at a stop becomes
//! the `content` of a later `user.message`, not always of the next: what the user typed meanwhile
//! goes first. Raw hook output (`hook.end`) does not count.
//!
//! A hook's payload does not name the tool call. But `hook.start` repeats its time, between the
//! response with the call and the call's result. So the reader takes it for another part of that
//! response, and the time for the call's id. The time is also the prompt's id.
//!
//! A finished compaction is a `session.compaction_complete`, which says whether there is a summary
//! now.
//!
//! When the user takes a prompt back (Esc, Esc), its lines are removed from the file, with the text
//! of its hook.
//!
//! Lines with an `agentId` belong to a subagent. An `assistant.message` without a model was made up
//! by the program.

use super::{is_continuation, moment};
use crate::surrogates;
use baton_core::mail::Item;
use baton_core::mail::proof::MARK;
use serde::Deserialize;
use serde_json::Value;

/// The text between a tool's result and what hooks added to it.
const GUIDANCE: &str = "Additional guidance from postToolUse hooks:\n";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    data: Data,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    transformed_content: Option<String>,
    #[serde(default)]
    message_id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    tool_requests: Vec<ToolRequest>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    hook_type: Option<String>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    success: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolRequest {
    #[serde(default)]
    tool_call_id: Option<String>,
}

/// Reads a transcript, from any line on.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The last response.
    response: Option<String>,
    /// The prompt whose hook has run, until its message appears.
    prompt: Option<String>,
    /// Our text at a stop, until it becomes a message.
    said_at_stop: Option<String>,
}

impl Reader {
    /// The items of one line. A line that can't be read has none.
    pub(super) fn items(&mut self, line: &str) -> Vec<Item> {
        if let Ok(line) = serde_json::from_str(line) {
            return self.meaning(line);
        }
        let whole = surrogates::mended(line.as_bytes());
        let line = whole.and_then(|whole| serde_json::from_slice(&whole).ok());
        line.map_or_else(Vec::new, |line| self.meaning(line))
    }

    fn meaning(&mut self, line: Line) -> Vec<Item> {
        if line.agent_id.is_some() {
            return Vec::new();
        }
        let data = line.data;
        match (line.kind.as_str(), data.hook_type.as_deref()) {
            ("user.message", _) => self.message(&data),
            ("assistant.message", _) => self.answer(data).into_iter().collect(),
            ("tool.execution_complete", _) => result(data),
            ("hook.start", Some("postToolUse")) => self.after_tool(&data.input),
            ("hook.start", Some("userPromptSubmitted")) => {
                let by_person = !data.input["prompt"].as_str().is_some_and(is_continuation);
                self.prompt = moment(&data.input["timestamp"]).filter(|_| by_person);
                Vec::new()
            }
            ("hook.end", Some("agentStop")) => {
                let reason = data.output["reason"].as_str().filter(|reason| reason.contains(MARK));
                if let Some(reason) = reason {
                    self.said_at_stop = Some(reason.to_owned());
                }
                Vec::new()
            }
            ("session.compaction_complete", _) if data.success => vec![Item::Summarized],
            _ => Vec::new(),
        }
    }

    fn message(&mut self, data: &Data) -> Vec<Item> {
        let content = data.content.as_str().unwrap_or_default();
        if self.said_at_stop.as_deref() == Some(content) {
            self.said_at_stop = None;
            return vec![Item::Injected { text: content.to_owned() }];
        }
        let mut items = Vec::new();
        if let Some(whole) = &data.transformed_content {
            // Without the user's own text.
            items.push(Item::Injected { text: whole.replacen(content, "", 1) });
        }
        // This item would mean that the last turn is over and takes nothing more. That is not so
        // while a message of ours waits behind it.
        let prompt = self.prompt.take().filter(|_| self.said_at_stop.is_none());
        items.extend(prompt.map(|id| Item::Prompt { id }));
        items
    }

    fn answer(&mut self, data: Data) -> Option<Item> {
        data.model?;
        self.response = data.message_id;
        let calls = data.tool_requests.into_iter().filter_map(|request| request.tool_call_id).collect();
        Some(Item::Response { id: self.response.clone()?, calls, request: None })
    }

    fn after_tool(&self, input: &Value) -> Vec<Item> {
        let Some(call) = moment(&input["timestamp"]) else { return Vec::new() };
        let of = self.response.clone();
        let piece = of.map(|id| Item::Response { id, calls: vec![call.clone()], request: None });
        piece.into_iter().chain([Item::ToolResult { call, text: String::new() }]).collect()
    }
}

/// The result of a tool, and what hooks added to it.
fn result(data: Data) -> Vec<Item> {
    let text = data.result["content"].as_str().unwrap_or_default();
    let (said, added) = match text.rsplit_once(GUIDANCE) {
        Some((said, added)) => (said, Some(added)),
        None => (text, None),
    };
    let result = data.tool_call_id.map(|call| Item::ToolResult { call, text: said.to_owned() });
    let added = added.map(|text| Item::Injected { text: text.to_owned() });
    result.into_iter().chain(added).collect()
}
