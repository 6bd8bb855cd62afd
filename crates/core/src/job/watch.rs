//! The worker's picture of its backend, built from observations.
//!
//! It only remembers. The judges ([`super::judge`]) say what the picture means.

use super::{Channel, Fault, Finish, Observation, Said, Snapshot, Status, Tool, ToolKind, ToolState};
use crate::approval::Question;
use crate::time::{Moment, Span};
use std::collections::BTreeMap;

/// Whether a tool call has a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    Alive,
    Absent,
    /// Processes can't be seen.
    Unknown,
}

/// A tool call that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The call as the backend reports it.
    pub tool: Tool,
    /// When the worker first saw it running.
    pub running_since: Option<Span>,
    /// What the last look found of its processes.
    pub life: Life,
    /// How many looks in a row found no process.
    pub absent: u32,
}

/// A pause of the backend's model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The backend's words.
    pub message: String,
    /// When it will try again.
    pub until: Option<Moment>,
    /// Since when it has been trying, with nothing else in between.
    pub since: Span,
}

/// The last thing that it did, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crumb {
    /// `bash: cargo test`.
    pub what: String,
    pub at: Span,
}

/// Longest breadcrumb, in characters. It must fit on one line of a list.
pub const CRUMB_CHARS: usize = 80;

/// The picture of one backend at work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The backend's own session.
    pub session: Option<String>,
    /// Since when it has reported itself idle.
    pub idle_since: Option<Span>,
    /// How many looks in a row found it idle.
    pub idle_looks: u32,
    /// The last assistant message after the job's prompt.
    pub said: Option<Said>,
    /// What it waits for.
    pub questions: Vec<Question>,
    /// Its model can't be reached now.
    pub retry: Option<Retry>,
    /// The turn ended with an error.
    pub fault: Option<Fault>,
    pub aborted: bool,
    /// Its process or server is gone.
    pub gone: Option<String>,
    /// The last thing that it did.
    pub crumb: Option<Crumb>,
    /// When something of it last changed.
    pub changed_at: Span,
    /// How often a living tool has extended its time.
    pub extensions: u32,
    began: bool,
    lost: BTreeMap<Channel, (Span, String)>,
    tools: BTreeMap<String, Open>,
    version: u64,
}

impl Watch {
    /// Takes an observation in.
    pub fn observe(&mut self, observation: Observation, at: Span) {
        match observation {
            Observation::Session(id) => self.session = Some(id),
            Observation::Busy => {
                self.busy();
                self.changed_at = at;
            }
            Observation::Idle => {
                self.began = true;
                self.idle_since.get_or_insert(at);
                self.retry = None;
            }
            Observation::Progress(words) => self.moved(&words, at),
            Observation::Tool(tool) => {
                self.moved(if tool.state == ToolState::Ended { "" } else { &tool.what }, at);
                self.tool(tool, at);
            }
            Observation::Said(said) => {
                self.moved("", at);
                self.said = Some(said);
            }
            Observation::Asked(question) => {
                self.moved("", at);
                self.questions.retain(|known| known.id != question.id);
                self.questions.push(question);
            }
            Observation::Settled(id) => {
                self.questions.retain(|question| question.id != id);
                self.moved("", at);
            }
            Observation::Retrying { message, until } => {
                let since = self.retry.as_ref().map_or(at, |retry| retry.since);
                self.began = true;
                self.retry = Some(Retry { message, until, since });
            }
            Observation::Fault(fault) => {
                self.fault.get_or_insert(fault);
            }
            Observation::Aborted => self.aborted = true,
            Observation::Looked(snapshot) => self.looked(snapshot, at),
            Observation::Lost(channel, reason) => {
                self.lost.entry(channel).or_insert((at, reason));
            }
            Observation::Found(channel) => {
                self.lost.remove(&channel);
            }
            Observation::Gone(how) => {
                self.gone.get_or_insert(how);
            }
        }
    }

    /// Takes in what a look found of the processes of open tool calls.
    pub fn vitals(&mut self, lives: &[(String, Life)]) {
        for (call, life) in lives {
            if let Some(open) = self.tools.get_mut(call) {
                open.life = *life;
                open.absent = if *life == Life::Absent { open.absent + 1 } else { 0 };
            }
        }
    }

    /// The tool calls that have not ended.
    pub fn open_tools(&self) -> impl Iterator<Item = &Open> {
        self.tools.values()
    }

    /// The running shell calls, and since when.
    pub fn shells(&self) -> impl Iterator<Item = (&str, Span)> {
        let shell = |open: &&Open| open.tool.kind == ToolKind::Shell;
        self.tools
            .values()
            .filter(shell)
            .filter_map(|open| Some((open.tool.call.as_str(), open.running_since?)))
    }

    /// Since when that channel is lost, and why.
    pub fn lost(&self, channel: Channel) -> Option<(Span, &str)> {
        self.lost.get(&channel).map(|(since, reason)| (*since, reason.as_str()))
    }

    /// The status of a job that has not ended.
    pub fn status(&self) -> Status {
        if !self.questions.is_empty() {
            Status::Blocked
        } else if self.began {
            Status::Running
        } else {
            Status::Starting
        }
    }

    fn busy(&mut self) {
        self.began = true;
        self.idle_since = None;
        self.idle_looks = 0;
    }

    /// The backend does something, so it is not idle and its model is reachable.
    fn moved(&mut self, words: &str, at: Span) {
        self.began = true;
        self.retry = None;
        self.changed_at = at;
        let words = words.trim();
        if !words.is_empty() {
            let what: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
            self.crumb = Some(Crumb { what: what.chars().take(CRUMB_CHARS).collect(), at });
        }
    }

    fn tool(&mut self, tool: Tool, at: Span) {
        if tool.state == ToolState::Ended {
            self.tools.remove(&tool.call);
            return;
        }
        let running_since = self.tools.get(&tool.call).and_then(|open| open.running_since);
        // A call that waits for a permission after all does not run, and needs no process.
        let running_since = (tool.state == ToolState::Running).then(|| running_since.unwrap_or(at));
        let open = self.tools.entry(tool.call.clone()).or_insert_with(|| Open {
            tool: tool.clone(),
            running_since,
            life: Life::Unknown,
            absent: 0,
        });
        if open.tool.output != tool.output || open.running_since.is_none() {
            open.absent = 0;
        }
        open.tool = tool;
        open.running_since = running_since;
    }

    /// A look reports everything, so what it does not report is gone.
    fn looked(&mut self, snapshot: Snapshot, at: Span) {
        self.lost.remove(&Channel::Look);
        match snapshot.idle {
            Some(true) => {
                self.idle_since.get_or_insert(at);
                self.idle_looks += 1;
                self.began = true;
            }
            Some(false) => self.busy(),
            None => {}
        }
        self.tools.retain(|call, _| snapshot.tools.iter().any(|tool| tool.call == *call));
        for tool in snapshot.tools {
            self.tool(tool, at);
        }
        self.questions = snapshot.questions;
        if snapshot.said.is_some() {
            self.said = snapshot.said;
        }
        if let Some(fault) = snapshot.fault {
            self.fault.get_or_insert(fault);
        }
        self.aborted |= snapshot.aborted;
        if snapshot.version != self.version {
            self.version = snapshot.version;
            self.changed_at = at;
        }
    }

    /// Whether its last message is an end by itself.
    pub(super) fn has_final_word(&self) -> bool {
        self.said.as_ref().is_some_and(|said| matches!(said.finish, Finish::End | Finish::Length))
    }
}
