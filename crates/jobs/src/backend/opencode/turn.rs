//! A turn of OpenCode: its events, its state, and what can be sent to it.
//!
//! The events of a folder are those of all its sessions. Those of the job's session and of its
//! subagents' sessions count. The subagents' questions are the job's questions, and what they do is
//! its progress.

mod questions;

use super::api::{Api, Failure, Next};
use super::keeper::Held;
use super::read;
use crate::backend::lock;
use crate::backend::{Report, Turn};
use baton_agents::opencode::asked;
use baton_core::approval::{Answer, Question};
use baton_core::job::{Allow, Channel, Fault, Finish, Observation, Snapshot, Tool, ToolState};
use baton_core::process::Process;
use baton_core::time::Moment;
use baton_core::{Code, Error};
use baton_machine::{clock::now, process};
use questions::{Asked, Likeness};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The limit of one call of a look. There are four.
const LOOK_LIMIT: Duration = Duration::from_millis(2500);
/// The limit of a call for an answer or an abort.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait for the first event. Without it the job goes on, and looks find out what
/// happens.
const LISTEN_LIMIT: Duration = Duration::from_secs(15);
/// How many of the last messages a look reads. What is open is in the last one or two.
const LAST_MESSAGES: usize = 20;
/// How often streamed text is reported as progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// The wait before the events are requested again after they broke off.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// If an answer ends without a reason (the connection to the provider was cut, or an error came in
/// place of an answer), OpenCode asks again at once, without an end. This many in a row are a
/// fault.
const MAX_UNFINISHED_ANSWERS: u32 = 3;
/// How long an aborted turn may take until it is idle.
const ABORT_LIMIT: Duration = Duration::from_secs(2);
const ABORT_INTERVAL: Duration = Duration::from_millis(50);

/// A turn that was begun.
pub(super) struct Running {
    its: Arc<Its>,
    held: Mutex<Option<Held>>,
}

/// What the thread that reads the events shares with the callers.
pub(super) struct Its {
    pub(super) api: Api,
    pub(super) session: String,
    /// The id of the prompt's message.
    pub(super) prompt: String,
    allow: Allow,
    server: Process,
    report: Report,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The job's session and those below it.
    family: HashSet<String>,
    /// The texts of the messages that are being written, by message and part, in the order of their
    /// ids.
    texts: HashMap<String, Vec<(String, String)>>,
    /// The messages that were reported.
    told: HashSet<String>,
    /// The tool calls that run, by their ids.
    running: HashMap<String, Tool>,
    asked: HashMap<String, Asked>,
    /// What was allowed for the rest of the job. OpenCode's own `always` would count for every
    /// session of the project.
    always: Vec<Likeness>,
    /// What ended the turn. If there is no message yet, no message has it.
    fault: Option<Fault>,
    aborted: bool,
    /// Answers in a row that ended without a reason and without a tool call.
    endless: u32,
    connected: bool,
    lost: bool,
    closed: bool,
    gone: bool,
    last_progress: Option<Instant>,
}

