//! How a tool call is read for the guard, and how each agent gets the ruling.

use baton_agents::{Ruling, ToolCall, by_name};
use baton_core::event::EventKind;
use baton_core::tool::ToolKind;
use serde_json::{Value, json};

/// Each agent's events around a tool, with a payload of each: a command that is about to run, and
/// its output.
fn payloads() -> Vec<(&'static str, &'static str, Value, &'static str, Value)> {
    let claude = |event: &str| {
        json!({
            "session_id": "s1", "cwd": "/p", "hook_event_name": event, "tool_name": "Bash",
            "tool_input": {"command": "id -u"}, "tool_response": {"stdout": "OUT", "stderr": "", "interrupted": false},
        })
    };
    let with = |mut payload: Value, key: &str, value: Value| {
        payload[key] = value;
        payload
    };
    let gemini = |event: &str| {
        let payload = with(claude(event), "tool_name", json!("run_shell_command"));
        with(payload, "tool_response", json!({"llmContent": "OUT", "returnDisplay": "for the person"}))
    };
    let copilot = json!({
        "sessionId": "s1", "timestamp": 1, "cwd": "/p", "toolName": "bash", "toolArgs": {"command": "id -u"},
        "toolResult": {"resultType": "success", "textResultForLlm": "OUT"},
    });
    let cursor = |event: &str| {
        json!({
            "conversation_id": "s1", "workspace_roots": ["/p"], "hook_event_name": event, "tool_name": "Shell",
            "tool_input": {"command": "id -u"}, "tool_output": "OUT",
        })
    };
    let opencode = json!({
        "tool": "bash", "sessionID": "s1", "callID": "c", "args": {"command": "id -u"}, "directory": "/p",
        "output": {"title": "", "output": "OUT", "metadata": {}},
    });
    let pi = json!({
        "toolName": "bash", "toolCallId": "c", "input": {"command": "id -u"}, "cwd": "/p", "session_id": "s1",
        "content": [{"type": "text", "text": "OUT"}, {"type": "image", "data": "OUT"}],
    });
    vec![
        ("claude", "PreToolUse", claude("PreToolUse"), "PostToolUse", claude("PostToolUse")),
        (
            "codex",
            "PreToolUse",
            claude("PreToolUse"),
            "PostToolUse",
            with(claude("PostToolUse"), "tool_response", json!("OUT")),
        ),
        ("gemini", "BeforeTool", gemini("BeforeTool"), "AfterTool", gemini("AfterTool")),
        ("copilot", "preToolUse", copilot.clone(), "postToolUse", copilot),
        ("cursor", "preToolUse", cursor("preToolUse"), "postToolUse", cursor("postToolUse")),
        ("opencode", "tool.execute.before", opencode.clone(), "tool.execute.after", opencode),
        ("pi", "tool_call", pi.clone(), "tool_result", pi),
    ]
}

fn read(agent: &str, event: &str, payload: &Value) -> ToolCall {
    by_name(agent).unwrap().call(payload.to_string().as_bytes(), Some(event)).unwrap().unwrap()
}

fn said(agent: &str, call: &ToolCall, ruling: Ruling) -> Value {
    let text = by_name(agent).unwrap().render_ruling(call, &ruling);
    if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
}

fn why() -> String {
    "WHY".to_owned()
}

#[test]
fn a_call_of_each_agent_is_read_before_it_runs_and_after() {
    let agents: Vec<&str> = payloads().iter().map(|(agent, ..)| *agent).collect();
    assert_eq!(agents.len(), baton_agents::ALL.len(), "one row for each agent");
    for (agent, before, payload, after, result) in payloads() {
        let call = read(agent, before, &payload);
        assert_eq!(call.kind, EventKind::BeforeTool, "{agent}");
        assert_eq!(
            (&call.tool.kind, call.tool.command.as_deref()),
            (&ToolKind::Shell, Some("id -u")),
            "{agent}"
        );
        assert_eq!(call.cwd.as_deref(), Some("/p".as_ref()), "{agent}");
        assert_eq!((call.session_id.as_deref(), call.output), (Some("s1"), None), "{agent}");
        let call = read(agent, after, &result);
        assert_eq!(call.kind, EventKind::AfterTool, "{agent}");
        let mut output = call.output.unwrap();
        let mut texts = Vec::new();
        baton_agents::call::change_texts(&mut output, &mut |text| {
            texts.push(text.to_owned());
            None
        });
        assert_eq!(texts.iter().filter(|text| *text == "OUT").count(), 1, "{agent}: pictures are no texts");
    }
}

/// A payload without a tool call has none, whatever else it contains.
#[test]
fn an_event_of_another_kind_shows_no_call() {
    for (agent, _, payload, ..) in payloads() {
        let agent = by_name(agent).unwrap();
        assert!(agent.call(payload.to_string().as_bytes(), Some("Stop")).unwrap().is_none());
        assert!(agent.call(b"not json", Some("Stop")).is_err());
        let before = agent.facts().calls.before[0];
        assert!(agent.call(b"{}", Some(before)).unwrap().is_none());
    }
}

