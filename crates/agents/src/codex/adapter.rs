//! Codex's payloads and answers.
//!
//! Mail goes out at SessionStart (which fires with the first prompt), UserPromptSubmit, PostToolUse
//! (one per tool, in parallel) and Stop. Codex cuts everything at 10,000 bytes. It ignores an
//! answer with an unknown key.

use super::{activity, asked, history, screen, transcript, wake};
use crate::activity::Activity;
use crate::agent::{
    ContextLimit, Env, HookCodec, Identity, McpCaller, PastCalls, Profile, Questions, Setup, Shell,
    Transcript, TranscriptReader, Waking, with_system_message,
};
use crate::asked::{AgentQuestion, ProcessProbe, QuestionStatus, RecordedQuestion};
use crate::call::{self, Ruling, ToolCall};
use crate::facts::Facts;
use crate::history::{History, HistoryReader, files_below};
use crate::install::plugin::PluginFile;
use crate::install::{Install, InstallError, Target};
use crate::payload::{self, Payload, given};
use crate::screen::Screen;
use crate::wake::{Idle, Read, Route};
use baton_core::Error;
use baton_core::approval::Answer;
use baton_core::event::{Event, EventKind, Reply};
use baton_core::frame::Unit;
use baton_core::mail::Anchor;
use baton_core::time::Moment;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Clone, Copy, Debug)]
pub struct Codex;

impl Profile for Codex {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }
}

impl Setup for Codex {
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let folder = env("CODEX_HOME").map(PathBuf::from);
        Ok(Box::new(super::install::Codex::new(install, user_home, folder.as_deref())?))
    }

    fn plugin(&self) -> Result<Vec<PluginFile>, InstallError> {
        super::install::plugin()
    }

    fn plugin_record(&self, user_home: &Path, env: Env<'_>) -> Option<(PathBuf, &'static str)> {
        let folder = env("CODEX_HOME").map_or_else(|| user_home.join(".codex"), PathBuf::from);
        Some((folder.join("config.toml"), "[plugins.\"baton@baton\"]\nenabled = true"))
    }
}

impl HookCodec for Codex {
    fn parse(&self, payload: &[u8], _named: Option<&str>) -> Result<Event, Error> {
        let mut event = payload::read(payload, |payload| {
            let turn = given(payload.turn_id.clone());
            let kind = kind(&payload);
            payload.event(kind, turn)
        })?;
        event.calls.retain(|call| is_written_down(call));
        Ok(event)
    }

    fn render(&self, event: &Event, reply: &Reply, glance: Option<&str>) -> String {
        let answer = match reply {
            Reply::Silent => return String::new(),
            Reply::Context(text) => {
                json!({"hookSpecificOutput": {"hookEventName": event.native, "additionalContext": text}})
            }
            Reply::Continue(text) | Reply::Block(text) => json!({"decision": "block", "reason": text}),
        };
        with_system_message(answer, glance)
    }

    fn context_limit(&self, event: EventKind) -> Option<ContextLimit> {
        match event {
            EventKind::Start(_)
            | EventKind::Prompt
            | EventKind::Woken
            | EventKind::AfterTool
            | EventKind::Stop => Some(ContextLimit::new(10_000, Unit::Bytes)),
            _ => None,
        }
    }

    fn render_ruling(&self, call: &ToolCall, ruling: &Ruling) -> String {
        let specific = |said: Value| json!({ "hookSpecificOutput": said }).to_string();
        let event = &call.native;
        let deny = |why: &str| {
            specific(json!({
                "hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": why,
            }))
        };
        match ruling {
            Ruling::Deny(why) => deny(why),
            // It does not know `ask`, and would run the tool.
            Ruling::Ask(why) => deny(&call::needs_a_person(why)),
            Ruling::Note(text) => specific(json!({ "hookEventName": event, "additionalContext": text })),
            // The reason replaces the output.
            Ruling::Redact { output, .. } => {
                json!({ "decision": "block", "reason": call::joined(output) }).to_string()
            }
        }
    }
}

impl Identity for Codex {
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

    fn is_shared_process(&self, args: &[String]) -> bool {
        args.iter().any(|arg| arg == "app-server")
    }

    fn mcp_caller(&self, meta: &Map<String, Value>) -> McpCaller {
        let text = |key: &str| meta.get(key).and_then(Value::as_str).map(str::to_owned);
        let (session, thread) = (text("sessionId"), text("threadId"));
        let subagent = session.is_some() && thread.is_some() && session != thread;
        // The session of a subagent is its parent's, as in payloads and shells. The call of a hook
        // names only the thread.
        McpCaller { session_id: session.or(thread), call: text("callId"), subagent }
    }

    fn is_hook_call(&self, meta: &Map<String, Value>) -> bool {
        meta.contains_key("threadId") && meta.keys().all(|key| key == "threadId" || key == "progressToken")
    }
}

impl Transcript for Codex {
    fn transcript(&self) -> TranscriptReader {
        let mut reader = transcript::Reader::default();
        Box::new(move |line| reader.items(line))
    }

    fn call_anchor(&self, call: &str) -> Anchor {
        if is_written_down(call) { Anchor::Call(call.to_owned()) } else { Anchor::Shell }
    }

    fn activity(&self, end: &[u8]) -> Activity {
        activity::read(end)
    }
}

impl PastCalls for Codex {
    fn history(&self, user_home: &Path, since: Option<SystemTime>, env: Env<'_>) -> History {
        let folder = env("CODEX_HOME").map_or_else(|| user_home.join(".codex"), PathBuf::from);
        let folders = ["sessions", "archived_sessions"].map(|name| folder.join(name));
        History::Files(folders.iter().flat_map(|folder| files_below(folder, ".jsonl", since)).collect())
    }

    fn history_reader(&self, _file: &Path) -> HistoryReader {
        let mut reader = history::Reader::default();
        Box::new(move |line| reader.calls(line))
    }
}

impl Questions for Codex {
    fn asked(&self, payload: &[u8], event: &Event) -> Option<AgentQuestion> {
        asked::asked(payload, event)
    }

    fn render_answer(&self, _event: &Event, _asked: &AgentQuestion, answer: &Answer) -> Option<String> {
        asked::render(answer)
    }

    fn question_status(
        &self,
        asking: &RecordedQuestion<'_>,
        probe: ProcessProbe<'_>,
    ) -> Option<QuestionStatus> {
        asked::question_status(asking, probe)
    }

    fn is_headless(&self, args: &[String], _env: Env<'_>) -> bool {
        asked::is_headless(args)
    }
}

impl Waking for Codex {
    fn routes(&self, idle: &Idle<'_>, _read: Read<'_>) -> Vec<Route> {
        wake::routes(idle)
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }

    fn is_client(&self, args: &[String]) -> bool {
        wake::is_client(args)
    }

    fn interrupted_at(&self, transcript_end: &[u8]) -> Option<Moment> {
        wake::interrupted_at(&String::from_utf8_lossy(transcript_end))
    }
}

/// Calls that a script makes inside one `exec` have ids that never reach the transcript.
fn is_written_down(call: &str) -> bool {
    !call.starts_with("exec-")
}

/// The canonical kind of an event.
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
