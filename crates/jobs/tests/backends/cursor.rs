//! Cursor. Its program is not available here, so a script prints what its documentation describes.

use crate::bench::{self, Job};
use baton_core::Code;
use baton_core::job::{Allow, Finish, Observation, Said, ToolKind, ToolState};
use baton_jobs::backend::{Task, of};
use baton_testkit::Sandbox;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// A task for a program that does this.
fn task(sandbox: &Sandbox, script: &str) -> Task {
    let program = sandbox.path("bin/cursor-agent");
    fs::write(
        &program,
        format!("#!/bin/sh\necho \"$@\" > {}\n{script}", sandbox.path("arguments").display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let environment = sandbox.environment().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let task = bench::task(sandbox, "cursor-agent", environment.collect());
    Task { prompt: "do it\r\n $& \"x\"".to_owned(), model: Some("gpt-5".to_owned()), ..task }
}

fn start(task: &Task) -> Job {
    Job::start(of("cursor").unwrap(), task)
}

const TURN: &str = r#"cat > prompt
echo '{"type":"system","subtype":"init","apiKeySource":"login","cwd":"/p","session_id":"s-1","model":"m","permissionMode":"default"}'
echo '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"do it"}]},"session_id":"s-1"}'
echo '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I will run it."}]},"session_id":"s-1"}'
echo '{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"cargo test"}}},"session_id":"s-1"}'
echo '{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"shellToolCall":{"args":{},"result":{}}},"session_id":"s-1"}'
echo '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"All done."}]},"session_id":"s-1"}'
echo '{"type":"result","subtype":"success","duration_ms":1,"duration_api_ms":1,"is_error":false,"result":"I will run it.All done.","session_id":"s-1"}'
"#;

#[test]
fn a_turn_is_read_as_documented() {
    let sandbox = Sandbox::new();
    let task = task(&sandbox, TURN);
    let job = start(&task);
    let end = Said { text: "All done.".to_owned(), finish: Finish::End };
    assert_eq!(job.said(), end);
    assert_eq!(job.session(), "s-1");
    assert_eq!(job.tool(ToolKind::Shell, ToolState::Running).what, "shell: cargo test");
    assert!(job.open_tools().is_empty());
    assert_eq!(fs::read_to_string(sandbox.path("project/prompt")).unwrap(), task.prompt);
    let arguments = fs::read_to_string(sandbox.path("arguments")).unwrap();
    assert_eq!(arguments.trim(), "-p --output-format stream-json --force --model=gpt-5");
    let recalled = of("cursor").unwrap().recall(&task, "s-1").unwrap();
    assert_eq!((recalled.idle, recalled.said), (Some(true), Some(end)));
    assert_eq!(of("cursor").unwrap().recall(&task, "s-2"), None);
}

#[test]
fn a_turn_that_was_cut_off_is_no_end() {
    let sandbox = Sandbox::new();
    let cut: Vec<&str> = TURN.lines().take(7).collect();
    let task = task(&sandbox, &format!("{}\n", cut.join("\n")));
    let job = start(&task);
    job.gone();
    assert!(!job.has(|seen| *seen == Observation::Idle));
    assert_eq!(of("cursor").unwrap().recall(&task, "s-1"), None);
}

#[test]
fn what_it_says_on_stderr_when_it_fails_is_the_fault() {
    let sandbox = Sandbox::new();
    let script = "echo 'Authentication required: not logged in' >&2; exit 1\n";
    let job = start(&task(&sandbox, script));
    assert_eq!(job.fault().error.code(), Code::NotLoggedIn);
}

#[test]
fn what_it_may_do_is_told_or_refused() {
    let sandbox = Sandbox::new();
    let cursor = of("cursor").unwrap();
    let task = task(&sandbox, TURN);
    let edits = Task { allow: Allow::Edits, ..task.clone() };
    assert_eq!(cursor.check(&edits).unwrap_err().code(), Code::UnsupportedOption);
    let reading = Task { read_only: true, resume: Some("s-0".to_owned()), ..edits };
    cursor.check(&reading).unwrap();
    let job = start(&reading);
    job.said();
    let arguments = fs::read_to_string(sandbox.path("arguments")).unwrap();
    assert_eq!(arguments.trim(), "-p --output-format stream-json --mode=ask --model=gpt-5 --resume=s-0");
}
