//! Claude Code's output as observations, and the answers to it.
//!
//! It asks before a tool (`control_request`), and each answer repeats the call's input. Several
//! lines make one message: a line per block, without the reason for its end. That comes with the
//! `result` of the whole turn.

use super::super::{Report, describe, is_same, no_rule};
use super::read_only;
use baton_agents::claude::asked;
use baton_core::approval::{Answer, Question};
use baton_core::job::{Allow, Fault, Finish, Observation, Said, Tool, ToolKind, ToolState};
use baton_core::time::{Moment, Span};
use baton_core::{Code, Error};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How often a refused login is tried again before it counts: the first refusal may only mean a
/// token that must be renewed.
const MAX_LOGIN_TRIES: u64 = 3;

/// A turn, by the program's output.
pub(super) struct Stream {
    allow: Allow,
    read_only: bool,
    report: Report,
    /// The last message of the model.
    message: Message,
    /// Tool calls that have not ended, oldest first.
    calls: Vec<Call>,
    /// What runs in the background, by its id.
    background: BTreeMap<String, Tool>,
    /// The requests that wait for an answer, by their ids.
    requests: BTreeMap<String, Request>,
    /// When a limit of the account ends.
    again_at: Option<Moment>,
    /// How many results have come, and whether the last one has been handled.
    results_so_far: u64,
    new_result: bool,
    aborting: bool,
    /// Nothing after this matters.
    over: bool,
}

/// A message of the model, as far as it has come.
#[derive(Default)]
struct Message {
    id: String,
    text: String,
}

/// A tool call that has not ended.
struct Call {
    /// The call whose subagent made it; empty for the session's own.
    by: String,
    tool: Tool,
}

/// A request that has no answer yet.
struct Request {
    call: String,
    input: Value,
    /// What people are asked, in the order of the questions.
    asked: Vec<Question>,
    /// The rules that "always" grants, as they are shown.
    always: Vec<Value>,
    /// The questions in it, with the answers so far; empty if it asks for a permission.
    questions: Vec<(String, Option<String>)>,
}

/// An answer that is to be written, and what it settles.
pub(super) struct Answered {
    pub(super) line: Option<Value>,
    settled: Vec<String>,
    call: Option<String>,
}

impl Stream {
    pub(super) fn new(allow: Allow, read_only: bool, report: Report) -> Self {
        Self {
            allow,
            read_only,
            report,
            message: Message::default(),
            calls: Vec::new(),
            background: BTreeMap::new(),
            requests: BTreeMap::new(),
            again_at: None,
            results_so_far: 0,
            new_result: false,
            aborting: false,
            over: false,
        }
    }

