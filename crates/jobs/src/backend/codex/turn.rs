//! A running turn of a thread: Codex's reports as observations, and what can be done about the
//! turn.
//!
//! Subagents are threads of the same program. Their tools and questions are reported like the
//! turn's own; their ends don't end it.

use super::fault;
use super::question::{self, Asked, Request};
use super::server::{Heard, Server};
use crate::backend::{Report, Turn, is_same, tree};
use baton_core::approval::{Answer, Question};
use baton_core::job::{Fault, Finish, Observation, Said, Snapshot, Tool, ToolKind, ToolState};
use baton_core::process::Process;
use baton_core::time::Moment;
use baton_core::{Code, Error};
use baton_machine::clock::now;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(9);
/// How long it may take to stop a turn, or a terminal.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the program has to end by itself.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of an answer is reported as progress.
const PROGRESS_CHARS: usize = 200;

/// The turn of one job.
pub(super) struct Running {
    pub(super) server: Arc<Server>,
    pub(super) state: Arc<State>,
}

/// What was heard so far, in the order of Codex's output.
pub(super) struct State {
    report: Report,
    /// The folder that the job works in.
    cwd: String,
    inner: Mutex<Inner>,
}

/// A tool call that has not ended.
struct OpenTool {
    /// The thread that made it.
    thread: String,
    tool: Tool,
}

#[derive(Default)]
struct Inner {
    thread: String,
    turn: Option<String>,
    /// The tool calls that have not ended.
    tools: Vec<OpenTool>,
    /// The file changes that have not ended, as Codex reported them.
    changes: BTreeMap<String, Value>,
    requests: Vec<Request>,
    said: String,
    resets_at: Option<Moment>,
    version: u64,
    greeted: bool,
    over: bool,
    closing: bool,
    last_words: Option<String>,
}

impl State {
    pub(super) fn new(report: Report, cwd: &Path) -> Self {
        Self { report, cwd: cwd.to_string_lossy().into_owned(), inner: Mutex::default() }
    }

    /// Names the thread, before its turn begins.
    pub(super) fn set_thread(&self, thread: &str) {
        thread.clone_into(&mut self.inner().thread);
    }

    /// Names the turn, which may have begun already.
    pub(super) fn set_turn(&self, turn: &str) {
        self.inner().turn = Some(turn.to_owned());
    }

    /// It has introduced itself: from now on its end is the end of the job.
    pub(super) fn greeted(&self) {
        self.inner().greeted = true;
    }

    /// The program ended.
    pub(super) fn ended(&self, how: String) {
        let mut inner = self.inner();
        let matters = inner.greeted && !inner.closing;
        inner.last_words = Some(how.clone());
        drop(inner);
        if matters {
            (self.report)(Observation::Gone(how));
        }
    }

    /// How the program ended, if it has.
    pub(super) fn last_words(&self) -> Option<String> {
        self.inner().last_words.clone()
    }

    /// Takes in Codex's output, and answers its requests.
    pub(super) fn hear(&self, server: &Server, heard: &Heard) {
        let told = match &heard.id {
            Some(id) => self.asked(server, id, heard),
            None => self.inner().told(heard),
        };
        for observation in told {
            (self.report)(observation);
        }
    }

