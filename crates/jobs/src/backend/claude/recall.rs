//! What Claude Code has written down of a turn, when the worker is gone: its transcript.
//!
//! It writes the lines of a message once the message is complete, with the reason for its end. A
//! turn has really ended if the last message after the prompt is the model's, it ended by itself,
//! and no background task of the turn was left.

use super::super::{Task, describe};
use baton_core::job::{Finish, Said, Snapshot, Tool, ToolState};
use baton_core::limits;
use baton_machine::files;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Where it keeps its files.
pub(super) fn config_folder(task: &Task) -> Option<PathBuf> {
    let set = task.variable("CLAUDE_CONFIG_DIR").filter(|folder| !folder.is_empty());
    set.map(PathBuf::from).or_else(|| Some(task.user_home()?.join(".claude")))
}

/// The transcript of a session. Its folder is named after where the session works, which may be
/// spelt in several ways.
pub(super) fn transcript(task: &Task, session: &str) -> Option<PathBuf> {
    let is_id = !session.is_empty() && session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let projects = fs::read_dir(config_folder(task)?.join("projects")).ok().filter(|_| is_id)?;
    let files = projects.flatten().map(|project| project.path().join(format!("{session}.jsonl")));
    files.into_iter().find(|file| file.is_file())
}

pub(super) fn recall(task: &Task, session: &str) -> Option<Snapshot> {
    let bytes = files::read(&transcript(task, session)?, limits::TRANSCRIPT_BYTES).ok()?;
    let mut turn = Turn::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        // Most of the file is records of requests.
        if let Ok(line) = serde_json::from_slice::<Value>(line) {
            turn.line(&line, &task.prompt);
        }
    }
    turn.begun.then(|| turn.snapshot())
}

#[derive(Default)]
struct Turn {
    begun: bool,
    message: String,
    said: Option<Said>,
    tools: Vec<Tool>,
    background: BTreeSet<String>,
    error: Option<(Option<u64>, String)>,
    aborted: bool,
    lines: u64,
}

impl Turn {
    fn line(&mut self, line: &Value, prompt: &str) {
        if line["isSidechain"] == true {
            return;
        }
        self.lines += 1;
        match line["type"].as_str() {
            Some("user") => self.user(line, prompt),
            Some("assistant") if self.begun => self.assistant(line),
            _ => {}
        }
    }

    fn user(&mut self, line: &Value, prompt: &str) {
        let content = &line["message"]["content"];
        let blocks = || content.as_array().into_iter().flatten();
        let mut texts =
            content.as_str().into_iter().chain(blocks().filter_map(|block| block["text"].as_str()));
        if texts.clone().next() == Some(prompt) {
            *self = Self { begun: true, lines: self.lines, ..Self::default() };
            return;
        }
        self.aborted |= texts.any(|text| text.starts_with("[Request interrupted by user"));
        for block in blocks() {
            self.tools.retain(|tool| block["tool_use_id"] != tool.call.as_str());
        }
        if let Some(task) = line["toolUseResult"]["backgroundTaskId"].as_str() {
            self.background.insert(task.to_owned());
        }
        let whole = content.to_string();
        if whole.contains("<task-notification>") {
            self.background.retain(|task| !whole.contains(task.as_str()));
        }
        // Whatever the reason, another answer must follow.
        self.said = None;
        self.error = None;
    }

    fn assistant(&mut self, line: &Value) {
        let message = &line["message"];
        let blocks = message["content"].as_array();
        let text: String = blocks.into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
        if line["isApiErrorMessage"] == true {
            self.error = Some((line["apiErrorStatus"].as_u64(), text));
            return;
        }
        if message["model"] == "<synthetic>" {
            return;
        }
        let id = message["id"].as_str().unwrap_or_default();
        let before =
            self.said.take().filter(|_| self.message == id).map_or_else(String::new, |said| said.text);
        id.clone_into(&mut self.message);
        let finish = match message["stop_reason"].as_str() {
            Some("end_turn" | "stop_sequence" | "refusal") => Finish::End,
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("tool_use" | "pause_turn") => Finish::ToolCalls,
            Some(_) => Finish::Unknown,
            None => Finish::Absent,
        };
        self.said = Some(Said { text: before + &text, finish });
        for block in blocks.into_iter().flatten().filter(|block| block["type"] == "tool_use") {
            let (call, name) =
                (block["id"].as_str().unwrap_or_default(), block["name"].as_str().unwrap_or_default());
            self.tools.push(describe::tool("claude", call, name, &block["input"], ToolState::Running));
        }
    }

    fn snapshot(mut self) -> Snapshot {
        let goes_on = !self.background.is_empty() || !self.tools.is_empty();
        if goes_on && let Some(said) = &mut self.said {
            said.finish = Finish::ToolCalls;
        }
        let ended =
            self.said.as_ref().is_some_and(|said| matches!(said.finish, Finish::End | Finish::Length));
        let fault = self.error.map(|(status, message)| {
            describe::fault("claude", status, &message, baton_machine::clock::now())
        });
        Snapshot {
            // Nothing works on it any more. Without an end that only means that it died.
            idle: (ended || fault.is_some() || self.aborted).then_some(true),
            said: self.said,
            tools: self.tools,
            questions: Vec::new(),
            fault,
            aborted: self.aborted,
            version: self.lines,
        }
    }
}
