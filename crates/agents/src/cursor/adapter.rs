//! Cursor's payloads and answers, by its documentation.
//!
//! Mail goes out at `sessionStart` and `postToolUse` as `additional_context`, and at `stop` as
//! `followup_message`, which Cursor submits as the next prompt. A prompt's hook can add nothing.

use crate::agent::{
    ContextLimit, Env, HookCodec, Identity, PastCalls, Profile, Questions, Setup, Shell, Transcript, Waking,
};
use crate::call::{self, Ruling, ToolCall};
use crate::facts::Facts;
use crate::install::{Install, InstallError, Target};
use crate::payload;
use baton_core::Error;
use baton_core::bytes;
use baton_core::event::{Event, EventKind, Reply, Shown, Source};
use baton_core::frame::Unit;
use baton_core::mail::proof::MARK;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug)]
pub struct Cursor;

#[derive(Deserialize)]
struct Payload {
    conversation_id: String,
    hook_event_name: String,
    #[serde(default)]
    generation_id: Option<String>,
    #[serde(default)]
    workspace_roots: Vec<String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    parent_conversation_id: Option<String>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    loop_count: u64,
}

/// Fields that only Cursor's payloads have.
#[derive(Deserialize)]
struct Signs {
    #[serde(default)]
    cursor_version: Option<IgnoredAny>,
    #[serde(default)]
    conversation_id: Option<IgnoredAny>,
}

impl Profile for Cursor {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }
}

impl Setup for Cursor {
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        _env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        Ok(Box::new(super::install::Cursor::new(install, user_home)?))
    }
}

impl HookCodec for Cursor {
    fn parse(&self, payload: &[u8], _named: Option<&str>) -> Result<Event, Error> {
        let payload: Payload = payload::owned(payload)?;
        let kind = kind(&payload);
        let cwd = payload.cwd.or_else(|| payload.workspace_roots.into_iter().next());
        let subagent = payload.parent_conversation_id.is_some().then(|| payload.conversation_id.clone());
        Ok(Event {
            kind,
            native: payload.hook_event_name,
            session_id: payload.parent_conversation_id.unwrap_or(payload.conversation_id),
            // There is one, but its format is not documented.
            transcript: None,
            cwd: cwd.map(PathBuf::from),
            subagent,
            tool: payload.tool_name,
            calls: payload.tool_use_id.into_iter().collect(),
            turn: payload.generation_id,
            prompt: payload.prompt,
            stop_active: payload.loop_count > 0,
            shown: Shown::default(),
        })
    }

    fn render(&self, _event: &Event, reply: &Reply, _glance: Option<&str>) -> String {
        match reply {
            // It can't be woken, so no prompt is ours.
            Reply::Silent | Reply::Block(_) => String::new(),
            Reply::Context(text) => json!({ "additional_context": text }).to_string(),
            Reply::Continue(text) => json!({ "followup_message": text }).to_string(),
        }
    }

    fn context_limit(&self, event: EventKind) -> Option<ContextLimit> {
        match event {
            EventKind::Start(_) | EventKind::AfterTool | EventKind::Stop => {
                Some(ContextLimit::new(10_000, Unit::Bytes))
            }
            _ => None,
        }
    }

    fn render_ruling(&self, _call: &ToolCall, ruling: &Ruling) -> String {
        let permission =
            |word: &str, why: &str| json!({ "permission": word, "user_message": why, "agent_message": why });
        match ruling {
            Ruling::Deny(why) => permission("deny", why),
            Ruling::Ask(why) => permission("ask", why),
            // Before a tool, no documented answer would reach only the model.
            Ruling::Note(text) => json!({ "additional_context": text }),
            // It does not let a hook replace a tool's output.
            Ruling::Redact { why, .. } => json!({ "additional_context": call::not_taken_out(why) }),
        }
        .to_string()
    }

    fn render_ask(&self, call: &ToolCall, why: &str) -> Option<String> {
        Some(self.render_ruling(call, &Ruling::Ask(why.to_owned())))
    }
}

impl Identity for Cursor {
    fn shell(&self, _env: Env<'_>) -> Option<Shell> {
        None
    }

    fn is_process(&self, args: &[String]) -> bool {
        args.iter().take(2).any(|arg| {
            Path::new(arg)
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name == "cursor-agent")
        })
    }

    /// The editor runs hooks too.
    fn runs_hooks(&self, args: &[String]) -> bool {
        let program = args.first().and_then(|arg| Path::new(arg).file_name()?.to_str());
        self.is_process(args) || program.is_some_and(|name| name == "cursor" || name.starts_with("Cursor"))
    }

    /// Cursor also runs the hooks of Claude Code's `settings.json`, of the user and of the project.
    fn runs_foreign_hook(&self, payload: &[u8], _env: Env<'_>) -> bool {
        let told = |key: &[u8]| bytes::contains(payload, key);
        // Most payloads come from another agent, and need no second reading.
        (told(b"\"cursor_version\"") || told(b"\"conversation_id\""))
            && serde_json::from_slice(payload)
                .is_ok_and(|signs: Signs| signs.cursor_version.is_some() || signs.conversation_id.is_some())
    }
}

impl Transcript for Cursor {}

impl PastCalls for Cursor {}

impl Questions for Cursor {}

impl Waking for Cursor {}

/// The canonical kind of an event.
fn kind(payload: &Payload) -> EventKind {
    match payload.hook_event_name.as_str() {
        "sessionStart" => EventKind::Start(Source::Startup),
        // Our text at a stop comes back as a prompt.
        "beforeSubmitPrompt" if payload.prompt.as_deref().is_some_and(|text| text.contains(MARK)) => {
            EventKind::Continued
        }
        "beforeSubmitPrompt" => EventKind::Prompt,
        "preToolUse" | "beforeShellExecution" | "beforeMCPExecution" | "beforeReadFile" => {
            EventKind::BeforeTool
        }
        "postToolUse" => EventKind::AfterTool,
        "stop" => match payload.status.as_deref() {
            // The user stopped it, or it failed: after that no turn goes on by itself.
            Some("aborted" | "error") => EventKind::IdleNotice,
            _ => EventKind::Stop,
        },
        "preCompact" => EventKind::Compacting,
        "subagentStart" => EventKind::SubagentStart,
        "subagentStop" => EventKind::SubagentStop,
        "sessionEnd" => EventKind::End,
        _ => EventKind::Unknown,
    }
}
