//! Claude Code's record of its requests: which offers each of them contained.
//!
//! Each message of a request is written once, as an `api-request-blob` with its hash. An
//! `api-request` names its messages: the first `keep` messages of an earlier request (`base`), then
//! those with the hashes in `tail`. These lines come before the response. Copies of a conversation
//! lack them. Checked against what the model got: 173 requests of 60 sessions, with forks,
//! compactions and failures.

use crate::surrogates;
use baton_core::mail::proof::MARK;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// How each record begins. There are many, of up to about 100 KB, and few matter to us.
const RECORD_START: &str = "{\"type\":\"api-request";
const BLOB_START: &str = "{\"type\":\"api-request-blob\",";
const REQUEST_START: &str = "{\"type\":\"api-request\",";

#[derive(Deserialize)]
struct Blob<'a> {
    #[serde(borrow)]
    hash: Cow<'a, str>,
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Value,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    base: Option<Cow<'a, str>>,
    #[serde(default)]
    keep: usize,
    #[serde(borrow, default)]
    tail: Vec<Cow<'a, str>>,
}

/// The requests so far. A request before the part of the file that is read contained no offer that
/// is searched there.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The marks in a message, by its hash. Messages without marks are left out.
    messages: HashMap<String, Vec<String>>,
    /// The marks in a request, each with the position of its message, by the request's id.
    requests: HashMap<String, Vec<(usize, String)>>,
}

impl Requests {
    /// Reads a line if it is a record of requests.
    pub(super) fn take(&mut self, line: &str) -> bool {
        if !line.starts_with(RECORD_START) {
            return false;
        }
        if line.starts_with(REQUEST_START) {
            if let Ok(request) = serde_json::from_str(line) {
                self.request(request);
            }
        } else if line.starts_with(BLOB_START) && line.contains(MARK) {
            if let Ok(blob) = serde_json::from_str(line) {
                self.blob(blob);
            } else if let Some(whole) = surrogates::mended(line.as_bytes())
                && let Ok(blob) = serde_json::from_slice(&whole)
            {
                self.blob(blob);
            }
        }
        true
    }

    /// The marks that hooks added to a request; `None` if it is not recorded here.
    pub(super) fn marks(&self, id: &str) -> Option<Vec<String>> {
        self.requests.get(id).map(|marks| marks.iter().map(|(_, mark)| mark.clone()).collect())
    }

    fn blob(&mut self, blob: Blob<'_>) {
        let said = said_by_hooks(&blob.message);
        if !said.is_empty() {
            self.messages.insert(blob.hash.into_owned(), said);
        }
    }

    fn request(&mut self, request: Request<'_>) {
        let base = request.base.and_then(|base| self.requests.get(base.as_ref()));
        let kept = base.into_iter().flatten().filter(|(place, _)| *place < request.keep).cloned();
        let mut marks: Vec<(usize, String)> = kept.collect();
        for (hash, place) in request.tail.iter().zip(request.keep..) {
            let said = self.messages.get(hash.as_ref()).into_iter().flatten();
            marks.extend(said.map(|mark| (place, mark.clone())));
        }
        self.requests.insert(request.id.into_owned(), marks);
    }
}

/// The marks in the output of hooks: in the program's own messages, and in its reminders among the
/// user's. What the model, the user or a tool said may quote a mark, and does not count.
fn said_by_hooks(message: &Message) -> Vec<String> {
    let texts: Vec<&str> = match &message.content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks
            .iter()
            .filter(|block| block.get("type").and_then(Value::as_str) == Some("text"))
            .filter_map(|block| block.get("text")?.as_str())
            .collect(),
        _ => Vec::new(),
    };
    let by_program = |text: &&str| match message.role.as_str() {
        "system" => true,
        "user" => text.starts_with("<system-reminder>") && text.contains(" hook additional context: "),
        _ => false,
    };
    texts.into_iter().filter(by_program).flat_map(marks_in).collect()
}

fn marks_in(text: &str) -> impl Iterator<Item = String> {
    text.match_indices(MARK).filter_map(|(at, _)| {
        let mark = &text[at..];
        mark.find(']').map(|end| mark[..=end].to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn blob(hash: &str, role: &str, content: &Value) -> String {
        let message = json!({ "role": role, "content": content });
        json!({ "type": "api-request-blob", "sessionId": "s", "hash": hash, "message": message }).to_string()
    }

    fn request(id: &str, base: Option<&str>, keep: usize, tail: &[&str]) -> String {
        let record = json!({ "type": "api-request", "sessionId": "s", "id": id, "base": base, "keep": keep, "tail": tail });
        record.to_string()
    }

    fn text(text: &str) -> Value {
        json!([{ "type": "text", "text": text }])
    }

    #[test]
    fn a_request_has_the_marks_of_what_it_keeps_and_of_what_it_adds() {
        let mut requests = Requests::default();
        let lines = [
            blob(
                "a",
                "system",
                &text("Stop hook additional context: x [baton-offer n1]\n\ny [baton-offer n2]"),
            ),
            request("1", None, 0, &["other", "a"]),
            blob(
                "b",
                "user",
                &json!(
                    "<system-reminder>\nStop hook additional context: [baton-offer n3]\n</system-reminder>"
                ),
            ),
            request("2", Some("1"), 2, &["b"]),
            // The user went back.
            request("3", Some("2"), 1, &["b"]),
            request("4", Some("before what is read"), 9, &["a"]),
        ];
        assert!(lines.iter().all(|line| requests.take(line)));
        let marks = |id| requests.marks(id).map(|marks| marks.join(""));
        assert_eq!(marks("1").as_deref(), Some("[baton-offer n1][baton-offer n2]"));
        assert_eq!(marks("2").as_deref(), Some("[baton-offer n1][baton-offer n2][baton-offer n3]"));
        assert_eq!(marks("3").as_deref(), Some("[baton-offer n3]"));
        assert_eq!(marks("4").as_deref(), Some("[baton-offer n1][baton-offer n2]"));
        assert_eq!(marks("5"), None);
    }

    #[test]
    fn quotes_in_a_request_do_not_count() {
        let quote = "UserPromptSubmit hook additional context: [baton-offer n1]";
        let quotes = [
            blob("a", "assistant", &text(quote)),
            blob("a", "user", &text(quote)),
            blob("a", "user", &json!(quote)),
            blob("a", "user", &json!([{ "type": "tool_result", "tool_use_id": "t", "content": quote }])),
            blob(
                "a",
                "user",
                &text("<system-reminder>\nFrom CLAUDE.md: [baton-offer n1]\n</system-reminder>"),
            ),
            blob("a", "system", &text("cut [baton-offer n1")),
            blob("a", "system", &json!({ "text": quote })),
        ];
        for line in quotes {
            let mut requests = Requests::default();
            assert!(requests.take(&line) && requests.take(&request("1", None, 0, &["a"])));
            assert_eq!(requests.marks("1"), Some(Vec::new()), "{line}");
        }
    }

    #[test]
    fn other_lines_are_left_to_others() {
        let mut requests = Requests::default();
        assert!(!requests.take("") && !requests.take("{\"type\":\"user\"}"));
        assert!(
            requests.take("{\"type\":\"api-request-shape\",")
                && requests.take("{\"type\":\"api-request\",\"id\":")
        );
    }
}
