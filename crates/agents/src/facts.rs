//! An agent in constants: its names, its tools, its quirks, and its column in `docs/agents.md`.
//!
//! How much mail an event takes is not here: that page asks the adapter itself.

use crate::call::Shape;
use crate::tools::Tools;
use baton_core::frame::Answers;
use baton_core::guard::HookSwitch;
use baton_core::time::Span;

/// The constant facts about one agent. The texts are for people.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The agent's name on baton's command line.
    pub name: &'static str,
    /// The agent's name for people.
    pub title: &'static str,
    /// The program's name on the search path.
    pub program: &'static str,
    /// The version that the adapter was verified with; `None` if it follows the documentation only.
    pub verified: Option<&'static str>,
    /// What the agent calls its tools.
    pub tools: &'static Tools,
    /// Where the parts of a tool call are in its payloads.
    pub calls: &'static Shape,
    /// Where the agent behaves differently from most.
    pub quirks: Quirks,
    /// What runs baton's code there.
    pub runs: &'static str,
    /// Where the user sees who wrote what, when mail comes.
    pub shows: &'static str,
    /// What proves that the model was shown mail.
    pub proof: &'static str,
    /// How hooks, shells and MCP calls know the session's id.
    pub session: &'static str,
    /// How baton tells a subagent from its parent.
    pub subagents: &'static str,
    /// What happens if a hook fails, takes too long, or is missing.
    pub failing: &'static str,
    /// Whether a hook can refuse a tool call.
    pub deny: &'static str,
    /// Whether a person can be asked about a tool call.
    pub ask: &'static str,
    /// Whether a hook can change the input of a tool call.
    pub rewrite: &'static str,
    /// Whether a hook can replace the output of a tool call.
    pub redact: &'static str,
    /// What to do so that an idle session can be woken; `doctor` shows it.
    pub wakeable: &'static str,
    /// Which sessions have what setup has just written; setup says it.
    pub after_setup: &'static str,
    /// Environment variables that mark this agent's child processes. baton removes them before it
    /// starts another agent from there.
    pub variables: &'static [&'static str],
    /// Files and folders below the home that hold the agent's login. The guard knows them too: a
    /// test compares.
    pub logins: &'static [&'static str],
    /// How the agent can be told to skip hooks. The guard keeps agents from doing that.
    pub switch: HookSwitch,
    /// What baton can't cover with this agent, one short line each; `doctor` shows them.
    pub holes: &'static [&'static str],
}

/// Where an agent behaves differently from most: `Quirks { shows_requests: true, ..Quirks::USUAL
/// }`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Quirks {
    /// How the agent's models can answer mail.
    pub answers: Answers,
    /// How long the agent lets a tool of an MCP server run, with some time to spare.
    pub mcp_tool_time: Span,
    /// The text that a hook prints at the start of a session reaches the conversation.
    pub hears_at_start: bool,
    /// Only the transcript says that the conversation was summarized.
    pub writes_summaries: bool,
    /// The hook of a prompt that is typed into a running turn runs at once, with that turn's id.
    /// The agent holds the text back, and the user may take it back without a trace.
    pub holds_typed_ahead: bool,
    /// The plugin sees each request to the model. That is better proof than a transcript, which is
    /// then not read.
    pub shows_requests: bool,
    /// Payloads and transcripts name turns. An agent without names must write each line before what
    /// follows from it, and run its prompt hooks only between turns.
    pub names_turns: bool,
    /// The payload at the end of a turn always says whether a hook has held the turn before.
    pub reports_held_stops: bool,
    /// Stop hooks also run when the user interrupts a turn, and the payload does not say so. Then
    /// the transcript shows that the turn was taken back.
    pub stops_when_interrupted: bool,
    /// Sessions go on after their terminal is closed, so that a wake could begin a turn that no
    /// user watches. Then baton wakes a session only if a client of it
    /// ([`is_client`](crate::agent::Waking::is_client)) runs in the same folder.
    pub outlives_terminals: bool,
    /// Sessions end with the plugin. Not so if they also have hooks, which go on without it and
    /// report the end.
    pub ends_with_plugin: bool,
    /// The program writes into the home even if it is only asked for its version.
    pub writes_when_asked_for_version: bool,
}

impl Quirks {
    /// What most agents do.
    pub const USUAL: Self = Self {
        answers: Answers::ByTool,
        // Most give up after a minute.
        mcp_tool_time: Span::seconds(45),
        hears_at_start: true,
        writes_summaries: false,
        holds_typed_ahead: false,
        shows_requests: false,
        names_turns: true,
        reports_held_stops: true,
        stops_when_interrupted: false,
        outlives_terminals: false,
        ends_with_plugin: true,
        writes_when_asked_for_version: false,
    };
}
