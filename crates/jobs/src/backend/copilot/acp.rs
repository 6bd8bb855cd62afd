//! The client's side of the agent client protocol, for one session and one prompt.

use super::super::{Report, Task, describe, is_same, no_rule};
use super::recall;
use baton_agents::asked::{change, in_words};
use baton_core::approval::{Answer, Extent, Part, Question, Subject};
use baton_core::job::{Fault, Finish, Observation, Said, Snapshot, Tool, ToolKind, ToolState};
use baton_core::time::Moment;
use baton_core::tool::{self as native, ToolUse};
use baton_core::{Code, Error};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The ids of our requests.
const INITIALIZE_ID: u64 = 1;
const OPEN_SESSION_ID: u64 = 2;
const PROMPT_ID: u64 = 3;
const AUTH_REQUIRED_CODE: i64 = -32000;
/// How late its transcript may be after its answer. It is written when nothing has happened for 100
/// ms.
const TRANSCRIPT_DELAY: Duration = Duration::from_secs(3);
/// The beginnings of its own notes, which come like the model's words.
const NOTE_PREFIXES: [&str; 3] = ["Info: ", "Warning: ", "Error: "];
/// What goes around a prompt that begins or ends with white space, which it would cut off.
const PROMPT_PREFIX: &str = "(The task follows.)\n";
const PROMPT_SUFFIX: &str = "\n(That is the whole task.)";

/// The first request.
pub(super) fn hello() -> Value {
    request(INITIALIZE_ID, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}))
}

/// The prompt as it is sent.
pub(super) fn prompt(text: &str) -> String {
    let is_space = |c: Option<char>| c.is_some_and(char::is_whitespace) || c == Some('\u{feff}');
    let mut sent = String::new();
    // A line that begins like this may be one of its commands.
    if is_space(text.chars().next()) || text.starts_with('/') {
        sent.push_str(PROMPT_PREFIX);
    }
    sent.push_str(text);
    if is_space(text.chars().next_back()) {
        sent.push_str(PROMPT_SUFFIX);
    }
    sent
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request for a permission.
struct Permission {
    id: Value,
    /// The tool call.
    call: String,
    /// The answers that it takes, with their kinds.
    options: Vec<(String, String)>,
    /// What it asks.
    subject: Subject,
}

pub(super) struct Client {
    task: Task,
    report: Report,
    session: Option<String>,
    /// The prompt that was sent last. What comes before it is the session's history.
    sent: Option<String>,
    /// The reasons for what was denied in this turn, which stops it. The model hears them with the
    /// next prompt.
    denied: Vec<String>,
    /// What the model has said since the last tool.
    text: String,
    /// The last note of its own about an error.
    error: Option<String>,
    tools: Vec<Tool>,
    /// The open requests, by their ids as text.
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

    /// Takes a line of its output, and returns the answer to it.
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

    /// Marks it as aborting. Returns the session if it has a turn.
    pub(super) fn aborting(&mut self) -> Option<String> {
        self.aborting = true;
        self.session.clone().filter(|_| self.sent.is_some())
    }

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
            INITIALIZE_ID => {
                let cwd = self.task.cwd.to_string_lossy();
                let (method, params) = match &self.task.resume {
                    Some(session) => {
                        ("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}))
                    }
                    None => ("session/new", json!({"cwd": cwd, "mcpServers": []})),
                };
                Some(request(OPEN_SESSION_ID, method, params))
            }
            OPEN_SESSION_ID => {
                let named = result["sessionId"].as_str().map(str::to_owned);
                let session = named.or_else(|| self.task.resume.clone())?;
                self.say(Observation::Session(session.clone()));
                self.say(Observation::Busy);
                self.session = Some(session);
                self.send(prompt(&self.task.prompt))
            }
            PROMPT_ID if !self.denied.is_empty() && !self.aborting => {
                let words = std::mem::take(&mut self.denied).join("\n");
                self.send(format!("{words}\nGo on with the task without that."))
            }
            PROMPT_ID => {
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
            PROMPT_ID,
            "session/prompt",
            json!({"sessionId": self.session.as_ref()?, "prompt": blocks}),
        ))
    }

    /// The turn is over. Its transcript says how.
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
            let fault = describe::fault("copilot", recall::status(error), error, now);
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

    /// The end of the turn by its transcript, once it is written.
    fn written(&self) -> Option<Snapshot> {
        let file = recall::transcript(&self.task, self.session.as_deref()?)?;
        let prompt = self.sent.as_ref()?;
        let end = Instant::now() + TRANSCRIPT_DELAY;
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
            // Token counts and the like, which also come while it waits for its model.
            _ => {}
        }
    }

    fn chunk(&mut self, text: &str) {
        if let Some(note) = NOTE_PREFIXES.iter().find_map(|note| text.strip_prefix(note)) {
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
        self.say(Observation::Progress(describe::line(text)));
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
        let question = Question::new(id.to_string(), subject(call)).about(tool_use(call));
        let call = text(&call["toolCallId"]);
        self.turn(&call, ToolState::Pending);
        let subject = question.subject.clone();
        self.requests.insert(question.id.clone(), Permission { id, call, options, subject });
        self.say(Observation::Asked(question));
        None
    }

    /// Whether it wants to read the task itself, which is outside of its folder if it was too long
    /// for a prompt.
    fn is_the_prompt(&self, what: &str) -> bool {
        self.task.prompt_file().is_some_and(|file| what == format!("read: {}", file.display()))
    }

    /// The answer to a request. It takes no words: they follow as a prompt.
    pub(super) fn answer(&self, question: &Question, answer: &Answer) -> Result<Value, Error> {
        reply(&self.requests, question, answer)
    }

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

    /// Reports the last observations.
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

/// A tool call as the protocol reports it: no name, but a kind and a title.
fn tool(call: &Value, state: ToolState) -> Tool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let input = &call["rawInput"];
    let (kind, what) = match (call["kind"].as_str(), input["command"].as_str()) {
        (Some("execute"), Some(command)) => (ToolKind::Shell, format!("bash: {}", describe::line(command))),
        (Some("execute"), None) => (ToolKind::Shell, describe::line(&text(&call["title"]))),
        (kind, _) => {
            let path = ["path", "fileName", "url"].iter().find_map(|name| input[*name].as_str());
            let what = path.map_or_else(|| text(&call["title"]), str::to_owned);
            (ToolKind::Other, format!("{}: {}", kind.unwrap_or("tool"), describe::line(&what)))
        }
    };
    Tool { call: text(&call["toolCallId"]), kind, what, state, output: 0 }
}

