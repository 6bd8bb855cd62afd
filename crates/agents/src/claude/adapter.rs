//! Claude Code's payloads and answers.
//!
//! Mail goes out at SessionStart, UserPromptSubmit, PostToolBatch (once per batch, after failures
//! too) and Stop. At Stop it travels as `additionalContext`: the model would see a blocking reason
//! twice. Claude Code moves text over 10,000 UTF-16 units to a file.

use super::tools::FAILURE;
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
use baton_core::session::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Clone, Copy, Debug)]
pub struct Claude;

const TOOL_USE_ID: &str = "claudecode/toolUseId";

impl Profile for Claude {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }
}

impl Setup for Claude {
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let folder = env("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        Ok(Box::new(super::install::Claude::new(install, user_home, folder.as_deref())?))
    }

    fn plugin(&self) -> Result<Vec<PluginFile>, InstallError> {
        super::install::plugin()
    }

    fn plugin_record(&self, user_home: &Path, env: Env<'_>) -> Option<(PathBuf, &'static str)> {
        let folder = env("CLAUDE_CONFIG_DIR").map_or_else(|| user_home.join(".claude"), PathBuf::from);
        Some((folder.join("settings.json"), "\"baton@baton\": true"))
    }
}

impl HookCodec for Claude {
    fn parse(&self, payload: &[u8], _named: Option<&str>) -> Result<Event, Error> {
        payload::read(payload, |payload| {
            let turn = given(payload.prompt_id.clone());
            let kind = kind(&payload);
            let mut event = payload.event(kind, turn);
            if event.kind == EventKind::Prompt && event.prompt.as_deref().is_some_and(wake::is_wrapped_line) {
                event.kind = EventKind::Woken;
            }
            event
        })
    }

    fn render(&self, event: &Event, reply: &Reply, glance: Option<&str>) -> String {
        let answer = match reply {
            Reply::Silent => return String::new(),
            Reply::Context(text) | Reply::Continue(text) => {
                json!({"hookSpecificOutput": {"hookEventName": event.native, "additionalContext": text}})
            }
            Reply::Block(reason) => json!({"decision": "block", "reason": reason}),
        };
        with_system_message(answer, glance)
    }

    fn context_limit(&self, event: EventKind) -> Option<ContextLimit> {
        match event {
            EventKind::Start(_)
            | EventKind::Prompt
            | EventKind::Woken
            | EventKind::AfterTools
            | EventKind::Stop => Some(ContextLimit::new(10_000, Unit::Utf16)),
            _ => None,
        }
    }

    fn empty_mcp_reply(&self) -> &'static str {
        // An empty text makes it tell the model "UserPromptSubmit completed".
        "{}"
    }

    fn render_ruling(&self, call: &ToolCall, ruling: &Ruling) -> String {
        let event = &call.native;
        let permission = |word: &str, why: &str| json!({ "hookEventName": event, "permissionDecision": word, "permissionDecisionReason": why });
        let said = match ruling {
            Ruling::Deny(why) => permission("deny", why),
            // Without a terminal this is a refusal, with the reason.
            Ruling::Ask(why) => permission("ask", why),
            Ruling::Note(text) => json!({ "hookEventName": event, "additionalContext": text }),
            Ruling::Redact { why, .. } if call.native == FAILURE => {
                json!({ "hookEventName": event, "additionalContext": call::not_taken_out(why) })
            }
            // It must have the form of the tool's own output, or Claude Code drops it.
            Ruling::Redact { output, .. } => json!({ "hookEventName": event, "updatedToolOutput": output }),
        };
        json!({ "hookSpecificOutput": said }).to_string()
    }

    fn render_ask(&self, call: &ToolCall, why: &str) -> Option<String> {
        Some(self.render_ruling(call, &Ruling::Ask(why.to_owned())))
    }
}

impl Identity for Claude {
    fn shell(&self, env: Env<'_>) -> Option<Shell> {
        let session_id = env("CLAUDE_CODE_SESSION_ID")?.into_string().ok()?;
        env("CLAUDECODE")?;
        // A subagent's shell looks like its parent's. Mail that it takes is never proven, and goes
        // back to the parent.
        Some(Shell { session_id, call: None, subagent: false })
    }

    fn is_process(&self, args: &[String]) -> bool {
        args.iter().take(2).any(|arg| {
            Path::new(arg)
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| matches!(name, "claude" | "claude.exe"))
        })
    }

    fn hook_process(&self, env: Env<'_>) -> Option<i32> {
        env("CLAUDE_PID")?.to_str()?.parse().ok()
    }

    fn mcp_caller(&self, meta: &Map<String, Value>) -> McpCaller {
        let call = meta.get(TOOL_USE_ID).and_then(Value::as_str).map(str::to_owned);
        McpCaller { session_id: None, call, subagent: false }
    }

    fn is_hook_call(&self, meta: &Map<String, Value>) -> bool {
        !meta.contains_key(TOOL_USE_ID) && !meta.contains_key("progressToken")
    }
}

