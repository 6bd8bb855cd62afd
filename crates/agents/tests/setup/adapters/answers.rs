//! Answers to the agents, and what their calls of our server say about the caller.

use super::payloads::Recorded;
use baton_agents::agent::{HookCodec as _, Identity as _, Transcript as _};
use baton_agents::{ContextLimit, Shell};
use baton_agents::{McpCaller, by_name, claude, codex, gemini};
use baton_core::event::{EventKind, Reply};
use baton_core::frame::Unit;
use baton_core::mail::Anchor;
use serde_json::{Map, Value, json};

/// Text that an agent must pass on unchanged.
const TEXT: &str = "<baton-mail to=\"a\">\n| \"quoted\" \\ \u{1f600} \u{2028} é\t</baton-mail>";

/// The recorded payloads of events that take text.
fn taking(agent: &str) -> Vec<Recorded> {
    let takes =
        |recorded: &Recorded| by_name(agent).unwrap().context_limit(recorded.event(agent).kind).is_some();
    Recorded::all(agent).into_iter().filter(takes).collect()
}

fn answer(agent: &str, recorded: &Recorded) -> Value {
    let event = recorded.event(agent);
    let reply = if event.kind == EventKind::Stop {
        Reply::Continue(TEXT.to_owned())
    } else {
        Reply::Context(TEXT.to_owned())
    };
    serde_json::from_str(&by_name(agent).unwrap().render(&event, &reply, None)).unwrap()
}

#[test]
fn claude_takes_context_at_every_event_and_is_never_blocked() {
    let taking = taking("claude");
    let native = |recorded: &Recorded| recorded.stdin["hook_event_name"].as_str().unwrap().to_owned();
    let mut events: Vec<String> = taking.iter().map(native).collect();
    events.sort();
    events.dedup();
    assert_eq!(events, ["PostToolBatch", "SessionStart", "Stop", "UserPromptSubmit"]);
    for recorded in &taking {
        let expected =
            json!({ "hookSpecificOutput": { "hookEventName": native(recorded), "additionalContext": TEXT } });
        assert_eq!(answer("claude", recorded), expected, "{}", recorded.name);
    }
}

/// Codex ignores an answer with an unknown key, so each answer is spelled out here.
#[test]
fn codex_takes_context_and_goes_on_at_a_stop_by_a_reason() {
    let taking = taking("codex");
    assert!(
        taking.iter().any(|recorded| recorded.name == "Stop")
            && taking.iter().any(|recorded| recorded.name == "PostToolUse")
    );
    for recorded in &taking {
        let event = &recorded.stdin["hook_event_name"];
        let expected = match event.as_str().unwrap() {
            "Stop" => json!({ "decision": "block", "reason": TEXT }),
            "SessionStart" | "UserPromptSubmit" | "PostToolUse" => {
                json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": TEXT } })
            }
            other => panic!("{other} takes text"),
        };
        assert_eq!(answer("codex", recorded), expected, "{}", recorded.name);
    }
}

/// At a start it would put text before the user's prompt, and a resumed session leaves out both.
#[test]
fn gemini_takes_context_but_not_at_a_start() {
    let taking = taking("gemini");
    let mut names: Vec<&str> = taking.iter().map(|recorded| recorded.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["AfterAgent", "AfterAgent-active", "AfterTool", "AfterTool-mcp", "BeforeAgent"]);
    for recorded in &taking {
        let event = &recorded.stdin["hook_event_name"];
        let expected = if event == "AfterAgent" {
            json!({ "decision": "block", "reason": TEXT, "systemMessage": "mail from another session, carried by baton" })
        } else {
            json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": TEXT } })
        };
        assert_eq!(answer("gemini", recorded), expected, "{}", recorded.name);
    }
    let start = Recorded::named("gemini", "SessionStart").event("gemini");
    assert_eq!(gemini::Gemini.render(&start, &Reply::Context(TEXT.to_owned()), None), "");
}

#[test]
fn silence_is_no_answer_at_all() {
    for agent in ["claude", "codex", "gemini"] {
        for recorded in Recorded::all(agent) {
            assert_eq!(
                by_name(agent).unwrap().render(&recorded.event(agent), &Reply::Silent, None),
                "",
                "{agent} {}",
                recorded.name
            );
        }
    }
    // A tool must return something to Claude Code, or it tells the model that the hook completed.
    assert_eq!((claude::Claude.empty_mcp_reply(), codex::Codex.empty_mcp_reply()), ("{}", ""));
}

