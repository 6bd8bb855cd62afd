//! Copilot's payloads and answers.
//!
//! Mail goes out with a prompt, after a tool and at a stop. The text of a hook at the start of a
//! session or after a failed tool reaches the model too, but is written nowhere, so baton offers
//! nothing there. What a hook has for the user is a line before its answer (since 1.0.55). After a
//! tool, Copilot cuts everything beyond 10,240 characters. Payloads name
//! neither event nor tool call; those of a subagent have an `agentId`.
//!
//! An idle session gets mail with a prompt: our extension submits a line without mail
//! ([`wake::line`]). The prompt hook runs for it as for every prompt, and brings the mail, or
//! blocks a line that is too late. The extension also reports that it has joined a session, that a
//! turn runs, that the model has answered, and that nothing runs any more, because no hook runs
//! after an interruption.
//!
//! A call of an MCP tool says nothing about its caller. But the hook before it may add to its
//! `_meta`: see `sign_call`.

use super::will_prompt::{self, About, Session};
use super::{OUR_SERVER, activity, asked, history, is_continuation, moment, screen, transcript};
use crate::activity::Activity;
use crate::agent::{
    ContextLimit, Env, HookCodec, Identity, McpCaller, PastCalls, Profile, Questions, Setup, Shell,
    Transcript, TranscriptReader, Waking,
};
use crate::asked::{AgentQuestion, ProcessProbe, QuestionStatus, RecordedQuestion};
use crate::call::{Ruling, ToolCall};
use crate::facts::Facts;
use crate::history::{History, HistoryReader, files_below};
use crate::install::{Install, InstallError, Target};
use crate::payload;
use crate::screen::Screen;
use crate::wake::Read;
use baton_core::Error;
use baton_core::approval::Answer;
use baton_core::event::{Event, EventKind, Reply, Shown, Source};
use baton_core::frame::Unit;
use baton_core::wake;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Clone, Copy, Debug)]
pub struct Copilot;

/// The event whose answer may sign a call.
const BEFORE_MCP_EVENT: &str = "preMcpToolCall";
/// Our extension reports Copilot's own events, and this one.
const JOINED_EVENT: &str = "extension.joined";
/// The program that runs extensions. It is Copilot's own, but runs no session.
const EXTENSION_RUNNER: &str = "extension_bootstrap.mjs";
/// The keys of a signed call.
const SESSION_KEY: &str = "baton/session";
const CALL_KEY: &str = "baton/call";
const SUBAGENT_KEY: &str = "baton/subagent";

/// The fields of a payload. The rest, which may be megabytes of tool output, is skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    session_id: String,
    #[serde(default)]
    timestamp: Value,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    transcript_path: Option<String>,
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    parent_agent_id: Option<String>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    server_name: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default, rename = "notification_type")]
    notification_type: Option<String>,
    #[serde(default, rename = "stop_hook_active")]
    stop_hook_active: bool,
    /// The event, if our extension reports it. Hooks have it in their command.
    #[serde(default)]
    extension_event: Option<String>,
    /// The model whose answer the extension reports.
    #[serde(default)]
    model: Option<String>,
    /// Whether a turn ran when the extension joined.
    #[serde(default)]
    processing: bool,
}

impl Profile for Copilot {
    fn facts(&self) -> &'static Facts {
        &super::facts::FACTS
    }
}

impl Setup for Copilot {
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        let folder = env("COPILOT_HOME").map(PathBuf::from);
        Ok(Box::new(super::install::Copilot::new(install, user_home, folder.as_deref())?))
    }
}

impl HookCodec for Copilot {
    fn parse(&self, payload: &[u8], named: Option<&str>) -> Result<Event, Error> {
        let payload: Payload = payload::owned(payload)?;
        let native = named.or(payload.extension_event.as_deref()).unwrap_or_default().to_owned();
        let kind = kind(&native, &payload);
        let moment = moment(&payload.timestamp);
        let call = if kind == EventKind::AfterTool { moment.clone() } else { payload.tool_call_id };
        let subagent = payload.agent_id.filter(|id| !id.is_empty());
        // A subagent has its own session id, but acts for its parent's.
        let session_id = match payload.parent_agent_id {
            Some(parent) if subagent.is_some() => parent,
            _ => payload.session_id,
        };
        Ok(Event {
            kind,
            native,
            session_id,
            transcript: payload.transcript_path.map(PathBuf::from),
            cwd: payload.cwd.map(PathBuf::from),
            subagent,
            tool: match (payload.server_name, payload.tool_name) {
                (Some(server), Some(tool)) => Some(format!("{server}/{tool}")),
                (_, tool) => tool,
            },
            calls: call.into_iter().collect(),
            turn: moment.filter(|_| matches!(kind, EventKind::Prompt | EventKind::Woken)),
            prompt: payload.prompt,
            stop_active: payload.stop_hook_active,
            shown: Shown::default(),
        })
    }