impl Transcript for Claude {
    fn transcript(&self) -> TranscriptReader {
        let mut reader = transcript::Reader::default();
        Box::new(move |line| reader.items(line))
    }

    fn activity(&self, end: &[u8]) -> Activity {
        activity::read(end)
    }
}

impl PastCalls for Claude {
    fn history(&self, user_home: &Path, since: Option<SystemTime>, env: Env<'_>) -> History {
        let folder = env("CLAUDE_CONFIG_DIR").map_or_else(|| user_home.join(".claude"), PathBuf::from);
        History::Files(files_below(&folder.join("projects"), ".jsonl", since))
    }

    fn history_reader(&self, _file: &Path) -> HistoryReader {
        Box::new(history::calls)
    }
}

impl Questions for Claude {
    fn asked(&self, payload: &[u8], event: &Event) -> Option<AgentQuestion> {
        asked::asked(payload, event)
    }

    fn will_prompt_user(
        &self,
        _asked: &AgentQuestion,
        _event: &Event,
        args: &[String],
        _env: Env<'_>,
        _read: Read<'_>,
    ) -> bool {
        !asked::asks_nobody(args)
    }

    fn render_answer(&self, _event: &Event, asked: &AgentQuestion, answer: &Answer) -> Option<String> {
        asked::render(asked, answer)
    }

    fn question_status(
        &self,
        asking: &RecordedQuestion<'_>,
        probe: ProcessProbe<'_>,
    ) -> Option<QuestionStatus> {
        let transcript = asking.transcript.map(Path::to_string_lossy);
        let registry =
            asking.pid.zip(transcript).and_then(|(pid, transcript)| self.registry(pid, &transcript));
        asked::question_status(asking, registry, probe)
    }

    fn is_headless(&self, args: &[String], env: Env<'_>) -> bool {
        let attended = env("CLAUDE_CODE_SESSION_ATTENDED");
        asked::is_headless(args, attended.as_deref().and_then(|attended| attended.to_str()))
    }
}

impl Waking for Claude {
    fn routes(&self, idle: &Idle<'_>, read: Read<'_>) -> Vec<Route> {
        let transcript = idle.transcript.map(Path::to_string_lossy);
        let registry = idle.pid.zip(transcript).and_then(|(pid, transcript)| self.registry(pid, &transcript));
        wake::routes(registry, idle, read)
    }

    fn wants_waiter(&self, env: Env<'_>) -> bool {
        // A headless run waits for its hooks in the background, for up to a minute.
        env("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entry| entry == "cli")
            && env("CLAUDE_CODE_SESSION_ATTENDED").is_none_or(|attended| attended != "0")
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }

    fn registry(&self, pid: i32, transcript: &str) -> Option<PathBuf> {
        // <config>/projects/<project>/<session>.jsonl
        let config = Path::new(transcript).parent()?.parent()?.parent()?;
        Some(config.join("sessions").join(format!("{pid}.json")))
    }

    fn registry_state(&self, file: &[u8], session_id: &str) -> Option<State> {
        #[derive(Deserialize)]
        struct Entry {
            #[serde(rename = "sessionId")]
            session_id: String,
            status: Option<String>,
        }
        let entry: Entry = serde_json::from_slice(file).ok()?;
        match (entry.session_id == session_id).then_some(entry.status.as_deref()?)? {
            "busy" => Some(State::Busy),
            "idle" => Some(State::Idle),
            "waiting" => Some(State::Blocked),
            _ => None,
        }
    }
}

/// The canonical kind of an event.
fn kind(payload: &Payload<'_>) -> EventKind {
    match payload.hook_event_name.as_ref() {
        "SessionStart" => EventKind::Start(payload.source()),
        "UserPromptSubmit" => EventKind::Prompt,
        "PreToolUse" => EventKind::BeforeTool,
        "PostToolUse" | "PostToolUseFailure" => EventKind::AfterTool,
        "PostToolBatch" => EventKind::AfterTools,
        "Stop" => EventKind::Stop,
        // The turn is over because the request failed. The output of a hook goes nowhere.
        "StopFailure" => EventKind::IdleNotice,
        "PermissionRequest" => EventKind::Blocked,
        "Notification" => match payload.notification_type.as_deref() {
            Some("permission_prompt") => EventKind::Blocked,
            Some("idle_prompt") => EventKind::IdleNotice,
            // A notification for people, of which there are many.
            _ => EventKind::Other,
        },
        "PreCompact" => EventKind::Compacting,
        "SubagentStart" => EventKind::SubagentStart,
        "SubagentStop" => EventKind::SubagentStop,
        "SessionEnd" => EventKind::End,
        "PostCompact" | "TeammateIdle" | "CwdChanged" | "InstructionsLoaded" | "MessageDisplay" => {
            EventKind::Other
        }
        _ => EventKind::Unknown,
    }
}