#[test]
fn the_limits_are_those_that_were_measured() {
    let kinds = [
        EventKind::Prompt,
        EventKind::Stop,
        EventKind::AfterTool,
        EventKind::AfterTools,
        EventKind::BeforeTool,
        EventKind::End,
    ];
    let claude = kinds.map(|kind| claude::Claude.context_limit(kind));
    let utf16 = Some(ContextLimit::new(10_000, Unit::Utf16));
    assert_eq!(claude, [utf16, utf16, None, utf16, None, None]);
    let codex = kinds.map(|kind| codex::Codex.context_limit(kind));
    let bytes = Some(ContextLimit::new(10_000, Unit::Bytes));
    assert_eq!(codex, [bytes, bytes, bytes, None, None, None]);
    let gemini = kinds.map(|kind| gemini::Gemini.context_limit(kind));
    assert_eq!(gemini, [utf16, utf16, Some(ContextLimit::new(7_500, Unit::Utf16)), None, None, None]);
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn the_calls_of_hooks_and_models_can_be_told_apart() {
    let claude_model = map(json!({ "claudecode/toolUseId": "toolu_0005", "progressToken": 9 }));
    assert!(claude::Claude.is_hook_call(&Map::new()) && !claude::Claude.is_hook_call(&claude_model));
    let expected = McpCaller { session_id: None, call: Some("toolu_0005".to_owned()), subagent: false };
    assert_eq!(claude::Claude.mcp_caller(&claude_model), expected);

    let codex_hook = map(json!({ "threadId": "t", "progressToken": 1 }));
    assert!(codex::Codex.is_hook_call(&codex_hook) && !codex::Codex.is_hook_call(&Map::new()));
    assert_eq!(codex::Codex.mcp_caller(&codex_hook).session_id.as_deref(), Some("t"));
}

fn codex_model(thread: &str, session: &str) -> Map<String, Value> {
    let turn = json!({ "session_id": session, "thread_id": thread, "turn_id": "u", "model": "mock-model" });
    map(json!({
        "callId": "call_0005", "threadId": thread, "sessionId": session, "windowId": "w", "itemId": "fc_0004", "progressToken": 2,
        "x-codex-turn-metadata": turn,
    }))
}

/// In payloads, in its shell and in its MCP calls.
#[test]
fn a_subagent_of_codex_has_its_parents_session() {
    for (thread, subagent) in [("parent", false), ("child", true)] {
        let meta = codex_model(thread, "parent");
        assert!(!codex::Codex.is_hook_call(&meta));
        let caller =
            McpCaller { session_id: Some("parent".to_owned()), call: Some("call_0005".to_owned()), subagent };
        assert_eq!(codex::Codex.mcp_caller(&meta), caller);
        let env = |key: &str| match key {
            "CODEX_SESSION_ID" => Some("parent".into()),
            "CODEX_THREAD_ID" => Some(thread.into()),
            "CODEX_TOOL_CALL_ID" => Some("call_0003".into()),
            _ => None,
        };
        let shell = Shell { session_id: "parent".to_owned(), call: Some("call_0003".to_owned()), subagent };
        assert_eq!(codex::Codex.shell(&env), Some(shell));
    }
    let recorded = Recorded::named("codex", "UserPromptSubmit-subagent");
    assert_ne!(recorded.event("codex").subagent.as_ref(), Some(&recorded.event("codex").session_id));
}

#[test]
fn calls_inside_a_script_are_not_looked_for_by_their_id() {
    assert_eq!(codex::Codex.call_anchor("exec-b50c25eb-eade"), Anchor::Shell);
    assert_eq!(codex::Codex.call_anchor("call_0005"), Anchor::Call("call_0005".to_owned()));
    assert_eq!(claude::Claude.call_anchor("toolu_0005"), Anchor::Call("toolu_0005".to_owned()));
    let env = |key: &str| match key {
        "CODEX_SESSION_ID" | "CODEX_THREAD_ID" => Some("s".into()),
        "CODEX_TOOL_CALL_ID" => Some("exec-b50c25eb".into()),
        _ => None,
    };
    assert_eq!(codex::Codex.shell(&env).unwrap().call, None);
}
