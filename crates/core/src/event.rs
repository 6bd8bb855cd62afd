//! The canonical event: what every agent's hook payload is turned into, and what goes back.

use std::path::PathBuf;

/// Why a session started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A new conversation.
    Startup,
    /// A new conversation: the first of its process, or one in the place of the one that has ended there.
    New,
    /// An old conversation goes on, under its old id.
    Resume,
    /// The person cleared the conversation: a new id, the same participant.
    Clear,
    /// A copy of a conversation goes on under a new id: a new participant.
    Fork,
    /// The conversation was compacted; the id stays.
    Compact,
    /// A reason that we don't know.
    Other,
}

impl Source {
    /// Whether the session begins without a running turn. A compaction may come in the middle of one.
    pub fn is_new_turnless(self) -> bool {
        !matches!(self, Self::Compact)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A session started.
    Start(Source),
    /// A prompt is about to go to the model.
    Prompt,
    /// The line with which we woke an idle session comes back as a prompt; whoever asked, it was not the person.
    Woken,
    /// A turn goes on, or begins, by a text that is not the person's: what a stop hook said, or a note of the agent to itself.
    Continued,
    /// A tool is about to run.
    BeforeTool,
    /// One tool has ended.
    AfterTool,
    /// All tools of one model response have ended.
    AfterTools,
    /// The model is about to be asked, and what it will be shown is known: [`Event::shown`].
    Request,
    /// The turn is about to end.
    Stop,
    /// The agent asks its person for a permission.
    Blocked,
    /// The agent says that it waits for input.
    IdleNotice,
    /// The person interrupted the turn.
    Interrupted,
    /// The conversation is about to be compacted.
    Compacting,
    /// A subagent started.
    SubagentStart,
    /// A subagent ended.
    SubagentStop,
    /// What was brought did not come into the conversation, or is not in it any more: [`Event::shown`] has its mark.
    PushFailed,
    /// The session ended.
    End,
    /// An event that we know, and that is nothing to us.
    Other,
    /// An event that we don't know: recorded, never acted on.
    Unknown,
}

/// One event of one session, whatever agent it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The agent's own name for it, for the trail.
    pub native: String,
    /// The agent's own session id: the truth about who this is.
    pub session_id: String,
    /// Where the agent writes the conversation down.
    pub transcript: Option<PathBuf>,
    /// Where the agent works.
    pub cwd: Option<PathBuf>,
    /// Set when a subagent of the session caused this; such an event never takes mail.
    pub subagent: Option<String>,
    /// The tool, where there is one.
    pub tool: Option<String>,
    /// The agent's ids of the tool calls that this is about.
    pub calls: Vec<String>,
    /// The agent's id of the turn that this belongs to.
    pub turn: Option<String>,
    /// The text of the prompt, where this is one.
    pub prompt: Option<String>,
    /// Whether the turn goes on only because a stop hook said so.
    pub stop_active: bool,
    /// What the model is about to be shown, for a request; what a summary has taken the place of, for a compaction.
    pub shown: Shown,
}

/// What is in a request to the model, as far as it matters for proof.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The marks of offers.
    pub marks: Vec<String>,
    /// The agent's ids of the prompts and tool results.
    pub ids: Vec<String>,
}

impl Event {
    /// An event of a kind and a session, with nothing else known.
    pub fn new(kind: EventKind, session_id: impl Into<String>) -> Self {
        Self {
            kind,
            native: String::new(),
            session_id: session_id.into(),
            transcript: None,
            cwd: None,
            subagent: None,
            tool: None,
            calls: Vec::new(),
            turn: None,
            prompt: None,
            stop_active: false,
            shown: Shown::default(),
        }
    }
}

/// What baton answers to an event; each agent's `render` says it in that agent's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: the agent goes on as if there were no hook.
    Silent,
    /// Text for the model's context.
    Context(String),
    /// Text for the model, and the turn goes on instead of stopping.
    Continue(String),
    /// The prompt goes no further, and the person is told why.
    Block(String),
}
