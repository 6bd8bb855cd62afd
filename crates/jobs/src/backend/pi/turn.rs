//! A running turn: Pi's events as observations, and what can be done about the turn.
//!
//! Pi has finished a prompt when it says `agent_settled`. Before that it may retry, compact, or
//! take more messages.

use super::{QUESTION_PREFIX, recall};
use crate::backend::child::{Child, Ended};
use crate::backend::replies::Replies;
use crate::backend::{Report, Turn, describe, is_same, no_rule, tree};
use baton_core::approval::{Answer, Extent, Part, Question, Subject};
use baton_core::job::{Finish, Observation, Said, Snapshot, Tool, ToolState};
use baton_core::process::Process;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_machine::clock::now;
use serde_json::{Value, json};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(9);
/// How long it may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the program has to end by itself.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of an answer is reported as progress.
const PROGRESS_CHARS: usize = 200;

/// The turn of one job.
pub(super) struct Running {
    pub(super) child: Arc<Child>,
    pub(super) state: Arc<State>,
}

/// What was heard so far, in the order of Pi's output.
pub(super) struct State {
    report: Report,
    replies: Replies,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    tools: Vec<Tool>,
    asked: Vec<Asked>,
    /// The last message of the model.
    last: Value,
    version: u64,
    busy: bool,
    over: bool,
    closing: bool,
    /// It was asked to stop. So it was aborted, whatever its last message says.
    aborting: bool,
    /// The end of a program's stderr.
    last_words: String,
}

/// A dialog that waits.
struct Asked {
    question: Question,
    /// The call that waits for it, if the extension asks.
    call: Option<String>,
    method: String,
}

impl State {
    pub(super) fn new(report: Report) -> Self {
        Self { report, replies: Replies::default(), inner: Mutex::default() }
    }

