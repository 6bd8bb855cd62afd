//! The client's side of the agent client protocol, for one session and one prompt.

use super::super::{Report, Task, words};
use super::recall;
use baton_core::approval::{Answer, Question};
use baton_core::job::{Fault, Finish, Observation, Said, Snapshot, Tool, ToolKind, ToolState};
use baton_core::time::Moment;
use baton_core::tool::{self as native, ToolUse};
use baton_core::{Code, Error};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The ids of our requests.
const HELLO: u64 = 1;
const OPEN: u64 = 2;
const PROMPT: u64 = 3;
/// It wants a login first.
const AUTH_REQUIRED: i64 = -32000;
/// How long its transcript may be behind its answer. It is written when nothing has happened for 100 ms.
const BEHIND: Duration = Duration::from_secs(3);
/// How its own notes begin, which come like the model's words.
const NOTES: [&str; 3] = ["Info: ", "Warning: ", "Error: "];
/// What stands around a prompt that begins or ends with white space, which it would cut off.
const BEFORE: &str = "(The task follows.)\n";
const AFTER: &str = "\n(That is the whole task.)";

/// The first request.
pub(super) fn hello() -> Value {
    request(HELLO, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}))
}

/// The prompt as it is sent.
pub(super) fn prompt(text: &str) -> String {
    let is_space = |c: Option<char>| c.is_some_and(char::is_whitespace) || c == Some('\u{feff}');
    let mut sent = String::new();
    // A line that begins so may be a command of its own.
    if is_space(text.chars().next()) || text.starts_with('/') {
        sent.push_str(BEFORE);
    }
    sent.push_str(text);
    if is_space(text.chars().next_back()) {
        sent.push_str(AFTER);
    }
    sent
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request of its for a permission.
struct Permission {
    /// The id as it came.
    id: Value,
    /// The tool call.
    call: String,
    /// The answers that it takes, by their kind.
    options: Vec<(String, String)>,
}

/// One session with it.
pub(super) struct Client {
    task: Task,
    report: Report,
    session: Option<String>,
    /// The prompt that was sent last: what came before is the history of the session.
    sent: Option<String>,
    /// What was denied in this turn, which stops it, and what the model shall hear about it.
    denied: Vec<String>,
    /// What the model has said since the last tool.
    text: String,
    /// The last note of its own about an error.
    error: Option<String>,
    tools: Vec<Tool>,
    /// What it waits for, by the id as a text.
    requests: BTreeMap<String, Permission>,
    aborting: bool,
    over: bool,
}

impl Client {
    pub(super) fn new(task: &Task, report: Report) -> Self {
        Self {
            task: task.clone(),
            report,
            session: None,
            sent: None,
            denied: Vec::new(),
            text: String::new(),
            error: None,
            tools: Vec::new(),
            requests: BTreeMap::new(),
            aborting: false,
            over: false,
        }
    }

    /// Takes a line of its output, and gives what it must be told.
    pub(super) fn line(&mut self, line: &str, now: Moment) -> Option<Value> {
        let line: Value = serde_json::from_str(line).ok()?;
        match (line["id"].clone(), line["method"].as_str()) {
            (Value::Null, Some("session/update")) => {
                self.update(&line["params"]["update"]);
                None
            }
            (Value::Null, _) => None,
            (id, Some("session/request_permission")) => self.permission(id, &line["params"]),
            (id, Some(_)) => Some(
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not supported here"}}),
            ),
            (id, None) => self.answered_by_it(id.as_u64()?, &line, now),
        }
    }

    /// Its process is gone.
    pub(super) fn ended(&mut self, how: &str) {
        let last = if self.aborting {
            Observation::Aborted
        } else {
            Observation::Gone(format!("Copilot ended: {how}"))
        };
        self.finish([last]);
    }

    /// We want it to stop; gives the session that has a turn.
    pub(super) fn aborting(&mut self) -> Option<String> {
        self.aborting = true;
        self.session.clone().filter(|_| self.sent.is_some())
    }

    /// We are about to end it.
    pub(super) fn closing(&mut self) {
        self.over = true;
    }

    fn say(&self, observation: Observation) {
        if !self.over {
            (self.report)(observation);
        }
    }

    fn answered_by_it(&mut self, id: u64, line: &Value, now: Moment) -> Option<Value> {
        if line["error"].is_object() {
            let fault = refused(&line["error"], now);
            self.finish([Observation::Fault(fault)]);
            return None;
        }
        let result = &line["result"];
        match id {
            HELLO => {
                let cwd = self.task.cwd.to_string_lossy();
                let (method, params) = match &self.task.resume {
                    Some(session) => {
                        ("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}))
                    }
                    None => ("session/new", json!({"cwd": cwd, "mcpServers": []})),
                };
                Some(request(OPEN, method, params))
            }
            OPEN => {
                let named = result["sessionId"].as_str().map(str::to_owned);
                let session = named.or_else(|| self.task.resume.clone())?;
                self.say(Observation::Session(session.clone()));
                self.say(Observation::Busy);
                self.session = Some(session);
                self.send(prompt(&self.task.prompt))
            }
            PROMPT if !self.denied.is_empty() && !self.aborting => {
                let words = std::mem::take(&mut self.denied).join("\n");
                self.send(format!("{words}\nGo on with the task without that."))
            }
            PROMPT => {
                self.over(result["stopReason"].as_str().unwrap_or_default(), now);
                None
            }
            _ => None,
        }
    }

    fn send(&mut self, text: String) -> Option<Value> {
        let blocks = json!([{"type": "text", "text": text}]);
        self.sent = Some(text);
        Some(request(
            PROMPT,
            "session/prompt",
            json!({"sessionId": self.session.as_ref()?, "prompt": blocks}),
        ))
    }

    /// The turn is over; its transcript says how.
    fn over(&mut self, reason: &str, now: Moment) {
        if self.aborting || reason == "cancelled" {
            self.finish([Observation::Aborted]);
            return;
        }
        let written = self.written();
        if written.as_ref().is_some_and(|snapshot| snapshot.aborted) {
            self.finish([Observation::Aborted]);
            return;
        }
        if let Some(fault) = written.as_ref().and_then(|snapshot| snapshot.fault.clone()) {
            self.finish([Observation::Fault(fault)]);
            return;
        }
        if let (None, Some(error)) = (&written, &self.error) {
            let fault = words::fault("copilot", recall::status(error), error, now);
            self.finish([Observation::Fault(fault)]);
            return;
        }
        let finish = match reason {
            "end_turn" | "refusal" => Finish::End,
            "max_tokens" => Finish::Length,
            "" => Finish::Absent,
            _ => Finish::Unknown,
        };
        let text =
            written.and_then(|snapshot| snapshot.said).map_or_else(|| self.text.clone(), |said| said.text);
        self.finish([Observation::Said(Said { text, finish }), Observation::Idle]);
    }

    /// The end of the turn by its transcript, once it is there.
    fn written(&self) -> Option<Snapshot> {
        let file = recall::transcript(&self.task, self.session.as_deref()?)?;
        let prompt = self.sent.as_ref()?;
        let end = Instant::now() + BEHIND;
        loop {
            let ended = recall::recall(&file, prompt).filter(|snapshot| snapshot.idle == Some(true));
            if ended.is_some() || Instant::now() >= end {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    fn update(&mut self, update: &Value) {
        if self.sent.is_none() {
            return;
        }
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => self.chunk(update["content"]["text"].as_str().unwrap_or_default()),
            "tool_call" => self.call(update),
            "tool_call_update" => self.called(update),
            "agent_thought_chunk" | "plan" => self.say(Observation::Progress(String::new())),
            // Counts of tokens and the like, which also come while it waits for its model.
            _ => {}
        }
    }

    fn chunk(&mut self, text: &str) {
        if let Some(note) = NOTES.iter().find_map(|note| text.strip_prefix(note)) {
            if text.starts_with("Error: ") {
                self.error = Some(note.to_owned());
            }
            if note.contains("Retrying") {
                self.say(Observation::Retrying { message: note.to_owned(), until: None });
            }
            return;
        }
        self.error = None;
        self.text.push_str(text);
        self.say(Observation::Progress(words::line(text)));
    }

    fn call(&mut self, update: &Value) {
        let said = Said { text: std::mem::take(&mut self.text), finish: Finish::ToolCalls };
        self.say(Observation::Said(said));
        let tool = tool(update, ToolState::Running);
        self.say(Observation::Tool(tool.clone()));
        self.tools.push(tool);
    }

    fn called(&mut self, update: &Value) {
        let call = update["toolCallId"].as_str().unwrap_or_default();
        let Some(at) = self.tools.iter().position(|tool| tool.call == call) else { return };
        if matches!(update["status"].as_str(), Some("completed" | "failed")) {
            let tool = self.tools.remove(at);
            self.text.clear();
            self.say(Observation::Tool(Tool { state: ToolState::Ended, ..tool }));
        } else {
            self.tools[at].output += 1;
            self.say(Observation::Tool(self.tools[at].clone()));
        }
    }

    fn turn(&mut self, call: &str, state: ToolState) {
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.call == call) {
            tool.state = state;
            let tool = tool.clone();
            self.say(Observation::Tool(tool));
        }
    }

    /// It asks whether a tool may run.
    fn permission(&mut self, id: Value, params: &Value) -> Option<Value> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let options = params["options"].as_array().into_iter().flatten();
        let options: Vec<_> = options.map(|one| (text(&one["kind"]), text(&one["optionId"]))).collect();
        let call = &params["toolCall"];
        let reads = matches!(call["kind"].as_str(), Some("read" | "search" | "fetch" | "think"));
        if self.task.read_only && !reads {
            let what = tool(call, ToolState::Pending).what;
            self.denied.push(format!("The permission for `{what}` is denied: this job is read-only."));
            return Some(chosen(&id, &options, &["reject_once", "reject_always"]));
        }
        if call["kind"] == "read" && self.is_the_prompt(&tool(call, ToolState::Pending).what) {
            return Some(chosen(&id, &options, &["allow_once"]));
        }
        let question = Question::permission(id.to_string(), tool(call, ToolState::Pending).what);
        let question = question.about(tool_use(call));
        let call = text(&call["toolCallId"]);
        self.turn(&call, ToolState::Pending);
        self.requests.insert(question.id.clone(), Permission { id, call, options });
        self.say(Observation::Asked(question));
        None
    }

    /// Whether what it wants to read is the task itself, which lies outside of its folder where it was too long for a prompt.
    fn is_the_prompt(&self, what: &str) -> bool {
        self.task.prompt_file().is_some_and(|file| what == format!("read: {}", file.display()))
    }

    /// What to tell it when a question is answered. Words have no place there: they follow as a prompt.
    pub(super) fn answer(&self, question: &str, answer: &Answer) -> Result<Value, Error> {
        let Permission { id, options, .. } = self.requests.get(question).ok_or_else(|| {
            Error::new(Code::JobEnded, format!("Copilot does not wait for {question} any more"))
        })?;
        let kinds: &[&str] = match answer {
            Answer::Allow => &["allow_once", "allow_always"],
            Answer::AllowAlways => &["allow_always", "allow_once"],
            Answer::Deny(_) => &["reject_once", "reject_always"],
            Answer::Words(_) => {
                return Err(Error::new(Code::Usage, "that is a permission: it is allowed or denied"));
            }
        };
        Ok(chosen(id, options, kinds))
    }

    /// An answer has been written.
    pub(super) fn answered(&mut self, question: &str, answer: &Answer) {
        let request = self.requests.remove(question);
        self.say(Observation::Settled(question.to_owned()));
        let Some(Permission { call, .. }) = request else { return };
        match answer {
            Answer::Allow | Answer::AllowAlways => self.turn(&call, ToolState::Running),
            Answer::Deny(words) => {
                let what = self.tools.iter().find(|tool| tool.call == call).map_or("", |tool| &tool.what);
                self.denied
                    .push(format!("The permission for `{what}` is denied. {words}").trim_end().to_owned());
            }
            Answer::Words(_) => {}
        }
    }

    /// The last that is told.
    fn finish(&mut self, last: impl IntoIterator<Item = Observation>) {
        for tool in std::mem::take(&mut self.tools) {
            self.say(Observation::Tool(Tool { state: ToolState::Ended, ..tool }));
        }
        for (question, _) in std::mem::take(&mut self.requests) {
            self.say(Observation::Settled(question));
        }
        last.into_iter().for_each(|observation| self.say(observation));
        self.over = true;
    }
}

/// A tool call as the protocol tells it: no name, but a kind and a title.
fn tool(call: &Value, state: ToolState) -> Tool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let input = &call["rawInput"];
    let (kind, what) = match (call["kind"].as_str(), input["command"].as_str()) {
        (Some("execute"), Some(command)) => (ToolKind::Shell, format!("bash: {}", words::line(command))),
        (Some("execute"), None) => (ToolKind::Shell, words::line(&text(&call["title"]))),
        (kind, _) => {
            let path = ["path", "fileName", "url"].iter().find_map(|name| input[*name].as_str());
            let what = path.map_or_else(|| text(&call["title"]), str::to_owned);
            (ToolKind::Other, format!("{}: {}", kind.unwrap_or("tool"), words::line(&what)))
        }
    };
    Tool { call: text(&call["toolCallId"]), kind, what, state, output: 0 }
}

/// A command in full, for rules to be held against. Of other tools the protocol does not say enough.
fn tool_use(call: &Value) -> Option<ToolUse> {
    let command = call["rawInput"]["command"].as_str().filter(|_| call["kind"] == "execute")?;
    Some(ToolUse { command: Some(command.to_owned()), ..ToolUse::new(native::ToolKind::Shell, "bash") })
}

/// The first of these answers that it takes; if it takes none, that nobody answered.
fn chosen(id: &Value, options: &[(String, String)], kinds: &[&str]) -> Value {
    let option = kinds.iter().find_map(|kind| options.iter().find(|(of, _)| of == kind));
    let outcome = match option {
        Some((_, option)) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
}

/// What it means that it refused a request of ours.
fn refused(error: &Value, now: Moment) -> Fault {
    let message = error["message"].as_str().unwrap_or_default();
    if error["code"].as_i64() == Some(AUTH_REQUIRED) {
        return words::fault("copilot", Some(401), message, now);
    }
    if message.contains("does not support reasoning effort") {
        return Fault::new(Code::UnsupportedOption, message)
            .hint("leave --effort out, or choose another model");
    }
    words::fault("copilot", recall::status(message), message, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_prompt_is_kept() {
        assert_eq!(prompt("do it"), "do it");
        assert_eq!(prompt("do it\n"), "do it\n\n(That is the whole task.)");
        assert_eq!(prompt(" /x"), "(The task follows.)\n /x");
        assert_eq!(prompt("/allow-all"), "(The task follows.)\n/allow-all");
    }
}
