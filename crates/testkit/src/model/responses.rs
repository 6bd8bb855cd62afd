//! OpenAI Responses, as Codex speaks it.

use std::io;
use std::thread;

use serde_json::{Value, json};

use super::http::Reply;
use super::request::{Kind, Origin, Role, Said, Source};
use super::script::Part;
use crate::agents::Agent;

/// Everything in the conversation.
pub(super) fn said(body: &Value) -> Vec<Said> {
    let mut said = Vec::new();
    if let Some(text) = body["instructions"].as_str() {
        said.push(Said { role: Role::System, source: Source::Text, text: text.to_owned() });
    }
    for item in body["input"].as_array().into_iter().flatten() {
        let field = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let role = match item["role"].as_str() {
            Some("assistant") => Role::Assistant,
            Some("developer") => Role::Developer,
            Some("system") => Role::System,
            _ => Role::User,
        };
        match item["type"].as_str() {
            Some("function_call" | "custom_tool_call") => {
                let source = Source::ToolCall { id: field("call_id"), name: field("name") };
                let text = field(if item["arguments"].is_null() { "input" } else { "arguments" });
                said.push(Said { role: Role::Assistant, source, text });
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                let source = Source::ToolResult { id: field("call_id") };
                said.push(Said { role: Role::User, source, text: text_of(&item["output"]).join("\n") });
            }
            Some("message") | None => said.extend(text_of(&item["content"]).into_iter().map(|text| Said {
                role,
                source: Source::Text,
                text,
            })),
            _ => {}
        }
    }
    said
}

fn text_of(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).map(ToOwned::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Who sent the request, and why: Codex says so itself.
pub(super) fn origin<'a>(header: impl Fn(&str) -> Option<&'a str>, body: &Value) -> Origin {
    let metadata = &body["client_metadata"];
    let turn = metadata["x-codex-turn-metadata"].as_str().or_else(|| header("x-codex-turn-metadata"));
    let turn: Value = turn.and_then(|turn| serde_json::from_str(turn).ok()).unwrap_or_default();
    let id = |name: &str| turn[name].as_str().or(metadata[name].as_str()).unwrap_or_default().to_owned();
    let (session, thread) = (id("session_id"), id("thread_id"));
    let kind = match (turn["thread_source"].as_str(), turn["request_kind"].as_str()) {
        (_, Some("compaction")) => Kind::Compaction,
        (Some("subagent"), _) => Kind::Subagent,
        (Some("user") | None, _) => Kind::Main,
        (Some(_), _) => Kind::Side,
    };
    let subagent = (thread != session).then_some(thread);
    Origin { kind, session, subagent }
}

/// Streams a response.
pub(super) fn answer(reply: &mut Reply, parts: &[Part], mut id: impl FnMut() -> usize) -> io::Result<()> {
    let response = format!("resp_{:06}", id());
    reply.start_events()?;
    reply.event("response.created", json!({"response": {"id": response}}))?;
    let mut index = 0;
    for part in parts {
        if let Part::Pause(time) = part {
            thread::sleep(*time);
        }
        let Some(item) = item(part, id()) else { continue };
        reply.event("response.output_item.added", json!({"output_index": index, "item": item}))?;
        reply.event("response.output_item.done", json!({"output_index": index, "item": item}))?;
        index += 1;
    }
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": null,
        "output_tokens": 5, "output_tokens_details": null, "total_tokens": 15,
    });
    reply.event("response.completed", json!({"response": {"id": response, "usage": usage}}))
}

fn item(part: &Part, id: usize) -> Option<Value> {
    let call = |name: &str, input: &Value| {
        json!({
            "type": "function_call", "id": format!("fc_{id:06}"), "call_id": format!("call_{id:06}"),
            "name": name, "arguments": input.to_string(),
        })
    };
    Some(match part {
        Part::Text(text) => json!({
            "type": "message", "id": format!("msg_{id:06}"), "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
        }),
        // `namespace.tool` for tools that Codex groups, such as `multi_agent_v1.spawn_agent`.
        Part::Tool { name, input } => match name.split_once('.') {
            Some((namespace, name)) => in_namespace(call(name, input), namespace),
            None => call(name, input),
        },
        Part::Mcp { server, tool, input } => in_namespace(call(tool, input), &format!("mcp__{server}")),
        Part::Shell(_) | Part::Read(_) | Part::Write { .. } => {
            let (name, input) = Agent::Codex.tool_call(part);
            call(&name, &input)
        }
        Part::Pause(_) | Part::Tokens(_) => return None,
    })
}

fn in_namespace(mut call: Value, namespace: &str) -> Value {
    call["namespace"] = namespace.into();
    call
}
