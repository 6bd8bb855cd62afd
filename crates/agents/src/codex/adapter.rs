//! Codex's payloads, answers and facts.
//!
//! Mail goes out at SessionStart (which fires with the first prompt), UserPromptSubmit, PostToolUse (one per tool, in parallel) and Stop.
//! Everything is cut at 10,000 bytes. One unknown key in an answer voids the whole of it.

use super::{asked, history, screen, transcript, wake};
use crate::agent::{Agent, Env, McpCaller, Shell, TranscriptReader};
use crate::asked::{Asked, Asking, Look, Standing};
use crate::call::{self, Call, Ruling};
use crate::facts::Facts;
use crate::history::{History, HistoryReader, files_below};
use crate::install::{Install, InstallError, Target};
use crate::payload::{self, Payload, given};
use crate::screen::Screen;
use crate::wake::{Idle, Read, Route};
use baton_core::Error;
use baton_core::approval::Answer;
use baton_core::event::{Event, EventKind, Reply};
use baton_core::frame::Unit;
use baton_core::mail::Anchor;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Codex.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

impl Agent for Codex {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }

    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let folder = env("CODEX_HOME").map(PathBuf::from);
        Ok(Box::new(super::install::Codex::new(install, user_home, folder.as_deref())?))
    }

    fn parse(&self, payload: &[u8], _named: Option<&str>) -> Result<Event, Error> {
        let mut event = payload::read(payload, |payload| {
            let turn = given(payload.turn_id.clone());
            let kind = kind(&payload);
            payload.event(kind, turn)
        })?;
        event.calls.retain(|call| is_written_down(call));
        Ok(event)
    }

    fn render(&self, event: &Event, reply: &Reply) -> String {
        match reply {
            Reply::Silent => String::new(),
            Reply::Context(text) => {
                json!({"hookSpecificOutput": {"hookEventName": event.native, "additionalContext": text}})
                    .to_string()
            }
            Reply::Continue(text) | Reply::Block(text) => {
                json!({"decision": "block", "reason": text}).to_string()
            }
        }
    }

    fn render_ruling(&self, call: &Call, ruling: &Ruling) -> String {
        let specific = |said: Value| json!({ "hookSpecificOutput": said }).to_string();
        let event = &call.native;
        let deny = |why: &str| {
            specific(json!({
                "hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": why,
            }))
        };
        match ruling {
            Ruling::Deny(why) => deny(why),
            // It does not know `ask`, and runs the tool.
            Ruling::Ask(why) => deny(&call::needs_a_person(why)),
            Ruling::Note(text) => specific(json!({ "hookEventName": event, "additionalContext": text })),
            // The reason takes the place of the output.
            Ruling::Redact { output, .. } => {
                json!({ "decision": "block", "reason": call::joined(output) }).to_string()
            }
        }
    }

    fn asked(&self, payload: &[u8], event: &Event) -> Option<Asked> {
        asked::asked(payload, event)
    }

    fn render_answer(&self, _event: &Event, _asked: &Asked, answer: &Answer) -> Option<String> {
        asked::render(answer)
    }

    fn is_headless(&self, args: &[String], _env: Env<'_>) -> bool {
        asked::is_headless(args)
    }

    fn standing(&self, asking: &Asking<'_>, look: Look<'_>) -> Option<Standing> {
        asked::standing(asking, look)
    }

    fn takes(&self, event: EventKind) -> Option<(usize, Unit)> {
        match event {
            EventKind::Start(_)
            | EventKind::Prompt
            | EventKind::Woken
            | EventKind::AfterTool
            | EventKind::Stop => Some((10_000, Unit::Bytes)),
            _ => None,
        }
    }

    fn transcript(&self) -> TranscriptReader {
        let mut reader = transcript::Reader::default();
        Box::new(move |line| reader.items(line))
    }

    fn call_anchor(&self, call: &str) -> Anchor {
        if is_written_down(call) { Anchor::Call(call.to_owned()) } else { Anchor::Shell }
    }

    fn history(&self, user_home: &Path, since: Option<SystemTime>, env: Env<'_>) -> History {
        let folder = env("CODEX_HOME").map_or_else(|| user_home.join(".codex"), PathBuf::from);
        let folders = ["sessions", "archived_sessions"].map(|name| folder.join(name));
        History::Files(folders.iter().flat_map(|folder| files_below(folder, ".jsonl", since)).collect())
    }

    fn history_reader(&self, _file: &Path) -> HistoryReader {
        let mut reader = history::Reader::default();
        Box::new(move |line| reader.calls(line))
    }

    fn shell(&self, env: Env<'_>) -> Option<Shell> {
        let session_id = env("CODEX_SESSION_ID")?.into_string().ok()?;
        let thread = env("CODEX_THREAD_ID").and_then(|thread| thread.into_string().ok());
        let call = env("CODEX_TOOL_CALL_ID")
            .and_then(|call| call.into_string().ok())
            .filter(|call| is_written_down(call));
        Some(Shell { subagent: thread.is_some_and(|thread| thread != session_id), session_id, call })
    }

    fn is_process(&self, args: &[String]) -> bool {
        args.iter().take(2).any(|arg| {
            Path::new(arg).file_name().and_then(|name| name.to_str()).is_some_and(|name| name == "codex")
        })
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }

    fn is_shared_process(&self, args: &[String]) -> bool {
        args.iter().any(|arg| arg == "app-server")
    }

    fn routes(&self, idle: &Idle<'_>, _read: Read<'_>) -> Vec<Route> {
        wake::routes(idle)
    }

    fn outlives_terminals(&self) -> bool {
        true
    }

    fn is_client(&self, args: &[String]) -> bool {
        wake::is_client(args)
    }

    fn mcp_caller(&self, meta: &Map<String, Value>) -> McpCaller {
        let text = |key: &str| meta.get(key).and_then(Value::as_str).map(str::to_owned);
        let (session, thread) = (text("sessionId"), text("threadId"));
        let subagent = session.is_some() && thread.is_some() && session != thread;
        // A subagent's session is its parent's, as in payloads and in its shell. A hook's call names only the thread.
        McpCaller { session_id: session.or(thread), call: text("callId"), subagent }
    }

    fn is_hook_call(&self, meta: &Map<String, Value>) -> bool {
        meta.contains_key("threadId") && meta.keys().all(|key| key == "threadId" || key == "progressToken")
    }
}

/// Calls that a script of the model makes inside one `exec` have ids that never reach the transcript.
fn is_written_down(call: &str) -> bool {
    !call.starts_with("exec-")
}

/// What happened, in our words.
fn kind(payload: &Payload<'_>) -> EventKind {
    match payload.hook_event_name.as_ref() {
        "SessionStart" => EventKind::Start(payload.source()),
        "UserPromptSubmit" => EventKind::Prompt,
        "PreToolUse" => EventKind::BeforeTool,
        "PostToolUse" => EventKind::AfterTool,
        "Stop" => EventKind::Stop,
        "PermissionRequest" => EventKind::Blocked,
        "Interrupt" => EventKind::Interrupted,
        "PreCompact" => EventKind::Compacting,
        "SubagentStart" => EventKind::SubagentStart,
        "SubagentStop" => EventKind::SubagentStop,
        "SessionEnd" => EventKind::End,
        "PreModelRequest" => EventKind::Other,
        _ => EventKind::Unknown,
    }
}
