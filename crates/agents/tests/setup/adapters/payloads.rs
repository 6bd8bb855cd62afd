//! Payloads as the real programs gave them to hooks (Claude Code 2.1.325, Codex 0.166.0, Gemini CLI
//! 0.61.0), and worse ones.

use crate::round_trip::any_json;
use baton_agents::agent::{Identity as _, Waking as _};
use baton_agents::install::{Form, GuardHooks, Scope};
use baton_agents::{Agent, by_name, claude, codex, gemini};
use baton_core::Code;
use baton_core::event::EventKind::{
    self, AfterTool, AfterTools, BeforeTool, Blocked, Compacting, End, IdleNotice, Interrupted, Other,
    Prompt, Start, Stop, SubagentStart, SubagentStop,
};
use baton_core::event::{Event, Source};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A recorded hook call.
#[derive(Deserialize)]
pub struct Recorded {
    pub name: String,
    /// The event that the hook was installed for, if the payload does not name it.
    #[serde(default)]
    pub event: Option<String>,
    /// The agent's own variables in the hook's environment.
    pub env: BTreeMap<String, String>,
    /// The hook's standard input.
    pub stdin: Value,
}

impl Recorded {
    pub fn all(agent: &str) -> Vec<Self> {
        let path = format!("{}/tests/payloads/{agent}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    pub fn named(agent: &str, name: &str) -> Self {
        Self::all(agent).into_iter().find(|recorded| recorded.name == name).unwrap()
    }

    pub fn event(&self, agent: &str) -> Event {
        let payload = self.stdin.to_string();
        by_name(agent).unwrap().parse(payload.as_bytes(), self.event.as_deref()).unwrap()
    }
}

fn parse(agent: &dyn Agent, payload: &Value) -> Event {
    agent.parse(payload.to_string().as_bytes(), None).unwrap()
}

/// A recorded payload and its meaning: kind, session, turn, subagent, calls, transcript; of ids and
/// paths only the end.
type Row = (
    &'static str,
    EventKind,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
);

const CLAUDE: &[Row] = &[
    ("SessionStart", Start(Source::Startup), "39b07bc5", "", "", &[], "39b07bc5.jsonl"),
    ("SessionStart-interactive", Start(Source::Startup), "ca24ce80", "", "", &[], "ca24ce80.jsonl"),
    ("SessionStart-resume", Start(Source::Resume), "e5f3d7b9", "", "", &[], "e5f3d7b9.jsonl"),
    ("SessionStart-clear", Start(Source::Clear), "e5f3d7b9", "", "", &[], "e5f3d7b9.jsonl"),
    ("SessionStart-compact", Start(Source::Compact), "b7b254ec", "357e1cab", "", &[], "b7b254ec.jsonl"),
    ("SessionStart-fork", Start(Source::Fork), "f4dfbaca", "", "", &[], "f4dfbaca.jsonl"),
    ("UserPromptSubmit", Prompt, "39b07bc5", "edef91db", "", &[], "39b07bc5.jsonl"),
    ("PreToolUse", BeforeTool, "39b07bc5", "edef91db", "", &["47a1a854"], "39b07bc5.jsonl"),
    ("PostToolUse", AfterTool, "39b07bc5", "edef91db", "", &["47a1a854"], "39b07bc5.jsonl"),
    ("PostToolUseFailure", AfterTool, "65a1232b", "7c257db1", "", &["47ea95e2"], "65a1232b.jsonl"),
    ("PostToolBatch", AfterTools, "39b07bc5", "edef91db", "", &["47a1a854"], "39b07bc5.jsonl"),
    ("Stop", Stop, "39b07bc5", "edef91db", "", &[], "39b07bc5.jsonl"),
    ("StopFailure", IdleNotice, "d2b7fe10", "e26e9171", "", &[], "d2b7fe10.jsonl"),
    ("PermissionRequest", Blocked, "b20b4073", "9435bba6", "", &[], "b20b4073.jsonl"),
    ("Notification-idle", IdleNotice, "ca24ce80", "a3077b88", "", &[], "ca24ce80.jsonl"),
    ("PreCompact", Compacting, "d2b7fe10", "03f6b5fd", "", &[], "d2b7fe10.jsonl"),
    ("PostCompact", Other, "d2b7fe10", "03f6b5fd", "", &[], "d2b7fe10.jsonl"),
    ("SubagentStart", SubagentStart, "65a1232b", "7c257db1", "0cb5b0ff", &[], "65a1232b.jsonl"),
    ("SubagentStop", SubagentStop, "65a1232b", "7c257db1", "0cb5b0ff", &[], "65a1232b.jsonl"),
    ("TeammateIdle", Other, "2940fae2", "5eaaa380", "c8ae64ee", &[], "2940fae2.jsonl"),
    ("CwdChanged", Other, "65a1232b", "7c257db1", "", &[], "65a1232b.jsonl"),
    ("InstructionsLoaded", Other, "d2b7fe10", "", "", &[], "d2b7fe10.jsonl"),
    ("MessageDisplay", Other, "39b07bc5", "edef91db", "", &[], "39b07bc5.jsonl"),
    ("SessionEnd", End, "39b07bc5", "edef91db", "", &[], "39b07bc5.jsonl"),
];

const CODEX: &[Row] = &[
    ("SessionStart", Start(Source::Startup), "fd570b47", "", "", &[], "fd570b47.jsonl"),
    ("SessionStart-resume", Start(Source::Resume), "e5f893bf", "", "", &[], "e5f893bf.jsonl"),
    ("SessionStart-clear", Start(Source::Clear), "882a07ce", "", "", &[], "882a07ce.jsonl"),
    ("SessionStart-compact", Start(Source::Compact), "c8e2efd9", "", "", &[], "c8e2efd9.jsonl"),
    ("SessionStart-fork", Start(Source::Fork), "57435555", "", "", &[], "57435555.jsonl"),
    ("UserPromptSubmit", Prompt, "fd570b47", "ab1e778f", "", &[], "fd570b47.jsonl"),
    // A subagent has its parent's session and its own transcript.
    ("UserPromptSubmit-subagent", Prompt, "4c587be9", "11df44be", "9edeafce", &[], "9edeafce.jsonl"),
    ("PreToolUse", BeforeTool, "fd570b47", "ab1e778f", "", &["744fef2b"], "fd570b47.jsonl"),
    ("PostToolUse", AfterTool, "fd570b47", "ab1e778f", "", &["744fef2b"], "fd570b47.jsonl"),
    // Calls inside a script have ids that the transcript does not have.
    ("PreToolUse-Bash", BeforeTool, "6e22018c", "9114bb77", "", &[], "6e22018c.jsonl"),
    ("PreToolUse-apply_patch", BeforeTool, "6e22018c", "9114bb77", "", &[], "6e22018c.jsonl"),
    ("PreToolUse-mcp__probe__echo_text", BeforeTool, "6e22018c", "9114bb77", "", &[], "6e22018c.jsonl"),
    ("PostToolUse-Bash", AfterTool, "6e22018c", "9114bb77", "", &[], "6e22018c.jsonl"),
    ("PostToolUse-apply_patch", AfterTool, "6e22018c", "9114bb77", "", &[], "6e22018c.jsonl"),
    ("PostToolUse-mcp__probe__echo_text", AfterTool, "6e22018c", "9114bb77", "", &[], "6e22018c.jsonl"),
    ("PreModelRequest", Other, "fd570b47", "ab1e778f", "", &[], "fd570b47.jsonl"),
    ("Stop", Stop, "fd570b47", "ab1e778f", "", &[], "fd570b47.jsonl"),
    ("PermissionRequest", Blocked, "4822b86a", "b1f461ab", "", &[], "4822b86a.jsonl"),
    ("Interrupt", Interrupted, "b4322116", "bdb5d2a7", "", &[], "b4322116.jsonl"),
    ("PreCompact", Compacting, "c8e2efd9", "954e6d11", "", &[], "c8e2efd9.jsonl"),
    ("SubagentStart", SubagentStart, "cca9e855", "4942faef", "5c1f1689", &[], "5c1f1689.jsonl"),
    ("SubagentStop", SubagentStop, "cca9e855", "4942faef", "5c1f1689", &[], "cca9e855.jsonl"),
    ("SessionEnd", End, "fd570b47", "", "", &[], "fd570b47.jsonl"),
];

const GEMINI: &[Row] = &[
    ("SessionStart", Start(Source::Startup), "ca536f0c", "", "", &[], "7f260041.jsonl"),
    // It names the file of a conversation that never exists.
    ("SessionStart-resume", Start(Source::Resume), "54097de3", "", "", &[], ""),
    ("BeforeAgent", Prompt, "ca536f0c", "", "", &[], "7f260041.jsonl"),
    ("PreCompress", Other, "ca536f0c", "", "", &[], "7f260041.jsonl"),
    ("BeforeModel", Other, "ca536f0c", "", "", &[], "7f260041.jsonl"),
    ("BeforeToolSelection", Other, "ca536f0c", "", "", &[], "7f260041.jsonl"),
    ("AfterModel", Other, "ca536f0c", "", "", &[], "7f260041.jsonl"),
    ("BeforeTool", BeforeTool, "ca536f0c", "", "", &[], "7f260041.jsonl"),
    ("AfterTool", AfterTool, "ca536f0c", "", "", &[], "7f260041.jsonl"),
    ("AfterTool-mcp", AfterTool, "b5e3b2da", "", "", &[], "f51d0f65.jsonl"),
    ("Notification", Blocked, "25fd6f0f", "", "", &[], "404997f5.jsonl"),
    ("AfterAgent", Stop, "ca536f0c", "", "", &[], "7f260041.jsonl"),
    ("AfterAgent-active", Stop, "b5e3b2da", "", "", &[], "f51d0f65.jsonl"),
    ("SessionEnd", End, "ca536f0c", "", "", &[], "7f260041.jsonl"),
];

/// The last `count` characters of an ASCII text.
fn end(text: &str, count: usize) -> &str {
    &text[text.len().saturating_sub(count)..]
}

#[test]
fn every_recorded_payload_means_what_happened() {
    for (agent, rows) in [("claude", CLAUDE), ("codex", CODEX), ("gemini", GEMINI)] {
        let recorded = Recorded::all(agent);
        assert_eq!(recorded.len(), rows.len(), "{agent}: one row per payload");
        for (name, kind, session, turn, subagent, calls, transcript) in rows {
            let recorded = Recorded::named(agent, name);
            let event = recorded.event(agent);
            let of = |text: &Option<String>| end(text.as_deref().unwrap_or_default(), 8).to_owned();
            assert_eq!((event.kind, end(&event.session_id, 8)), (*kind, *session), "{agent} {name}");
            assert_eq!(
                (of(&event.turn), of(&event.subagent)),
                ((*turn).to_owned(), (*subagent).to_owned()),
                "{agent} {name}"
            );
            assert_eq!(
                event.calls.iter().map(|call| end(call, 8)).collect::<Vec<_>>(),
                *calls,
                "{agent} {name}"
            );
            let path = event.transcript.unwrap_or_default();
            assert_eq!(end(path.to_str().unwrap(), 14), *transcript, "{agent} {name}");
            assert!(event.cwd.unwrap().starts_with("/home/dev/proj"), "{agent} {name}");
            assert_eq!(event.native, recorded.stdin["hook_event_name"], "{agent} {name}");
            assert_eq!(event.tool.as_deref(), recorded.stdin["tool_name"].as_str(), "{agent} {name}");
            assert_eq!(event.prompt.as_deref(), recorded.stdin["prompt"].as_str(), "{agent} {name}");
        }
    }
}

#[test]
fn a_notification_blocks_only_when_it_asks_for_permission() {
    let mut notification = Recorded::named("claude", "Notification-idle").stdin;
    for (kind, expected) in
        [("permission_prompt", Blocked), ("idle_prompt", IdleNotice), ("auth_success", Other)]
    {
        notification["notification_type"] = json!(kind);
        assert_eq!(parse(&claude_agent(), &notification).kind, expected);
    }
    let mut notification = Recorded::named("gemini", "Notification").stdin;
    notification["notification_type"] = json!("Other");
    assert_eq!(parse(&gemini::Gemini, &notification).kind, Other);
}

#[test]
fn a_stop_says_whether_a_hook_keeps_it_from_stopping() {
    for (agent, stop) in [("claude", "Stop"), ("codex", "Stop"), ("gemini", "AfterAgent")] {
        let mut stop = Recorded::named(agent, stop).stdin;
        assert!(!parse(by_name(agent).unwrap(), &stop).stop_active);
        // Through MCP, a flag is text.
        for (flag, expected) in [
            (json!(true), true),
            (json!("true"), true),
            (json!("false"), false),
            (json!(""), false),
            (json!(null), false),
        ] {
            stop["stop_hook_active"] = flag;
            assert_eq!(parse(by_name(agent).unwrap(), &stop).stop_active, expected);
        }
    }
}

fn claude_agent() -> claude::Claude {
    claude::Claude
}

/// The value of `${path}` for the agent: fields by dots, items by number.
fn filled<'a>(template: &'a str, payload: &'a Value) -> Option<&'a str> {
    let Some(path) = template.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else {
        return Some(template);
    };
    let pointer = format!("/{}", path.replace('.', "/"));
    payload.pointer(&pointer).and_then(Value::as_str)
}

#[test]
fn a_hook_through_mcp_means_the_same_as_its_payload() {
    for (agent, rows) in [
        ("claude", claude::install::hook_rows(&Scope::User, GuardHooks::On)),
        ("codex", codex::install::hook_rows(GuardHooks::On)),
    ] {
        for row in rows {
            let Form::McpTool { input, .. } = row.form else { continue };
            let payload = Recorded::named(agent, row.event).stdin;
            let fields = input.into_iter().map(|(key, template)| {
                let value = filled(template, &payload);
                // Claude Code sends an empty text for a missing field; Codex does not call at all.
                assert!(agent == "claude" || value.is_some(), "{}: {key}", row.event);
                (key, value.unwrap_or_default())
            });
            let input: BTreeMap<&str, &str> = fields.collect();
            let agent = by_name(agent).unwrap();
            let (through_mcp, direct) = (parse(agent, &json!(input)), parse(agent, &payload));
            let known = |event: Event| {
                (
                    event.kind,
                    event.native,
                    event.session_id,
                    event.turn,
                    event.subagent,
                    event.calls,
                    event.transcript,
                    event.cwd,
                )
            };
            assert_eq!(known(through_mcp), known(direct), "{}", row.event);
        }
    }
}

#[test]
fn the_environment_of_a_hook_names_its_session_and_process() {
    for recorded in Recorded::all("claude").iter().filter(|recorded| !recorded.env.is_empty()) {
        let env = |key: &str| recorded.env.get(key).map(Into::into);
        let shell = claude::Claude.shell(&env).unwrap();
        assert_eq!(
            (shell.session_id.as_str(), shell.call),
            (recorded.stdin["session_id"].as_str().unwrap(), None)
        );
        assert_eq!(
            claude::Claude.hook_process(&env).map(|pid| pid.to_string()).as_ref(),
            recorded.env.get("CLAUDE_PID")
        );
        assert_eq!(codex::Codex.shell(&env), None);
    }
    for recorded in Recorded::all("codex") {
        let env = |key: &str| recorded.env.get(key).map(Into::into);
        assert_eq!(
            (codex::Codex.shell(&env), codex::Codex.hook_process(&env), claude::Claude.shell(&env)),
            (None, None, None)
        );
    }
    for recorded in Recorded::all("gemini") {
        let env = |key: &str| recorded.env.get(key).map(Into::into);
        let shell = gemini::Gemini.shell(&env).unwrap();
        assert_eq!(shell.session_id, recorded.stdin["session_id"].as_str().unwrap());
        assert!(!gemini::Gemini.is_unnamed_shell(&env));
        assert_eq!((claude::Claude.shell(&env), codex::Codex.shell(&env)), (None, None));
    }
}

#[test]
fn a_shell_of_gemini_is_known_but_not_whose() {
    let env = |key: &str| (key == "GEMINI_CLI").then(|| "1".into());
    assert_eq!(gemini::Gemini.shell(&env), None);
    assert!(gemini::Gemini.is_unnamed_shell(&env));
    for agent in [&claude::Claude as &dyn Agent, &codex::Codex] {
        assert!(!agent.is_unnamed_shell(&env));
    }
}

#[test]
fn a_process_of_gemini_is_known_by_the_script_that_node_runs() {
    let is_process = |line: &str| {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        gemini::Gemini.is_process(&args)
    };
    for line in [
        "node /opt/node_modules/.bin/gemini --yolo -m gemini-2.5-flash",
        "/usr/bin/node --max-old-space-size=12051 /usr/local/bin/gemini -p hello",
        "/usr/bin/node --no-warnings /opt/gemini-cli/bundle/gemini.js",
        "gemini",
    ] {
        assert!(is_process(line), "{line}");
    }
    for line in
        ["", "node", "node -e gemini.js.map", "vim gemini", "node /usr/bin/claude gemini", "bash -c gemini"]
    {
        assert!(!is_process(line), "{line}");
    }
}

/// Beside its parent's, in a folder of the parent's name. The tool that runs it is the parent's
/// own.
#[test]
fn a_subagent_of_gemini_is_looked_for_beside_its_parent() {
    let event = Recorded::named("gemini", "AfterTool").event("gemini");
    let folder = |session: &str, tool| {
        gemini::Gemini.subagent_folder(session, event.transcript.as_deref().unwrap(), tool)
    };
    let expected = format!("/home/dev/.gemini/tmp/proj/chats/{}", event.session_id);
    assert_eq!(folder(&event.session_id, event.tool.as_deref()), Some(expected.into()));
    assert_eq!(folder(&event.session_id, Some("invoke_agent")), None);
    assert_eq!(folder("../../x", None), None);
}

#[test]
fn a_megabyte_of_tool_output_is_passed_over() {
    for (agent, tool) in [("claude", "PostToolUse"), ("codex", "PostToolUse"), ("gemini", "AfterTool")] {
        let recorded = Recorded::named(agent, tool);
        let mut payload = recorded.stdin.clone();
        payload["tool_response"] =
            json!({ "stdout": "\"\\\n\u{1f600}é ".repeat(100_000), "stderr": vec![vec![0; 100]; 1_000] });
        assert!(payload.to_string().len() > 1 << 20);
        assert_eq!(parse(by_name(agent).unwrap(), &payload), recorded.event(agent));
    }
}

#[test]
fn half_characters_and_wrong_bytes_in_a_payload_do_no_harm() {
    for (agent, tool, prompt) in [
        ("claude", "PostToolUse", "UserPromptSubmit"),
        ("codex", "PostToolUse", "UserPromptSubmit"),
        ("gemini", "AfterTool", "BeforeAgent"),
    ] {
        let tool = Recorded::named(agent, tool);
        let text = tool.stdin.to_string();
        let halves = text.replace("\"tool_response\":", r#""tool_response":"\ud800","other":"#);
        assert_eq!(by_name(agent).unwrap().parse(halves.as_bytes(), None).unwrap(), tool.event(agent));
        let (front, back) = text.split_once("\"tool_response\":").unwrap();
        let bytes = [front.as_bytes(), b"\"x\":\"\xff\xfe\",\"tool_response\":", back.as_bytes()].concat();
        assert_eq!(by_name(agent).unwrap().parse(&bytes, None).unwrap(), tool.event(agent));

        let prompt = Recorded::named(agent, prompt);
        let halves =
            prompt.stdin.to_string().replace("do the scripted", r"\ud83d do \ude00 the \ud83d\ude00");
        let event = by_name(agent).unwrap().parse(halves.as_bytes(), None).unwrap();
        assert_eq!(event.prompt.as_deref(), Some("\u{fffd} do \u{fffd} the \u{1f600} thing"));
        assert_eq!(Event { prompt: None, ..event }, Event { prompt: None, ..prompt.event(agent) });
    }
}

#[test]
fn a_subagent_is_one_whatever_else_is_empty() {
    let payload = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "agent_id": "a", "cwd": "", "transcript_path": "", "prompt_id": "" });
    let event = parse(&claude_agent(), &payload);
    assert_eq!(
        (event.subagent.as_deref(), event.cwd, event.transcript, event.turn),
        (Some("a"), None, None, None)
    );
}

