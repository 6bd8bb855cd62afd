//! Gemini CLI's transcript: JSONL, each line written at once, and always before what follows from it: the prompt or the tools' results before the
//! request, the answer before its tools run.
//!
//! What a hook added at a prompt is a part of that message, or of the tool's result, in `<hook_context>`, with its angle brackets escaped. At a stop
//! its text is a message of its own, as it was printed. A message is written again, under its id, when its tool calls have ended: that is no new
//! answer. Nor are lines without a model, which the program wrote itself.
//!
//! `$set` with `messages` replaces the conversation: at Esc, when a request failed, at a compaction and when the session is resumed. Only the one behind the head of
//! a file says nothing, also where a process that resumes within the same minute puts a second head into it. `$rewindTo` cuts it off.

use crate::surrogates;
use baton_core::mail::Item;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

const HOOK: &str = "<hook_context>";
const SETTING: &str = "<session_context>";
const MAIL: &str = "<baton-mail ";

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Rewind {
        #[serde(rename = "$rewindTo")]
        to: String,
    },
    Set {
        #[serde(rename = "$set")]
        set: Set,
    },
    Message(Message),
    Head {
        #[serde(rename = "sessionId")]
        _session: IgnoredAny,
        #[serde(rename = "projectHash")]
        _project: IgnoredAny,
    },
}

#[derive(Deserialize)]
struct Set {
    #[serde(default)]
    messages: Option<Vec<Message>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    id: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    result: Value,
}

/// Reads a transcript from somewhere on.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// A head was read, and no messages since.
    at_head: bool,
    /// The messages so far, by id, with their text.
    messages: Vec<(String, String)>,
}

impl Reader {
    /// What one line means. A line that can't be read means nothing.
    pub(super) fn items(&mut self, line: &str) -> Vec<Item> {
        if let Ok(line) = serde_json::from_str(line) {
            return self.meaning(line);
        }
        let whole = surrogates::mended(line.as_bytes());
        let line = whole.and_then(|whole| serde_json::from_slice(&whole).ok());
        line.map(|line| self.meaning(line)).unwrap_or_default()
    }

    fn meaning(&mut self, line: Line) -> Vec<Item> {
        match line {
            Line::Head { .. } => {
                self.at_head = true;
                Vec::new()
            }
            Line::Set { set: Set { messages: Some(_) } } if std::mem::take(&mut self.at_head) => Vec::new(),
            Line::Set { set: Set { messages: Some(messages) } } => {
                self.messages = messages.iter().map(|message| (message.id.clone(), message.text())).collect();
                vec![self.replaced()]
            }
            Line::Set { .. } => Vec::new(),
            Line::Rewind { to } => {
                let from = self.messages.iter().position(|(id, _)| *id == to).unwrap_or(0);
                self.messages.truncate(from);
                vec![self.replaced()]
            }
            Line::Message(message) => {
                self.at_head = false;
                self.messages.push((message.id.clone(), message.text()));
                message.items()
            }
        }
    }

    fn replaced(&self) -> Item {
        let texts: Vec<&str> = self.messages.iter().map(|(_, text)| text.as_str()).collect();
        Item::Replaced { text: texts.join("\n") }
    }
}

impl Message {
    fn items(self) -> Vec<Item> {
        match self.kind.as_str() {
            "user" => user(self.id, &self.content),
            "gemini" if self.tool_calls.is_empty() => {
                let answer = Item::Response { id: self.id, calls: Vec::new(), request: None };
                self.model.map(|_| answer).into_iter().collect()
            }
            "gemini" => self.tool_calls.iter().flat_map(|call| results(&call.result)).collect(),
            _ => Vec::new(),
        }
    }

    /// All that the model is shown of it.
    fn text(&self) -> String {
        let mut text = texts(&self.content).collect::<Vec<_>>().join("\n");
        let of_calls = self.tool_calls.iter().flat_map(|call| responses(&call.result));
        for (_, result) in responses(&self.content).chain(of_calls) {
            text.push('\n');
            text.push_str(&result);
        }
        text
    }
}

fn user(id: String, content: &Value) -> Vec<Item> {
    let results = results(content);
    if !results.is_empty() {
        return results;
    }
    let mut items = Vec::new();
    let mut by_person = false;
    for text in texts(content) {
        let (hook, rest) = match text.strip_prefix(HOOK).and_then(|text| text.split_once("</hook_context>")) {
            Some((hook, rest)) => (hook, rest.trim()),
            // What a stop hook said, as the next prompt.
            None if text.starts_with(MAIL) => (text, ""),
            None => ("", text),
        };
        if !hook.is_empty() {
            items.push(Item::Injected { text: hook.to_owned() });
        }
        by_person |= !rest.is_empty() && !rest.starts_with(SETTING);
    }
    if by_person {
        items.insert(0, Item::Prompt { id });
    }
    items
}

/// The results of tools in a list of parts, each with what a hook added to it.
fn results(parts: &Value) -> Vec<Item> {
    let mut items = Vec::new();
    for (call, text) in responses(parts) {
        if let Some(at) = text.rfind(HOOK) {
            items.push(Item::Injected { text: text[at + HOOK.len()..].to_owned() });
        }
        items.push(Item::ToolResult { call, text });
    }
    items
}

/// The calls that a list of parts answers, with the answers' text.
fn responses(parts: &Value) -> impl Iterator<Item = (String, String)> {
    parts.as_array().into_iter().flatten().filter_map(|part| {
        let answer = part.get("functionResponse")?;
        let values = answer.get("response")?.as_object()?.values();
        let texts: Vec<String> =
            values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
        Some((answer.get("id")?.as_str()?.to_owned(), texts.join("\n")))
    })
}

/// The texts of a content: a string, or the text parts of a list.
fn texts(content: &Value) -> impl Iterator<Item = &str> {
    let parts = content.as_array().into_iter().flatten();
    content.as_str().into_iter().chain(parts.filter_map(|part| part.get("text")?.as_str()))
}
