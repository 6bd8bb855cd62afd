//! OpenAI Chat Completions, as OpenCode, Copilot CLI and Pi speak it.

use std::io;
use std::thread;

use serde_json::{Value, json};

use super::http::Reply;
use super::request::{Kind, Origin, Role, Said, Source};
use super::script::Part;
use crate::agents::Agent;

/// What Pi and OpenCode write to a model that should summarize.
const SUMMARIZER: &str = "context summarization";

/// Everything in the conversation.
pub(super) fn said(body: &Value) -> Vec<Said> {
    let mut said = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = match message["role"].as_str() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some("developer") => Role::Developer,
            _ => Role::User,
        };
        let texts = texts(&message["content"]);
        if message["role"] == "tool" {
            let source = Source::ToolResult { id: text(&message["tool_call_id"]) };
            said.push(Said { role, source, text: texts.join("\n") });
        } else {
            said.extend(texts.into_iter().map(|text| Said { role, source: Source::Text, text }));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let source = Source::ToolCall { id: text(&call["id"]), name: text(&call["function"]["name"]) };
            said.push(Said { role, source, text: text(&call["function"]["arguments"]) });
        }
    }
    said
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).map(ToOwned::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Who sent the request, and why.
pub(super) fn origin<'a>(header: impl Fn(&str) -> Option<&'a str>, body: &Value) -> Origin {
    let kind = match body["tools"].as_array() {
        Some(tools) if !tools.is_empty() => Kind::Main,
        _ if text(&body["messages"][0]["content"]).contains(SUMMARIZER) => Kind::Compaction,
        _ => Kind::Side,
    };
    let session = header("x-session-id").unwrap_or_default().to_owned();
    Origin { kind, session, subagent: None }
}

/// Writes a response, streamed if the request wants it so.
pub(super) fn answer(
    reply: &mut Reply,
    agent: Agent,
    request: &Value,
    parts: &[Part],
    mut id: impl FnMut() -> usize,
) -> io::Result<()> {
    let completion = format!("chatcmpl-{:06}", id());
    let calls = parts.iter().any(|part| !matches!(part, Part::Text(_) | Part::Pause(_) | Part::Tokens(_)));
    let finish = if calls { "tool_calls" } else { "stop" };
    let tokens = parts.iter().find_map(|part| match part {
        Part::Tokens(tokens) => Some(*tokens),
        _ => None,
    });
    let prompt = tokens.unwrap_or(15) - 5;
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5});
    let head = |object: &str, choice: Value| json!({"id": completion, "object": object, "created": 1, "model": request["model"], "choices": [choice]});
    if request["stream"] != json!(true) {
        let mut message = json!({"role": "assistant", "content": null});
        let mut list = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) => message["content"] = text.as_str().into(),
                Part::Pause(time) => thread::sleep(*time),
                Part::Tokens(_) => {}
                part => list.push(call(agent, part, id())),
            }
        }
        if !list.is_empty() {
            message["tool_calls"] = list.into();
        }
        let mut whole =
            head("chat.completion", json!({"index": 0, "message": message, "finish_reason": finish}));
        whole["usage"] = usage;
        return reply.json(200, &whole);
    }
    reply.start_events()?;
    let chunk = |delta: Value, finish: Value| {
        head("chat.completion.chunk", json!({"index": 0, "delta": delta, "finish_reason": finish}))
    };
    reply.data(&chunk(json!({"role": "assistant", "content": ""}), Value::Null))?;
    let mut index = 0;
    for part in parts {
        match part {
            Part::Text(text) => reply.data(&chunk(json!({"content": text}), Value::Null))?,
            Part::Pause(time) => thread::sleep(*time),
            Part::Tokens(_) => {}
            part => {
                let mut call = call(agent, part, id());
                call["index"] = index.into();
                reply.data(&chunk(json!({"tool_calls": [call]}), Value::Null))?;
                index += 1;
            }
        }
    }
    let mut last = chunk(json!({}), finish.into());
    last["usage"] = usage;
    reply.data(&last)?;
    reply.done()
}

fn call(agent: Agent, part: &Part, id: usize) -> Value {
    let (name, input) = agent.tool_call(part);
    json!({
        "id": format!("call_{id:06}"), "type": "function",
        "function": {"name": name, "arguments": input.to_string()},
    })
}
