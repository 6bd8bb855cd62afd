//! Pi's events as our extension tells them, our answers to it, and facts.
//!
//! Mail goes out with a prompt (as a message of its own behind it), after each tool (at the end of its result), when a run is about to settle
//! (as a message, and the run goes on) and into an idle session (as a message that starts a turn). Pi stores all of these and sends them
//! again after a resume. It cuts none of them.
//!
//! The extension tells what a request held once its answer is in Pi's file, not when it leaves: Pi writes nothing of a new session down
//! before the first answer. It makes up an id for each turn, because Pi has none, greater than those before; a request holds the prompt of its turn.
//!
//! After `/tree` it tells which marks are not on the branch that the person went to.

use super::history;
use super::screen;
use crate::agent::{Agent, Env, Push, Shell};
use crate::call::{self, Call, Ruling};
use crate::facts::Facts;
use crate::history::{History, HistoryReader, files_below};
use crate::install::{Install, InstallError, Target};
use crate::payload::{self, Payload, given};
use crate::screen::Screen;
use baton_core::Error;
use baton_core::event::{Event, EventKind, Reply, Source};
use baton_core::frame::{Answers, Unit};
use baton_core::mail::{self};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What Pi was seen to pass on whole.
const TAKES: usize = 60_000;

/// Pi.
#[derive(Clone, Copy, Debug)]
pub struct Pi;

impl Agent for Pi {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }

    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let folder = env("PI_CODING_AGENT_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        Ok(Box::new(super::install::Pi::new(install, user_home, folder.as_deref())?))
    }

    fn parse(&self, payload: &[u8], _named: Option<&str>) -> Result<Event, Error> {
        payload::read(payload, |payload| {
            let turn = given(payload.turn_id.clone());
            let kind = kind(&payload);
            payload.event(kind, turn)
        })
    }

    fn render(&self, _event: &Event, reply: &Reply) -> String {
        match reply {
            // Its wakes carry the mail, so no prompt of ours can be empty.
            Reply::Silent | Reply::Block(_) => String::new(),
            Reply::Context(text) | Reply::Continue(text) => json!({"text": text}).to_string(),
        }
    }

    fn render_ruling(&self, _call: &Call, ruling: &Ruling) -> String {
        match ruling {
            Ruling::Deny(why) => json!({ "deny": why }),
            // It has no permissions of its own. Our extension may have a hook wait for the person before it refuses.
            Ruling::Ask(why) => json!({ "deny": call::needs_a_person(why), "hold": true }),
            Ruling::Note(text) => json!({ "note": text }),
            Ruling::Redact { output, .. } => json!({ "output": output }),
        }
        .to_string()
    }

    /// Silence may be that of a hook that has failed.
    fn render_go_on(&self) -> &'static str {
        r#"{"allow": true}"#
    }

    /// It overwrites its arguments; our extension says how it was started.
    fn is_headless(&self, _args: &[String], env: Env<'_>) -> bool {
        env("BATON_PI_MODE").is_some_and(|mode| mode == "print" || mode == "json")
    }

    fn takes(&self, event: EventKind) -> Option<(usize, Unit)> {
        match event {
            EventKind::Prompt | EventKind::AfterTool | EventKind::Stop | EventKind::IdleNotice => {
                Some((TAKES, Unit::Bytes))
            }
            _ => None,
        }
    }

    /// It has no MCP.
    fn answers(&self) -> Answers {
        Answers::ByCommand
    }

    /// It says nothing of the kind.
    fn tells_held_stops(&self) -> bool {
        false
    }

    fn shows_requests(&self) -> bool {
        true
    }

    fn push(&self, push: &Push<'_>) -> Option<Value> {
        let mark = mail::mark(push.nonce);
        Some(json!({"session_id": push.session_id, "mark": mark, "text": push.text}))
    }

    fn history(&self, user_home: &Path, since: Option<SystemTime>, env: Env<'_>) -> History {
        let folder = env("PI_CODING_AGENT_DIR").map_or_else(|| user_home.join(".pi/agent"), PathBuf::from);
        History::Files(files_below(&folder.join("sessions"), ".jsonl", since))
    }

    fn history_reader(&self, _file: &Path) -> HistoryReader {
        let mut reader = history::Reader::default();
        Box::new(move |line| reader.calls(line))
    }

    fn shell(&self, env: Env<'_>) -> Option<Shell> {
        let session_id = env("PI_SESSION_ID")?.into_string().ok()?;
        Some(Shell { session_id, call: None, subagent: false })
    }

    /// It calls itself `pi`; before it does, it is `node` with its launcher.
    fn is_process(&self, args: &[String]) -> bool {
        args.iter().take(2).any(|arg| {
            Path::new(arg).file_name().and_then(|name| name.to_str()).is_some_and(|name| name == "pi")
        })
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }
}

/// What happened, in our words.
fn kind(payload: &Payload<'_>) -> EventKind {
    let source = payload.source.as_deref();
    match payload.hook_event_name.as_ref() {
        "session_start" => EventKind::Start(match source {
            Some("startup") => Source::Startup,
            Some("resume") => Source::Resume,
            // `/new` leaves one conversation for another in the same process, as a clear does elsewhere.
            Some("new") => Source::Clear,
            Some("fork") => Source::Fork,
            _ => Source::Other,
        }),
        "before_agent_start" => EventKind::Prompt,
        // A turn runs, perhaps one that no prompt began.
        "agent_start" | "tool_call" => EventKind::BeforeTool,
        "context" => EventKind::Request,
        "tool_result" => EventKind::AfterTool,
        "agent_before_settle" if source == Some("completed") => EventKind::Stop,
        // A run that failed would only fail again.
        "agent_before_settle" | "agent_settled" => EventKind::IdleNotice,
        "session_before_compact" => EventKind::Compacting,
        "session_compact" => EventKind::Start(Source::Compact),
        "PushFailed" | "session_tree" => EventKind::PushFailed,
        "session_shutdown" => EventKind::End,
        _ => EventKind::Unknown,
    }
}