#[test]
fn what_is_no_payload_is_refused_by_name() {
    for bytes in [
        "",
        "{",
        "[]",
        "null",
        "\"x\"",
        "{}",
        "{\"session_id\":\"s\"}",
        "{\"session_id\":1,\"hook_event_name\":\"Stop\"}",
    ] {
        for agent in baton_agents::ALL {
            assert_eq!(agent.parse(bytes.as_bytes(), None).unwrap_err().code(), Code::Usage, "{bytes}");
        }
    }
}

#[test]
fn the_registry_says_what_a_session_does() {
    use baton_core::session::State;
    let path = format!("{}/tests/payloads/claude-registry.json", env!("CARGO_MANIFEST_DIR"));
    let recorded = std::fs::read_to_string(path).unwrap();
    let session = "97dbfe10-4e81-4efe-b528-2154916e07c5";
    let state = |text: &str| claude::Claude.registry_state(text.as_bytes(), session);
    assert_eq!(state(&recorded), Some(State::Busy));
    assert_eq!(state(&recorded.replace("\"busy\"", "\"idle\"")), Some(State::Idle));
    assert_eq!(state(&recorded.replace("\"busy\"", "\"waiting\"")), Some(State::Blocked));
    assert_eq!(state(&recorded.replace("\"busy\"", "\"new\"")), None);
    assert_eq!(state(&recorded.replace("\"status\":\"busy\",", "")), None, "before the first turn");
    assert_eq!(
        claude::Claude.registry_state(recorded.as_bytes(), "860aa32c-a819-4372-afbf-5ca369dfcd0a"),
        None,
        "it went on in another"
    );
    assert_eq!(state(&recorded[..recorded.len() / 2]), None, "half written");

    let stop = Recorded::named("claude", "Stop").event("claude").transcript.unwrap();
    let registry = claude::Claude.registry(14579, stop.to_str().unwrap());
    assert_eq!(registry.as_deref(), Some(Path::new("/home/dev/.claude/sessions/14579.json")));
    assert_eq!(
        codex::Codex.registry(14579, "/home/dev/.codex/sessions/2026/11/15/rollout.jsonl"),
        None::<PathBuf>
    );
}