    /// Takes in a line of its output.
    pub(super) fn hear(&self, line: &str) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        if event["type"] == "response" {
            if let Some(number) = event["id"].as_str().and_then(|id| id.parse().ok()) {
                self.replies.give(number, event);
            }
            return;
        }
        let told = self.inner().told(&event);
        for observation in told {
            (self.report)(observation);
        }
    }

    /// The program ended.
    pub(super) fn ended(&self, how: &Ended) {
        let closing = {
            let mut inner = self.inner();
            inner.last_words = how.in_words();
            inner.closing
        };
        self.replies.close();
        if !closing {
            (self.report)(Observation::Gone(how.in_words()));
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn told(&mut self, event: &Value) -> Vec<Observation> {
        self.version += 1;
        match event["type"].as_str().unwrap_or_default() {
            "agent_start" => {
                (self.busy, self.over) = (true, false);
                vec![Observation::Busy]
            }
            "message_end" => self.message(&event["message"]),
            "tool_execution_start" => vec![self.tool(event, ToolState::Running, 0)],
            "tool_execution_update" => {
                vec![self.tool(event, ToolState::Running, size(&event["partialResult"]))]
            }
            "tool_execution_end" => vec![self.tool(event, ToolState::Ended, size(&event["result"]))],
            "auto_retry_start" => {
                let message = event["errorMessage"].as_str().unwrap_or_default().to_owned();
                let until = event["delayMs"].as_i64().map(|delay| now().plus(Span(delay)));
                vec![Observation::Retrying { message, until }]
            }
            "extension_ui_request" => self.dialog(event),
            "agent_settled" => self.settled(),
            "message_update" | "turn_start" => vec![Observation::Progress(String::new())],
            "compaction_start" => vec![Observation::Progress("compaction".to_owned())],
            "extension_error" => {
                let words = event["error"].as_str().unwrap_or_default();
                let mut told = vec![Observation::Progress(format!("extension: {words}"))];
                if event["event"] == "send_user_message" && !self.busy {
                    // The prompt was not taken, and nothing else will say so.
                    let fault = describe::fault("pi", None, words, now());
                    told.extend([Observation::Fault(fault), Observation::Idle]);
                }
                told
            }
            _ => Vec::new(),
        }
    }

    fn message(&mut self, message: &Value) -> Vec<Observation> {
        if message["role"] != "assistant" {
            return Vec::new();
        }
        self.last = message.clone();
        let text = recall::text(message);
        let head = Observation::Progress(text.chars().take(PROGRESS_CHARS).collect());
        // Another try may follow an error. It counts only when Pi is settled.
        let said = recall::finish(message).map(|finish| Observation::Said(Said { text, finish }));
        [Some(head), said].into_iter().flatten().collect()
    }

    /// It will not go on by itself.
    fn settled(&mut self) -> Vec<Observation> {
        self.over = true;
        let ended = std::mem::take(&mut self.tools).into_iter();
        let ended = ended.map(|tool| Observation::Tool(Tool { state: ToolState::Ended, ..tool }));
        let mut told: Vec<_> = ended.collect();
        told.extend(
            std::mem::take(&mut self.asked).into_iter().map(|asked| Observation::Settled(asked.question.id)),
        );
        match self.end() {
            End::Failed => told.push(Observation::Fault(recall::fault(&self.last))),
            End::Aborted => told.push(Observation::Aborted),
            End::Said => {}
        }
        told.push(Observation::Idle);
        told
    }

    fn end(&self) -> End {
        match self.last["stopReason"].as_str() {
            _ if self.aborting => End::Aborted,
            Some("aborted") => End::Aborted,
            Some("error") => End::Failed,
            _ => End::Said,
        }
    }

    fn tool(&mut self, event: &Value, state: ToolState, output: u64) -> Observation {
        let call = event["toolCallId"].as_str().unwrap_or_default();
        let name = event["toolName"].as_str().unwrap_or_default();
        let tool = Tool { output, ..describe::tool("pi", call, name, &event["args"], state) };
        let known = self.tools.iter().position(|known| known.call == call);
        let before = known.map(|at| self.tools.remove(at));
        // The end does not repeat what it was.
        let tool = match before {
            Some(before) => Tool { what: before.what, kind: before.kind, ..tool },
            None => tool,
        };
        if state != ToolState::Ended {
            self.tools.push(tool.clone());
        }
        Observation::Tool(tool)
    }

    /// A dialog of an extension, or something that it shows.
    fn dialog(&mut self, event: &Value) -> Vec<Observation> {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let (id, method, title) = (text("id").to_owned(), text("method").to_owned(), text("title"));
        let ours =
            title.strip_prefix(QUESTION_PREFIX).and_then(|asked| serde_json::from_str::<Value>(asked).ok());
        let choices = event["options"].as_array().into_iter().flatten();
        let choices: Vec<_> = choices.filter_map(|choice| Some(choice.as_str()?.to_owned())).collect();
        let subject = match (&ours, method.as_str()) {
            (Some(asked), _) => {
                let name = asked["tool"].as_str().unwrap_or_default();
                let subject =
                    baton_agents::asked::permission(&baton_agents::pi::tools::TOOLS, name, &asked["input"]);
                subject.with_always(Some(format!("exactly this call of {name}, for the rest of this job")))
            }
            (None, "confirm") => {
                let parts = vec![Part::new("it says", title), Part::new("message", text("message"))];
                Subject::permission(None, parts, Extent::Whole)
            }
            (None, "select" | "input" | "editor") => {
                let about: Vec<_> = choices.iter().map(|choice| (choice.clone(), String::new())).collect();
                let mut parts = vec![Part::question(title, &about)];
                let more =
                    ["message", "placeholder", "prefill"].into_iter().filter(|name| !text(name).is_empty());
                parts.extend(more.map(|name| Part::new(name, text(name))));
                Subject::input(None, parts, choices)
            }
            // The rest is shown only, and takes no answer.
            _ => return Vec::new(),
        };
        let about = ours.as_ref().and_then(|asked| {
            describe::tool_use("pi", asked["tool"].as_str().unwrap_or_default(), &asked["input"])
        });
        let call = ours.and_then(|asked| Some(asked["call"].as_str()?.to_owned()));
        let question = Question::new(id, subject).about(about);
        let mut told: Vec<_> = self.mark(call.as_deref(), ToolState::Pending).into_iter().collect();
        told.push(Observation::Asked(question.clone()));
        self.asked.push(Asked { question, call, method });
        told
    }

    fn mark(&mut self, call: Option<&str>, state: ToolState) -> Option<Observation> {
        let tool = self.tools.iter_mut().find(|tool| Some(tool.call.as_str()) == call)?;
        tool.state = state;
        Some(Observation::Tool(tool.clone()))
    }
}

/// How a turn ended.
enum End {
    Said,
    Failed,
    Aborted,
}

fn size(result: &Value) -> u64 {
    let parts = result["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).map(|text| text.len() as u64).sum()
}

/// An answer in the format of a dialog.
fn reply(asked: &Asked, answer: &Answer) -> Result<Value, Error> {
    let unfit =
        |why: &str| Err(Error::new(Code::Usage, format!("the question can't be answered like that: {why}")));
    let fields = match (asked.call.is_some(), asked.method.as_str(), answer) {
        (true, _, Answer::Words(_)) | (false, "confirm", Answer::Words(_)) => {
            return unfit("it needs a yes or a no");
        }
        (true, _, Answer::Allow) => json!({"value": json!({"allow": "once"}).to_string()}),
        (true, _, Answer::AllowAlways) => json!({"value": json!({"allow": "always"}).to_string()}),
        (true, _, Answer::Deny(words)) => {
            json!({"value": json!({"allow": "no", "words": words}).to_string()})
        }
        (false, _, Answer::AllowAlways) => return Err(no_rule()),
        (false, "confirm", Answer::Allow) => json!({"confirmed": true}),
        (false, "confirm", Answer::Deny(_)) => json!({"confirmed": false}),
        (false, _, Answer::Allow) => return unfit("it needs an answer in words"),
        (false, _, Answer::Deny(_)) => json!({"cancelled": true}),
        (false, "select", Answer::Words(words)) if !asked.question.subject.choices().contains(words) => {
            return unfit(&format!("it wants one of {}", asked.question.subject.choices().join(", ")));
        }
        (false, _, Answer::Words(words)) => json!({"value": words}),
    };
    let mut reply = json!({"type": "extension_ui_response", "id": asked.question.id});
    for (name, value) in fields.as_object().into_iter().flatten() {
        reply[name] = value.clone();
    }
    Ok(reply)
}

impl Running {
    /// Sends a command, and waits for the data of the answer.
    pub(super) fn call(&self, command: &Value, limit: Duration) -> Result<Value, String> {
        let (number, reply) = self.state.replies.register();
        let mut command = command.clone();
        command["id"] = number.to_string().into();
        let reply = match self.child.write_line(&command.to_string()) {
            Ok(()) => reply.recv_timeout(limit),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        self.state.replies.forget(number);
        match reply {
            Ok(mut reply) if reply["success"] == true => Ok(reply["data"].take()),
            Ok(reply) => Err(reply["error"].as_str().unwrap_or("refused").to_owned()),
            Err(RecvTimeoutError::Timeout) => Err("it did not answer in time".to_owned()),
            Err(RecvTimeoutError::Disconnected) => {
                // Its stderr comes with its end.
                self.child.wait(EXIT_TIMEOUT);
                Err(format!("it ended, {}", self.state.inner().last_words))
            }
        }
    }

    /// Removes a dialog, and sends its answer.
    fn settle(&self, id: &str, reply: impl FnOnce(&Asked) -> Result<Value, Error>) -> Result<(), Error> {
        let mut told = Vec::new();
        {
            let mut inner = self.state.inner();
            let Some(at) = inner.asked.iter().position(|asked| asked.question.id == id) else {
                return Err(Error::new(Code::JobRunning, format!("question {id} is not open any more"))
                    .hint("`baton job status` shows what the job waits for"));
            };
            let line = reply(&inner.asked[at])?;
            if self.child.write_line(&line.to_string()).is_err() {
                return Err(Error::new(Code::BackendGone, "Pi ended before it took the answer"));
            }
            // It reports nothing when it has taken one.
            let asked = inner.asked.remove(at);
            told.push(Observation::Settled(asked.question.id));
            told.extend(inner.mark(asked.call.as_deref(), ToolState::Running));
        }
        for observation in told {
            (self.state.report)(observation);
        }
        Ok(())
    }
}

impl Turn for Running {
    fn look(&self) -> Option<Result<Snapshot, String>> {
        let state = match self.call(&json!({"type": "get_state"}), LOOK_TIMEOUT) {
            Ok(state) => state,
            Err(why) => return Some(Err(why)),
        };
        let inner = self.state.inner();
        let mut snapshot = Snapshot {
            // Between two tries it streams nothing, but is not idle.
            idle: Some(inner.over && state["isStreaming"] == false),
            tools: inner.tools.clone(),
            questions: inner.asked.iter().map(|asked| asked.question.clone()).collect(),
            version: inner.version.wrapping_add(state["messageCount"].as_u64().unwrap_or_default()),
            ..Snapshot::default()
        };
        if let Some(finish) = recall::finish(&inner.last).filter(|finish| *finish != Finish::Absent) {
            snapshot.said = Some(Said { text: recall::text(&inner.last), finish });
        }
        if snapshot.idle == Some(true) {
            match inner.end() {
                End::Failed => snapshot.fault = Some(recall::fault(&inner.last)),
                End::Aborted => snapshot.aborted = true,
                End::Said => {}
            }
        }
        Some(Ok(snapshot))
    }

    fn answer(&self, question: &Question, answer: &Answer) -> Result<(), Error> {
        self.settle(&question.id, |asked| {
            is_same(&asked.question.subject, question)?;
            reply(asked, answer)
        })
    }

    fn abort(&self) -> Result<(), String> {
        let open: Vec<_> = {
            let mut inner = self.state.inner();
            inner.aborting |= !inner.over;
            inner.asked.iter().map(|asked| asked.question.id.clone()).collect()
        };
        // An extension that waits for an answer would keep it from ending.
        for id in open {
            let cancel = json!({"type": "extension_ui_response", "id": id, "cancelled": true});
            // An error means that it is gone already.
            self.settle(&id, |_| Ok(cancel)).ok();
        }
        self.call(&json!({"type": "abort"}), STOP_TIMEOUT).map(drop)
    }

    fn root(&self) -> Option<Process> {
        (!self.child.is_over()).then(|| self.child.process())
    }

    fn close(&self) {
        let busy = {
            let mut inner = self.state.inner();
            inner.closing = true;
            inner.busy && !inner.over
        };
        if busy {
            // Its commands end with the turn, or with the program if it does not answer.
            self.abort().ok();
        }
        let below = self.root().map(tree::below).unwrap_or_default();
        self.child.close_input();
        if !self.child.wait(EXIT_TIMEOUT) {
            self.child.end(EXIT_TIMEOUT);
        }
        tree::kill(&below);
    }
}
