//! A tool call from an agent's hook or plugin, and the guard's ruling on it.
//!
//! A [`Shape`] in the agent's folder says where the parts of a call are in a payload; `read` reads
//! all shapes. Mail does not need this: a hook that only delivers mail never looks at a tool's
//! input or output.

use crate::payload;
use crate::tools::{self, Tools};
use baton_core::Error;
use baton_core::event::EventKind;
use baton_core::tool::ToolUse;
use serde_json::Value;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct ToolCall {
    /// About to run ([`EventKind::BeforeTool`]) or has run ([`EventKind::AfterTool`]).
    pub kind: EventKind,
    /// The agent's own name for the event.
    pub native: String,
    /// The agent's own session id, if the payload has it.
    pub session_id: Option<String>,
    /// The folder that the agent works in.
    pub cwd: Option<PathBuf>,
    /// The agent's own id of the call, the same before and after it. Some agents have none.
    pub id: Option<String>,
    /// The tool and its input, in baton's form.
    pub tool: ToolUse,
    /// The input in the agent's own form.
    pub input: Value,
    /// After the call: the output that the model will see, in the agent's own form. Texts may be
    /// anywhere in it.
    pub output: Option<Value>,
}

/// The guard's ruling on a call. The texts are for the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// The call must not run.
    Deny(String),
    /// A person decides whether it runs.
    Ask(String),
    /// It runs, and the model gets a note.
    Note(String),
    /// The model sees this output instead of the real one.
    Redact {
        /// The new output, in the form of the old one.
        output: Value,
        /// What was removed.
        why: String,
    },
}

/// Where the parts of a call are in an agent's payload: JSON pointers, of which the first that
/// exists counts.
#[derive(Debug)]
pub struct Shape {
    pub tool: &'static [&'static str],
    pub input: &'static [&'static str],
    /// The output that the model will see.
    pub output: &'static [&'static str],
    pub session: &'static [&'static str],
    pub call: &'static [&'static str],
    pub cwd: &'static [&'static str],
    /// Whether `cwd` is the folder of the call. Then the hook itself runs in the folder of the
    /// agent.
    pub cwd_is_of_call: bool,
    /// The event, if the hook's command does not name it.
    pub event: &'static str,
    /// The agent's names for the event before a call.
    pub before: &'static [&'static str],
    /// The agent's names for the event after a call.
    pub after: &'static [&'static str],
    /// Whether the model can get a note about a call only after it ran.
    pub notes_after: bool,
    /// Events before a call of one tool only, whose payload is the input itself: the event and the
    /// tool.
    pub of_one_tool: &'static [(&'static str, &'static str)],
    /// The exit code with which a hook refuses a call if it can't print its answer. A plugin has
    /// none.
    pub refusing_exit: Option<u8>,
}

/// The shape that Claude Code introduced and others adopted.
pub const SHAPE: Shape = Shape {
    tool: &["/tool_name"],
    input: &["/tool_input"],
    output: &["/tool_response"],
    session: &["/session_id"],
    call: &["/tool_use_id"],
    cwd: &["/cwd"],
    cwd_is_of_call: false,
    event: "/hook_event_name",
    before: &["PreToolUse"],
    after: &["PostToolUse"],
    notes_after: false,
    of_one_tool: &[],
    refusing_exit: Some(2),
};

/// The input of a call in a question about it, which Copilot names differently.
const QUESTION_INPUT: &[&str] = &["/toolInput"];

/// baton's MCP server, which every session has.
const OUR_SERVER: &str = crate::install::SERVER;

/// Reads a call; `None` if the payload is not about one.
pub(crate) fn read(
    payload: &[u8],
    named: Option<&str>,
    shape: &Shape,
    tools: &Tools,
) -> Result<Option<ToolCall>, Error> {
    let mut payload: Value = payload::owned(payload)?;
    let native = match named {
        Some(named) => named.to_owned(),
        None => text(&mut payload, &[shape.event]).unwrap_or_default(),
    };
    if let Some((_, tool)) = shape.of_one_tool.iter().find(|(event, _)| *event == native) {
        return Ok(Some(ToolCall {
            kind: EventKind::BeforeTool,
            native,
            tool: tools::tool(tools, tool, &payload, &[OUR_SERVER]),
            session_id: text(&mut payload, shape.session),
            id: text(&mut payload, shape.call),
            cwd: text(&mut payload, shape.cwd).map(PathBuf::from),
            output: None,
            input: payload,
        }));
    }
    let kind = if shape.before.contains(&native.as_str()) {
        EventKind::BeforeTool
    } else if shape.after.contains(&native.as_str()) {
        EventKind::AfterTool
    } else {
        return Ok(None);
    };
    let Some(name) = text(&mut payload, shape.tool) else { return Ok(None) };
    let input = take(&mut payload, shape.input).or_else(|| take(&mut payload, QUESTION_INPUT));
    let input = object(input.unwrap_or_default());
    Ok(Some(ToolCall {
        kind,
        native,
        session_id: text(&mut payload, shape.session),
        id: text(&mut payload, shape.call),
        cwd: text(&mut payload, shape.cwd).map(PathBuf::from),
        tool: tools::tool(tools, &name, &input, &[OUR_SERVER]),
        input,
        output: if kind == EventKind::AfterTool { take(&mut payload, shape.output) } else { None },
    }))
}

/// The first of these parts that exists.
fn take(payload: &mut Value, ways: &[&str]) -> Option<Value> {
    ways.iter().find_map(|way| payload.pointer_mut(way).map(Value::take))
}

/// The same for a text that is not empty.
fn text(payload: &mut Value, ways: &[&str]) -> Option<String> {
    match take(payload, ways) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// The input as an object. Some agents write it as JSON inside a text.
fn object(input: Value) -> Value {
    match &input {
        Value::String(text) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).unwrap_or(input)
        }
        _ => input,
    }
}

/// Visits all texts of an output in order, and replaces those for which `change` returns a text.
/// Pictures are not texts.
pub fn change_texts(output: &mut Value, change: &mut dyn FnMut(&str) -> Option<String>) {
    match output {
        Value::String(text) => {
            if let Some(new) = change(text) {
                *text = new;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| change_texts(value, change)),
        Value::Object(fields) if fields.get("type").and_then(Value::as_str) == Some("image") => {}
        Value::Object(fields) => fields.values_mut().for_each(|value| change_texts(value, change)),
        _ => {}
    }
}

/// All texts of an output as one, for agents that accept only that.
pub(crate) fn joined(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let texts: Vec<String> = values.iter().map(joined).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        // A part of a list has its type beside its text.
        Value::Object(fields) => {
            fields.get("text").or_else(|| fields.get("content")).map(joined).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// The reason for a refusal if the agent can't ask its user: the model should tell the user.
pub(crate) fn needs_a_person(why: &str) -> String {
    format!("{why} A person has to decide this: tell them what you need it for, and go on without it.")
}

/// What the model reads if a person says no without a reason.
const NO_REASON_GIVEN: &str = "A person said no to this.";

/// What the model reads if a person says no to a call.
pub fn said_no(words: &str) -> &str {
    if words.trim().is_empty() { NO_REASON_GIVEN } else { words }
}

/// What the model reads about a secret that its agent does not let us remove.
pub(crate) fn not_taken_out(why: &str) -> String {
    format!(
        "{why} It could not be taken out here: don't repeat it, write it down or send it anywhere, and tell your person."
    )
}
