//! A transcript as the agents write it, and what a reader of all transcripts finds: what the model really heard.
//!
//! A line that a hook's text stands in carries the response that was under way (`x_after`), and each piece of a response which one it is
//! (`x_response`): keys of ours that no reader of baton knows. The model heard a text if another response follows it in
//! the file and the person did not take the text back.

use crate::puppet::Style;
use crate::world::World;
use baton_testkit::transcript;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The transcript of one session.
#[derive(Clone, Debug)]
pub struct Paper {
    pub file: PathBuf,
    style: Style,
    unwritten: Vec<Value>,
    /// The last line that others can hang on, and the one before the last prompt.
    leaf: Option<String>,
    before_prompt: Option<String>,
    response: String,
    lines: u64,
}

impl Paper {
    /// A new one. Codex makes the file at once, Claude Code with the first line.
    pub fn new(style: Style, file: PathBuf) -> Paper {
        let mut paper =
            Paper { file, style, unwritten: Vec::new(), leaf: None, before_prompt: None, response: String::new(), lines: 0 };
        if style == Style::Codex {
            paper.line(json!({"type": "session_meta", "payload": {"id": "s"}}));
        }
        paper
    }

    fn uuid(&mut self) -> String {
        self.lines += 1;
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        format!("{name}-line-{}", self.lines)
    }

    /// Adds a line; Codex writes it at once.
    fn line(&mut self, line: Value) {
        self.unwritten.push(line);
        if self.style == Style::Codex {
            self.flush();
        }
    }

    /// Adds a line that hangs on the one before.
    fn chained(&mut self, mut line: Value) {
        let uuid = self.uuid();
        line["uuid"] = json!(uuid);
        line["parentUuid"] = json!(self.leaf);
        line["isSidechain"] = json!(false);
        self.leaf = Some(uuid);
        self.line(line);
    }

    /// Writes everything.
    pub fn flush(&mut self) {
        self.flush_some(usize::MAX);
    }