    fn asked(&self, server: &Server, id: &Value, heard: &Heard) -> Vec<Observation> {
        let mut inner = self.inner();
        let asked = question::read(heard, &self.cwd, |item| inner.changes.get(item).cloned());
        // If it can't be written to, its end is about to be reported.
        match asked {
            Asked::Person(request) => return inner.ask(request),
            Asked::Answer(answer) => server.reply(id, &answer).ok(),
            Asked::Unknown => server.refuse(id).ok(),
        };
        vec![Observation::Progress(format!("declined: {}", heard.method))]
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn told(&mut self, heard: &Heard) -> Vec<Observation> {
        let params = &heard.params;
        let ours = params["threadId"] == self.thread.as_str();
        self.version += 1;
        match heard.method.as_str() {
            "turn/started" if ours => {
                self.turn = self.turn.take().or_else(|| Some(params["turn"]["id"].as_str()?.to_owned()));
                vec![Observation::Busy]
            }
            "turn/completed" if ours => self.completed(&params["turn"]),
            "turn/completed" => self.end_tools(params["threadId"].as_str()),
            "item/started" => self.tool(params, ToolState::Running).into_iter().collect(),
            "item/completed" => self.item_ended(params, ours),
            "item/commandExecution/outputDelta" => {
                let length = params["delta"].as_str().map_or(0, str::len) as u64;
                self.update(params["itemId"].as_str(), |tool| tool.output += length).into_iter().collect()
            }
            "serverRequest/resolved" => self.resolved(&params["requestId"]),
            "error" if ours && params["willRetry"] == true => {
                let error = &params["error"];
                let words = error["additionalDetails"].as_str().or(error["message"].as_str());
                vec![Observation::Retrying { message: words.unwrap_or_default().to_owned(), until: None }]
            }
            "account/rateLimits/updated" => {
                self.resets_at = fault::resets_at(&params["rateLimits"]).or(self.resets_at);
                Vec::new()
            }
            method if moves(method) => vec![Observation::Progress(String::new())],
            _ => Vec::new(),
        }
    }

    /// The turn is over, and with it its questions and its tools: what still runs in the background
    /// ends with the program.
    fn completed(&mut self, turn: &Value) -> Vec<Observation> {
        if self.turn.as_deref().is_some_and(|ours| turn["id"] != ours) {
            return Vec::new();
        }
        self.over = true;
        let mut told = self.end_tools(None);
        let asked = std::mem::take(&mut self.requests).into_iter().flat_map(|request| request.questions);
        told.extend(asked.map(|question| Observation::Settled(question.id)));
        let end = End::of(turn, self.resets_at);
        if let Some(text) = last_message(turn) {
            text.clone_into(&mut self.said);
        }
        match end {
            End::Completed => {
                let text = self.said.clone();
                told.push(Observation::Said(Said { text, finish: Finish::End }));
            }
            End::Failed(fault) => told.push(Observation::Fault(fault)),
            End::Aborted | End::Died => told.push(Observation::Aborted),
            End::NotYet => {}
        }
        told.push(Observation::Idle);
        told
    }

    fn item_ended(&mut self, params: &Value, ours: bool) -> Vec<Observation> {
        let item = &params["item"];
        match item["type"].as_str() {
            Some("agentMessage") => {
                let text = item["text"].as_str().unwrap_or_default();
                if ours {
                    text.clone_into(&mut self.said);
                }
                vec![Observation::Progress(text.chars().take(PROGRESS_CHARS).collect())]
            }
            Some("userMessage") | None => Vec::new(),
            Some(_) => match self.tool(params, ToolState::Ended) {
                Some(ended) => vec![ended],
                None => vec![Observation::Progress(String::new())],
            },
        }
    }

    /// An item that is a tool call began or ended.
    fn tool(&mut self, params: &Value, state: ToolState) -> Option<Observation> {
        let (kind, what) = what(&params["item"])?;
        let call = params["item"]["id"].as_str()?.to_owned();
        // A question about a change only names the item. What it changes was reported before.
        match (params["item"]["type"].as_str(), state) {
            (_, ToolState::Ended) => _ = self.changes.remove(&call),
            (Some("fileChange"), _) => _ = self.changes.insert(call.clone(), params["item"].clone()),
            _ => {}
        }
        let thread = params["threadId"].as_str().unwrap_or_default();
        let what = if thread == self.thread { what } else { format!("subagent: {what}") };
        let known = self.tools.iter().position(|open| open.tool.call == call);
        let output = known.map_or(0, |at| self.tools.remove(at).tool.output);
        let tool = Tool { call, kind, what, state, output };
        if state != ToolState::Ended {
            self.tools.push(OpenTool { thread: thread.to_owned(), tool: tool.clone() });
        }
        Some(Observation::Tool(tool))
    }

    fn update(&mut self, call: Option<&str>, change: impl FnOnce(&mut Tool)) -> Option<Observation> {
        let OpenTool { tool, .. } =
            self.tools.iter_mut().find(|open| Some(open.tool.call.as_str()) == call)?;
        change(tool);
        Some(Observation::Tool(tool.clone()))
    }

    /// Ends the open tools of a thread, or all of them.
    fn end_tools(&mut self, thread: Option<&str>) -> Vec<Observation> {
        let ended = self.tools.extract_if(.., |open| thread.is_none_or(|thread| thread == open.thread));
        ended.map(|open| Observation::Tool(Tool { state: ToolState::Ended, ..open.tool })).collect()
    }

    fn ask(&mut self, request: Request) -> Vec<Observation> {
        self.version += 1;
        let waits = self.update(request.item.as_deref(), |tool| tool.state = ToolState::Pending);
        let mut told: Vec<_> = waits.into_iter().collect();
        told.extend(request.questions.iter().cloned().map(Observation::Asked));
        self.requests.push(request);
        told
    }

    fn resolved(&mut self, id: &Value) -> Vec<Observation> {
        let Some(at) = self.requests.iter().position(|request| request.id == *id) else { return Vec::new() };
        let request = self.requests.remove(at);
        let settled = request.questions.into_iter().map(|question| Observation::Settled(question.id));
        let mut told: Vec<_> = settled.collect();
        told.extend(self.update(request.item.as_deref(), |tool| tool.state = ToolState::Running));
        told
    }

    fn questions(&self) -> Vec<Question> {
        self.requests.iter().flat_map(|request| request.questions.iter().cloned()).collect()
    }
}

/// Whether a notification means that work goes on.
fn moves(method: &str) -> bool {
    ["item/", "hook/", "turn/plan", "turn/diff"].iter().any(|start| method.starts_with(start))
}

/// What a tool call does; `None` for other items.
fn what(item: &Value) -> Option<(ToolKind, String)> {
    let text = |name: &str| item[name].as_str().unwrap_or_default();
    let told = match text("type") {
        "commandExecution" => return Some((ToolKind::Shell, format!("shell: {}", command(item)))),
        "fileChange" => {
            let changes = item["changes"].as_array().into_iter().flatten();
            let paths: Vec<_> = changes.filter_map(|change| change["path"].as_str()).collect();
            format!("edit: {}", paths.join(", "))
        }
        "mcpToolCall" => format!("{}: {}", text("server"), text("tool")),
        "dynamicToolCall" => text("tool").to_owned(),
        "collabAgentToolCall" => format!("{}: {}", text("tool"), text("prompt")),
        "webSearch" => format!("web search: {}", text("query")),
        "imageView" => format!("view: {}", text("path")),
        "imageGeneration" => "image".to_owned(),
        "sleep" => "sleep".to_owned(),
        _ => return None,
    };
    Some((ToolKind::Other, told))
}

/// A command as the model wrote it, without the shell around it.
pub(super) fn command(item: &Value) -> String {
    let actions = item["commandActions"].as_array().into_iter().flatten();
    let commands: Vec<_> = actions.filter_map(|action| action["command"].as_str()).collect();
    if commands.is_empty() {
        item["command"].as_str().unwrap_or_default().to_owned()
    } else {
        commands.join("; ")
    }
}

/// The text of the last message of the model that a turn shows.
fn last_message(turn: &Value) -> Option<&str> {
    let mut items = turn["items"].as_array()?.iter();
    items.rfind(|item| item["type"] == "agentMessage")?["text"].as_str()
}

/// How far a turn is, by Codex's own record of it.
enum End {
    Completed,
    Failed(Fault),
    Aborted,
    /// Its program was ended in the middle: it is interrupted, without a time.
    Died,
    NotYet,
}

impl End {
    fn of(turn: &Value, resets_at: Option<Moment>) -> Self {
        match turn["status"].as_str() {
            Some("completed") => Self::Completed,
            Some("failed") => Self::Failed(fault::of_turn(&turn["error"], resets_at, now())),
            Some("interrupted") if turn["completedAt"].is_null() => Self::Died,
            Some("interrupted") => Self::Aborted,
            _ => Self::NotYet,
        }
    }
}

/// What a record of a turn says about it.
pub(super) fn snapshot(turn: &Value) -> Snapshot {
    let mut snapshot = Snapshot { idle: Some(true), version: weight(turn), ..Snapshot::default() };
    match End::of(turn, None) {
        End::Completed => {
            let text = last_message(turn).unwrap_or_default().to_owned();
            snapshot.said = Some(Said { text, finish: Finish::End });
        }
        End::Failed(fault) => snapshot.fault = Some(fault),
        End::Aborted => snapshot.aborted = true,
        End::Died => snapshot.idle = None,
        End::NotYet => snapshot.idle = Some(false),
    }
    snapshot
}

/// A number that changes as a turn grows.
fn weight(turn: &Value) -> u64 {
    let items = turn["items"].as_array().map_or(&[][..], Vec::as_slice);
    let texts = items.iter().map(|item| item["text"].as_str().map_or(1, |text| text.len() + 1));
    texts.sum::<usize>() as u64
}

/// The newest turns of a thread, the newest first.
pub(super) fn list(server: &Server, thread: &str, limit: Duration) -> Result<Vec<Value>, String> {
    let wanted = json!({"threadId": thread, "limit": 5, "sortDirection": "desc", "itemsView": "summary"});
    let mut listed =
        server.call("thread/turns/list", &wanted, limit).map_err(|refusal| refusal.in_words())?;
    match listed["data"].take() {
        Value::Array(turns) => Ok(turns),
        _ => Err("`codex app-server` lists no turns".to_owned()),
    }
}

impl Turn for Running {
    fn look(&self) -> Option<Result<Snapshot, String>> {
        let (thread, turn) = {
            let inner = self.state.inner();
            (inner.thread.clone(), inner.turn.clone())
        };
        let turns = match list(&self.server, &thread, LOOK_TIMEOUT) {
            Ok(turns) => turns,
            Err(why) => return Some(Err(why)),
        };
        let ours = turns.iter().find(|listed| turn.as_deref().is_some_and(|turn| listed["id"] == turn));
        // A turn that has just begun is not written down yet.
        let mut snapshot =
            ours.map_or_else(|| Snapshot { idle: Some(false), ..Snapshot::default() }, snapshot);
        let inner = self.state.inner();
        if snapshot.idle == Some(false) {
            // Only the stream reports running tools and open questions.
            snapshot.tools = inner.tools.iter().map(|open| open.tool.clone()).collect();
            snapshot.questions = inner.questions();
            if inner.over {
                snapshot.idle = None;
            }
        }
        snapshot.version = snapshot.version.wrapping_add(inner.version);
        Some(Ok(snapshot))
    }

