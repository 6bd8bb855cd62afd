//! The one table of agents, and what each has to know.

use crate::asked::{Asked, Asking, Look, Settled, Standing};
use crate::call::{self, Call, Ruling};
use crate::facts::Facts;
use crate::history::{History, HistoryReader};
use crate::install::{Install, InstallError, Target};
use crate::screen::Screen;
use crate::tools::Tools;
use crate::wake::{Idle, Read, Route};
use baton_core::approval::Answer;
use baton_core::event::{Event, EventKind, Reply};
use baton_core::frame::{Answers, Unit};
use baton_core::id::Nonce;
use baton_core::mail::{Anchor, Item};
use baton_core::session::State;
use baton_core::time::{Moment, Span};
use baton_core::{Code, Error};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Every agent that baton speaks to. Adding one is a folder and a row here.
pub const ALL: &[&dyn Agent] = &[
    &crate::claude::Claude,
    &crate::codex::Codex,
    &crate::opencode::OpenCode,
    &crate::gemini::Gemini,
    &crate::copilot::Copilot,
    &crate::cursor::Cursor,
    &crate::pi::Pi,
];

/// Reads the environment; passed in, because libraries don't.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Turns the lines of one transcript, in order, into items.
pub type TranscriptReader = Box<dyn FnMut(&str) -> Vec<Item>>;

/// Who runs a command in an agent's shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// The agent's own session id.
    pub session_id: String,
    /// The id of the tool call, where the agent says it and writes it down.
    pub call: Option<String>,
    /// A subagent runs it.
    pub subagent: bool,
}

/// One agent CLI.
pub trait Agent: Sync {
    /// Who it is, and what people should know about it.
    fn facts(&self) -> &'static Facts;

