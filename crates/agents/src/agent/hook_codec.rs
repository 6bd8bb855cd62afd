//! Payloads in, answers out.

use super::Profile;
use crate::call::{self, Ruling, ToolCall};
use baton_core::Error;
use baton_core::event::{Event, EventKind, Reply};
use baton_core::frame::Unit;
use baton_core::time::Span;
use serde_json::Value;

/// How much text an agent passes to the model uncut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimit {
    /// The largest size that still arrives whole.
    pub size: usize,
    /// How the agent counts.
    pub unit: Unit,
}

impl ContextLimit {
    /// No text at all.
    pub const NONE: Self = Self::new(0, Unit::Bytes);

    /// A limit of this size.
    pub const fn new(size: usize, unit: Unit) -> Self {
        Self { size, unit }
    }
}

/// A message to our plugin, with the lines that it shows the user.
pub(crate) fn with_glance(mut message: Value, lines: Option<&str>) -> Value {
    if let Some(lines) = lines {
        message["glance"] = Value::from(lines);
    }
    message
}

/// An answer with lines in `systemMessage`, which several agents show their user and not the model.
pub(crate) fn with_system_message(mut answer: Value, lines: Option<&str>) -> String {
    if let Some(lines) = lines {
        answer["systemMessage"] = Value::from(lines);
    }
    answer.to_string()
}

/// Used whenever a hook runs or a plugin reports an event: translates between the agent's JSON and
/// baton's events, replies and rulings.
///
/// A minimal agent: [`parse`](Self::parse), [`render`](Self::render),
/// [`context_limit`](Self::context_limit) and [`render_ruling`](Self::render_ruling). The defaults
/// are right for an agent that has no dialog of its own for a guard rule that asks.
pub trait HookCodec: Profile {
    /// Reads a hook's payload. An event that baton does not know becomes [`EventKind::Unknown`];
    /// only text that is no payload at all is an error. `named` is the event that the hook was
    /// installed for, if the hook's command names it: some payloads don't.
    fn parse(&self, payload: &[u8], named: Option<&str>) -> Result<Event, Error>;

    /// The reply in the agent's own form, as a command hook prints it. Empty means silence.
    ///
    /// `glance` is what the agent shows its user about the mail in the reply, and never the model.
    fn render(&self, event: &Event, reply: &Reply, glance: Option<&str>) -> String;

    /// How much text the agent passes to the model uncut at this event; `None` if it passes on
    /// nothing.
    fn context_limit(&self, event: EventKind) -> Option<ContextLimit>;

    /// What a hook that is called as an MCP tool must answer to say nothing.
    fn empty_mcp_reply(&self) -> &'static str {
        ""
    }

    /// Reads the tool call in a payload, for the guard; `None` if the payload is not about a call.
    /// Unlike [`parse`](Self::parse) it needs no session, and no event if `named` gives it.
    fn call(&self, payload: &[u8], named: Option<&str>) -> Result<Option<ToolCall>, Error> {
        call::read(payload, named, self.facts().calls, self.tools())
    }

    /// The guard's ruling in the agent's own form. If the agent can't do what the ruling says, this
    /// is the nearest stricter answer.
    fn render_ruling(&self, call: &ToolCall, ruling: &Ruling) -> String;

    /// The answer that makes the agent ask its user about a call in its own terminal; `None` if it
    /// has no such answer.
    fn render_ask(&self, _call: &ToolCall, _why: &str) -> Option<String> {
        None
    }

    /// The answer that makes our plugin pause a call which a guard rule wants confirmed, and report
    /// it as a question. `hold` is the longest pause. `None` if the plugin can't pause calls.
    fn render_hold(&self, _call: &ToolCall, _why: &str, _hold: Span) -> Option<String> {
        None
    }

    /// The answer that lets a call run after a person confirmed it. Empty if silence does that.
    fn render_go_on(&self) -> &'static str {
        ""
    }
}