    fn answer(&self, shown: &Question, answer: &Answer) -> Result<(), Error> {
        let question = shown.id.as_str();
        let (id, reply, steer) = {
            let mut inner = self.state.inner();
            let mut open = inner.requests.iter_mut();
            let is_asked =
                |request: &&mut Request| request.questions.iter().any(|asked| asked.id == question);
            let Some(request) = open.find(is_asked) else {
                return Err(Error::new(
                    Code::JobRunning,
                    format!("question {question} is not open any more"),
                )
                .hint("`baton job status` shows what the job waits for"));
            };
            for asked in request.questions.iter().filter(|asked| asked.id == question) {
                is_same(&asked.subject, shown)?;
            }
            let Some(reply) = request.answer(question, answer)? else { return Ok(()) };
            let steer = match answer {
                Answer::Deny(words) if !words.trim().is_empty() => Some(json!({
                    "threadId": request.thread, "expectedTurnId": request.turn,
                    "input": [{"type": "text", "text": words}],
                })),
                _ => None,
            };
            (request.id.clone(), reply, steer)
        };
        // A "no" takes no words there. So they go ahead of it as a message, which the model reads
        // with the refusal.
        if let Some(steer) = steer {
            self.server.call("turn/steer", &steer, STOP_TIMEOUT).ok();
        }
        self.server
            .reply(&id, &reply)
            .map_err(|_| Error::new(Code::BackendGone, "`codex app-server` ended before it took the answer"))
    }