    /// Its name on our command line.
    fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Its name for people.
    fn title(&self) -> &'static str {
        self.facts().title
    }

    /// The program's name on the search path.
    fn program(&self) -> &'static str {
        self.facts().program
    }

    /// The version that all of this was verified with; `None` where only its documentation was.
    fn verified(&self) -> Option<&'static str> {
        self.facts().verified
    }

    /// Whether it writes into the home of whoever only asks for its version.
    fn writes_when_asked(&self) -> bool {
        false
    }

    /// What it calls its tools.
    fn tools(&self) -> &'static Tools {
        self.facts().tools
    }

    /// Its configuration files, for setup.
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError>;

    /// Reads a hook's payload. An event that we don't know is [`EventKind::Unknown`]; only what is no payload at all is an error.
    /// `named` is the event that the hook was installed for, where its command says it: some payloads don't.
    fn parse(&self, payload: &[u8], named: Option<&str>) -> Result<Event, Error>;

    /// Where the agent writes a session's conversation down, for payloads that don't say it.
    fn transcript_path(&self, _session_id: &str, _env: Env<'_>) -> Option<PathBuf> {
        None
    }

    /// Whether it is this agent that runs a hook which was installed for another one: some read each other's configuration.
    fn runs_foreign_hook(&self, _payload: &[u8], _env: Env<'_>) -> bool {
        false
    }

    /// The answer to the hook before a call of our own MCP tools that makes the call itself say who makes it, as
    /// [`mcp_caller`](Self::mcp_caller) reads it; `None` where calls need no such help.
    fn sign_call(&self, _event: &Event) -> Option<String> {
        None
    }

    /// The answer in the agent's words, as a command hook prints it; empty for silence.
    fn render(&self, event: &Event, reply: &Reply) -> String;

    /// Reads the tool call that a payload is about, to be judged; `None` where it is about none. Unlike [`parse`](Self::parse) it needs
    /// neither a session nor, where `named` says it, the event.
    fn call(&self, payload: &[u8], named: Option<&str>) -> Result<Option<Call>, Error> {
        call::read(payload, named, self.facts().calls, self.tools())
    }

    /// What is said about a call, in the agent's words; empty where it takes nothing of the kind. Where the agent can't do what is asked, the
    /// nearest stronger thing.
    fn render_ruling(&self, call: &Call, ruling: &Ruling) -> String;

    /// What makes it ask its person about a call in its own terminal, where one sits there; `None` where it has no such answer.
    fn render_ask(&self, _call: &Call, _why: &str) -> Option<String> {
        None
    }

    /// What makes our plugin hold a call that a rule of ours wants to be asked about, for so long at most, and tell of it as of a question; `None` where
    /// it does not do that.
    fn render_hold(&self, _call: &Call, _why: &str, _hold: Span) -> Option<String> {
        None
    }

    /// What lets a call go on that our rules asked a person about; empty where silence does.
    fn render_go_on(&self) -> &'static str {
        ""
    }

    /// What the agent asks its person with this event; `None` where it asks nothing, or nothing that can be told.
    fn asked(&self, _payload: &[u8], _event: &Event) -> Option<Asked> {
        None
    }

    /// Whether what an event asks is asked for certain, by what is known of the process and its session. Some run the hook for calls too about which they
    /// ask nobody; what is not certain is left to them.
    fn surely_asks(
        &self,
        _asked: &Asked,
        _event: &Event,
        _args: &[String],
        _env: Env<'_>,
        _read: Read<'_>,
    ) -> bool {
        true
    }

    /// Whether it tells of a question again when its own dialog is there, if this event was not answered. Then that tells of it, and this does not.
    fn tells_again(&self, _event: &Event) -> bool {
        false
    }

    /// An answer to what it asked, as the hook of that very event prints it; `None` where that hook can't give this answer.
    fn render_answer(&self, _event: &Event, _asked: &Asked, _answer: &Answer) -> Option<String> {
        None
    }

    /// An answer to what it asked with this payload, for our plugin to give; `None` where it can't give this answer.
    fn reply(
        &self,
        _payload: &[u8],
        _event: &Event,
        _asked: &Asked,
        _answer: &Answer,
    ) -> Option<serde_json::Value> {
        None
    }

    /// What our plugin says with this event about a question that it has told of.
    fn settled(&self, _payload: &[u8], _event: &Event) -> Option<Settled> {
        None
    }

    /// Whether nobody sits in front of a process of it, by its arguments and by the environment of its hooks.
    fn is_headless(&self, _args: &[String], _env: Env<'_>) -> bool {
        false
    }

    /// How a question stands, as the agent's own files and processes show it; `None` where they don't.
    fn standing(&self, _asking: &Asking<'_>, _look: Look<'_>) -> Option<Standing> {
        None
    }

    /// What a hook that is called as an MCP tool must answer to say nothing.
    fn quiet(&self) -> &'static str {
        ""
    }

    /// How much text the agent passes on whole at this event; `None` where it passes on nothing.
    fn takes(&self, event: EventKind) -> Option<(usize, Unit)>;

    /// How its models can answer mail.
    fn answers(&self) -> Answers {
        Answers::ByTool
    }

    /// How long it lets a tool of an MCP server run, with some time to spare. Most give up after a minute.
    fn lets_tools_run(&self) -> Span {
        Span::seconds(45)
    }

    /// Whether what it is told when a session starts comes into the conversation.
    fn hears_at_start(&self) -> bool {
        true
    }

    /// Whether only its transcript says that the conversation was summarized.
    fn writes_summaries(&self) -> bool {
        false
    }

    /// Whether the hook of a prompt that is typed into a running turn runs at once, with that turn's id, while its text is held back and
    /// may be taken back without a trace.
    fn holds_typed_ahead(&self) -> bool {
        false
    }

    /// Whether its plugin shows us each request to the model. That is proof enough, and better than a transcript, which is then not read.
    fn shows_requests(&self) -> bool {
        false
    }

    /// A push in the words of its plugin; `None` where nothing can be pushed into an idle session. How much it takes is said by
    /// [`takes`](Self::takes) for an idle session.
    fn push(&self, _push: &Push<'_>) -> Option<serde_json::Value> {
        None
    }

    /// How an idle session of it can be made to take a turn, best first. What is listed is tried only if it is really there.
    fn routes(&self, _idle: &Idle<'_>, _read: Read<'_>) -> Vec<Route> {
        if self.takes(EventKind::IdleNotice).is_some() { vec![Route::Plugin] } else { Vec::new() }
    }

    /// Whether sessions of it run on when their terminal is closed, so that waking one could begin a turn which nobody watches. Then a process of it
    /// that has this one's folder and is [`is_client`](Self::is_client) must be there.
    fn outlives_terminals(&self) -> bool {
        false
    }

    /// Whether a process of this agent is one that a person sits in front of.
    fn is_client(&self, _args: &[String]) -> bool {
        true
    }

    /// Whether a hook of ours should wait in the background of this session to wake it, as its environment says.
    fn wants_waiter(&self, _env: Env<'_>) -> bool {
        false
    }

    /// What its plugin is told to wake an idle session, where the prompt hook then brings the mail; `None` where a push carries it itself.
    fn wake(&self, _session_id: &str) -> Option<serde_json::Value> {
        None
    }

    /// Whether its sessions end with the plugin. Not where they also have hooks, which go on without it and tell their end.
    fn ends_with_plugin(&self) -> bool {
        true
    }

    /// Whether its payloads and transcripts name turns. One that has no names must write each line before what follows from it, and ask its
    /// prompt hooks only between turns.
    fn names_turns(&self) -> bool {
        true
    }

    /// Whether its payload at the end of a turn says, always and truly, that the turn was held before.
    fn tells_held_stops(&self) -> bool {
        true
    }

    /// Whether its stop hooks run when the person interrupts a turn too, and nothing in their payload says so. Then the turn has been taken back
    /// in the transcript.
    fn stops_when_interrupted(&self) -> bool {
        false
    }

    /// Where the subagents of a session write their conversations, for agents whose payloads and calls don't say who caused them; `None` where
    /// they do, and for a tool that no subagent has.
    fn subagent_folder(&self, _session_id: &str, _transcript: &Path, _tool: Option<&str>) -> Option<PathBuf> {
        None
    }

    /// Where its past conversations lie, those that were written to since a time.
    fn history(&self, _user_home: &Path, _since: Option<SystemTime>, _env: Env<'_>) -> History {
        History::Unreadable("where its conversations lie is documented nowhere")
    }

    /// Reads the calls of one of them, from its beginning.
    fn history_reader(&self, _file: &Path) -> HistoryReader {
        Box::new(|_| Vec::new())
    }

    /// Reads its transcripts.
    fn transcript(&self) -> TranscriptReader {
        Box::new(|_| Vec::new())
    }

    /// Where an offer stands that was made in answer to the MCP call of this id.
    fn call_anchor(&self, call: &str) -> Anchor {
        Anchor::Call(call.to_owned())
    }

    /// Whose shell this environment is, if it is one of this agent's.
    fn shell(&self, env: Env<'_>) -> Option<Shell>;

    /// Whether this environment is that of one of its shells but names no session; then the process tree must.
    fn is_unnamed_shell(&self, _env: Env<'_>) -> bool {
        false
    }

    /// The process that runs the session, as the environment of its hooks says it.
    fn hook_process(&self, _env: Env<'_>) -> Option<i32> {
        None
    }

    /// Whether a process, by its arguments, is this agent's.
    fn is_process(&self, args: &[String]) -> bool;

    /// What its terminal shows, by a capture with colours. Only what is recognised for certain is ready to be typed into.
    fn screen(&self, _capture: &str) -> Screen {
        Screen::Unknown
    }

    /// Whether such a process runs the sessions of several terminals, so that it names none of them.
    fn is_shared_process(&self, _args: &[String]) -> bool {
        false
    }

    /// Where the agent itself notes what a session does, by its process and transcript; `None` where it keeps no such registry.
    fn registry(&self, _pid: i32, _transcript: &str) -> Option<PathBuf> {
        None
    }

    /// What that file says about a session.
    fn registry_state(&self, _file: &[u8], _session_id: &str) -> Option<State> {
        None
    }

    /// The session and call that an MCP call's `_meta` names, with whether a subagent made it.
    fn mcp_caller(&self, _meta: &serde_json::Map<String, serde_json::Value>) -> McpCaller {
        McpCaller::default()
    }

    /// The same, taken out of the call's arguments, where a plugin of ours puts it because the agent itself does not say who calls.
    fn caller_in_arguments(
        &self,
        _arguments: &mut serde_json::Map<String, serde_json::Value>,
    ) -> Option<McpCaller> {
        None
    }

    /// Whether an MCP call's `_meta` is that of a hook, not of a model.
    fn is_hook_call(&self, _meta: &serde_json::Map<String, serde_json::Value>) -> bool {
        false
    }
}

