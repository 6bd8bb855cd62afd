//! A tool call as an agent's hook or plugin shows it, to be judged, and what may be said about it.
//!
//! Where the parts of a call stand in a payload is a [`Shape`] in the agent's folder; one function, [`read`], reads all of them. This is not
//! done for mail: a hook that only delivers never looks at a tool's input or output.

use crate::payload;
use crate::tools::{self, Tools};
use baton_core::Error;
use baton_core::event::EventKind;
use baton_core::tool::ToolUse;
use serde_json::Value;
use std::path::PathBuf;

/// A tool call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whether it is about to run, [`EventKind::BeforeTool`], or has run, [`EventKind::AfterTool`].
    pub kind: EventKind,
    /// The agent's own name for the event.
    pub native: String,
    /// The agent's own session id, where the payload has it.
    pub session_id: Option<String>,
    /// Where the agent works.
    pub cwd: Option<PathBuf>,
    /// The agent's own id of the call, the same before and after it; not all agents say it.
    pub id: Option<String>,
    /// What is called, and with what.
    pub tool: ToolUse,
    /// What it is called with, in the agent's own form.
    pub input: Value,
    /// After it ran: what the model will be shown of it, in the agent's own form. Texts may be anywhere in it.
    pub output: Option<Value>,
}

/// What is said about a call. Why is for the model to read.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It must not run.
    Deny(String),
    /// A person has to say whether it runs.
    Ask(String),
    /// It runs, and the model is told something.
    Note(String),
    /// The model is shown this output instead of its own.
    Redact {
        /// The new output, in the form of the old.
        output: Value,
        /// What was taken out.
        why: String,
    },
}

/// Where the parts of a call stand in an agent's payload: JSON pointers, of which the first that is there counts.
#[derive(Debug)]
pub struct Shape {
    /// The tool's name.
    pub tool: &'static [&'static str],
    /// Its input.
    pub input: &'static [&'static str],
    /// Its output, as the model will be shown it.
    pub output: &'static [&'static str],
    /// The session's id.
    pub session: &'static [&'static str],
    /// The call's id.
    pub call: &'static [&'static str],
    /// The folder.
    pub cwd: &'static [&'static str],
    /// Whether that folder is where the call runs, and the hook itself runs where the agent works.
    pub cwd_is_of_call: bool,
    /// The event, where the hook's command does not say it.
    pub event: &'static str,
    /// Its names for a call that is about to run.
    pub before: &'static [&'static str],
    /// Its names for a call that has run.
    pub after: &'static [&'static str],
    /// Whether the model can be told something about a call only once it has run.
    pub notes_after: bool,
    /// Events before a call of one tool only, whose payload is the input itself: the event, and the tool.
    pub of_one_tool: &'static [(&'static str, &'static str)],
}

/// The shape that Claude Code introduced and others took over.
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
};

/// The input of a call in a question about it, where that is named otherwise: Copilot.
const ASKED_INPUT: &[&str] = &["/toolInput"];

/// The MCP server that every session has: ours.
const OUR_SERVER: &str = crate::install::SERVER;

/// Reads a call; `None` where the payload is not about one.
pub(crate) fn read(
    payload: &[u8],
    named: Option<&str>,
    shape: &Shape,
    tools: &Tools,
) -> Result<Option<Call>, Error> {
    let mut payload: Value = payload::owned(payload)?;
    let native = match named {
        Some(named) => named.to_owned(),
        None => text(&mut payload, &[shape.event]).unwrap_or_default(),
    };
    if let Some((_, tool)) = shape.of_one_tool.iter().find(|(event, _)| *event == native) {
        return Ok(Some(Call {
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
    let input = take(&mut payload, shape.input).or_else(|| take(&mut payload, ASKED_INPUT));
    let input = object(input.unwrap_or_default());
    Ok(Some(Call {
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

/// The first of these parts that is there.
fn take(payload: &mut Value, ways: &[&str]) -> Option<Value> {
    ways.iter().find_map(|way| payload.pointer_mut(way).map(Value::take))
}

/// The same where it is a text that says something.
fn text(payload: &mut Value, ways: &[&str]) -> Option<String> {
    match take(payload, ways) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// An input that some agents write as JSON inside a text.
fn object(input: Value) -> Value {
    match &input {
        Value::String(text) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).unwrap_or(input)
        }
        _ => input,
    }
}

/// Goes through all texts of an output, in order, and puts what `change` gives in their place. Pictures are no texts.
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

/// The texts of an output in one, for agents that take only that.
pub(crate) fn joined(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let texts: Vec<String> = values.iter().map(joined).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        // A part of a list says what it is beside its text.
        Value::Object(fields) => {
            fields.get("text").or_else(|| fields.get("content")).map(joined).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// Why a call is refused where its agent can't ask: the model should tell its person.
pub(crate) fn needs_a_person(why: &str) -> String {
    format!("{why} A person has to decide this: tell them what you need it for, and go on without it.")
}

/// What the model is told where a person gave no reason for a no.
const NO: &str = "A person said no to this.";

/// What the model is told where a person said no to a call, with these words or none.
pub fn said_no(words: &str) -> &str {
    if words.trim().is_empty() { NO } else { words }
}

/// What the model is told about a secret that its agent lets nobody take out.
pub(crate) fn not_taken_out(why: &str) -> String {
    format!(
        "{why} It could not be taken out here: don't repeat it, write it down or send it anywhere, and tell your person."
    )
}
