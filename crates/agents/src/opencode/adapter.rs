//! OpenCode's events, as our plugin forwards them, and what the plugin is told.
//!
//! Mail goes out with a prompt (as a part of the message), after a tool (behind its output), and into an idle session as a prompt of its own. All
//! three are stored with the conversation. The proof is the plugin's sight of each request to the model, so no file of OpenCode is read.
//!
//! A pushed prompt has ids that follow from its offer. OpenCode takes the same message and part once, however often it is sent, so a push whose
//! fate is unknown is simply repeated.

use super::{asked, history, install, screen};
use crate::agent::{Agent, Env, McpCaller, Push, Shell};
use crate::asked::{Asked, Settled};
use crate::call::{self, Call, Ruling};
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

/// OpenCode.
#[derive(Clone, Copy, Debug)]
pub struct OpenCode;

/// The argument that our plugin adds to calls of our tools.
const CALLER: &str = "baton_caller";

impl Agent for OpenCode {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }

    /// Its folders, with a log.
    fn writes_when_asked(&self) -> bool {
        true
    }

    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let folder = env("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        Ok(Box::new(install::OpenCode::new(install, user_home, folder.as_deref())?))
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
            // A plugin can't make it ask its person. Where it may be held for one, `render_hold` says so.
            Ruling::Ask(why) => json!({ "deny": call::needs_a_person(why) }),
            Ruling::Note(text) => json!({ "note": text }),
            Ruling::Redact { output, .. } => json!({ "output": output }),
        }
        .to_string()
    }

    /// The plugin waits before the call; what it throws when nobody has answered is said along.
    fn render_hold(&self, _call: &Call, why: &str, hold: Span) -> Option<String> {
        let refused = call::needs_a_person(why);
        Some(json!({"deny": refused, "hold": {"ms": hold.0, "why": why}}).to_string())
    }

    fn asked(&self, payload: &[u8], event: &Event) -> Option<Asked> {
        asked::asked(payload, event)
    }

    fn reply(&self, payload: &[u8], event: &Event, asked: &Asked, answer: &Answer) -> Option<Value> {
        asked::answer(payload, event, asked, answer)
    }

    fn settled(&self, payload: &[u8], event: &Event) -> Option<Settled> {
        asked::settled(payload, event)
    }

    /// What is attached to such a process shows the sessions of it, but nobody knows whether anything is.
    fn is_headless(&self, args: &[String], _env: Env<'_>) -> bool {
        asked::is_headless(args)
    }

    fn takes(&self, event: EventKind) -> Option<(usize, Unit)> {
        match event {
            EventKind::Prompt | EventKind::AfterTool | EventKind::IdleNotice => Some((40_000, Unit::Bytes)),
            _ => None,
        }
    }

    /// It says nothing of the kind.
    fn tells_held_stops(&self) -> bool {
        false
    }

    fn shows_requests(&self) -> bool {
        true
    }

    fn push(&self, push: &Push<'_>) -> Option<Value> {
        Some(json!({
            "session_id": push.session_id,
            "message_id": id("msg", push.nonce, push.made_at),
            "part_id": id("prt", push.nonce, push.made_at),
            "mark": mail::mark(push.nonce),
            "text": push.text,
        }))
    }

    fn history(&self, user_home: &Path, _since: Option<SystemTime>, env: Env<'_>) -> History {
        let data = env("XDG_DATA_HOME").filter(|folder| !folder.is_empty());
        let folder = data.map_or_else(|| user_home.join(".local/share"), PathBuf::from);
        History::Database { file: folder.join("opencode/opencode.db"), query: history::QUERY }
    }

    fn history_reader(&self, _file: &Path) -> HistoryReader {
        Box::new(history::calls)
    }

    fn shell(&self, env: Env<'_>) -> Option<Shell> {
        env("OPENCODE")?;
        let text = |name: &str| env(name)?.into_string().ok();
        let session_id = text("BATON_SESSION_ID")?;
        Some(Shell { session_id, call: text("BATON_CALL_ID"), subagent: env("BATON_SUBAGENT").is_some() })
    }

    fn hook_process(&self, env: Env<'_>) -> Option<i32> {
        env("OPENCODE_PID")?.to_str()?.parse().ok()
    }

    fn is_process(&self, args: &[String]) -> bool {
        args.iter().take(2).any(|arg| is_program(arg))
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }

    fn is_shared_process(&self, _args: &[String]) -> bool {
        true
    }

    fn caller_in_arguments(&self, arguments: &mut Map<String, Value>) -> Option<McpCaller> {
        let caller = arguments.remove(CALLER)?;
        let text = |key: &str| caller.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(McpCaller {
            session_id: text("session_id"),
            call: text("call"),
            subagent: caller.get("agent_id").is_some_and(|id| !id.is_null()),
        })
    }
}

/// Whether that is OpenCode, by its path.
pub(super) fn is_program(arg: &str) -> bool {
    let name = Path::new(arg).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| matches!(name, "opencode" | ".opencode" | "opencode.exe"))
}

/// An id as OpenCode makes them: the time, which it sorts by, and 14 letters.
fn id(prefix: &str, nonce: &Nonce, made_at: Moment) -> String {
    let time = (made_at.0.cast_unsigned() << 12 | 1) & 0xffff_ffff_ffff;
    format!("{prefix}_{time:012x}{:0>14}", nonce.as_str())
}

/// What happened, in our words.
fn kind(payload: &Payload<'_>) -> EventKind {
    match payload.hook_event_name.as_ref() {
        "session.created" => EventKind::Start(Source::Startup),
        "chat.message" => EventKind::Prompt,
        "tool.execute.before" => EventKind::BeforeTool,
        "tool.execute.after" => EventKind::AfterTool,
        "request" => EventKind::Request,
        "session.compacted" => EventKind::Start(Source::Compact),
        // Told by our plugin before the next one, unless the turn failed.
        "turn.done" => EventKind::Stop,
        "session.idle" => EventKind::IdleNotice,
        "permission.asked" | "question.asked" | "call.asked" => EventKind::Blocked,
        // Whatever was answered: if it was a refusal, the session says next that it is idle.
        "permission.replied" | "question.replied" | "question.rejected" | "call.decided" => {
            EventKind::BeforeTool
        }
        // About questions only: it says the same of its turn by other events.
        "approval.gone" | "approval.outcome" => EventKind::Other,
        "push.failed" => EventKind::PushFailed,
        "session.deleted" => EventKind::End,
        _ => EventKind::Unknown,
    }
}