/// Mail that is pushed into an idle session.
#[derive(Clone, Copy, Debug)]
pub struct Push<'a> {
    /// The agent's own session id.
    pub session_id: &'a str,
    /// The framed mail.
    pub text: &'a str,
    /// The offer's nonce: the same each time that this push is repeated.
    pub nonce: &'a Nonce,
    /// When the offer was made: the same too.
    pub made_at: Moment,
}

/// What an MCP call says about its caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpCaller {
    /// The agent's own session id, where calls carry it.
    pub session_id: Option<String>,
    /// The id of the tool call.
    pub call: Option<String>,
    /// A subagent calls, by what the call itself says.
    pub subagent: bool,
}

/// The agent of that name.
pub fn by_name(name: &str) -> Result<&'static dyn Agent, Error> {
    ALL.iter().copied().find(|agent| agent.name() == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|agent| agent.name()).collect();
        Error::new(Code::UnknownAgent, format!("no agent {}", baton_core::frame::shown(name, 40)))
            .hint(format!("known agents: {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holes_of_an_agent_are_short_lines() {
        for agent in ALL {
            assert!(!agent.facts().holes.is_empty(), "{} leaves something open too", agent.name());
            for hole in agent.facts().holes {
                assert!(!hole.is_empty() && hole.len() <= 120 && !hole.contains('\n'), "{hole}");
            }
        }
    }
}