/// Some agents write the input as JSON inside a text.
#[test]
fn an_input_that_is_json_in_a_text_is_read_too() {
    let payload = json!({"sessionId": "s", "toolName": "bash", "toolArgs": "{\"command\": \"id -u\"}"});
    assert_eq!(read("copilot", "preToolUse", &payload).tool.command.as_deref(), Some("id -u"));
}

/// Cursor also has events for one kind of tool, whose payload is the input.
#[test]
fn cursor_events_of_one_tool_are_calls_of_it() {
    let payload = json!({"conversation_id": "s1", "command": "id -u", "cwd": "/p"});
    let call = read("cursor", "beforeShellExecution", &payload);
    assert_eq!((call.tool.kind, call.tool.command.as_deref()), (ToolKind::Shell, Some("id -u")));
    let payload = json!({"conversation_id": "s1", "file_path": "/p/.env", "content": "X=1"});
    let call = read("cursor", "beforeReadFile", &payload);
    assert_eq!((call.tool.kind, call.tool.paths), (ToolKind::Read, vec!["/p/.env".to_owned()]));
}

#[test]
fn each_agent_is_told_no_in_its_own_words() {
    let hook = |decision: &str| {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": "WHY",
        }})
    };
    let flat = |decision: &str| json!({"permissionDecision": decision, "permissionDecisionReason": "WHY"});
    let permission = |word: &str| json!({"permission": word, "user_message": "WHY", "agent_message": "WHY"});
    for (agent, before, payload, ..) in payloads() {
        let call = read(agent, before, &payload);
        let expected = match agent {
            "claude" | "codex" => hook("deny"),
            "gemini" => json!({"decision": "deny", "reason": "WHY"}),
            "copilot" => flat("deny"),
            "cursor" => permission("deny"),
            _ => json!({"deny": "WHY"}),
        };
        assert_eq!(said(agent, &call, Ruling::Deny(why())), expected, "{agent}");
        let asked = said(agent, &call, Ruling::Ask(why()));
        match agent {
            "claude" => assert_eq!(asked, hook("ask")),
            "copilot" => assert_eq!(asked, flat("ask")),
            "cursor" => assert_eq!(asked, permission("ask")),
            // Agents that can't ask refuse, and say that a person has to decide.
            _ => {
                let text = asked.to_string();
                assert!(
                    text.contains("deny") && text.contains("WHY A person has to decide"),
                    "{agent}: {text}"
                );
            }
        }
        let noted = said(agent, &call, Ruling::Note(why()));
        let expected = match agent {
            "claude" | "codex" => {
                json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "WHY"}})
            }
            "gemini" => Value::Null,
            "copilot" => json!({"additionalContext": "WHY"}),
            "cursor" => json!({"additional_context": "WHY"}),
            _ => json!({"note": "WHY"}),
        };
        assert_eq!(noted, expected, "{agent}");
    }
}

#[test]
fn an_output_is_replaced_in_the_form_that_each_agent_takes() {
    for (agent, _, _, after, payload) in payloads() {
        let mut call = read(agent, after, &payload);
        let mut output = call.output.take().unwrap();
        baton_agents::call::change_texts(&mut output, &mut |text| (text == "OUT").then(|| "NEW".to_owned()));
        let answer = said(agent, &call, Ruling::Redact { output, why: why() });
        let expected = match agent {
            "claude" => json!({"hookSpecificOutput": {
                "hookEventName": "PostToolUse",
                "updatedToolOutput": {"stdout": "NEW", "stderr": "", "interrupted": false},
            }}),
            "codex" => json!({"decision": "block", "reason": "NEW"}),
            "gemini" => json!({"decision": "deny", "reason": "WHY\nNEW"}),
            "copilot" => {
                json!({"modifiedResult": {"resultType": "success", "textResultForLlm": "NEW"}})
            }
            "opencode" => json!({"output": {"title": "", "output": "NEW", "metadata": {}}}),
            "pi" => {
                json!({"output": [{"type": "text", "text": "NEW"}, {"type": "image", "data": "OUT"}]})
            }
            // It can't be done there, and the model is told so.
            _ => {
                let text = answer["additional_context"].as_str().unwrap();
                assert!(text.starts_with("WHY It could not be taken out"), "{text}");
                continue;
            }
        };
        assert_eq!(answer, expected, "{agent}");
    }
}

/// Claude Code does not let a hook replace the output of a failed tool.
#[test]
fn claude_is_warned_about_what_a_failed_tool_printed() {
    let payload = json!({
        "session_id": "s", "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
        "tool_input": {"command": "x"}, "error": "Exit code 1\nOUT",
    });
    let call = read("claude", "PostToolUseFailure", &payload);
    assert_eq!(call.output, Some(json!("Exit code 1\nOUT")));
    let answer = said("claude", &call, Ruling::Redact { output: json!("NEW"), why: why() });
    let told = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(told.contains("WHY") && told.contains("don't repeat it"), "{told}");
}