    fn render(&self, _event: &Event, reply: &Reply, glance: Option<&str>) -> String {
        // Copilot ignores `hookSpecificOutput`, which other agents want.
        let answer = match reply {
            Reply::Silent => return String::new(),
            Reply::Context(text) => json!({ "additionalContext": text }),
            Reply::Continue(text) | Reply::Block(text) => json!({ "decision": "block", "reason": text }),
        };
        // A line of this form in front of the answer is shown to the user at once, and never to the
        // model.
        let shown = glance.map(|lines| format!("{}\n", json!({ "type": "progress", "message": lines })));
        shown.unwrap_or_default() + &answer.to_string()
    }

    fn context_limit(&self, event: EventKind) -> Option<ContextLimit> {
        match event {
            EventKind::Prompt
            | EventKind::Woken
            | EventKind::AfterTool
            | EventKind::Stop
            | EventKind::IdleNotice => Some(ContextLimit::new(10_000, Unit::Bytes)),
            _ => None,
        }
    }

    fn render_ruling(&self, _call: &ToolCall, ruling: &Ruling) -> String {
        let permission =
            |word: &str, why: &str| json!({ "permissionDecision": word, "permissionDecisionReason": why });
        match ruling {
            Ruling::Deny(why) => permission("deny", why),
            // Without a terminal this is a refusal.
            Ruling::Ask(why) => permission("ask", why),
            Ruling::Note(text) => json!({ "additionalContext": text }),
            Ruling::Redact { output, .. } => json!({ "modifiedResult": output }),
        }
        .to_string()
    }

    fn render_ask(&self, call: &ToolCall, why: &str) -> Option<String> {
        Some(self.render_ruling(call, &Ruling::Ask(why.to_owned())))
    }
}

impl Identity for Copilot {
    fn shell(&self, env: Env<'_>) -> Option<Shell> {
        // In a subagent's shell this id appears nowhere else. Its process shows whose it is.
        let session_id = env("COPILOT_AGENT_SESSION_ID")?.into_string().ok()?;
        Some(Shell { session_id, call: None, subagent: false })
    }

    fn is_process(&self, args: &[String]) -> bool {
        let mut names =
            args.iter().take(2).filter_map(|arg| Path::new(arg).file_name().and_then(|name| name.to_str()));
        let is_program = |name: &str| {
            name == "copilot" || name.starts_with("copilot-linux-") || name.starts_with("copilot-darwin-")
        };
        names.clone().any(is_program) && names.all(|name| name != EXTENSION_RUNNER)
    }

    /// In a folder that the user trusts, Copilot also runs the hooks of `.claude/settings.json`.
    /// Its hooks have this variable and the shells of its tools don't, so the hooks of a Claude
    /// Code that was started in such a shell still work.
    fn runs_foreign_hook(&self, _payload: &[u8], env: Env<'_>) -> bool {
        env("COPILOT_CLI").is_some() && env("COPILOT_PROJECT_DIR").is_some()
    }

    fn mcp_caller(&self, meta: &Map<String, Value>) -> McpCaller {
        let text = |key: &str| meta.get(key).and_then(Value::as_str).map(str::to_owned);
        McpCaller {
            session_id: text(SESSION_KEY),
            call: text(CALL_KEY),
            subagent: meta.contains_key(SUBAGENT_KEY),
        }
    }

    fn sign_call(&self, event: &Event) -> Option<String> {
        let server = event.tool.as_deref()?.split_once('/')?.0;
        if event.native != BEFORE_MCP_EVENT || server != OUR_SERVER {
            return None;
        }
        let mut meta = Map::from_iter([(SESSION_KEY.to_owned(), json!(event.session_id))]);
        meta.extend(event.calls.first().map(|call| (CALL_KEY.to_owned(), json!(call))));
        meta.extend(event.subagent.as_ref().map(|id| (SUBAGENT_KEY.to_owned(), json!(id))));
        Some(json!({ "metaToUse": meta }).to_string())
    }
}

impl Transcript for Copilot {
    fn transcript(&self) -> TranscriptReader {
        let mut reader = transcript::Reader::default();
        Box::new(move |line| reader.items(line))
    }

    fn transcript_path(&self, session_id: &str, env: Env<'_>) -> Option<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        folder(env)
            .filter(|_| session_id.chars().all(plain))
            .map(|folder| folder.join("session-state").join(session_id).join("events.jsonl"))
    }

