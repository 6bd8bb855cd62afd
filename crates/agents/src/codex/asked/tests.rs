//! What Codex asks, how it is answered, and how baton sees that a question is over.

use super::*;
use crate::agent::{HookCodec as _, Questions as _};
use crate::codex::Codex;
use proptest::prelude::*;
use std::path::Path;

const SINCE: &str = "2026-11-16T10:15:01.000Z";
const BEFORE: &str = "2026-11-16T10:15:00.500Z";
const AFTER: &str = "2026-11-16T10:15:02.920Z";
const ADDS: &str = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch";

fn payload(tool: &str, input: &Value) -> Vec<u8> {
    json!({
        "session_id": "s", "turn_id": "t", "transcript_path": "/x/rollout-s.jsonl", "cwd": "/p", "model": "m",
        "hook_event_name": "PermissionRequest", "permission_mode": "default", "tool_name": tool, "tool_input": input,
    })
    .to_string()
    .into_bytes()
}

fn ask(tool: &str, input: &Value) -> AgentQuestion {
    let payload = payload(tool, input);
    Codex.asked(&payload, &Codex.parse(&payload, None).unwrap()).unwrap()
}

fn shell(command: &str) -> AgentQuestion {
    ask("Bash", &json!({"command": command, "description": "need to write"}))
}

#[test]
fn a_question_says_what_exactly_and_why() {
    let asked = shell("touch a; echo b");
    let subject = &asked.question.subject;
    assert_eq!(
        (subject.head().as_str(), subject.notes()),
        ("Bash: touch a; echo b", &["need to write".to_owned()][..])
    );
    assert_eq!((subject.as_command(), subject.always()), (Some("touch a; echo b"), None));
    assert_eq!(
        asked.input,
        fingerprint("Bash", &json!({"command": "touch a; echo b"})),
        "as the other events have it"
    );
    let patch = ask("apply_patch", &json!({"command": ADDS})).question.subject;
    assert_eq!((patch.paths(), patch.as_change()), (vec!["a.txt"], Some(ADDS)));
    let mcp = ask("mcp__probe__x", &json!({"a": 1})).question.subject;
    assert_eq!(mcp.head(), "mcp__probe__x: 1");
}