fn any_payload() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "session_id",
        "hook_event_name",
        "transcript_path",
        "cwd",
        "agent_id",
        "prompt_id",
        "turn_id",
        "tool_name",
        "tool_use_id",
        "tool_calls",
        "source",
        "notification_type",
        "prompt",
        "stop_hook_active",
        "type",
        "message",
        "attachment",
        "payload",
        "promptId",
        "isSidechain",
        "id",
        "content",
        "model",
        "toolCalls",
        "$set",
        "$rewindTo",
        "sessionId",
        "timestamp",
        "agentId",
        "serverName",
        "toolName",
        "data",
        "conversation_id",
        "cursor_version",
    ]);
    let text = prop::sample::select(vec![
        "Stop",
        "SessionStart",
        "user",
        "assistant",
        "attachment",
        "response_item",
        "turn_context",
        "gemini",
        "AfterAgent",
        "user.message",
        "tool.execution_complete",
        "hook.start",
    ]);
    let value = prop_oneof![any_json(), text.prop_map(Value::from)];
    prop::collection::btree_map(key, value, 0..12).prop_map(|map| json!(map))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[{\"\\\\ud8cf:, a-z}]{0,60}") {
        for agent in baton_agents::ALL {
            _ = agent.parse(&bytes, None);
            _ = agent.parse(text.as_bytes(), None);
            _ = agent.runs_foreign_hook(&bytes, &|_| None);
            let mut read = agent.transcript();
            read(&String::from_utf8_lossy(&bytes));
            read(&text);
        }
    }

    #[test]
    fn no_values_are_too_strange(payload in any_payload(), more in any_json()) {
        for agent in baton_agents::ALL {
            let mut read = agent.transcript();
            for json in [payload.to_string(), more.to_string()] {
                for named in [None, Some("userPromptSubmitted"), Some("postToolUse"), Some("preMcpToolCall")] {
                    if let Ok(event) = agent.parse(json.as_bytes(), named) {
                        _ = agent.sign_call(&event);
                    }
                }
                _ = agent.runs_foreign_hook(json.as_bytes(), &|_| None);
                _ = agent.registry_state(json.as_bytes(), "s");
                read(&json);
            }
        }
    }
}
