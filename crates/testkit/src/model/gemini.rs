//! Google's generateContent, as Gemini CLI speaks it.

use std::io;
use std::thread;

use serde_json::{Value, json};

use super::http::Reply;
use super::request::{Kind, Origin, Role, Said, Source};
use super::script::Part;
use crate::agents::Agent;

/// Only subagents are offered this tool.
const SUBAGENTS_TOOL: &str = "complete_task";

/// A text that only the instructions of a compaction contain.
const COMPACTION: &str = "<state_snapshot>";

/// Everything in the conversation.
pub(super) fn said(body: &Value) -> Vec<Said> {
    let instructions = parts(&body["systemInstruction"]);
    let mut said: Vec<Said> = instructions.filter_map(|part| piece(Role::System, part)).collect();
    for content in body["contents"].as_array().into_iter().flatten() {
        let role = if content["role"] == "model" { Role::Assistant } else { Role::User };
        said.extend(parts(content).filter_map(|part| piece(role, part)));
    }
    said
}

fn parts(content: &Value) -> impl Iterator<Item = &Value> {
    content["parts"].as_array().into_iter().flatten()
}

fn piece(role: Role, part: &Value) -> Option<Said> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(text) = part["text"].as_str() {
        return Some(Said { role, source: Source::Text, text: text.to_owned() });
    }
    if let Some(call) = part.get("functionCall") {
        let source = Source::ToolCall { id: text(&call["id"]), name: text(&call["name"]) };
        return Some(Said { role, source, text: call["args"].to_string() });
    }
    let result = part.get("functionResponse")?;
    let response = &result["response"];
    let shown = response["output"].as_str().or_else(|| response["error"].as_str());
    let source = Source::ToolResult { id: text(&result["id"]) };
    Some(Said { role, source, text: shown.map_or_else(|| response.to_string(), ToOwned::to_owned) })
}

/// Who sent the request, and why. Nothing in it names the session.
pub(super) fn origin(body: &Value, said: &[Said]) -> Origin {
    let tools = body["tools"].as_array().into_iter().flatten();
    let mut names = tools.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
    let compacts = || said.iter().any(|said| said.role == Role::System && said.text.contains(COMPACTION));
    let (kind, subagent) = match names.next() {
        None if compacts() => (Kind::Compaction, None),
        None => (Kind::Side, None),
        Some(first)
            if first["name"] == SUBAGENTS_TOOL || names.any(|tool| tool["name"] == SUBAGENTS_TOOL) =>
        {
            (Kind::Subagent, Some("subagent".to_owned()))
        }
        Some(_) => (Kind::Main, None),
    };
    Origin { kind, session: String::new(), subagent }
}

/// Writes a response, streamed if the request wants it so.
pub(super) fn answer(reply: &mut Reply, agent: Agent, request: &Value, said: &[Part]) -> io::Result<()> {
    let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15});
    let chunk = |parts: Vec<Value>, end: bool| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if end {
            candidate["finishReason"] = "STOP".into();
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"})
    };
    if request["stream"] != json!(true) {
        let parts = said.iter().filter_map(|part| spoken(agent, part)).collect();
        return reply.json(200, &chunk(parts, true));
    }
    reply.start_events()?;
    for part in said {
        if let Some(part) = spoken(agent, part) {
            reply.data(&chunk(vec![part], false))?;
        }
    }
    reply.data(&chunk(vec![json!({"text": ""})], true))
}

/// A part in the protocol's words; nothing for a pause, which is made here.
fn spoken(agent: Agent, part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => Some(json!({"text": text})),
        Part::Tokens(_) => None,
        Part::Pause(time) => {
            thread::sleep(*time);
            None
        }
        part => {
            let (name, args) = agent.tool_call(part);
            Some(json!({"functionCall": {"name": name, "args": args}}))
        }
    }
}