    /// Takes a line of its output, and returns the answers to it.
    pub(super) fn line(&mut self, line: &str, now: Moment) -> Vec<Value> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        let mut answers = Vec::new();
        match line["type"].as_str().unwrap_or_default() {
            "system" => self.system(&line, now),
            "assistant" => self.assistant(&line),
            "user" => self.results(&line),
            "rate_limit_event" => self.limit(&line["rate_limit_info"]),
            "control_request" => answers.extend(self.request(&line)),
            "control_cancel_request" => self.withdrawn(text(&line["request_id"])),
            "result" => self.result(&line, now),
            "tool_progress" => self.say(Observation::Progress(String::new())),
            _ => {}
        }
        answers
    }

    /// Its process is gone.
    pub(super) fn ended(&mut self, how: &str) {
        if !self.over {
            self.over = true;
            let gone = Observation::Gone(format!("Claude Code ended: {how}"));
            (self.report)(if self.aborting { Observation::Aborted } else { gone });
        }
    }

    pub(super) fn aborting(&mut self) {
        self.aborting = true;
    }

    pub(super) fn closing(&mut self) {
        self.over = true;
    }

    fn say(&self, observation: Observation) {
        if !self.over {
            (self.report)(observation);
        }
    }

    fn system(&mut self, line: &Value, now: Moment) {
        match text(&line["subtype"]) {
            "init" => {
                self.say(Observation::Session(text(&line["session_id"]).to_owned()));
                self.say(Observation::Busy);
            }
            "api_retry" => self.retry(line, now),
            "background_tasks_changed" => self.tasks(&line["tasks"]),
            "task_progress" => self.say(Observation::Progress(describe::line(text(&line["description"])))),
            "compact_boundary" => self.say(Observation::Progress("compacted the conversation".to_owned())),
            _ => self.say(Observation::Progress(String::new())),
        }
    }

    fn retry(&mut self, line: &Value, now: Moment) {
        let number = |name: &str| line[name].as_u64();
        let status = number("error_status");
        let what = text(&line["error"]).replace('_', " ");
        let message = match status {
            Some(status) => format!("{what} ({status})"),
            None => what,
        };
        let tries = number("attempt").unwrap_or(0);
        if status == Some(401) && tries >= MAX_LOGIN_TRIES {
            self.over(describe::fault("claude", status, &message, now));
            return;
        }
        let delay = line["retry_delay_ms"].as_f64().unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds until a retry")]
        let until = Some(now.plus(Span(delay as i64)));
        self.say(Observation::Retrying { message: format!("{message}, try {tries}"), until });
    }

    fn tasks(&mut self, tasks: &Value) {
        let mut left = std::mem::take(&mut self.background);
        for task in tasks.as_array().into_iter().flatten() {
            let id = text(&task["task_id"]);
            let kind = if task["task_type"] == "local_bash" { ToolKind::Shell } else { ToolKind::Other };
            let what = format!("background: {}", describe::line(text(&task["description"])));
            let tool = Tool { call: format!("task-{id}"), kind, what, state: ToolState::Running, output: 0 };
            if left.remove(id).is_none() {
                self.say(Observation::Tool(tool.clone()));
            }
            self.background.insert(id.to_owned(), tool);
        }
        for tool in left.into_values() {
            self.say(Observation::Tool(Tool { state: ToolState::Ended, ..tool }));
        }
    }

    fn assistant(&mut self, line: &Value) {
        let message = &line["message"];
        let of = text(&line["parent_tool_use_id"]);
        // The program's own words about an error come again with the result.
        if message["model"] == "<synthetic>" {
            return;
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match text(&block["type"]) {
                "text" if of.is_empty() => {
                    let id = text(&message["id"]);
                    if self.message.id != id {
                        self.message = Message { id: id.to_owned(), text: String::new() };
                    }
                    self.message.text.push_str(text(&block["text"]));
                    self.say(Observation::Progress(describe::line(text(&block["text"]))));
                }
                "tool_use" => self.call(of, message, block),
                _ => self.say(Observation::Progress(String::new())),
            }
        }
    }

    fn call(&mut self, of: &str, message: &Value, block: &Value) {
        if of.is_empty() {
            let same = self.message.id == text(&message["id"]);
            let text = if same { self.message.text.clone() } else { String::new() };
            self.say(Observation::Said(Said { text, finish: Finish::ToolCalls }));
        }
        // Of several calls in one message the first runs, and the others wait for it.
        let waits = self.calls.iter().any(|call| call.by == of);
        let state = if waits { ToolState::Pending } else { ToolState::Running };
        let tool = describe::tool("claude", text(&block["id"]), text(&block["name"]), &block["input"], state);
        self.say(Observation::Tool(tool.clone()));
        self.calls.push(Call { by: of.to_owned(), tool });
    }

    /// The results of tools.
    fn results(&mut self, line: &Value) {
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            let call = text(&block["tool_use_id"]);
            let Some(at) = self.calls.iter().position(|open| open.tool.call == call) else { continue };
            let Call { by: of, tool } = self.calls.remove(at);
            self.say(Observation::Tool(Tool { state: ToolState::Ended, ..tool }));
            let asked = |call: &str| self.requests.values().any(|request| request.call == call);
            let next = self.calls.iter_mut().find(|open| open.by == of && !asked(&open.tool.call));
            if let Some(Call { tool, .. }) = next
                && tool.state == ToolState::Pending
            {
                tool.state = ToolState::Running;
                let tool = tool.clone();
                self.say(Observation::Tool(tool));
            }
        }
    }

    fn limit(&mut self, info: &Value) {
        if info["status"] == "rejected" {
            self.again_at = info["resetsAt"].as_i64().map(|seconds| Moment(seconds.saturating_mul(1000)));
        }
    }

    /// It asks for something. What needs no person is answered at once.
    fn request(&mut self, line: &Value) -> Option<Value> {
        let (id, request) = (text(&line["request_id"]), &line["request"]);
        if request["subtype"] != "can_use_tool" {
            return Some(json!({"type": "control_response", "response":
                {"subtype": "error", "request_id": id, "error": "not supported here"}}));
        }
        let (tool, input) = (text(&request["tool_name"]), &request["input"]);
        if self.read_only {
            if let Some(why) = read_only::refusal(tool, input) {
                return Some(response(id, denied(why)));
            }
            if read_only::is_known_reader(tool) && !is_wanted_asked(request, Some("flagSettings")) {
                return Some(response(id, allowed(input)));
            }
        }
        let to_a_person = request["requires_user_interaction"] == true;
        if self.allow == Allow::All && !to_a_person && !is_wanted_asked(request, None) {
            return Some(response(id, allowed(input)));
        }
        self.ask(id, request);
        None
    }

    fn ask(&mut self, id: &str, request: &Value) {
        let (tool, input, call) =
            (text(&request["tool_name"]), &request["input"], text(&request["tool_use_id"]));
        let questions = asked::questions(tool, input);
        let suggested = request["permission_suggestions"].as_array().map_or(&[][..], Vec::as_slice);
        let always = asked::for_the_session(suggested);
        let people: Vec<Question> = if questions.is_empty() {
            let subject = baton_agents::asked::permission(&baton_agents::claude::tools::TOOLS, tool, input)
                .with_note(request["decision_reason"].as_str())
                .with_always(asked::in_words(&always));
            vec![Question::new(id, subject).about(describe::tool_use("claude", tool, input))]
        } else {
            let one = |(number, question)| {
                let subject = asked::to_a_person(tool, std::slice::from_ref(question));
                Question::new(format!("{id}#{number}"), subject)
            };
            questions.iter().enumerate().map(one).collect()
        };
        people.iter().for_each(|question| self.say(Observation::Asked(question.clone())));
        self.turn(call, ToolState::Pending);
        let request = Request {
            call: call.to_owned(),
            input: input.clone(),
            asked: people,
            always,
            questions: questions.into_iter().map(|(question, _)| (question, None)).collect(),
        };
        self.requests.insert(id.to_owned(), request);
    }

    fn turn(&mut self, call: &str, state: ToolState) {
        if let Some(Call { tool, .. }) = self.calls.iter_mut().find(|open| open.tool.call == call)
            && tool.state != state
        {
            tool.state = state;
            let tool = tool.clone();
            self.say(Observation::Tool(tool));
        }
    }

    fn withdrawn(&mut self, id: &str) {
        if let Some(request) = self.requests.remove(id) {
            for question in ids(id, &request) {
                self.say(Observation::Settled(question));
            }
        }
    }

    /// The answer to a request, once all of its questions are answered.
    pub(super) fn answer(&mut self, shown: &Question, answer: &Answer) -> Result<Answered, Error> {
        let question = shown.id.as_str();
        let (id, number) = match question.rsplit_once('#') {
            Some((id, number)) => (id, number.parse::<usize>().ok()),
            None => (question, None),
        };
        let request = self.requests.get_mut(id).ok_or_else(|| {
            Error::new(Code::JobEnded, format!("Claude Code does not wait for {question} any more"))
        })?;
        let held = request.asked.get(number.unwrap_or(0)).ok_or_else(no_rule)?;
        is_same(&held.subject, shown)?;
        let is_input = !request.questions.is_empty();
        let whole = match (answer, number.and_then(|number| request.questions.get_mut(number))) {
            (Answer::Deny(words), _) => Some(denied(words)),
            (Answer::Words(words), Some(asked)) => {
                asked.1 = Some(words.clone());
                request.questions.iter().all(|(_, answer)| answer.is_some()).then(|| answered(request))
            }
            (Answer::Allow, None) if !is_input => Some(allowed(&request.input)),
            (Answer::AllowAlways, None) if !is_input => Some(always(request)?),
            (Answer::Words(_), _) => {
                return Err(Error::new(Code::Usage, "that is a permission: it is allowed or denied"));
            }
            (Answer::Allow | Answer::AllowAlways, _) => {
                return Err(Error::new(Code::Usage, "that is a question: it needs an answer in words"));
            }
        };
        let Some(whole) = whole else {
            return Ok(Answered { line: None, settled: vec![question.to_owned()], call: None });
        };
        let settled = ids(id, request);
        let request = self.requests.remove(id);
        Ok(Answered { line: Some(response(id, whole)), settled, call: request.map(|request| request.call) })
    }

    pub(super) fn answered(&mut self, answered: Answered) {
        for question in answered.settled {
            self.say(Observation::Settled(question));
        }
        if let Some(call) = answered.call {
            self.turn(&call, ToolState::Running);
        }
    }

    /// The number of a result after which only background commands are left, once for each result:
    /// they may be servers that never end.
    pub(super) fn waits_for_commands(&mut self) -> Option<u64> {
        let only_commands = self.background.values().all(|tool| tool.kind == ToolKind::Shell);
        let new = std::mem::take(&mut self.new_result);
        (new && !self.over && only_commands).then_some(self.results_so_far)
    }

    /// Ends the turn after the wait for background commands, unless another result has come since.
    pub(super) fn stop_waiting(&mut self, result: u64) {
        if self.results_so_far == result && !self.over && self.calls.is_empty() {
            for tool in std::mem::take(&mut self.background).into_values() {
                self.say(Observation::Tool(Tool { state: ToolState::Ended, ..tool }));
            }
            let said = Said { text: self.message.text.clone(), finish: Finish::End };
            self.finish([Observation::Said(said), Observation::Idle]);
        }
    }

    fn result(&mut self, line: &Value, now: Moment) {
        let reason = text(&line["terminal_reason"]);
        if self.aborting || reason.starts_with("aborted") {
            self.finish([Observation::Aborted]);
            return;
        }
        let said = text(&line["result"]);
        if line["is_error"] == true || line["subtype"] != "success" {
            let errors: Vec<&str> = line["errors"].as_array().into_iter().flatten().map(text).collect();
            let words = if said.is_empty() { errors.join("; ") } else { said.to_owned() };
            let words = if words.is_empty() { text(&line["subtype"]).replace('_', " ") } else { words };
            let mut fault = describe::fault("claude", line["api_error_status"].as_u64(), &words, now);
            if fault.error.code() == Code::RateLimited {
                fault.again_at = self.again_at.or(fault.again_at);
            }
            self.over(fault);
            return;
        }
        let goes_on = !self.background.is_empty() || line["queued_turn_count"].as_u64().unwrap_or(0) > 0;
        let finish = match text(&line["stop_reason"]) {
            _ if goes_on => Finish::ToolCalls,
            "end_turn" | "stop_sequence" | "refusal" => Finish::End,
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "tool_use" | "pause_turn" => Finish::ToolCalls,
            "" => Finish::Absent,
            _ => Finish::Unknown,
        };
        let whole = &self.message.text;
        let text = if whole.ends_with(said) { whole.clone() } else { said.to_owned() };
        let said = Observation::Said(Said { text, finish });
        if goes_on {
            self.say(said);
            self.results_so_far += 1;
            self.new_result = true;
        } else {
            self.finish([said, Observation::Idle]);
        }
    }

    fn over(&mut self, fault: Fault) {
        self.finish([Observation::Fault(fault)]);
    }

    /// Reports the last observations.
    fn finish(&mut self, last: impl IntoIterator<Item = Observation>) {
        for Call { tool, .. } in std::mem::take(&mut self.calls) {
            self.say(Observation::Tool(Tool { state: ToolState::Ended, ..tool }));
        }
        for (id, request) in std::mem::take(&mut self.requests) {
            ids(&id, &request).into_iter().for_each(|id| self.say(Observation::Settled(id)));
        }
        last.into_iter().for_each(|observation| self.say(observation));
        self.over = true;
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn ids(id: &str, request: &Request) -> Vec<String> {
    match request.questions.len() {
        0 => vec![id.to_owned()],
        count => (0..count).map(|number| format!("{id}#{number}")).collect(),
    }
}

/// Whether a rule of the user or a hook wants a person to be asked, other than a rule from the
/// source `but`.
fn is_wanted_asked(request: &Value, but: Option<&str>) -> bool {
    let other = |source: &Value| source.as_str().is_none_or(|source| Some(source) != but);
    let by = text(&request["decision_reason_type"]);
    by == "hook"
        || by == "rule" && other(&request["decision_reason_rule_source"])
        || request["matched_ask_rule"].is_object() && other(&request["matched_ask_rule"]["source"])
}

fn response(id: &str, answer: Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": answer}})
}

fn allowed(input: &Value) -> Value {
    json!({"behavior": "allow", "updatedInput": input})
}

fn denied(words: &str) -> Value {
    let words = if words.trim().is_empty() { "A person said no to that." } else { words };
    json!({"behavior": "deny", "message": words})
}

/// Allowed, with the rules that were shown; an error if there are none.
fn always(request: &Request) -> Result<Value, Error> {
    if request.always.is_empty() {
        return Err(no_rule());
    }
    let mut answer = allowed(&request.input);
    answer["updatedPermissions"] = request.always.clone().into();
    Ok(answer)
}

fn answered(request: &Request) -> Value {
    let answers: Map<String, Value> = request
        .questions
        .iter()
        .map(|(question, answer)| (question.clone(), answer.clone().unwrap_or_default().into()))
        .collect();
    let mut input = request.input.clone();
    input["answers"] = answers.into();
    allowed(&input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// The answers and the observations for a request.
    fn asked(allow: Allow, read_only: bool, request: Value) -> (Option<String>, Vec<Observation>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let report = Arc::new(move |one: Observation| sink.lock().unwrap().push(one));
        let mut stream = Stream::new(allow, read_only, report);
        let mut whole = json!({"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "c",
            "input": {"command": "make"}});
        for (name, value) in request.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let line = json!({"type": "control_request", "request_id": "r", "request": whole});
        let told = stream.line(&line.to_string(), Moment(0));
        let behavior = told.first().map(|told| text(&told["response"]["response"]["behavior"]).to_owned());
        let seen = seen.lock().unwrap().clone();
        (behavior, seen)
    }

    #[test]
    fn what_needs_no_person_is_answered_at_once_and_the_rest_is_asked() {
        let allowed = Some("allow".to_owned());
        let denied = Some("deny".to_owned());
        let other = json!({"decision_reason_type": "other"});
        let by_hook = json!({"decision_reason_type": "hook", "decision_reason": "guard"});
        let by_rule = json!({"decision_reason_type": "rule", "decision_reason_rule_source": "userSettings"});
        let by_part = json!({"matched_ask_rule": {"source": "userSettings"}});
        let person = json!({"tool_name": "ExitPlanMode", "requires_user_interaction": true});
        assert_eq!(asked(Allow::All, false, other.clone()), (allowed.clone(), Vec::new()));
        for request in [&by_hook, &by_rule, &by_part, &person] {
            let (told, seen) = asked(Allow::All, false, request.clone());
            assert_eq!(told, None, "{request}");
            assert!(matches!(seen[..], [Observation::Asked(_)]), "{request}");
        }
        assert_eq!(asked(Allow::Edits, false, other.clone()).0, None);
        // Read-only: baton's own rule makes it ask about each command.
        let ours = |command: &str| {
            json!({"decision_reason_type": "rule", "decision_reason_rule_source": "flagSettings",
                "input": {"command": command}})
        };
        assert_eq!(asked(Allow::All, true, ours("git diff")).0, allowed);
        assert_eq!(asked(Allow::All, true, ours("make")).0, denied);
        let mut hooked = by_hook;
        hooked["input"] = json!({"command": "git diff"});
        assert_eq!(asked(Allow::All, true, hooked).0, None, "a hook wants a person");
    }

    #[test]
    fn s1_the_whole_call_is_asked_about() {
        let request =
            json!({"input": {"command": "echo harmless\nrm -rf /important", "run_in_background": true}});
        let (_, seen) = asked(Allow::Edits, false, request);
        let [Observation::Asked(question)] = &seen[..] else { panic!("{seen:?}") };
        let shown = question.subject.in_full().join("\n");
        assert!(
            shown.contains("| rm -rf /important") && shown.contains("run_in_background: true"),
            "{shown}"
        );
        assert!(question.subject.head().ends_with("more characters)"), "{}", question.subject.head());
    }

    #[test]
    fn s2_always_grants_the_rule_that_is_shown_and_nothing_without_one() {
        let answered = |suggestions: Value| {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&seen);
            let report = Arc::new(move |one: Observation| sink.lock().unwrap().push(one));
            let mut stream = Stream::new(Allow::Edits, false, report);
            let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "c",
                "input": {"command": "make"}, "permission_suggestions": suggestions});
            let line = json!({"type": "control_request", "request_id": "r", "request": request});
            stream.line(&line.to_string(), Moment(0));
            let seen = seen.lock().unwrap().clone();
            let [Observation::Asked(question)] = &seen[..] else { panic!("{seen:?}") };
            let rule = question.subject.always().map(str::to_owned);
            let other = Question::new("r", baton_core::approval::Subject::command("Bash", "make all"));
            assert_eq!(
                stream.answer(&other, &Answer::Allow).map(drop).unwrap_err().code(),
                Code::QuestionChanged
            );
            (rule, stream.answer(question, &Answer::AllowAlways).map(|answered| answered.line.unwrap()))
        };
        let (rule, refused) = answered(json!([]));
        assert_eq!((rule, refused.unwrap_err().code()), (None, Code::NoSuchRule));
        let suggestion = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
            "rules": [{"toolName": "Bash", "ruleContent": "make:*"}]});
        let (rule, line) = answered(json!([suggestion, {"type": "setMode", "mode": "bypassPermissions"}]));
        assert_eq!(rule.as_deref(), Some("for the rest of the session: Bash(make:*)"));
        let granted = line.unwrap()["response"]["response"]["updatedPermissions"].clone();
        assert_eq!(granted.as_array().map(Vec::len), Some(1), "{granted}");
        assert_eq!(granted[0]["destination"], "session");
    }

    #[test]
    fn other_requests_are_refused_and_never_hang() {
        let mut stream = Stream::new(Allow::All, false, Arc::new(|_| ()));
        let line =
            json!({"type": "control_request", "request_id": "r", "request": {"subtype": "elicitation"}});
        assert_eq!(stream.line(&line.to_string(), Moment(0))[0]["response"]["subtype"], "error");
    }
}
