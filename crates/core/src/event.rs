//! The canonical event, which every agent's hook payload becomes, and the answer to it.

use std::path::PathBuf;

/// Why a session started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Startup,
    /// A new conversation: the first of its process, or one that replaces a conversation that ended
    /// there.
    New,
    /// An old conversation goes on, under its old id.
    Resume,
    /// The person cleared the conversation: a new id, the same participant.
    Clear,
    /// A copy of a conversation goes on under a new id: a new participant.
    Fork,
    /// The conversation was compacted; the id stays.
    Compact,
    /// An unknown reason.
    Other,
}

impl Source {
    /// Whether the session begins without a running turn. A compaction can come in the middle of a
    /// turn.
    pub fn is_new_turnless(self) -> bool {
        !matches!(self, Self::Compact)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    Start(Source),
    /// A prompt is about to go to the model.
    Prompt,
    /// The prompt is the line with which baton woke an idle session. It is not from the person.
    Woken,
    /// A turn continues or begins with a text that is not from the person: a stop hook's, or the
    /// agent's note to itself.
    Continued,
    /// A tool is about to run.
    BeforeTool,
    /// One tool has ended.
    AfterTool,
    /// All tools of one model response have ended.
    AfterTools,
    /// A request to the model is about to go out, and its content is known: [`Event::shown`].
    Request,
    /// The turn is about to end.
    Stop,
    /// The agent asks its person for a permission.
    Blocked,
    /// A question that the agent asked its person is settled, whatever the answer was.
    QuestionSettled,
    /// The agent says that it waits for input.
    IdleNotice,
    /// The person interrupted the turn.
    Interrupted,
    /// The conversation is about to be compacted.
    Compacting,
    SubagentStart,
    SubagentStop,
    /// Pushed mail did not enter the conversation, or is not in it any more. [`Event::shown`] has
    /// its mark.
    PushFailed,
    End,
    /// A known event that baton does not use.
    Other,
    /// An unknown event: recorded, never acted on.
    Unknown,
}

/// One event of one session, from any agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// The agent's own name for it, for the trail.
    pub native: String,
    /// The agent's own session id: the truth about who this is.
    pub session_id: String,
    /// The file in which the agent records the conversation.
    pub transcript: Option<PathBuf>,
    /// The folder that the agent works in.
    pub cwd: Option<PathBuf>,
    /// Set when a subagent of the session caused this; such an event never takes mail.
    pub subagent: Option<String>,
    /// The tool, if there is one.
    pub tool: Option<String>,
    /// The agent's ids of the tool calls that this is about.
    pub calls: Vec<String>,
    /// The agent's id of the turn that this belongs to.
    pub turn: Option<String>,
    /// The text of the prompt, if this is one.
    pub prompt: Option<String>,
    /// Whether the turn continues only because a stop hook said so.
    pub stop_active: bool,
    /// For a request: what the model is about to be shown. For a compaction: what the summary
    /// replaces.
    pub shown: Shown,
}

/// The parts of a request to the model that matter for proof.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The marks of offers.
    pub marks: Vec<String>,
    /// The agent's ids of the prompts and tool results.
    pub ids: Vec<String>,
}

impl Event {
    /// An event with only its kind, name and session known.
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

/// baton's answer to an event. Each agent's `render` puts it into that agent's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: the agent continues as if there were no hook.
    Silent,
    /// Text for the model's context.
    Context(String),
    /// Text for the model, and the turn continues instead of stopping.
    Continue(String),
    /// The prompt goes no further, and the person sees the reason.
    Block(String),
}