    fn activity(&self, end: &[u8]) -> Activity {
        activity::read(end)
    }
}

impl PastCalls for Copilot {
    fn history(&self, user_home: &Path, since: Option<SystemTime>, env: Env<'_>) -> History {
        let folder = env("COPILOT_HOME").map_or_else(|| user_home.join(".copilot"), PathBuf::from);
        History::Files(files_below(&folder.join("session-state"), "events.jsonl", since))
    }

    fn history_reader(&self, _file: &Path) -> HistoryReader {
        let mut reader = history::Reader::default();
        Box::new(move |line| reader.calls(line))
    }
}

impl Questions for Copilot {
    fn asked(&self, payload: &[u8], event: &Event) -> Option<AgentQuestion> {
        asked::asked(payload, event)
    }

    fn will_prompt_user(
        &self,
        asked: &AgentQuestion,
        event: &Event,
        args: &[String],
        env: Env<'_>,
        read: Read<'_>,
    ) -> bool {
        if event.native != asked::BEFORE_DIALOG {
            return true;
        }
        let about = match (asked::command(&asked.question), asked.question.subject.paths().is_empty()) {
            (Some(command), _) => About::Command(command),
            (None, false) => About::Edit,
            // Of the tools of MCP servers, it asks about some.
            (None, true) => return false,
        };
        let (home, written) = (folder(env), self.transcript_path(&event.session_id, env));
        let session = Session {
            args,
            env,
            home: home.as_deref(),
            transcript: event.transcript.as_deref().or(written.as_deref()),
            cwd: event.cwd.as_deref(),
            read,
        };
        will_prompt::certainly(about, &session)
    }

    fn reports_dialog_separately(&self, event: &Event) -> bool {
        event.native == asked::BEFORE_DIALOG
    }

    fn render_answer(&self, event: &Event, _asked: &AgentQuestion, answer: &Answer) -> Option<String> {
        asked::answer(event, answer)
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
        args.iter().skip(1).any(|arg| is_prompt(arg))
    }
}

impl Waking for Copilot {
    fn wake(&self, session_id: &str, line: &str) -> Option<Value> {
        Some(json!({ "session_id": session_id, "prompt": line }))
    }

    fn screen(&self, capture: &str) -> Screen {
        screen::screen(capture)
    }
}

/// Copilot's own folder.
fn folder(env: Env<'_>) -> Option<PathBuf> {
    env("COPILOT_HOME").map(PathBuf::from).or_else(|| Some(Path::new(&env("HOME")?).join(".copilot")))
}

/// The canonical kind of an event.
fn kind(event: &str, payload: &Payload) -> EventKind {
    match event {
        "sessionStart" => EventKind::Start(match payload.source.as_deref() {
            // Also after `/clear`, which ends the old session first.
            Some("new") => Source::New,
            Some("resume") => Source::Resume,
            _ => Source::Other,
        }),
        "userPromptSubmitted" if payload.prompt.as_deref().is_some_and(is_continuation) => {
            EventKind::Continued
        }
        "userPromptSubmitted" if payload.prompt.as_deref().is_some_and(wake::line::is_line) => {
            EventKind::Woken
        }
        "userPromptSubmitted" => EventKind::Prompt,
        "preToolUse" | BEFORE_MCP_EVENT => EventKind::BeforeTool,
        "postToolUse" => EventKind::AfterTool,
        "agentStop" => EventKind::Stop,
        // It comes for every tool, also if Copilot asks no one: see `will_prompt_user`. The other
        // one comes with the dialog.
        asked::BEFORE_DIALOG => EventKind::Blocked,
        "notification" => match payload.notification_type.as_deref() {
            Some("permission_prompt" | "elicitation_dialog") => EventKind::Blocked,
            _ => EventKind::Unknown,
        },
        "preCompact" => EventKind::Compacting,
        // A session without a first prompt has run no hook yet.
        JOINED_EVENT if !payload.processing => EventKind::Start(Source::New),
        JOINED_EVENT | "assistant.turn_start" => EventKind::BeforeTool,
        // Reported when the answer is there: only then the session works. An answer without a model
        // was made up by the program.
        "assistant.message" if payload.model.is_some() => EventKind::Request,
        "assistant.message" => EventKind::Other,
        "assistant.idle" => EventKind::IdleNotice,
        "subagentStart" => EventKind::SubagentStart,
        "subagentStop" => EventKind::SubagentStop,
        "sessionEnd" => EventKind::End,
        _ => EventKind::Unknown,
    }
}
