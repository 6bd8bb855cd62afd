//! What a session is doing, by the events that its agent sends.
//!
//! | event | busy | idle | blocked | gone |
//! |---|---|---|---|---|
//! | start (startup, resume, clear) | idle | idle | idle | idle |
//! | prompt, woken, continued, tool, request | busy | busy | busy | busy |
//! | permission asked | blocked | blocked | blocked | blocked |
//! | question settled | – | – | busy | – |
//! | stop, interrupt, idle notice | idle | idle | idle | idle |
//! | compaction, anything of a subagent | – | – | – | – |
//! | end | gone | gone | gone | gone |
//!
//! A gone session that sends an event is back: resume keeps the id. If the agent has its own
//! registry, that wins over events that never came (an interrupted dialog sends none).

use crate::event::{Event, EventKind};

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// A turn is running.
    Busy,
    /// Waiting for its person, or for mail.
    Idle,
    /// Waiting for a permission or an answer.
    Blocked,
    /// The session or its process has ended.
    Gone,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Idle => "idle",
            Self::Blocked => "blocked",
            Self::Gone => "gone",
        }
    }

    /// Reads what [`as_str`](Self::as_str) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Busy, Self::Idle, Self::Blocked, Self::Gone].into_iter().find(|state| state.as_str() == text)
    }
}

/// The new state of a session after an event, if it changes.
pub fn change(from: State, event: &Event) -> Option<State> {
    // An answer may come too late. Then it says nothing about a turn that is over.
    let is_late = event.kind == EventKind::QuestionSettled && from != State::Blocked;
    after(event).filter(|to| *to != from && !is_late)
}

/// The state after an event; `None` if the event says nothing about it.
pub fn after(event: &Event) -> Option<State> {
    if event.subagent.is_some() {
        return None;
    }
    match event.kind {
        EventKind::Start(source) if source.is_new_turnless() => Some(State::Idle),
        EventKind::Prompt
        | EventKind::Woken
        | EventKind::Continued
        | EventKind::BeforeTool
        | EventKind::AfterTool
        | EventKind::AfterTools
        | EventKind::Request => Some(State::Busy),
        EventKind::Blocked => Some(State::Blocked),
        EventKind::QuestionSettled => Some(State::Busy),
        EventKind::Stop | EventKind::Interrupted | EventKind::IdleNotice => Some(State::Idle),
        EventKind::End => Some(State::Gone),
        EventKind::Start(_)
        | EventKind::Compacting
        | EventKind::SubagentStart
        | EventKind::SubagentStop
        | EventKind::PushFailed
        | EventKind::Other
        | EventKind::Unknown => None,
    }
}