    fn abort(&self) -> Result<(), String> {
        let (thread, turn) = {
            let inner = self.state.inner();
            (inner.thread.clone(), inner.turn.clone())
        };
        let stopped = match turn {
            Some(turn) => {
                let which = json!({"threadId": thread, "turnId": turn});
                self.server.call("turn/interrupt", &which, STOP_TIMEOUT).map(drop)
            }
            None => Ok(()),
        };
        self.clean();
        stopped.map_err(|refusal| refusal.in_words())
    }

    fn root(&self) -> Option<Process> {
        self.server.child().filter(|child| !child.is_over()).map(|child| child.process())
    }

    fn close(&self) {
        self.state.inner().closing = true;
        self.clean();
        if let Some(child) = self.server.child() {
            let below = self.root().map(tree::below).unwrap_or_default();
            // It exits when its input is closed, and ends its commands.
            child.close_input();
            if !child.wait(EXIT_TIMEOUT) {
                child.end(EXIT_TIMEOUT);
            }
            tree::kill(&below);
        }
    }
}

impl Running {
    /// Ends the commands that still run: interrupting a turn does not. A subagent's commands belong
    /// to its own thread.
    fn clean(&self) {
        let mut threads = vec![self.state.inner().thread.clone()];
        for open in &self.state.inner().tools {
            if !threads.contains(&open.thread) {
                threads.push(open.thread.clone());
            }
        }
        for thread in threads {
            // Older versions don't know this call, and end them with the program.
            self.server
                .call("thread/backgroundTerminals/clean", &json!({"threadId": thread}), STOP_TIMEOUT)
                .ok();
        }
    }
}
