//! Gemini CLI's transcript: JSONL. Each line is written at once, and always before what follows
//! from it: the prompt or the tools' results before the request, the answer before its tools run.
//!
//! The text of a hook at a prompt is a part of that message, or of the tool's result, in
//! `<hook_context>`, with escaped angle brackets. At a stop, the text is a separate message,
//! unchanged. A message is written again, with the same id, when its tool calls have ended: that is
//! not a new answer. Lines without a model are not answers either: the program wrote them itself.
//!
//! `$set` with `messages` replaces the conversation: at Esc, after a failed request, at a
//! compaction and when the session is resumed. Only the `$set` after the head of a file means
//! nothing. A process that resumes within the same minute may write a second head. `$rewindTo` cuts
//! the conversation off.

use crate::surrogates;
use baton_core::mail::Item;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

const HOOK_TAG: &str = "<hook_context>";
const SESSION_TAG: &str = "<session_context>";
const MAIL_TAG: &str = "<baton-mail ";

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
    tool_calls: Vec<RecordedCall>,
}

#[derive(Deserialize)]
struct RecordedCall {
    #[serde(default)]
    result: Value,
}

/// Reads a transcript, from any line on.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// A head was read, but no messages since.
    at_head: bool,
    /// The messages so far, by id, with their text.
    messages: Vec<(String, String)>,
}

impl Reader {
    /// The items of one line. A line that can't be read has none.
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

    /// Everything of it that the model sees.
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
        let (hook, rest) =
            match text.strip_prefix(HOOK_TAG).and_then(|text| text.split_once("</hook_context>")) {
                Some((hook, rest)) => (hook, rest.trim()),
                // The text of a stop hook, as the next prompt.
                None if text.starts_with(MAIL_TAG) => (text, ""),
                None => ("", text),
            };
        if !hook.is_empty() {
            items.push(Item::Injected { text: hook.to_owned() });
        }
        by_person |= !rest.is_empty() && !rest.starts_with(SESSION_TAG);
    }
    if by_person {
        items.insert(0, Item::Prompt { id });
    }
    items
}

/// The results of tools in a list of parts, each with the text that a hook added.
fn results(parts: &Value) -> Vec<Item> {
    let mut items = Vec::new();
    for (call, text) in responses(parts) {
        if let Some(at) = text.rfind(HOOK_TAG) {
            items.push(Item::Injected { text: text[at + HOOK_TAG.len()..].to_owned() });
        }
        items.push(Item::ToolResult { call, text });
    }
    items
}

/// The calls that a list of parts answers, with the text of the answers.
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