#[test]
fn a_hook_says_yes_once_or_no_with_a_reason() {
    let said = |answer: &Answer| {
        let asked = shell("ls");
        let event = Codex.parse(&payload("Bash", &json!({})), None).unwrap();
        let text = Codex.render_answer(&event, &asked, answer)?;
        Some(serde_json::from_str::<Value>(&text).unwrap()["hookSpecificOutput"].clone())
    };
    let allow = json!({"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}});
    assert_eq!(said(&Answer::Allow), Some(allow));
    // Codex ignores an answer with an unknown key.
    let deny =
        json!({"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "not now"}});
    assert_eq!(said(&Answer::Deny("not now".into())), Some(deny));
    assert_eq!(said(&Answer::AllowAlways), None);
}

#[test]
fn no_user_sits_in_front_of_exec() {
    let headless = |args: &[&str]| is_headless(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
    assert!(headless(&["codex", "exec", "--json", "go"]) && headless(&["node", "/bin/codex", "e", "go"]));
    assert!(
        !headless(&["codex", "--no-daemon"]) && !headless(&["codex", "app-server", "--listen", "unix://"])
    );
}

fn line(at: &str, kind: &str, payload: &Value) -> String {
    json!({"timestamp": at, "ordinal": 1, "type": kind, "payload": payload}).to_string()
}

fn call(id: &str, command: &str) -> String {
    let arguments = json!({"cmd": command, "sandbox_permissions": "require_escalated"}).to_string();
    line(
        BEFORE,
        "response_item",
        &json!({"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": id}),
    )
}

fn script(id: &str) -> String {
    let text = "await tools.exec_command({cmd: name})";
    line(
        BEFORE,
        "response_item",
        &json!({"type": "custom_tool_call", "name": "exec", "input": text, "call_id": id}),
    )
}

fn output(id: &str, at: &str, text: &str) -> String {
    line(at, "response_item", &json!({"type": "function_call_output", "call_id": id, "output": text}))
}

fn item(at: &str, item: &Value) -> String {
    line(at, "event_msg", &json!({"type": "item_completed", "item": item}))
}

fn ran(id: &str, at: &str, command: &str) -> String {
    item(
        at,
        &json!({"type": "CommandExecution", "id": id, "command": ["/bin/bash", "-lc", command], "status": "completed"}),
    )
}

const DENIED: &str = r#"exec_command failed: CreateProcess { message: "Rejected(\"no\")" }"#;
const DONE: &str = "Chunk ID: 1\nProcess exited with code 0\nOutput:\nRejected( aborted by user";

fn standing_of(
    asked: &AgentQuestion,
    lines: &[String],
    running: &[&str],
    handed: Option<&Answer>,
) -> Option<QuestionStatus> {
    let asking = RecordedQuestion {
        session_id: "s",
        subagent: None,
        pid: Some(7),
        transcript: Some(Path::new("/x/rollout-s.jsonl")),
        question: &asked.question,
        call: None,
        input: asked.input,
        since: moment(SINCE).unwrap(),
        handed,
    };
    let running = vec![running.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()];
    let read = |_: &Path| Some(lines.join("\n").into_bytes());
    Codex.question_status(&asking, ProcessProbe { read: &read, started_below: &|_| running.clone() })
}

fn by_lines(asked: &AgentQuestion, lines: &[String]) -> Option<QuestionStatus> {
    standing_of(asked, lines, &[], None)
}

#[test]
fn the_end_of_the_call_tells_what_became_of_it() {
    let asked = shell("touch a");
    let with = |more: &[String]| by_lines(&asked, &[&[call("c1", "touch a")], more].concat());
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[output("c1", AFTER, DONE)]), Some(QuestionStatus::Ran), "whatever it printed");
    assert_eq!(with(&[ran("c1", AFTER, "touch a")]), Some(QuestionStatus::Ran));
    assert_eq!(with(&[output("c1", AFTER, DENIED)]), Some(QuestionStatus::Refused));
    assert_eq!(
        with(&[output("c1", AFTER, "Wall time: 0.9 seconds\naborted by user")]),
        Some(QuestionStatus::Refused)
    );
    assert_eq!(with(&[output("c1", BEFORE, DONE)]), None, "that was the same call, before");
    assert_eq!(with(&[call("c2", "touch b"), output("c2", AFTER, DONE)]), None, "another call");
}

#[test]
fn calls_that_are_alike_tell_only_together() {
    let asked = shell("touch a");
    let both =
        |more: &[String]| by_lines(&asked, &[&[call("c1", "touch a"), call("c2", "touch a")], more].concat());
    assert_eq!(both(&[output("c1", AFTER, DONE)]), None);
    assert_eq!(both(&[output("c1", AFTER, DONE), output("c2", AFTER, DENIED)]), None);
    assert_eq!(
        both(&[output("c1", AFTER, DENIED), output("c2", AFTER, DENIED)]),
        Some(QuestionStatus::Refused)
    );
}

#[test]
fn a_patch_is_known_by_its_files() {
    let asked = ask("apply_patch", &json!({"command": ADDS}));
    let brought = call("c1", &format!("apply_patch <<'EOF'\n{ADDS}\nEOF"));
    let change = |file: &str, status: &str| {
        item(
            AFTER,
            &json!({"type": "FileChange", "id": "c1", "changes": {file: {"type": "add"}}, "status": status}),
        )
    };
    let with = |line: String| by_lines(&asked, &[brought.clone(), line]);
    assert_eq!(with(change("/p/a.txt", "completed")), Some(QuestionStatus::Ran));
    assert_eq!(with(change("/p/a.txt", "declined")), Some(QuestionStatus::Refused));
    assert_eq!(with(change("/p/b.txt", "completed")), None);
    // The line contains only the reason that the model sees. The item above it shows the refusal.
    assert_eq!(
        by_lines(&asked, &[brought, change("/p/a.txt", "declined"), output("c1", AFTER, "no")]),
        Some(QuestionStatus::Refused)
    );
}

#[test]
fn what_a_script_asks_for_is_known_by_what_ran() {
    let asked = shell("touch a");
    let end = |text: &str| {
        let parts =
            json!([{"type": "input_text", "text": "Script failed"}, {"type": "input_text", "text": text}]);
        line(
            AFTER,
            "response_item",
            &json!({"type": "custom_tool_call_output", "call_id": "c1", "output": parts}),
        )
    };
    assert_eq!(by_lines(&asked, &[script("c1")]), None);
    assert_eq!(by_lines(&asked, &[script("c1"), ran("exec-1", AFTER, "touch a")]), Some(QuestionStatus::Ran));
    assert_eq!(by_lines(&asked, &[script("c1"), ran("exec-1", AFTER, "touch b")]), None);
    assert_eq!(by_lines(&asked, &[script("c1"), end(DENIED)]), Some(QuestionStatus::Refused));
}

#[test]
fn a_command_that_runs_is_seen_in_its_shell() {
    let asked = shell("touch a; sleep 9");
    let running = ["/bin/bash", "-c", "touch a; sleep 9"];
    let lines = [call("c1", "touch a; sleep 9")];
    assert_eq!(standing_of(&asked, &lines, &running, Some(&Answer::Allow)), Some(QuestionStatus::Ran));
    assert_eq!(
        standing_of(&asked, &lines, &running, None),
        Some(QuestionStatus::Ran),
        "its own dialog was answered"
    );
    assert_eq!(standing_of(&asked, &lines, &running, Some(&Answer::Deny("no".into()))), None);
    assert_eq!(standing_of(&asked, &lines, &["/bin/bash", "-c", "sleep 9"], Some(&Answer::Allow)), None);
}

proptest! {
    /// Whatever else a rollout contains: only the end of a call with the same command, after the
    /// question, ends the question.
    #[test]
    fn only_the_end_of_its_own_call_ends_a_question(
        calls in prop::collection::vec((0usize..3, 0u8..4), 0..8),
        mine in 0usize..3,
    ) {
        let commands = ["touch a", "touch b", "touch c"];
        let mut lines: Vec<String> =
            calls.iter().enumerate().map(|(number, (which, _))| call(&format!("c{number}"), commands[*which])).collect();
        for (number, (_, end)) in calls.iter().enumerate() {
            let id = format!("c{number}");
            match end {
                0 => {}
                1 => lines.push(output(&id, AFTER, DONE)),
                2 => lines.push(output(&id, AFTER, DENIED)),
                _ => lines.push(output(&id, BEFORE, DONE)),
            }
        }
        let ends: Vec<u8> = calls.iter().filter(|(which, _)| *which == mine).map(|(_, end)| *end).collect();
        match by_lines(&shell(commands[mine]), &lines) {
            Some(QuestionStatus::Ran) => prop_assert!(ends.contains(&1) && !ends.ends_with(&[0]) && !ends.ends_with(&[2])),
            Some(QuestionStatus::Refused) => prop_assert!(ends.contains(&2) && !ends.ends_with(&[0]) && !ends.ends_with(&[1])),
            other => prop_assert_eq!(other, None),
        }
    }
}
