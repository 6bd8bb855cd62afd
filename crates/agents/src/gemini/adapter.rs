//! Gemini CLI's payloads and answers.
//!
//! Mail goes out at BeforeAgent (the prompt), AfterTool (one per tool, in parallel) and AfterAgent
//! (the stop). Never at SessionStart: the mail would come before the prompt in the same message,
//! and a resumed session leaves out a message that begins with a hook's text, with the user's own
//! text. After a clear, the mail would go nowhere.
//!
//! Payloads name no turn, no tool call and no subagent. PreCompress runs before every request and
//! means nothing.

use super::{activity, asked, history, screen, transcript};
use crate::activity::Activity;
use crate::agent::{
    ContextLimit, Env, HookCodec, Identity, PastCalls, Profile, Questions, Setup, Shell, Transcript,
    TranscriptReader, Waking, with_system_message,
};
use crate::asked::{AgentQuestion, ProcessProbe, QuestionStatus, RecordedQuestion};
use crate::call::{self, Ruling, ToolCall};
use crate::facts::Facts;
use crate::history::{History, HistoryReader, files_below};
use crate::install::plugin::PluginFile;
use crate::install::{Install, InstallError, Target};
use crate::payload::{self, Payload};
use crate::screen::Screen;
use crate::wake::{Idle, Read, Route};
use baton_core::Error;
use baton_core::event::{Event, EventKind, Reply, Source};
use baton_core::frame::Unit;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Clone, Copy, Debug)]
pub struct Gemini;

/// The tool that runs a subagent. Subagents don't have it.
const RUNS_A_SUBAGENT: &str = "invoke_agent";
/// What the user sees when mail keeps a turn going. Without it, Gemini would show the mail itself.
const TURN_GOES_ON: &str = "mail from another session, carried by baton";

impl Profile for Gemini {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }
}

impl Setup for Gemini {
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let home = env("GEMINI_CLI_HOME").map(PathBuf::from);
        Ok(Box::new(super::install::Gemini::new(install, home.as_deref().unwrap_or(user_home))?))
    }

    fn plugin(&self) -> Result<Vec<PluginFile>, InstallError> {
        super::install::plugin()
    }

    fn plugin_record(&self, user_home: &Path, env: Env<'_>) -> Option<(PathBuf, &'static str)> {
        let home = env("GEMINI_CLI_HOME").map_or_else(|| user_home.to_owned(), PathBuf::from);
        Some((home.join(".gemini/extensions/baton/gemini-extension.json"), "\"baton\""))
    }
}

impl HookCodec for Gemini {
    fn parse(&self, payload: &[u8], _named: Option<&str>) -> Result<Event, Error> {
        let mut event = payload::read(payload, |payload| {
            let kind = kind(&payload);
            payload.event(kind, None)
        })?;
        if event.kind == EventKind::Start(Source::Resume) {
            // It names a file that it has just made for a new conversation. The old one goes on, as
            // the next event says.
            event.transcript = None;
        }
        Ok(event)
    }

    fn render(&self, event: &Event, reply: &Reply, glance: Option<&str>) -> String {
        let answer = match reply {
            Reply::Context(text) if !matches!(event.kind, EventKind::Start(_)) => {
                json!({"hookSpecificOutput": {"hookEventName": event.native, "additionalContext": text}})
            }
            Reply::Silent | Reply::Context(_) => return String::new(),
            Reply::Block(reason) => json!({"decision": "block", "reason": reason}),
            Reply::Continue(text) => {
                json!({"decision": "block", "reason": text, "systemMessage": TURN_GOES_ON})
            }
        };
        with_system_message(answer, glance)
    }

    fn context_limit(&self, event: EventKind) -> Option<ContextLimit> {
        match event {
            // 60,000 were accepted. Each angle bracket becomes four characters.
            EventKind::Prompt | EventKind::Woken | EventKind::Stop => {
                Some(ContextLimit::new(10_000, Unit::Utf16))
            }
            // Of a tool's result and this text together, the last 32,000 certainly stay.
            EventKind::AfterTool => Some(ContextLimit::new(7_500, Unit::Utf16)),
            _ => None,
        }
    }

    fn render_ruling(&self, call: &ToolCall, ruling: &Ruling) -> String {
        let deny = |why: &str| json!({ "decision": "deny", "reason": why }).to_string();
        match ruling {
            Ruling::Deny(why) => deny(why),
            // Without a terminal, a question would end the run.
            Ruling::Ask(why) => deny(&call::needs_a_person(why)),
            Ruling::Note(text) if call.kind == EventKind::AfterTool => {
                json!({"hookSpecificOutput": {"hookEventName": call.native, "additionalContext": text}})
                    .to_string()
            }
            // Before a tool, it takes no text.
            Ruling::Note(_) => String::new(),
            // The reason replaces the output.
            Ruling::Redact { output, why } => deny(&format!("{why}\n{}", call::joined(output))),
        }
    }

