//! Agents that run each other's hooks, calls that a hook signs, and a session without any proof.

use crate::processes::Shepherd;
use crate::world::{Done, World, run};
use serde_json::{Value, json};

fn claude(event: &str) -> Value {
    json!({ "session_id": "s", "hook_event_name": event, "cwd": "/", "source": "startup", "prompt": "p" })
}

fn hook(world: &World, arguments: &[&str], environment: &[(&str, &str)], payload: &Value) -> Done {
    let mut command = world.as_script(&[&["hook"], arguments].concat());
    command.envs(environment.iter().copied());
    run(command, payload.to_string().as_bytes()).expect(0)
}

fn everybody(world: &World) -> Value {
    // A hook that stays silent makes no home.
    if !world.home().exists() {
        return json!([]);
    }
    world.script(&["who", "--all", "--json"]).expect(0).json()
}

#[test]
fn hooks_of_claude_stay_silent_when_another_agent_runs_them() {
    let world = World::new();
    let copilot = [("COPILOT_CLI", "1"), ("COPILOT_PROJECT_DIR", "/p")];
    let mut cursor = claude("SessionStart");
    cursor["cursor_version"] = json!("2.4.0");
    for (name, environment, payload) in
        [("copilot", &copilot[..], claude("SessionStart")), ("cursor-agent", &[], cursor)]
    {
        let agent = Shepherd::start(&world, name);
        let mut command = world.baton(&["hook", "claude"]);
        command.envs(environment.iter().copied());
        assert_eq!(agent.run(&command, payload.to_string().as_bytes()).expect(0).stdout, "");
        assert_eq!(everybody(&world), json!([]));
    }
    // In a shell of Copilot's, Claude Code is itself.
    let shell = [("COPILOT_CLI", "1"), ("COPILOT_AGENT_SESSION_ID", "c")];
    hook(&world, &["claude"], &shell, &claude("SessionStart"));
    assert_eq!(everybody(&world)[0]["agent"], "claude");
}

#[test]
fn a_hook_signs_a_call_without_any_store() {
    let world = World::new();
    let payload = json!({
        "sessionId": "s", "timestamp": 1, "cwd": "/", "toolCallId": "call_1", "serverName": "baton", "toolName": "who", "arguments": {}
    });
    let done = hook(&world, &["copilot", "preMcpToolCall"], &[], &payload);
    assert_eq!(done.json(), json!({ "metaToUse": { "baton/session": "s", "baton/call": "call_1" } }));
    assert!(!world.home().join("baton.db").exists(), "nothing was opened for it");
}

/// Cursor leaves nothing that proves anything: mail that it may have taken comes once more, marked
/// so; then the sender gets a note.
#[test]
fn without_any_proof_mail_comes_twice_at_most_and_says_so() {
    let world = World::new();
    let project = world.project();
    let cursor = |event: &str, more: Value| {
        let mut payload = json!({
            "conversation_id": "s", "generation_id": "g", "hook_event_name": event, "cursor_version": "2.4.0", "workspace_roots": [project]
        });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        hook(&world, &["cursor"], &[], &payload).stdout
    };
    let stop = || cursor("stop", json!({ "status": "completed", "loop_count": 0 }));
    assert_eq!(cursor("sessionStart", json!({})), "");
    assert_eq!(cursor("beforeSubmitPrompt", json!({ "prompt": "go" })), "");
    world.script(&["send", "s", "BODY-1"]).expect(0);
    let first: Value = serde_json::from_str(&cursor("postToolUse", json!({ "tool_name": "Shell" }))).unwrap();
    assert!(first["additional_context"].as_str().unwrap().contains("BODY-1"), "{first}");
    assert_eq!(cursor("postToolUse", json!({ "tool_name": "Shell" })), "", "not within the turn");
    let again: Value = serde_json::from_str(&stop()).unwrap();
    let text = again["followup_message"].as_str().unwrap();
    assert!(text.contains("BODY-1") && text.contains("repeat"), "{text}");
    assert_eq!(cursor("beforeSubmitPrompt", json!({ "prompt": text })), "");
    assert_eq!(stop(), "");
    let mail = world.script(&["mail", "--search", "BODY-1", "--json"]).expect(0).json();
    assert_eq!(mail[0]["deliveries"][0]["state"], "unconfirmed");
}
