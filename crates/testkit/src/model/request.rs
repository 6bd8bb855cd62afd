//! A request to the model, and what the model was shown in it.

use std::time::Instant;

use serde_json::Value;

use super::{anthropic, completions, gemini, responses};
use crate::agents::Agent;

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic Messages (Claude Code).
    Anthropic,
    /// OpenAI Responses (Codex).
    Responses,
    /// OpenAI Chat Completions (OpenCode, Copilot, Pi).
    Completions,
    /// Google's generateContent (Gemini CLI).
    Gemini,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The conversation with the user.
    Main,
    /// A subagent's own conversation.
    Subagent,
    /// The history, to be summarized.
    Compaction,
    /// A title or another small question that has no part in a conversation.
    Side,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The agent's own instructions and, in Claude Code, the text of hooks.
    System,
    /// What Codex adds, hooks included.
    Developer,
    /// The user; also tool results and, at a stop, hooks.
    User,
    /// The model.
    Assistant,
}

/// How something got into the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// As text.
    Text,
    /// As the input of a tool call.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
    },
    /// As the result of a tool call.
    ToolResult {
        /// The call's id.
        id: String,
    },
}

/// One piece of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Who.
    pub role: Role,
    /// How.
    pub source: Source,
    /// What.
    pub text: String,
}

/// A request to the model.
#[derive(Debug)]
pub struct Request {
    /// Its place in the log.
    pub index: usize,
    /// When it was complete.
    pub at: Instant,
    /// Who sent it, by the URL that it was given.
    pub agent: Agent,
    /// Its protocol.
    pub api: Api,
    /// What it is for.
    pub kind: Kind,
    /// The agent's session id.
    pub session: String,
    /// The session, and the subagent if it is one: the same for all requests of one conversation.
    pub conversation: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Value,
    said: Vec<Said>,
}

/// What a protocol's headers and body say about a request.
pub(super) struct Origin {
    pub(super) kind: Kind,
    pub(super) session: String,
    pub(super) subagent: Option<String>,
}

impl Request {
    pub(super) fn new(
        index: usize,
        agent: Agent,
        api: Api,
        headers: Vec<(String, String)>,
        body: Value,
    ) -> Request {
        let said = match api {
            Api::Anthropic => anthropic::said(&body),
            Api::Responses => responses::said(&body),
            Api::Completions => completions::said(&body),
            Api::Gemini => gemini::said(&body),
        };
        let header =
            |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let origin = match api {
            Api::Anthropic => anthropic::origin(header, &body, &said),
            Api::Responses => responses::origin(header, &body),
            Api::Completions => completions::origin(header, &body),
            Api::Gemini => gemini::origin(&body, &said),
        };
        let conversation = match &origin.subagent {
            Some(subagent) => format!("{}/{subagent}", origin.session),
            None => origin.session.clone(),
        };
        let Origin { kind, session, .. } = origin;
        Request { index, at: Instant::now(), agent, api, kind, session, conversation, headers, body, said }
    }

    /// Everything in the conversation, in order, instructions first. Tool descriptions are left
    /// out.
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// What the model was shown: everything that it did not say itself.
    pub fn shown(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| said.role != Role::Assistant)
    }

    /// How often the model was shown `text`. Its own words, also in tool calls, don't count.
    pub fn count(&self, text: &str) -> usize {
        assert!(!text.is_empty(), "an empty text is everywhere");
        self.shown().map(|said| said.text.matches(text).count()).sum()
    }

    /// Whether the model was shown `text`.
    pub fn shows(&self, text: &str) -> bool {
        self.count(text) > 0
    }

    /// The shown pieces that hold `text`.
    pub fn showing(&self, text: &str) -> Vec<&Said> {
        self.shown().filter(|said| said.text.contains(text)).collect()
    }

    /// What follows `mark` in the last shown piece that holds it, up to the end of the word: how a
    /// script picks an id out of a message.
    pub fn word_after(&self, mark: &str) -> Option<&str> {
        let last = self.shown().filter(|said| said.text.contains(mark)).last()?;
        let rest = last.text.rsplit_once(mark)?.1;
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "-_".contains(c))).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|word| !word.is_empty())
    }

    /// The last text in the user's role: the prompt, or the text of a stop hook.
    pub fn last_user_text(&self) -> &str {
        let mut texts =
            self.said.iter().rev().filter(|said| said.role == Role::User && said.source == Source::Text);
        texts.next().map_or("", |said| &said.text)
    }

    /// The tool results since the model's turn began, oldest first.
    pub fn results(&self) -> Vec<&Said> {
        let prompt =
            self.said.iter().rposition(|said| said.role == Role::User && said.source == Source::Text);
        let turn = prompt.map_or(&self.said[..], |at| &self.said[at..]);
        turn.iter().filter(|said| matches!(said.source, Source::ToolResult { .. })).collect()
    }

    /// Whether a tool of this name is offered (Codex: the name in its namespace).
    pub fn offers(&self, tool: &str) -> bool {
        let mut found = false;
        visit_tools(&self.body["tools"], &mut |name| found |= name == tool);
        found
    }
}

fn visit_tools(tools: &Value, visit: &mut impl FnMut(&str)) {
    for tool in tools.as_array().into_iter().flatten() {
        if let Some(name) = tool["name"].as_str() {
            visit(name);
        }
        visit_tools(&tool["tools"], visit);
        visit_tools(&tool["functionDeclarations"], visit);
    }
}