    /// Its dialog comes even in a mode that asks for nothing else.
    fn render_ask(&self, _call: &ToolCall, why: &str) -> Option<String> {
        Some(json!({ "decision": "ask", "reason": why }).to_string())
    }
}

impl Identity for Gemini {
    fn shell(&self, env: Env<'_>) -> Option<Shell> {
        // Only hooks have it in their environment.
        let session_id = env("GEMINI_SESSION_ID")?.into_string().ok()?;
        Some(Shell { session_id, call: None, subagent: false })
    }

    fn is_unnamed_shell(&self, env: Env<'_>) -> bool {
        env("GEMINI_CLI").is_some() && env("GEMINI_SESSION_ID").is_none()
    }

    fn is_process(&self, args: &[String]) -> bool {
        let name =
            |arg: &String| Path::new(arg).file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let Some((program, rest)) = args.split_first() else { return false };
        // It restarts itself with more memory: `node --max-old-space-size=… …/gemini`.
        let script = rest.iter().find(|arg| !arg.starts_with('-')).and_then(name);
        match name(program).as_deref() {
            Some("gemini") => true,
            Some("node" | "bun") => script.is_some_and(|script| matches!(&*script, "gemini" | "gemini.js")),
            _ => false,
        }
    }

    fn subagent_folder(&self, session_id: &str, transcript: &Path, tool: Option<&str>) -> Option<PathBuf> {
        let by_parent = tool == Some(RUNS_A_SUBAGENT);
        (!by_parent && !session_id.contains('/')).then(|| transcript.with_file_name(session_id))
    }
}

impl Transcript for Gemini {
    fn transcript(&self) -> TranscriptReader {
        let mut reader = transcript::Reader::default();
        Box::new(move |line| reader.items(line))
    }

    fn activity(&self, end: &[u8]) -> Activity {
        activity::read(end)
    }
}

impl PastCalls for Gemini {
    fn history(&self, user_home: &Path, since: Option<SystemTime>, env: Env<'_>) -> History {
        let home = env("GEMINI_CLI_HOME").map_or_else(|| user_home.to_owned(), PathBuf::from);
        History::Files(files_below(&home.join(".gemini/tmp"), ".jsonl", since))
    }

    fn history_reader(&self, file: &Path) -> HistoryReader {
        let root = file.ancestors().skip(1).find_map(|dir| {
            baton_machine::files::text(&dir.join(history::ROOT_FILE), baton_core::limits::POINTER_BYTES).ok()
        });
        let mut reader = history::Reader::new(root.map(|root| PathBuf::from(root.trim())));
        Box::new(move |line| reader.calls(line))
    }
}

impl Questions for Gemini {
    fn asked(&self, payload: &[u8], event: &Event) -> Option<AgentQuestion> {
        (event.kind == EventKind::Blocked).then(|| asked::asked(payload)).flatten()
    }

    fn question_status(
        &self,
        asking: &RecordedQuestion<'_>,
        probe: ProcessProbe<'_>,
    ) -> Option<QuestionStatus> {
        asked::question_status(asking, probe)
    }

    fn is_headless(&self, args: &[String], _env: Env<'_>) -> bool {
        let is_prompt = |arg: &str| arg == "-p" || arg == "--prompt" || arg.starts_with("--prompt=");
        args.iter().skip(1).any(|arg| is_prompt(arg) || arg == "--acp")
    }
}

impl Waking for Gemini {
    fn routes(&self, _idle: &Idle<'_>, _read: Read<'_>) -> Vec<Route> {
        vec![Route::Terminal]
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }
}

/// The canonical kind of an event.
fn kind(payload: &Payload<'_>) -> EventKind {
    match payload.hook_event_name.as_ref() {
        "SessionStart" => EventKind::Start(payload.source()),
        "BeforeAgent" => EventKind::Prompt,
        "BeforeTool" => EventKind::BeforeTool,
        "AfterTool" => EventKind::AfterTool,
        "AfterAgent" => EventKind::Stop,
        "Notification" if payload.notification_type.as_deref() == Some("ToolPermission") => {
            EventKind::Blocked
        }
        "SessionEnd" => EventKind::End,
        "Notification" | "PreCompress" | "BeforeModel" | "BeforeToolSelection" | "AfterModel" => {
            EventKind::Other
        }
        _ => EventKind::Unknown,
    }
}
