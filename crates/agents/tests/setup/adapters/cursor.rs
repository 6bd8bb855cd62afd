//! Cursor's payloads and answers, made by hand from its documentation: no real program was used.

use baton_agents::agent::{HookCodec as _, Identity as _};
use baton_agents::by_name;
use baton_agents::cursor::Cursor;
use baton_core::event::EventKind::{
    self, AfterTool, BeforeTool, Compacting, Continued, End, IdleNotice, Prompt, Start, Stop, SubagentStart,
    SubagentStop, Unknown,
};
use baton_core::event::{Event, Reply, Source};
use baton_core::mail::proof::MARK;
use serde_json::{Value, json};
use std::path::Path;

fn payload(event: &str, more: Value) -> Value {
    let mut payload = json!({
        "conversation_id": "668320d2", "generation_id": "490b90b7", "model": "default", "hook_event_name": event, "cursor_version": "2.4.0",
        "workspace_roots": ["/home/dev/proj"], "user_email": "dev@example.invalid", "transcript_path": "/home/dev/.cursor/t.txt"
    });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    payload
}

fn parse(payload: &Value) -> Event {
    Cursor.parse(payload.to_string().as_bytes(), None).unwrap()
}

#[test]
fn every_documented_event_means_what_happened() {
    let rows: Vec<(&str, Value, EventKind)> = vec![
        (
            "sessionStart",
            json!({ "session_id": "668320d2", "composer_mode": "agent" }),
            Start(Source::Startup),
        ),
        ("beforeSubmitPrompt", json!({ "prompt": "do it", "attachments": [] }), Prompt),
        ("beforeSubmitPrompt", json!({ "prompt": format!("mail {MARK}n]") }), Continued),
        ("preToolUse", json!({ "tool_name": "Shell", "tool_input": {}, "tool_use_id": "t1" }), BeforeTool),
        ("beforeShellExecution", json!({ "command": "ls", "cwd": "/home/dev/proj" }), BeforeTool),
        ("beforeMCPExecution", json!({ "tool_name": "x", "tool_input": "{}", "command": "c" }), BeforeTool),
        ("beforeReadFile", json!({ "file_path": "/a", "content": "c", "attachments": [] }), BeforeTool),
        ("postToolUse", json!({ "tool_name": "Shell", "tool_output": "{}", "tool_use_id": "t1" }), AfterTool),
        ("postToolUseFailure", json!({ "tool_name": "Shell", "error_message": "e" }), Unknown),
        ("afterFileEdit", json!({ "file_path": "/a", "edits": [] }), Unknown),
        ("stop", json!({ "status": "completed", "loop_count": 0 }), Stop),
        ("stop", json!({ "status": "aborted", "loop_count": 0 }), IdleNotice),
        ("stop", json!({ "status": "error", "loop_count": 0 }), IdleNotice),
        ("preCompact", json!({ "trigger": "auto" }), Compacting),
        ("subagentStart", json!({ "subagent_id": "a" }), SubagentStart),
        ("subagentStop", json!({ "status": "completed" }), SubagentStop),
        ("sessionEnd", json!({ "session_id": "668320d2", "reason": "completed" }), End),
        ("beforeTabFileRead", json!({ "file_path": "/a" }), Unknown),
    ];
    for (event, more, kind) in rows {
        let payload = payload(event, more);
        let event = parse(&payload);
        assert_eq!((event.kind, event.session_id.as_str()), (kind, "668320d2"), "{payload}");
        assert_eq!(event.turn.as_deref(), Some("490b90b7"));
        assert_eq!(event.cwd.as_deref(), Some(Path::new("/home/dev/proj")));
        assert_eq!(event.transcript, None, "what it says is not documented");
        assert_eq!(event.native, payload["hook_event_name"]);
    }
    assert!(parse(&payload("stop", json!({ "loop_count": 2 }))).stop_active);
    let child = parse(&payload("postToolUse", json!({ "parent_conversation_id": "parent" })));
    assert_eq!((child.session_id.as_str(), child.subagent.as_deref()), ("parent", Some("668320d2")));
}

#[test]
fn answers_are_the_documented_ones() {
    let says = |event: &str, reply: Reply| -> Value {
        serde_json::from_str(&Cursor.render(&parse(&payload(event, json!({}))), &reply, None)).unwrap()
    };
    for event in ["sessionStart", "postToolUse"] {
        assert_eq!(says(event, Reply::Context("a".to_owned())), json!({ "additional_context": "a" }));
    }
    assert_eq!(says("stop", Reply::Continue("a".to_owned())), json!({ "followup_message": "a" }));
    assert_eq!(Cursor.context_limit(Prompt), None, "a prompt's hook can add nothing");
}

#[test]
fn its_payloads_are_recognised_in_hooks_of_other_agents() {
    let nobody = |_: &str| None;
    for agent in ["claude", "codex", "copilot"] {
        for recorded in super::payloads::Recorded::all(agent) {
            let mut stdin = recorded.stdin;
            stdin["tool_response"] = json!("{\"cursor_version\":\"1\"}");
            stdin["tool_input"] = json!({ "conversation_id": "x" });
            assert!(
                !Cursor.runs_foreign_hook(stdin.to_string().as_bytes(), &nobody),
                "{agent} {}",
                recorded.name
            );
        }
        assert_eq!(by_name(agent).unwrap().name(), agent);
    }
    assert!(Cursor.runs_foreign_hook(payload("stop", json!({})).to_string().as_bytes(), &nobody));
}
