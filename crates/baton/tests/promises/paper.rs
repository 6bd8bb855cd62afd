//! A transcript as the agents write it, and what a reader of all transcripts finds: what the model
//! really heard.
//!
//! Claude Code records each request too: every message of it once (`api-request-blob`), and which
//! messages a request had (`api-request`). A taken-back prompt stays in the file and is missing in
//! the next request. Lines carry keys of ours that no reader of baton knows: mail that came into
//! the conversation has an `x_id` and its messages in `x_mail`, and a response says in `x_heard`
//! which of these its request held. The model heard a message as often as it is in mail that a
//! response names.

use crate::puppet::Style;
use crate::world::World;
use baton_testkit::transcript;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

/// One message of the conversation as the model gets it.
#[derive(Clone, Debug)]
struct Said {
    hash: String,
    message: Value,
    /// The mail in it.
    mail: Option<String>,
    /// The line that it is in.
    line: Option<String>,
}

/// The transcript of one session.
#[derive(Clone, Debug)]
pub struct Paper {
    pub file: PathBuf,
    style: Style,
    unwritten: Vec<Value>,
    /// The last line that others can hang on, and the one before the last prompt.
    leaf: Option<String>,
    before_prompt: (Option<String>, usize),
    /// The same for every prompt.
    prompts: Vec<(Option<String>, usize)>,
    conversation: Vec<Said>,
    /// The last request and how many messages it had.
    request: Option<(String, usize)>,
    /// Where the lines of the present prompt begin among the unwritten ones: an interactive Claude
    /// Code writes its request before them.
    prompt_lines: usize,
    taken_back: bool,
    /// The mail in the request that the present response answers.
    heard: Value,
    lines: u64,
}

impl Paper {
    /// A new one. Codex makes the file at once, Claude Code with the first line.
    pub fn new(style: Style, file: PathBuf) -> Paper {
        let mut paper = Paper {
            file,
            style,
            unwritten: Vec::new(),
            leaf: None,
            before_prompt: (None, 0),
            prompts: Vec::new(),
            conversation: Vec::new(),
            request: None,
            prompt_lines: 0,
            taken_back: false,
            heard: Value::Null,
            lines: 0,
        };
        if style == Style::Codex {
            paper.line(json!({"type": "session_meta", "payload": {"id": "s"}}));
        }
        paper
    }

    /// An id that no other line of this world has.
    fn fresh(&mut self, what: &str) -> String {
        self.lines += 1;
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        format!("{name}-{what}-{}", self.lines)
    }

    /// Adds a line; Codex writes it at once.
    fn line(&mut self, line: Value) {
        self.unwritten.push(line);
        if self.style == Style::Codex {
            self.flush();
        }
    }

    /// Adds a line that hangs on the one before; gives its id.
    fn chained(&mut self, mut line: Value) -> String {
        let uuid = self.fresh("line");
        if self.style == Style::Claude {
            line["parentUuid"] = json!(self.leaf);
            line["isSidechain"] = json!(false);
        }
        line["uuid"] = json!(uuid);
        self.leaf = Some(uuid.clone());
        self.line(line);
        uuid
    }

    fn said(&mut self, message: Value, mail: Option<String>, line: String) {
        let hash = self.fresh("hash");
        self.conversation.push(Said { hash, message, mail, line: Some(line) });
    }

    /// Writes everything.
    pub fn flush(&mut self) {
        self.flush_some(usize::MAX);
    }

