//! OpenCode's events, as our plugin forwards them, and the messages to the plugin.
//!
//! Mail goes out with a prompt (as a part of the message), after a tool (after its output), and
//! into an idle session as a separate prompt. OpenCode stores all three with the conversation. The
//! plugin sees each request to the model, and that is the proof, so no file of OpenCode is read.
//!
//! The ids of a pushed prompt follow from its offer. OpenCode accepts the same message and part
//! once, however often it is sent. So if the result of a push is unknown, baton repeats it.

use super::{asked, history, install, screen};
use crate::agent::{
    ContextLimit, Env, HookCodec, Identity, McpCaller, PastCalls, Profile, Push, Questions, Setup, Shell,
    Transcript, Waking, with_glance,
};
use crate::asked::{AgentQuestion, QuestionReport};
use crate::call::{self, Ruling, ToolCall};
use crate::facts::Facts;
use crate::history::{History, HistoryReader};
use crate::install::{Install, InstallError, Target};
use crate::payload::{self, Payload, given};
use crate::screen::Screen;
use baton_core::Error;
use baton_core::approval::Answer;
use baton_core::event::{Event, EventKind, Reply, Source};
use baton_core::frame::Unit;
use baton_core::id::Nonce;
use baton_core::mail::{self};
use baton_core::time::{Moment, Span};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Clone, Copy, Debug)]
pub struct OpenCode;

/// The argument that our plugin adds to calls of our tools.
const CALLER_ARGUMENT: &str = "baton_caller";

impl Profile for OpenCode {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }
}

impl Setup for OpenCode {
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let folder = env("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        Ok(Box::new(install::OpenCode::new(install, user_home, folder.as_deref())?))
    }
}

impl HookCodec for OpenCode {
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
            EventKind::Prompt | EventKind::AfterTool | EventKind::IdleNotice => {
                Some(ContextLimit::new(40_000, Unit::Bytes))
            }
            _ => None,
        }
    }

    fn render_ruling(&self, _call: &ToolCall, ruling: &Ruling) -> String {
        match ruling {
            Ruling::Deny(why) => json!({ "deny": why }),
            // A plugin can't make OpenCode ask its user. If the call may be held for a person,
            // `render_hold` says so.
            Ruling::Ask(why) => json!({ "deny": call::needs_a_person(why) }),
            Ruling::Note(text) => json!({ "note": text }),
            Ruling::Redact { output, .. } => json!({ "output": output }),
        }
        .to_string()
    }

    /// The plugin waits before the call. `why` is what it throws if no answer comes.
    fn render_hold(&self, _call: &ToolCall, why: &str, hold: Span) -> Option<String> {
        let refused = call::needs_a_person(why);
        Some(json!({"deny": refused, "hold": {"ms": hold.0, "why": why}}).to_string())
    }
}

impl Identity for OpenCode {
    fn shell(&self, env: Env<'_>) -> Option<Shell> {
        env("OPENCODE")?;
        let text = |name: &str| env(name)?.into_string().ok();
        let session_id = text("BATON_SESSION_ID")?;
        Some(Shell { session_id, call: text("BATON_CALL_ID"), subagent: env("BATON_SUBAGENT").is_some() })
    }

    fn is_process(&self, args: &[String]) -> bool {
        args.iter().take(2).any(|arg| is_program(arg))
    }

    fn is_shared_process(&self, _args: &[String]) -> bool {
        true
    }

    fn hook_process(&self, env: Env<'_>) -> Option<i32> {
        env("OPENCODE_PID")?.to_str()?.parse().ok()
    }

    fn caller_in_arguments(&self, arguments: &mut Map<String, Value>) -> Option<McpCaller> {
        let caller = arguments.remove(CALLER_ARGUMENT)?;
        let text = |key: &str| caller.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(McpCaller {
            session_id: text("session_id"),
            call: text("call"),
            subagent: caller.get("agent_id").is_some_and(|id| !id.is_null()),
        })
    }
}

impl Transcript for OpenCode {}

impl PastCalls for OpenCode {
    fn history(&self, user_home: &Path, _since: Option<SystemTime>, env: Env<'_>) -> History {
        let data = env("XDG_DATA_HOME").filter(|folder| !folder.is_empty());
        let folder = data.map_or_else(|| user_home.join(".local/share"), PathBuf::from);
        History::Database { file: folder.join("opencode/opencode.db"), query: history::QUERY }
    }

    fn history_reader(&self, _file: &Path) -> HistoryReader {
        Box::new(history::calls)
    }
}

impl Questions for OpenCode {
    fn asked(&self, payload: &[u8], event: &Event) -> Option<AgentQuestion> {
        asked::asked(payload, event)
    }

    fn reply(&self, payload: &[u8], event: &Event, asked: &AgentQuestion, answer: &Answer) -> Option<Value> {
        asked::answer(payload, event, asked, answer)
    }

    fn question_outcome(&self, payload: &[u8], event: &Event) -> Option<QuestionReport> {
        asked::question_outcome(payload, event)
    }

    /// Clients attach to such a process and show its sessions, but nothing tells whether any client
    /// is there.
    fn is_headless(&self, args: &[String], _env: Env<'_>) -> bool {
        asked::is_headless(args)
    }
}

impl Waking for OpenCode {
    fn push(&self, push: &Push<'_>) -> Option<Value> {
        let pushed = json!({
            "session_id": push.session_id,
            "message_id": id("msg", push.nonce, push.made_at),
            "part_id": id("prt", push.nonce, push.made_at),
            "mark": mail::mark(push.nonce),
            "text": push.text,
        });
        Some(with_glance(pushed, push.glance))
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }
}

/// Whether it is OpenCode, by its path.
pub(super) fn is_program(arg: &str) -> bool {
    let name = Path::new(arg).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| matches!(name, "opencode" | ".opencode" | "opencode.exe"))
}

/// An id in OpenCode's form: the time, by which it sorts, and 14 letters.
fn id(prefix: &str, nonce: &Nonce, made_at: Moment) -> String {
    let time = (made_at.0.cast_unsigned() << 12 | 1) & 0xffff_ffff_ffff;
    format!("{prefix}_{time:012x}{:0>14}", nonce.as_str())
}

/// The canonical kind of an event.
fn kind(payload: &Payload<'_>) -> EventKind {
    match payload.hook_event_name.as_ref() {
        "session.created" => EventKind::Start(Source::Startup),
        "chat.message" => EventKind::Prompt,
        "tool.execute.before" => EventKind::BeforeTool,
        "tool.execute.after" => EventKind::AfterTool,
        "request" => EventKind::Request,
        "session.compacted" => EventKind::Start(Source::Compact),
        // Our plugin reports it before the next event, unless the turn failed.
        "turn.done" => EventKind::Stop,
        "session.idle" => EventKind::IdleNotice,
        "permission.asked" | "question.asked" | "call.asked" => EventKind::Blocked,
        // Whatever the answer was: after a refusal, the session reports next that it is idle.
        "permission.replied" | "question.replied" | "question.rejected" | "call.decided" => {
            EventKind::QuestionSettled
        }
        // About questions only. Other events report the turn.
        "approval.gone" | "approval.outcome" => EventKind::Other,
        "push.failed" => EventKind::PushFailed,
        "session.deleted" => EventKind::End,
        _ => EventKind::Unknown,
    }
}
