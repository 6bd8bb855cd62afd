//! Pi's events, as our extension reports them, and our answers to it.
//!
//! Mail goes out with a prompt (as a separate message after it), after each tool (at the end of its
//! result), when a run is about to settle (as a message, and the run goes on) and into an idle
//! session (as a message that starts a turn). Pi stores all of these and sends them again after a
//! resume. It cuts none of them.
//!
//! The extension reports the content of a request when its answer is in Pi's file, not when the
//! request leaves: Pi writes nothing of a new session before the first answer. Pi has no turn ids,
//! so the extension makes them, each greater than those before. A request contains the prompt of
//! its turn.
//!
//! After `/tree` the extension reports which marks are not on the branch that the user went to.

use super::activity;
use super::history;
use super::screen;
use crate::activity::Activity;
use crate::agent::{
    ContextLimit, Env, HookCodec, Identity, PastCalls, Profile, Push, Questions, Setup, Shell, Transcript,
    Waking, with_glance,
};
use crate::call::{self, Ruling, ToolCall};
use crate::facts::Facts;
use crate::history::{History, HistoryReader, files_below};
use crate::install::{Install, InstallError, Target};
use crate::payload::{self, Payload, given};
use crate::screen::Screen;
use baton_core::Error;
use baton_core::event::{Event, EventKind, Reply, Source};
use baton_core::frame::Unit;
use baton_core::mail::{self};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most text that Pi was seen to pass on uncut.
const CONTEXT_BYTES: usize = 60_000;

#[derive(Clone, Copy, Debug)]
pub struct Pi;

impl Profile for Pi {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }
}

impl Setup for Pi {
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let folder = env("PI_CODING_AGENT_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        Ok(Box::new(super::install::Pi::new(install, user_home, folder.as_deref())?))
    }
}

impl HookCodec for Pi {
    fn parse(&self, payload: &[u8], _named: Option<&str>) -> Result<Event, Error> {
        payload::read(payload, |payload| {
            let turn = given(payload.turn_id.clone());
            let kind = kind(&payload);
            payload.event(kind, turn)
        })
    }

    fn render(&self, _event: &Event, reply: &Reply, glance: Option<&str>) -> String {
        match reply {
            // A push carries the mail itself, so a prompt of ours is never empty.
            Reply::Silent | Reply::Block(_) => String::new(),
            Reply::Context(text) | Reply::Continue(text) => {
                with_glance(json!({"text": text}), glance).to_string()
            }
        }
    }

    fn context_limit(&self, event: EventKind) -> Option<ContextLimit> {
        match event {
            EventKind::Prompt | EventKind::AfterTool | EventKind::Stop | EventKind::IdleNotice => {
                Some(ContextLimit::new(CONTEXT_BYTES, Unit::Bytes))
            }
            _ => None,
        }
    }

    fn render_ruling(&self, _call: &ToolCall, ruling: &Ruling) -> String {
        match ruling {
            Ruling::Deny(why) => json!({ "deny": why }),
            // It has no permissions of its own. Our extension may have a hook wait for a person
            // before it refuses.
            Ruling::Ask(why) => json!({ "deny": call::needs_a_person(why), "hold": true }),
            Ruling::Note(text) => json!({ "note": text }),
            Ruling::Redact { output, .. } => json!({ "output": output }),
        }
        .to_string()
    }

    /// Silence could come from a hook that failed.
    fn render_go_on(&self) -> &'static str {
        r#"{"allow": true}"#
    }
}

impl Identity for Pi {
    fn shell(&self, env: Env<'_>) -> Option<Shell> {
        let session_id = env("PI_SESSION_ID")?.into_string().ok()?;
        Some(Shell { session_id, call: None, subagent: false })
    }

    /// It renames itself `pi`. Before that, it is `node` with its launcher.
    fn is_process(&self, args: &[String]) -> bool {
        args.iter().take(2).any(|arg| {
            Path::new(arg).file_name().and_then(|name| name.to_str()).is_some_and(|name| name == "pi")
        })
    }
}

impl Transcript for Pi {
    fn activity(&self, end: &[u8]) -> Activity {
        activity::read(end)
    }
}

impl PastCalls for Pi {
    fn history(&self, user_home: &Path, since: Option<SystemTime>, env: Env<'_>) -> History {
        let folder = env("PI_CODING_AGENT_DIR").map_or_else(|| user_home.join(".pi/agent"), PathBuf::from);
        History::Files(files_below(&folder.join("sessions"), ".jsonl", since))
    }

    fn history_reader(&self, _file: &Path) -> HistoryReader {
        let mut reader = history::Reader::default();
        Box::new(move |line| reader.calls(line))
    }
}

impl Questions for Pi {
    /// It overwrites its arguments, so our extension says how it was started.
    fn is_headless(&self, _args: &[String], env: Env<'_>) -> bool {
        env("BATON_PI_MODE").is_some_and(|mode| mode == "print" || mode == "json")
    }
}

impl Waking for Pi {
    fn push(&self, push: &Push<'_>) -> Option<Value> {
        let mark = mail::mark(push.nonce);
        let pushed = json!({"session_id": push.session_id, "mark": mark, "text": push.text});
        Some(with_glance(pushed, push.glance))
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }
}

/// The canonical kind of an event.
fn kind(payload: &Payload<'_>) -> EventKind {
    let source = payload.source.as_deref();
    match payload.hook_event_name.as_ref() {
        "session_start" => EventKind::Start(match source {
            Some("startup") => Source::Startup,
            Some("resume") => Source::Resume,
            // `/new` replaces the conversation in the same process, like a clear elsewhere.
            Some("new") => Source::Clear,
            Some("fork") => Source::Fork,
            _ => Source::Other,
        }),
        "before_agent_start" => EventKind::Prompt,
        // A turn runs, perhaps without a prompt.
        "agent_start" | "tool_call" => EventKind::BeforeTool,
        "context" => EventKind::Request,
        "tool_result" => EventKind::AfterTool,
        "agent_before_settle" if source == Some("completed") => EventKind::Stop,
        // A failed run would only fail again.
        "agent_before_settle" | "agent_settled" => EventKind::IdleNotice,
        "session_before_compact" => EventKind::Compacting,
        "session_compact" => EventKind::Start(Source::Compact),
        "PushFailed" | "session_tree" => EventKind::PushFailed,
        "session_shutdown" => EventKind::End,
        _ => EventKind::Unknown,
    }
}