impl Running {
    /// Listens to the session. Returns when its events come, or can't be had.
    pub(super) fn listen(
        api: Api,
        session: &str,
        prompt: &str,
        allow: Allow,
        held: Held,
        report: Report,
    ) -> Self {
        let state = State { family: HashSet::from([session.to_owned()]), ..State::default() };
        let its = Arc::new(Its {
            api,
            session: session.to_owned(),
            prompt: prompt.to_owned(),
            allow,
            server: held.server.process,
            report,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let reader = Arc::clone(&its);
        thread::spawn(move || reader.read_events());
        let state = its.state();
        let waited = its
            .changed
            .wait_timeout_while(state, LISTEN_LIMIT, |state| !(state.connected || state.lost || state.gone));
        drop(waited);
        Self { its, held: Mutex::new(Some(held)) }
    }
}

impl Turn for Running {
    fn look(&self) -> Option<Result<Snapshot, String>> {
        let seen = self.its.snapshot();
        if seen == Err(Failure::Refused) {
            self.its.tell_gone();
        }
        Some(seen.map_err(|failure| failure.in_words()))
    }

    fn answer(&self, question: &Question, answer: &Answer) -> Result<(), Error> {
        self.its.answer(question, answer)
    }

    fn abort(&self) -> Result<(), String> {
        self.its.abort()
    }

    fn root(&self) -> Option<Process> {
        Some(self.its.server).filter(|server| process::is_alive(*server))
    }

    fn close(&self) {
        let was_closed = std::mem::replace(&mut self.its.state().closed, true);
        if was_closed {
            return;
        }
        // No worker would hear of it any more, and other jobs use the same server.
        if self.its.is_busy() {
            self.its.api.post(&self.its.path("abort"), &json!({}), ABORT_LIMIT).ok();
        }
        drop(lock(&self.held).take());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close();
    }
}

impl Its {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn tell(&self, observation: Observation) {
        (self.report)(observation);
    }

    fn path(&self, call: &str) -> String {
        format!("/session/{}/{call}", self.session)
    }

    /// Reads events until the turn is closed or the server is gone.
    fn read_events(&self) {
        loop {
            let ended = self.api.events(|event| self.take(event));
            if self.state().closed {
                return;
            }
            let reason = match ended {
                Ok(()) => return,
                Err(failure) => failure.in_words(),
            };
            // If the server is gone, that shows at once. If it lives, perhaps only the connection
            // was lost.
            if !process::is_alive(self.server) || self.api.version(CALL_LIMIT) == Err(Failure::Refused) {
                return self.tell_gone();
            }
            let was_lost = std::mem::replace(&mut self.state().lost, true);
            if !was_lost {
                self.tell(Observation::Lost(Channel::Stream, reason));
            }
            self.changed.notify_all();
            thread::sleep(RECONNECT_INTERVAL);
        }
    }

    fn tell_gone(&self) {
        let mut state = self.state();
        if state.closed || std::mem::replace(&mut state.gone, true) {
            return;
        }
        drop(state);
        self.changed.notify_all();
        self.tell(Observation::Gone("OpenCode's server is gone".to_owned()));
    }

    fn take(&self, event: &Value) -> Next {
        let mut state = self.state();
        if state.closed {
            return Next::Stop;
        }
        if !std::mem::replace(&mut state.connected, true) {
            self.changed.notify_all();
        }
        let was_lost = std::mem::replace(&mut state.lost, false);
        drop(state);
        if was_lost {
            self.tell(Observation::Found(Channel::Stream));
        }
        let about = &event["properties"];
        match event["type"].as_str().unwrap_or_default() {
            "session.created" | "session.updated" => self.note_child(&about["info"]),
            "permission.asked" | "permission.updated" => self.take_permission(about),
            "question.asked" => self.take_question(about),
            "permission.replied" | "question.replied" | "question.rejected" => self.take_settled(about),
            name => match self.whose(about) {
                Whose::Job => self.take_own(name, about),
                Whose::Child => self.take_of_child(name, about),
                Whose::Other => {}
            },
        }
        Next::More
    }

    fn whose(&self, about: &Value) -> Whose {
        // Older servers name it only inside of what they report.
        let id = [&about["sessionID"], &about["info"]["sessionID"], &about["part"]["sessionID"]];
        match id.iter().find_map(|id| id.as_str()) {
            Some(id) if id == self.session => Whose::Job,
            Some(id) if self.state().family.contains(id) => Whose::Child,
            _ => Whose::Other,
        }
    }

    fn note_child(&self, info: &Value) {
        let (Some(id), Some(parent)) = (info["id"].as_str(), info["parentID"].as_str()) else { return };
        let mut state = self.state();
        if state.family.contains(parent) {
            state.family.insert(id.to_owned());
        }
    }

    fn take_own(&self, name: &str, about: &Value) {
        match name {
            "session.status" => match about["status"]["type"].as_str() {
                Some("busy") => self.tell(Observation::Busy),
                Some("idle") => self.tell(Observation::Idle),
                Some("retry") => self.take_retry(&about["status"]),
                _ => {}
            },
            "session.idle" => self.tell(Observation::Idle),
            "session.error" => self.take_error(&about["error"]),
            "message.updated" => self.take_message(&about["info"]),
            "message.part.updated" => self.take_part(&about["part"]),
            "message.part.delta" => self.progress(String::new()),
            _ => {}
        }
    }

    fn take_of_child(&self, name: &str, about: &Value) {
        match name {
            "message.part.updated" => {
                let tool = read::tool(&about["part"]).filter(|tool| tool.state != ToolState::Ended);
                match tool {
                    Some(tool) => self.tell(Observation::Progress(format!("subagent: {}", tool.what))),
                    None => self.progress(String::new()),
                }
            }
            "message.part.delta" => self.progress(String::new()),
            _ => {}
        }
    }

    fn progress(&self, words: String) {
        let mut state = self.state();
        if state.last_progress.is_some_and(|at| at.elapsed() < PROGRESS_INTERVAL) {
            return;
        }
        state.last_progress = Some(Instant::now());
        drop(state);
        self.tell(Observation::Progress(words));
    }

    fn take_retry(&self, status: &Value) {
        let message = status["message"].as_str().unwrap_or("the provider does not answer").to_owned();
        self.tell(Observation::Retrying { message, until: status["next"].as_i64().map(Moment) });
    }

    fn take_error(&self, error: &Value) {
        if read::is_abort(error) {
            return self.tell_aborted();
        }
        self.take_fault(read::fault(error, now()));
    }

    fn take_fault(&self, fault: Fault) {
        let mut state = self.state();
        // Errors after the first one are about it, with a stack.
        if state.fault.is_some() {
            return;
        }
        state.fault = Some(fault.clone());
        drop(state);
        self.tell(Observation::Fault(fault));
    }

    fn tell_aborted(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.aborted, true) {
            return;
        }
        drop(state);
        self.tell(Observation::Aborted);
    }

    fn take_message(&self, info: &Value) {
        let Some(id) = info["id"].as_str() else { return };
        if info["role"] != "assistant" || !read::is_after(info, &self.prompt) {
            return;
        }
        let mut state = self.state();
        let text = state.texts.get(id).map(|parts| joined(parts)).unwrap_or_default();
        let Some(said) = read::said(info, &text) else { return };
        if !state.told.insert(id.to_owned()) {
            return;
        }
        state.texts.remove(id);
        state.endless = if said.finish == Finish::Unknown { state.endless + 1 } else { 0 };
        let is_endless = state.endless >= MAX_UNFINISHED_ANSWERS;
        drop(state);
        match read::fault_of_message(info) {
            Some(fault) => self.take_fault(fault),
            None => self.tell(Observation::Said(said)),
        }
        if is_endless {
            let message = format!("OpenCode's provider broke off {MAX_UNFINISHED_ANSWERS} answers in a row");
            let hint = "its log says what the provider sent; OpenCode would have asked it for ever";
            self.take_fault(Fault::new(Code::BackendError, message).hint(hint));
            self.api.post(&self.path("abort"), &json!({}), CALL_LIMIT).ok();
        }
    }

    fn take_tool(&self, mut tool: Tool) {
        let mut state = self.state();
        state.endless = 0;
        match tool.state {
            ToolState::Running => _ = state.running.insert(tool.call.clone(), tool.clone()),
            ToolState::Pending | ToolState::Ended => _ = state.running.remove(&tool.call),
        }
        if tool.state == ToolState::Running && state.asked.values().any(|asked| asked.holds(&tool)) {
            tool.state = ToolState::Pending;
        }
        drop(state);
        self.tell(Observation::Tool(tool));
    }

    fn take_part(&self, part: &Value) {
        // Only a message that is being written gets parts, and the prompt was the last before it.
        let Some(message) = part["messageID"].as_str().filter(|id| *id != self.prompt) else { return };
        if let Some(tool) = read::tool(part) {
            return self.take_tool(tool);
        }
        if let (Some(id), "text") = (part["id"].as_str(), part["type"].as_str().unwrap_or_default()) {
            let text = read::text(std::slice::from_ref(part));
            let mut state = self.state();
            let parts = state.texts.entry(message.to_owned()).or_default();
            match parts.iter_mut().find(|(known, _)| known == id) {
                Some((_, known)) => *known = text,
                None => parts.push((id.to_owned(), text)),
            }
        }
        self.progress(String::new());
    }

    fn abort(&self) -> Result<(), String> {
        self.api.post(&self.path("abort"), &json!({}), CALL_LIMIT).map_err(|failure| failure.in_words())?;
        // OpenCode reports the abort before it is true, and not at all while it waits for its
        // provider.
        let end = Instant::now() + ABORT_LIMIT;
        while self.is_busy() {
            if Instant::now() >= end {
                return Err("OpenCode did not stop the turn".to_owned());
            }
            thread::sleep(ABORT_INTERVAL);
        }
        self.tell_aborted();
        Ok(())
    }

    /// Whether the server says that the session is busy. If the server can't be reached, this is
    /// false.
    fn is_busy(&self) -> bool {
        let status = self.api.get("/session/status", LOOK_LIMIT);
        status.is_ok_and(|status| is_at_work(&status[&self.session]))
    }

    /// The whole state, the status first: what is said before a turn is idle is in what is read
    /// after it.
    fn snapshot(&self) -> Result<Snapshot, Failure> {
        let status = self.api.get("/session/status", LOOK_LIMIT)?;
        let is_busy = is_at_work(&status[&self.session]);
        let last = self.path(&format!("message?limit={LAST_MESSAGES}"));
        let mut snapshot = read::turn(&self.api.get(&last, LOOK_LIMIT)?, &self.prompt);
        snapshot.idle = Some(!is_busy);
        // What an aborted turn asked stays in the lists.
        if is_busy {
            let permissions = self.pending("/permission", questions::permission)?;
            let questions = self.pending("/question", asked::question)?;
            snapshot.questions = permissions.into_iter().chain(questions).collect();
        }
        let state = self.state();
        for tool in &mut snapshot.tools {
            let waits =
                |question: &Question| state.asked.get(&question.id).is_some_and(|asked| asked.holds(tool));
            if snapshot.questions.iter().any(waits) {
                tool.state = ToolState::Pending;
            }
        }
        if state.fault.is_some() {
            snapshot.fault = state.fault.clone();
            snapshot.aborted = false;
        } else if state.aborted && !is_busy {
            snapshot.aborted = true;
        }
        Ok(snapshot)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Job,
    Child,
    Other,
}

/// Whether the list of states has a session. An idle one is not in it.
fn is_at_work(status: &Value) -> bool {
    status["type"].as_str().is_some_and(|state| state != "idle")
}

fn joined(parts: &[(String, String)]) -> String {
    parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