    /// Writes this many of the next lines.
    pub fn flush_some(&mut self, count: usize) {
        let count = count.min(self.unwritten.len());
        if count == 0 {
            return;
        }
        self.prompt_lines = self.prompt_lines.saturating_sub(count);
        let text: String = self.unwritten.drain(..count).map(|line| format!("{line}\n")).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file).expect("a transcript");
        file.write_all(text.as_bytes()).expect("a longer transcript");
    }

    /// What a killed agent had not written is lost.
    pub fn forget_unwritten(&mut self) {
        self.unwritten.clear();
    }

    /// A new process reads the file and goes on with the conversation that hangs on its last line.
    pub fn reopen(&mut self) {
        let lines = transcript::lines(&self.file);
        let mut at = lines.iter().rev().find_map(|line| line["uuid"].as_str());
        self.leaf = at.map(str::to_owned);
        let mut alive = HashSet::new();
        while let Some(uuid) = at {
            alive.insert(uuid.to_owned());
            let line = lines.iter().find(|line| line["uuid"] == uuid);
            at = match self.style {
                Style::Claude => line.and_then(|line| line["parentUuid"].as_str()),
                Style::Codex => None,
            };
        }
        if self.style == Style::Codex {
            alive = lines.iter().filter_map(|line| line["uuid"].as_str()).map(str::to_owned).collect();
        }
        self.conversation.retain(|said| said.line.as_ref().is_some_and(|line| alive.contains(line)));
        self.request = None;
        self.taken_back = false;
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

    /// A copy for a fork: the same conversation under another name. Claude Code copies the lines,
    /// without the records of requests; Codex only says where they are.
    pub fn copy_to(&mut self, file: PathBuf) -> Paper {
        self.flush();
        let mut copy = Paper { file, request: None, unwritten: Vec::new(), ..self.clone() };
        match self.style {
            Style::Claude => {
                let copied = |line: &Value| line["uuid"].is_string();
                copy.unwritten = transcript::lines(&self.file).into_iter().filter(copied).collect();
                for line in &mut copy.unwritten {
                    line["forkedFrom"] = json!({"sessionId": "parent"});
                }
            }
            Style::Codex => {
                copy.line(json!({"type": "session_meta", "payload": {"id": "s", "forked_from_id": "parent"}}))
            }
        }
        copy.flush();
        copy
    }

    /// Codex notes that a turn begins before its hooks run.
    pub fn turn_begins(&mut self, turn: Option<&str>) {
        if self.style == Style::Codex {
            self.line(json!({"type": "turn_context", "payload": {"turn_id": turn}}));
        }
    }

    /// One more tool call of the response that is coming in.
    pub fn further_call(&mut self, call: &str) {
        let mut line = codex_call(call);
        line["x_heard"] = self.heard.clone();
        let line = self.chained(line);
        self.said(json!({"role": "assistant", "content": []}), None, line);
    }

    /// The person's prompt.
    pub fn prompt(&mut self, turn: Option<&str>, text: &str) {
        self.before_prompt = (self.leaf.clone(), self.conversation.len());
        self.prompts.push(self.before_prompt.clone());
        self.prompt_lines = self.unwritten.len();
        let line = match self.style {
            Style::Claude => self.chained(
                json!({"type": "user", "promptId": turn, "message": {"role": "user", "content": text}}),
            ),
            Style::Codex => self.chained(codex_message("user", text)),
        };
        self.said(json!({"role": "user", "content": [{"type": "text", "text": text}]}), None, line);
        if std::mem::take(&mut self.taken_back) {
            // It comes only now that another prompt hangs on the same line.
            let nobody = "00000000-0000-0000-0000-000000000000";
            self.line(json!({"type": "last-prompt", "leafUuid": nobody, "explicit": true}));
        }
    }

    /// Text that a hook added.
    pub fn context(&mut self, event: &str, place: &str, text: &str) {
        let mut line = match (self.style, event) {
            (Style::Claude, _) => {
                json!({"type": "attachment", "attachment": {"type": "hook_additional_context",
                "content": [text], "hookName": event, "toolUseID": place, "hookEvent": event}})
            }
            (Style::Codex, "Stop") => {
                let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                codex_message(
                    "user",
                    &format!("<hook_prompt hook_run_id=\"{place}\">{escaped}</hook_prompt>"),
                )
            }
            (Style::Codex, _) => {
                let mut line = codex_message("developer", text);
                line["payload"]["internal_chat_message_metadata_passthrough"] =
                    json!({"content_item_kinds": ["hooks.additional_context"]});
                line
            }
        };
        let mail = self.fresh("mail");
        line["x_id"] = json!(mail);
        let line = self.chained(line);
        let shown = format!("{event} hook additional context: {text}");
        let message = match event {
            "Stop" => {
                json!({"role": "user", "content": [{"type": "text", "text": format!("<system-reminder>\n{shown}\n</system-reminder>")}]})
            }
            _ => json!({"role": "system", "content": [{"type": "text", "text": shown}]}),
        };
        self.said(message, Some(mail), line);
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

    /// The conversation goes to the model. An interactive Claude Code writes that down before the
    /// prompt's own lines.
    pub fn request(&mut self, interactive: bool) {
        let id = self.fresh("request");
        let (base, keep) = self
            .request
            .clone()
            .map_or((None, 0), |(base, count)| (Some(base), count.min(self.conversation.len())));
        // What was taken back is not kept: the part that both have in common is.
        let tail = self.conversation[keep..].to_vec();
        if self.style == Style::Claude {
            let mut records: Vec<Value> = tail
                .iter()
                .map(|said| json!({"type": "api-request-blob", "hash": said.hash, "message": said.message}))
                .collect();
            let hashes: Vec<&String> = tail.iter().map(|said| &said.hash).collect();
            records
                .push(json!({"type": "api-request", "id": id, "base": base, "keep": keep, "tail": hashes}));
            let at =
                if interactive { self.prompt_lines.min(self.unwritten.len()) } else { self.unwritten.len() };
            self.unwritten.splice(at..at, records);
        }
        self.prompt_lines = self.unwritten.len();
        self.request = Some((id, self.conversation.len()));
    }

    /// The model's answer to the last request, a line for each piece.
    pub fn response(&mut self, id: &str, calls: &[String]) {
        let (request, count) = self.request.clone().expect("a request");
        let heard: Vec<String> =
            self.conversation[..count].iter().filter_map(|said| said.mail.clone()).collect();
        self.heard = json!(heard);
        let pieces: Vec<Value> = match self.style {
            Style::Claude => {
                let mut blocks = vec![json!({"type": "text", "text": "working"})];
                blocks
                    .extend(calls.iter().map(|call| json!({"type": "tool_use", "id": call, "name": "Bash"})));
                let message = |block| json!({"id": id, "role": "assistant", "model": "claude-opus-5-5", "content": [block]});
                blocks.into_iter().map(|block| json!({"type": "assistant", "requestRef": request, "message": message(block)})).collect()
            }
            Style::Codex => {
                let calls = calls.iter().map(|call| codex_call(call));
                std::iter::once(codex_message("assistant", "working")).chain(calls).collect()
            }
        };
        for mut piece in pieces {
            piece["x_heard"] = self.heard.clone();
            let line = self.chained(piece);
            self.said(json!({"role": "assistant", "content": []}), None, line);
        }
        if self.style == Style::Codex {
            self.line(json!({"type": "token_usage_record", "payload": {"response_id": id}}));
        }
    }

    /// A tool's result. `taken` is mail that the model reads in it on purpose.
    pub fn tool_result(&mut self, turn: Option<&str>, call: &str, text: &str, taken: &[String]) {
        let mut line = match self.style {
            Style::Claude => json!({"type": "user", "promptId": turn, "message": {"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}}),
            Style::Codex => {
                let kind = if is_script(call) { "custom_tool_call_output" } else { "function_call_output" };
                json!({"type": "response_item", "payload": {"type": kind, "call_id": call, "output": text}})
            }
        };
        let mail = (!taken.is_empty()).then(|| self.fresh("mail"));
        line["x_id"] = json!(mail);
        line["x_mail"] = json!(taken);
        let line = self.chained(line);
        let result = json!({"type": "tool_result", "tool_use_id": call, "content": text});
        self.said(json!({"role": "user", "content": [result]}), mail, line);
    }

    /// Words of the model.
    pub fn words(&mut self, text: &str) {
        let response = self.fresh("words");
        let line = match self.style {
            Style::Claude => {
                json!({"type": "assistant", "message": {"id": response, "role": "assistant", "content": [{"type": "text", "text": text}]}})
            }
            Style::Codex => codex_message("assistant", text),
        };
        self.chained(line);
    }

    /// The person took the last prompt back: what came with it hangs on a dead branch, and the next
    /// request goes without it.
    pub fn take_back(&mut self) {
        self.leaf.clone_from(&self.before_prompt.0);
        self.conversation.truncate(self.before_prompt.1);
        self.request = self.request.take().map(|(id, count)| (id, count.min(self.before_prompt.1)));
        self.taken_back = true;
    }

    /// Codex's note of an interrupted turn; nothing is taken back.
    pub fn aborted(&mut self) {
        let text = "<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>";
        let line = self.chained(codex_message("user", text));
        self.said(json!({"role": "user", "content": [{"type": "text", "text": text}]}), None, line);
    }

    /// How many prompts there were.
    pub fn prompts(&self) -> usize {
        self.prompts.len()
    }

    /// The person takes the conversation back to before its n-th prompt, counted from zero.
    pub fn rewind(&mut self, prompt: usize) {
        let (leaf, count) = self.prompts[prompt].clone();
        self.before_prompt = (leaf, count);
        self.take_back();
    }

    /// The conversation was compacted into a summary, and goes on with that alone.
    pub fn compacted(&mut self) {
        self.conversation.clear();
        self.request = None;
        let line = match self.style {
            Style::Claude => {
                self.line(json!({"type": "system", "subtype": "compact_boundary", "parentUuid": null}));
                let summary = json!({"role": "user", "content": "summary"});
                self.chained(json!({"type": "user", "isCompactSummary": true, "message": summary}))
            }
            Style::Codex => {
                let history = json!([codex_message("user", "summary")["payload"]]);
                self.chained(json!({"type": "compacted", "payload": {"message": "summary", "replacement_history": history}}))
            }
        };
        self.said(json!({"role": "user", "content": [{"type": "text", "text": "summary"}]}), None, line);
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

/// A call of Codex's model: of a tool, or of a script that calls tools.
fn codex_call(call: &str) -> Value {
    let (kind, name) =
        if is_script(call) { ("custom_tool_call", "exec") } else { ("function_call", "exec_command") };
    json!({"type": "response_item", "payload": {"type": kind, "name": name, "call_id": call}})
}

fn is_script(call: &str) -> bool {
    call.contains("-script-")
}

/// The ids of the messages in a framed text, in order.
pub fn messages_in(text: &str) -> Vec<String> {
    text.split("<message id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

/// What the models of this world heard, transcript by transcript, in order.
pub fn heard(world: &World) -> Vec<String> {
    let mut known = HashSet::new();
    let mut answered = HashSet::new();
    let mut mail = Vec::new();
    for style in Style::BOTH {
        for file in transcript::files_below(&world.path(style.name()), ".jsonl") {
            for line in transcript::lines(&file) {
                answered.extend(
                    line["x_heard"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_str)
                        .map(str::to_owned),
                );
                // A fork has copies of its parent's lines.
                let Some(id) = line["x_id"].as_str().filter(|id| known.insert((*id).to_owned())) else {
                    continue;
                };
                mail.push((id.to_owned(), mail_in(style, &line)));
            }
        }
    }
    mail.into_iter().filter(|(id, _)| answered.contains(id)).flat_map(|(_, messages)| messages).collect()
}

/// The messages in a line, by the place that proves them.
fn mail_in(style: Style, line: &Value) -> Vec<String> {
    let contexts = match style {
        Style::Claude => transcript::claude_contexts(std::slice::from_ref(line)),
        Style::Codex => transcript::codex_contexts(std::slice::from_ref(line)),
    };
    let taken = line["x_mail"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    // Codex escapes what a stop hook says; a body that holds an escape of its own is escaped once
    // more.
    let plain = |text: &str| {
        if text.starts_with("<hook_prompt ") { text.replace("&lt;", "<") } else { text.to_owned() }
    };
    contexts.iter().flat_map(|context| messages_in(&plain(&context.text))).chain(taken).collect()
}