    /// Writes the next so many lines.
    pub fn flush_some(&mut self, count: usize) {
        let count = count.min(self.unwritten.len());
        if count == 0 {
            return;
        }
        let text: String = self.unwritten.drain(..count).map(|line| format!("{line}\n")).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file).expect("a transcript");
        file.write_all(text.as_bytes()).expect("a longer transcript");
    }

    /// What a killed agent had not written is lost.
    pub fn forget_unwritten(&mut self) {
        self.unwritten.clear();
    }

    /// A new process reads the file and goes on behind its last line.
    pub fn reopen(&mut self) {
        let lines = transcript::lines(&self.file);
        self.leaf = lines.iter().rev().find_map(|line| line["uuid"].as_str().map(str::to_owned));
    }

    /// Length of the file, to go back to.
    pub fn length(&self) -> u64 {
        fs::metadata(&self.file).map_or(0, |data| data.len())
    }

    /// Makes the file as long as it was.
    pub fn cut_to(&self, length: u64) {
        match OpenOptions::new().write(true).open(&self.file) {
            Ok(file) => file.set_len(length).expect("a shorter transcript"),
            Err(_) => assert_eq!(length, 0, "the transcript is gone"),
        }
    }

    /// A copy for a fork: the same lines under another name.
    pub fn copy_to(&self, file: PathBuf) -> Paper {
        let mut copy = self.clone();
        copy.flush();
        fs::copy(&self.file, &file).expect("a copy");
        Paper { file, ..copy }
    }

    /// The person's prompt.
    pub fn prompt(&mut self, turn: Option<&str>, text: &str) {
        self.before_prompt.clone_from(&self.leaf);
        match self.style {
            Style::Claude => self.chained(json!({"type": "user", "promptId": turn, "message": {"role": "user", "content": text}})),
            Style::Codex => {
                self.line(json!({"type": "turn_context", "payload": {"turn_id": turn}}));
                self.line(codex_message("user", text));
            }
        }
    }

    /// Text that a hook added.
    pub fn context(&mut self, event: &str, place: &str, text: &str) {
        let response = self.response.clone();
        let mut line = match (self.style, event) {
            (Style::Claude, _) => json!({"type": "attachment", "attachment":
                {"type": "hook_additional_context", "content": [text], "hookName": event, "toolUseID": place, "hookEvent": event}}),
            (Style::Codex, "Stop") => codex_message("user", &format!("<hook_prompt hook_run_id=\"{place}\">{text}</hook_prompt>")),
            (Style::Codex, _) => {
                let mut line = codex_message("developer", text);
                line["payload"]["internal_chat_message_metadata_passthrough"] = json!({"content_item_kinds": ["hooks.additional_context"]});
                line
            }
        };
        line["x_after"] = json!(response);
        match self.style {
            Style::Claude => self.chained(line),
            Style::Codex => self.line(line),
        }
    }

    /// The raw output of a hook, which proves nothing.
    pub fn hook_ran(&mut self, event: &str, place: &str, output: &str) {
        if self.style == Style::Claude {
            self.chained(json!({"type": "attachment", "attachment":
                {"type": "hook_success", "stdout": output, "hookEvent": event, "toolUseID": place}}));
        }
    }

    /// All stop hooks have ended.
    pub fn stop_handled(&mut self, place: &str) {
        if self.style == Style::Claude {
            self.chained(json!({"type": "system", "subtype": "stop_hook_summary", "toolUseID": place}));
        }
    }

    /// The model's answer, a line for each piece.
    pub fn response(&mut self, id: &str, calls: &[String]) {
        id.clone_into(&mut self.response);
        match self.style {
            Style::Claude => {
                let request = format!("request-of-{id}");
                // Requests are recorded too; no reader may take them for proof.
                self.line(json!({"type": "api-request", "id": request, "tail": []}));
                let mut pieces = vec![json!({"type": "text", "text": "working"})];
                pieces.extend(calls.iter().map(|call| json!({"type": "tool_use", "id": call, "name": "Bash"})));
                for piece in pieces {
                    self.chained(json!({"type": "assistant", "requestRef": request, "x_response": id,
                        "message": {"id": id, "role": "assistant", "content": [piece]}}));
                }
            }
            Style::Codex => {
                let mut said = codex_message("assistant", "working");
                said["x_response"] = json!(id);
                self.line(said);
                for call in calls {
                    self.line(json!({"type": "response_item", "x_response": id,
                        "payload": {"type": "function_call", "name": "exec_command", "call_id": call}}));
                }
                self.line(json!({"type": "token_usage_record", "payload": {"response_id": id}}));
            }
        }
    }

    /// The words of the model.
    pub fn said(&mut self, id: &str, text: &str) {
        let line = match self.style {
            Style::Claude => json!({"type": "assistant", "x_response": id, "message": {"id": id, "content": [{"type": "text", "text": text}]}}),
            Style::Codex => codex_message("assistant", text),
        };
        self.line(line);
    }

    /// A tool's result.
    pub fn tool_result(&mut self, turn: Option<&str>, call: &str, text: &str) {
        match self.style {
            Style::Claude => self.chained(json!({"type": "user", "promptId": turn,
                "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}})),
            Style::Codex => {
                self.line(json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": call, "output": text}}));
            }
        }
    }

    /// The person took the last prompt back: what came with it hangs on a dead branch from now on.
    pub fn take_back(&mut self) {
        self.leaf.clone_from(&self.before_prompt);
        self.line(json!({"type": "last-prompt", "leafUuid": "00000000-0000-0000-0000-000000000000", "explicit": true}));
    }

    /// Codex's note of an interrupted turn; nothing is taken back.
    pub fn aborted(&mut self) {
        self.line(codex_message("user", "<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>"));
    }

    /// The conversation was compacted.
    pub fn compacted(&mut self) {
        match self.style {
            Style::Claude => {
                self.line(json!({"type": "system", "subtype": "compact_boundary", "parentUuid": null}));
                self.chained(json!({"type": "user", "isCompactSummary": true, "message": {"content": "summary"}}));
            }
            Style::Codex => self.line(json!({"type": "compacted", "payload": {"message": "summary"}})),
        }
    }

    /// Any other line.
    pub fn raw(&mut self, line: Value) {
        self.line(line);
    }
}

fn codex_message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({"type": "response_item", "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}})
}

/// The ids of the messages in a framed text, in order.
pub fn messages_in(text: &str) -> Vec<String> {
    text.split("<message id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// What the models of this world heard, transcript by transcript, in order.
pub fn heard(world: &World) -> Vec<String> {
    let mut known = HashSet::new();
    let mut heard = Vec::new();
    for style in Style::BOTH {
        for file in transcript::files_below(&world.path(style.name()), ".jsonl") {
            for (line, ids) in heard_in(style, &file) {
                // A fork has copies of its parent's lines.
                if line.is_none_or(|uuid| known.insert(uuid)) {
                    heard.extend(ids);
                }
            }
        }
    }
    heard
}

fn heard_in(style: Style, file: &Path) -> Vec<(Option<String>, Vec<String>)> {
    let lines = transcript::lines(file);
    let mut found = Vec::new();
    let mut prompt_at = 0;
    for (at, line) in lines.iter().enumerate() {
        let contexts = match style {
            Style::Claude => transcript::claude_contexts(std::slice::from_ref(line)),
            Style::Codex => transcript::codex_contexts(std::slice::from_ref(line)),
        };
        let ids: Vec<String> = contexts.iter().flat_map(|context| messages_in(&context.text)).collect();
        if line["promptId"].is_string() && line["message"]["content"].is_string() {
            prompt_at = at;
        }
        if line["type"] == "last-prompt" && line["explicit"] == true {
            found.retain(|(place, _, _)| *place < prompt_at);
        }
        if !ids.is_empty() {
            let answered = lines[at..].iter().any(|later| later["x_response"].is_string() && later["x_response"] != line["x_after"]);
            if answered {
                found.push((at, line["uuid"].as_str().map(str::to_owned), ids));
            }
        }
    }
    found.into_iter().map(|(_, uuid, ids)| (uuid, ids)).collect()
}
