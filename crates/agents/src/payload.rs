//! The hook payload that Claude Code introduced and others adopted: one JSON object with a session,
//! an event and its details.
//!
//! Only the fields that baton needs are read. The rest, which may be megabytes of tool output, is
//! skipped without a copy.

use crate::surrogates;
use baton_core::event::{Event, EventKind, Shown, Source};
use baton_core::mail::MARK;
use baton_core::wake;
use baton_core::{Code, Error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::path::PathBuf;

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
    tool_calls: Option<Vec<BatchedCall<'a>>>,
    #[serde(borrow, default)]
    pub source: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub notification_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    prompt: Option<Cow<'a, str>>,
    #[serde(default)]
    stop_hook_active: Flag,
    /// The marks and ids that the model is about to see. Only our own plugins report them.
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
struct BatchedCall<'a> {
    #[serde(borrow, default)]
    tool_use_id: Option<Cow<'a, str>>,
}

/// A flag that is a boolean in a payload and a text through an MCP hook.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Text(String),
    #[default]
    None,
}

/// Reads a payload of the common form, and turns it into something else while its texts are
/// borrowed.
pub(crate) fn read<T>(bytes: &[u8], make: impl Fn(Payload<'_>) -> T) -> Result<T, Error> {
    whole(bytes, |bytes| serde_json::from_slice(bytes).map(&make))
}

/// Reads a payload of another form.
pub(crate) fn owned<P: DeserializeOwned>(bytes: &[u8]) -> Result<P, Error> {
    whole(bytes, |bytes| serde_json::from_slice(bytes))
}

/// Reads a payload. Half characters, as in a prompt that was cut in a bad place, are replaced
/// first.
fn whole<T>(bytes: &[u8], read: impl Fn(&[u8]) -> serde_json::Result<T>) -> Result<T, Error> {
    read(bytes)
        .or_else(|error| match surrogates::mended(bytes) {
            Some(mended) => read(&mended),
            None => Err(error),
        })
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

    /// The event. Its kind and turn are passed in, because each agent names them differently.
    pub(crate) fn event(self, kind: EventKind, turn: Option<String>) -> Event {
        let mut calls: Vec<String> =
            self.tool_calls.into_iter().flatten().filter_map(|call| given(call.tool_use_id)).collect();
        calls.extend(given(self.tool_use_id));
        // In some agents, our text at a stop or a push comes back as a prompt.
        let ours = self.prompt.as_deref().is_some_and(|text| text.contains(MARK));
        let woken = self.prompt.as_deref().is_some_and(wake::line::is_line);
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

/// A field with content. A hook that is called through MCP gets an empty text for a missing field.
pub(crate) fn given(field: Option<Cow<'_, str>>) -> Option<String> {
    field.filter(|text| !text.is_empty()).map(Cow::into_owned)
}
