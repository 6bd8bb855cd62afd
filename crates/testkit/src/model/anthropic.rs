//! Anthropic Messages, as Claude Code speaks it.

use std::io;
use std::thread;

use serde_json::{Value, json};

use super::http::Reply;
use super::request::{Kind, Origin, Role, Said, Source};
use super::script::Part;
use crate::agents::Agent;

/// How Claude Code asks for a summary.
const COMPACTION: &str = "CRITICAL: Respond with TEXT ONLY";

/// Everything in the conversation.
pub(super) fn said(body: &Value) -> Vec<Said> {
    let mut said = Vec::new();
    collect(Role::System, &body["system"], &mut said);
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = match message["role"].as_str() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            _ => Role::User,
        };
        collect(role, &message["content"], &mut said);
    }
    said
}

fn collect(role: Role, content: &Value, said: &mut Vec<Said>) {
    let text = |text: &str| Said { role, source: Source::Text, text: text.to_owned() };
    if let Some(content) = content.as_str() {
        said.push(text(content));
    }
    for block in content.as_array().into_iter().flatten() {
        let field = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => said.push(text(&field("text"))),
            Some("tool_use") => {
                let source = Source::ToolCall { id: field("id"), name: field("name") };
                said.push(Said { role, source, text: block["input"].to_string() });
            }
            Some("tool_result") => {
                let mut parts = Vec::new();
                collect(role, &block["content"], &mut parts);
                let text = parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n");
                said.push(Said { role, source: Source::ToolResult { id: field("tool_use_id") }, text });
            }
            _ => {}
        }
    }
}

/// Who sent the request, and why.
pub(super) fn origin<'a>(header: impl Fn(&str) -> Option<&'a str>, body: &Value, said: &[Said]) -> Origin {
    let subagent = header("x-claude-code-agent-id").map(ToOwned::to_owned);
    let asks_for_summary = || {
        let mut texts = said.iter().filter(|said| said.role == Role::User && said.source == Source::Text);
        texts.next_back().is_some_and(|said| said.text.contains(COMPACTION))
    };
    let kind = if body["tools"].as_array().is_none_or(Vec::is_empty) {
        Kind::Side
    } else if asks_for_summary() {
        Kind::Compaction
    } else if subagent.is_some() {
        Kind::Subagent
    } else {
        Kind::Main
    };
    let session = header("x-claude-code-session-id").unwrap_or_default().to_owned();
    Origin { kind, session, subagent }
}

/// Writes a response, streamed if the request wants it so.
pub(super) fn answer(
    reply: &mut Reply,
    request: &Value,
    parts: &[Part],
    mut id: impl FnMut() -> usize,
) -> io::Result<()> {
    let stop = if parts.iter().any(|part| block(part, 0).is_some_and(|b| b["type"] == "tool_use")) {
        "tool_use"
    } else {
        "end_turn"
    };
    let mut message = json!({
        "id": format!("msg_{:06}", id()), "type": "message", "role": "assistant",
        "model": request["model"], "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    });
    if request["stream"] != json!(true) {
        message["content"] = parts.iter().filter_map(|part| block(part, id())).collect();
        message["stop_reason"] = stop.into();
        return reply.json(200, &message);
    }
    reply.start_events()?;
    reply.event("message_start", json!({"message": message}))?;
    let mut index = 0;
    for part in parts {
        if let Part::Pause(time) = part {
            thread::sleep(*time);
        }
        let Some(whole) = block(part, id()) else { continue };
        let (empty, delta) = if whole["type"] == "text" {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": whole["text"]}))
        } else {
            let mut empty = whole.clone();
            empty["input"] = json!({});
            let input = whole["input"].to_string();
            (empty, json!({"type": "input_json_delta", "partial_json": input}))
        };
        reply.event("content_block_start", json!({"index": index, "content_block": empty}))?;
        reply.event("content_block_delta", json!({"index": index, "delta": delta}))?;
        reply.event("content_block_stop", json!({"index": index}))?;
        index += 1;
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    reply.event("message_delta", json!({"delta": delta, "usage": {"output_tokens": 5}}))?;
    reply.event("message_stop", json!({}))
}

fn block(part: &Part, id: usize) -> Option<Value> {
    Some(match part {
        Part::Pause(_) | Part::Tokens(_) => return None,
        Part::Text(text) => json!({"type": "text", "text": text}),
        call => {
            let (name, input) = Agent::Claude.tool_call(call);
            json!({"type": "tool_use", "id": format!("toolu_{id:06}"), "name": name, "input": input})
        }
    })
}
