//! The hook payload that Claude Code introduced and others took over: one JSON object with a session, an event and its details.
//!
//! Only the fields that baton needs are read; the rest, which may be megabytes of tool output, is skipped without being copied.

use crate::surrogates;
use baton_core::event::{Event, EventKind, Shown, Source};
use baton_core::mail::MARK;
use baton_core::wake;
use baton_core::{Code, Error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::path::PathBuf;

/// The fields of a payload.
#[derive(Debug, Deserialize)]
pub(crate) struct Payload<'a> {
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub hook_event_name: Cow<'a, str>,
    #[serde(borrow, default)]
    transcript_path: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    cwd: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub turn_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow, default)]
    pub source: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub notification_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    prompt: Option<Cow<'a, str>>,
    #[serde(default)]
    stop_hook_active: Flag,
    /// What the model is about to be shown: only our own plugins say so.
    #[serde(default, deserialize_with = "shown")]
    shown: Shown,
}

fn shown<'de, D: Deserializer<'de>>(from: D) -> Result<Shown, D::Error> {
    #[derive(Deserialize)]
    struct Lists {
        #[serde(default)]
        marks: Vec<String>,
        #[serde(default)]
        ids: Vec<String>,
    }
    let Lists { marks, ids } = Lists::deserialize(from)?;
    Ok(Shown { marks, ids })
}

#[derive(Debug, Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    tool_use_id: Option<Cow<'a, str>>,
}

/// A flag that comes as a boolean in a payload and as text through an MCP hook.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Text(String),
    #[default]
    None,
}

/// Reads a payload and makes something of it. Half characters, as in a prompt that was cut in a bad place, are replaced.
pub(crate) fn read<T>(bytes: &[u8], make: impl FnOnce(Payload<'_>) -> T) -> Result<T, Error> {
    let error = match serde_json::from_slice(bytes) {
        Ok(payload) => return Ok(make(payload)),
        Err(error) => error,
    };
    match surrogates::mended(bytes) {
        Some(whole) => serde_json::from_slice(&whole).map(make),
        None => Err(error),
    }
    .map_err(|error| Error::new(Code::Usage, format!("not a hook payload: {error}")))
}

/// Reads a payload of another shape. Half characters are replaced, as in [`read`].
pub(crate) fn owned<P: DeserializeOwned>(bytes: &[u8]) -> Result<P, Error> {
    let error = match serde_json::from_slice(bytes) {
        Ok(payload) => return Ok(payload),
        Err(error) => error,
    };
    match surrogates::mended(bytes) {
        Some(whole) => serde_json::from_slice(&whole),
        None => Err(error),
    }
    .map_err(|error| Error::new(Code::Usage, format!("not a hook payload: {error}")))
}

impl Payload<'_> {
    /// Why a session started.
    pub(crate) fn source(&self) -> Source {
        match self.source.as_deref() {
            Some("startup") => Source::Startup,
            Some("resume") => Source::Resume,
            Some("clear") => Source::Clear,
            Some("fork") => Source::Fork,
            Some("compact") => Source::Compact,
            _ => Source::Other,
        }
    }

    /// The event without its kind and turn, which each agent names in its own way.
    pub(crate) fn event(self, kind: EventKind, turn: Option<String>) -> Event {
        let mut calls: Vec<String> =
            self.tool_calls.into_iter().flatten().filter_map(|call| given(call.tool_use_id)).collect();
        calls.extend(given(self.tool_use_id));
        // What we said at a stop, or pushed, comes back as a prompt in some agents.
        let ours = self.prompt.as_deref().is_some_and(|text| text.contains(MARK));
        let woken = self.prompt.as_deref().is_some_and(wake::is_line);
        let kind = match kind {
            EventKind::Prompt if ours => EventKind::Continued,
            EventKind::Prompt if woken => EventKind::Woken,
            kind => kind,
        };
        Event {
            kind,
            native: self.hook_event_name.into_owned(),
            session_id: self.session_id.into_owned(),
            transcript: given(self.transcript_path).map(PathBuf::from),
            cwd: given(self.cwd).map(PathBuf::from),
            subagent: given(self.agent_id),
            tool: given(self.tool_name),
            calls,
            turn,
            prompt: given(self.prompt),
            stop_active: match self.stop_hook_active {
                Flag::Bool(flag) => flag,
                Flag::Text(text) => text == "true",
                Flag::None => false,
            },
            shown: self.shown,
        }
    }
}

/// A field that is there: a hook called through MCP gets an empty text for one that is not.
pub(crate) fn given(field: Option<Cow<'_, str>>) -> Option<String> {
    field.filter(|text| !text.is_empty()).map(Cow::into_owned)
}