/// The line that answers a request, if it still is what was shown.
fn reply(
    requests: &BTreeMap<String, Permission>,
    question: &Question,
    answer: &Answer,
) -> Result<Value, Error> {
    let Permission { id, options, subject, .. } = requests.get(&question.id).ok_or_else(|| {
        Error::new(Code::JobEnded, format!("Copilot does not wait for {} any more", question.id))
    })?;
    is_same(subject, question)?;
    let kinds: &[&str] = match answer {
        // Never wider than asked: a yes is for this time only.
        Answer::Allow if !options.iter().any(|(kind, _)| kind == "allow_once") => {
            let what = "Copilot takes no yes for this one time only, and a wider one was not asked for";
            return Err(
                Error::new(Code::UnsupportedOption, what).hint("deny it, and let the job go another way")
            );
        }
        Answer::Allow => &["allow_once"],
        // The protocol does not say what its "always" covers.
        Answer::AllowAlways => return Err(no_rule()),
        Answer::Deny(_) => &["reject_once", "reject_always"],
        Answer::Words(_) => {
            return Err(Error::new(Code::Usage, "that is a permission: it is allowed or denied"));
        }
    };
    Ok(chosen(id, options, kinds))
}

/// Everything that the protocol reports about a call.
fn subject(call: &Value) -> Subject {
    let input = &call["rawInput"];
    let mut parts = Vec::new();
    let command = input["command"].as_str();
    parts.extend(command.map(Part::command));
    let paths = ["path", "fileName", "file_path"].iter().filter_map(|name| input[*name].as_str());
    let places =
        call["locations"].as_array().into_iter().flatten().filter_map(|place| place["path"].as_str());
    for path in paths.chain(places) {
        let part = Part::file(path);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    for content in call["content"].as_array().into_iter().flatten() {
        match (content["type"].as_str(), content["path"].as_str()) {
            (Some("diff"), Some(path)) => {
                let side = |name: &str| content[name].as_str().unwrap_or_default();
                parts.push(Part::change(format!("{path}\n{}", change(side("oldText"), side("newText")))));
            }
            _ => parts.push(Part::new("content", content.to_string())),
        }
    }
    // Only for a command is it certain that none of its description runs. For other tools it may be
    // what is sent.
    let is_shell = call["kind"] == "execute" && command.is_some();
    let shown = ["command", "path", "fileName", "file_path"];
    let is_said = |name: &str| shown.contains(&name) || (is_shell && name == "description");
    let more = input.as_object().into_iter().flatten();
    let more = more.filter(|(name, value)| !(value.is_null() || is_said(name) && value.is_string()));
    parts.extend(more.map(|(name, value)| Part::new(name, in_words(value))));
    let kind = call["kind"].as_str().unwrap_or("tool");
    let title = call["title"].as_str().unwrap_or_default();
    let extent = if parts.is_empty() || (kind == "execute" && command.is_none()) {
        parts.insert(0, Part::new("it says", title));
        Extent::NoMore
    } else {
        Extent::Whole
    };
    // The kind alone does not say which tool it is. Only the title does.
    let is_plain = is_shell || matches!(kind, "read" | "edit" | "delete" | "search" | "fetch");
    if extent == Extent::Whole && !is_plain {
        parts.push(Part::new("it says", title));
    }
    let tool = if is_shell { "bash" } else { kind };
    let title = Some(title).filter(|_| extent == Extent::Whole && is_plain);
    let note = input["description"].as_str().filter(|_| is_shell).or(title);
    Subject::permission(Some(tool), parts, extent).with_note(note)
}

/// A command in full, for rules to be checked against it. The protocol does not say enough about
/// other tools.
fn tool_use(call: &Value) -> Option<ToolUse> {
    let command = call["rawInput"]["command"].as_str().filter(|_| call["kind"] == "execute")?;
    Some(ToolUse { command: Some(command.to_owned()), ..ToolUse::new(native::ToolKind::Shell, "bash") })
}

/// The first of these answers that it takes; if it takes none, the answer that nothing was chosen.
fn chosen(id: &Value, options: &[(String, String)], kinds: &[&str]) -> Value {
    let option = kinds.iter().find_map(|kind| options.iter().find(|(of, _)| of == kind));
    let outcome = match option {
        Some((_, option)) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
}

/// The fault for a refused request.
fn refused(error: &Value, now: Moment) -> Fault {
    let message = error["message"].as_str().unwrap_or_default();
    if error["code"].as_i64() == Some(AUTH_REQUIRED_CODE) {
        return describe::fault("copilot", Some(401), message, now);
    }
    if message.contains("does not support reasoning effort") {
        return Fault::new(Code::UnsupportedOption, message)
            .hint("leave --effort out, or choose another model");
    }
    describe::fault("copilot", recall::status(message), message, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_everything_that_the_protocol_tells_is_asked() {
        let call = json!({"toolCallId": "c", "kind": "execute", "title": "Run it", "rawInput": {"command": "echo harmless\nrm -rf /important", "mode": "async"}});
        let shown = subject(&call).in_full().join("\n");
        assert!(shown.contains("| rm -rf /important") && shown.contains("mode: async"), "{shown}");
        let edit = json!({"kind": "edit", "title": "Edit", "locations": [{"path": "/p/a"}],
            "content": [{"type": "diff", "path": "/p/a", "oldText": "1", "newText": "2"}]});
        assert_eq!(
            (subject(&edit).paths(), subject(&edit).as_change()),
            (vec!["/p/a"], Some("/p/a\n-1\n+2\n"))
        );
        let bare = subject(&json!({"kind": "other", "title": "Do a thing"}));
        assert_eq!(bare.head(), "other: Do a thing … (the agent does not say more)");
    }

    #[test]
    fn s1_a_tool_of_a_server_poses_as_no_command() {
        let call = json!({"kind": "other", "title": "drop_database", "rawInput": {"command": "ls", "description": "all of it"}});
        let asked = subject(&call);
        assert_eq!((asked.tool(), asked.head_is_whole(), asked.notes()), (Some("other"), false, &[][..]));
        let shown = asked.in_full().join("\n");
        assert!(
            shown.contains("it says: drop_database") && shown.contains("description: all of it"),
            "{shown}"
        );
        let plain = subject(&json!({"kind": "execute", "title": "List", "rawInput": {"command": "ls"}}));
        assert_eq!((plain.head().as_str(), plain.head_is_whole()), ("bash: ls", true));
    }

    #[test]
    fn s24_a_yes_is_never_wider_than_this_one_time() {
        let ask = |kinds: &[&str]| {
            let question =
                Question::new("7", subject(&json!({"kind": "execute", "rawInput": {"command": "ls"}})));
            let options = kinds.iter().map(|kind| ((*kind).to_owned(), format!("id-{kind}"))).collect();
            let permission =
                Permission { id: json!(7), call: "c".into(), options, subject: question.subject.clone() };
            (question, BTreeMap::from([("7".to_owned(), permission)]))
        };
        let chosen = |kinds: &[&str], answer: &Answer| {
            let (question, requests) = ask(kinds);
            reply(&requests, &question, answer).map(|line| line["result"]["outcome"]["optionId"].clone())
        };
        let all = ["allow_always", "allow_once", "reject_once"];
        assert_eq!(chosen(&all, &Answer::Allow).unwrap(), "id-allow_once");
        assert_eq!(chosen(&["allow_always"], &Answer::Allow).unwrap_err().code(), Code::UnsupportedOption);
        assert_eq!(
            chosen(&all, &Answer::AllowAlways).unwrap_err().code(),
            Code::NoSuchRule,
            "no rule is shown"
        );
        let (_, requests) = ask(&all);
        let other = Question::new("7", subject(&json!({"kind": "execute", "rawInput": {"command": "rm x"}})));
        assert_eq!(reply(&requests, &other, &Answer::Allow).unwrap_err().code(), Code::QuestionChanged);
    }

    #[test]
    fn white_space_around_a_prompt_is_kept() {
        assert_eq!(prompt("do it"), "do it");
        assert_eq!(prompt("do it\n"), "do it\n\n(That is the whole task.)");
        assert_eq!(prompt(" /x"), "(The task follows.)\n /x");
        assert_eq!(prompt("/allow-all"), "(The task follows.)\n/allow-all");
    }
}
