//! Hooks that call the server instead of starting a process.

use crate::client::Caller;
use crate::world::{CLAUDE, CODEX, World, bodies, send, until};
use baton_core::mail::{Delivery, proof};
use serde_json::{Value, json};

fn claude_batch(world: &World, call: &str) -> Value {
    json!({"hook_event_name": "PostToolBatch", "session_id": CLAUDE, "prompt_id": "p1", "agent_id": "", "tool_use_id": call,
        "transcript_path": world.transcript(CLAUDE).path, "cwd": world.project()})
}

fn codex_tool(world: &World, call: &str) -> Value {
    json!({"hook_event_name": "PostToolUse", "session_id": CODEX, "turn_id": "turn-1", "tool_use_id": call,
        "transcript_path": world.transcript(CODEX).path, "cwd": world.project()})
}

/// The context in a hook's answer.
fn context(answer: &str, event: &str) -> String {
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], event);
    answer["hookSpecificOutput"]["additionalContext"].as_str().expect("text").to_owned()
}

#[test]
fn claudes_hook_delivers_exactly_once() {
    let (world, mut claude, mut codex) = World::with_two();
    let transcript = world.transcript(CLAUDE);
    transcript.claude_prompt("p1");
    transcript.claude_calls("r1", "toolu_a");
    assert_eq!(claude.hook(claude_batch(&world, "toolu_a")).text(), "{}", "nothing waits");
    transcript.claude_result("toolu_a", "ok");

    let id = send(&mut codex, CLAUDE, "mind the gap");
    transcript.claude_calls("r2", "toolu_b");
    let text = context(&claude.hook(claude_batch(&world, "toolu_b")).text(), "PostToolBatch");
    assert!(text.contains("| mind the gap") && text.contains(&id) && text.contains(proof::MARK), "{text}");
    assert_eq!(claude.hook(claude_batch(&world, "toolu_b")).text(), "{}", "it is offered");
    assert!(bodies(&claude.call("read_messages", json!({})).ok()).is_empty());

    transcript.claude_result("toolu_b", "ok");
    transcript.claude_context("PostToolBatch", &text);
    transcript.claude_calls("r3", "toolu_c");
    assert_eq!(claude.hook(claude_batch(&world, "toolu_c")).text(), "{}");
    assert_eq!(world.state(&id), Delivery::Seen);
}

#[test]
fn what_claude_did_not_take_from_a_hook_is_offered_again() {
    let (world, mut claude, mut codex) = World::with_two();
    let transcript = world.transcript(CLAUDE);
    transcript.claude_prompt("p1");
    transcript.claude_calls("r1", "toolu_a");
    let id = send(&mut codex, CLAUDE, "mind the gap");
    let first = context(&claude.hook(claude_batch(&world, "toolu_a")).text(), "PostToolBatch");
    transcript.claude_result("toolu_a", "ok");
    transcript.claude_calls("r2", "toolu_b");
    let second = context(&claude.hook(claude_batch(&world, "toolu_b")).text(), "PostToolBatch");
    assert!(second.contains(&id) && first != second, "under a mark of its own");
}

#[test]
fn codexs_hook_delivers_exactly_once() {
    let (world, mut claude, mut codex) = World::with_two();
    let transcript = world.transcript(CODEX);
    transcript.codex_turn("turn-1");
    transcript.codex_calls("call_a");
    assert_eq!(codex.hook(codex_tool(&world, "call_a")).text(), "", "nothing waits");
    transcript.codex_result("call_a", "ok");

    let id = send(&mut claude, CODEX, "mind the gap");
    transcript.codex_calls("call_b");
    let text = context(&codex.hook(codex_tool(&world, "call_b")).text(), "PostToolUse");
    assert!(text.contains("| mind the gap"), "{text}");
    transcript.codex_context(&text);
    transcript.codex_result("call_b", "ok");
    transcript.codex_calls("call_c");
    assert_eq!(codex.hook(codex_tool(&world, "call_c")).text(), "");
    assert_eq!(world.state(&id), Delivery::Seen);

    let stop = json!({"hook_event_name": "Stop", "session_id": CODEX, "turn_id": "turn-1", "transcript_path": transcript.path, "cwd": null});
    send(&mut claude, CODEX, "one more thing");
    let answer: Value = serde_json::from_str(&codex.hook(stop).text()).unwrap();
    assert_eq!(answer["decision"], "block");
    assert!(answer["reason"].as_str().unwrap().contains("| one more thing"));
}

/// The session's next event checks a job that was started in the session's shell, through whichever
/// surface it comes.
#[test]
fn an_event_through_mcp_looks_after_the_jobs_of_its_session() {
    let (world, _claude, mut codex) = World::with_two();
    let transcript = world.transcript(CODEX);
    transcript.codex_turn("turn-1");
    transcript.codex_calls("call_a");
    let asker = world.store().participant_of(None, CODEX).expect("a store").expect("known").0.id;
    world.store().bump_jobs_generation(asker).expect("noted");
    assert_eq!(codex.hook(codex_tool(&world, "call_a")).text(), "");
    until("its jobs were looked after", || world.store().jobs_generation(asker).expect("a store") == 0);
}

#[test]
fn a_model_can_not_pose_as_a_hook() {
    let (world, mut claude, mut codex) = World::with_two();
    let id = send(&mut codex, CLAUDE, "for the session");
    assert_eq!(claude.call("hook_event", claude_batch(&world, "toolu_a")).code(), "not-a-session");
    assert_eq!(codex.call("hook_event", codex_tool(&world, "call_a")).code(), "not-a-session");
    assert_eq!(world.state(&id), Delivery::Queued);
}

#[test]
fn a_subagents_hook_takes_nothing() {
    let (world, mut claude, mut codex) = World::with_two();
    let (to_claude, to_codex) =
        (send(&mut codex, CLAUDE, "for the parent"), send(&mut claude, CODEX, "for the parent"));
    let mut batch = claude_batch(&world, "toolu_a");
    batch["agent_id"] = json!("sub-1");
    assert_eq!(claude.hook(batch).text(), "{}");
    // Codex's hook names the parent's session and comes from another thread.
    codex.caller = Caller::CodexSubagent(CODEX, "codex-thread-1-sub");
    assert_eq!(codex.hook(codex_tool(&world, "call_a")).text(), "");
    assert_eq!((world.state(&to_claude), world.state(&to_codex)), (Delivery::Queued, Delivery::Queued));
}

#[test]
fn a_hook_of_a_session_that_runs_elsewhere_gets_nothing_and_is_noted() {
    let (world, mut claude, mut codex) = World::with_two();
    let mut elsewhere = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let process = baton_machine::process::find(elsewhere.id().cast_signed()).unwrap();
    world.add("claude", "elsewhere", Some(process));
    let id = send(&mut codex, "elsewhere", "not for you");
    let mut batch = claude_batch(&world, "toolu_a");
    batch["session_id"] = json!("elsewhere");
    assert_eq!(claude.hook(batch).text(), "{}");
    elsewhere.kill().unwrap();
    elsewhere.wait().unwrap();
    assert_eq!(world.state(&id), Delivery::Queued);
    let trail = world.store().trail_tail(20).unwrap();
    assert!(
        trail.iter().any(|row| row.kind == "hook-ignored"
            && row.detail.as_deref().is_some_and(|d| d.contains("elsewhere")))
    );
}

#[test]
fn a_session_that_only_hooks_of_this_connection_named_is_bound() {
    let world = World::new();
    let mut claude = world.client(Caller::Claude);
    assert_eq!(claude.call("read_messages", json!({})).code(), "unbound-session");
    assert_eq!(claude.hook(claude_batch(&world, "toolu_a")).text(), "{}");
    assert_eq!(claude.call("who", json!({})).ok()["you"], world.name_of(CLAUDE).as_str());
    let mut codex = world.client(Caller::Codex(CODEX));
    send(&mut codex, CLAUDE, "hello");
    let text = claude.hook(claude_batch(&world, "toolu_b")).text();
    assert!(context(&text, "PostToolBatch").contains("| hello"));
}

#[test]
fn nonsense_from_a_hook_is_answered_with_silence() {
    let (world, mut claude, _codex) = World::with_two();
    let long = "x".repeat(2000);
    for arguments in [
        json!({}),
        json!({"session_id": 7}),
        json!({"session_id": "", "hook_event_name": "Stop"}),
        json!({"hook_event_name": "Stop", "session_id": long}),
    ] {
        assert_eq!(claude.hook(arguments).text(), "{}");
    }
    assert_eq!(world.log().lines().count(), 4, "{}", world.log());
    assert_eq!(
        claude.hook(json!({"hook_event_name": "NewInNextRelease", "session_id": CLAUDE})).text(),
        "{}"
    );
    // Half a surrogate pair in a path.
    let id = claude.fresh_id();
    claude.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"hook_event","arguments":{{"hook_event_name":"Stop","session_id":"{CLAUDE}","cwd":"/\ud800"}}}}}}"#
    ));
    assert_eq!(claude.finish(id).text(), "{}");
}

#[test]
fn a_tool_that_no_table_knows_is_noted_by_both_agents_hooks() {
    let (world, mut claude, mut codex) = World::with_two();
    let named = |mut payload: Value, tool: &str| {
        payload["tool_name"] = json!(tool);
        payload
    };
    for tool in ["Bash", "mcp__baton__who", "", "Teleport"] {
        assert_eq!(claude.hook(named(claude_batch(&world, "toolu_a"), tool)).text(), "{}");
        assert_eq!(codex.hook(named(codex_tool(&world, "call_a"), tool)).text(), "");
    }
    for agent in ["claude", "codex"] {
        let agent = baton_agents::by_name(agent).expect("an agent");
        let names = baton_mail::unknown_events::list(&world.home(), agent).names;
        let names: Vec<&str> = names.iter().map(|unknown| unknown.name.as_str()).collect();
        assert_eq!(names, ["Teleport"], "{}", agent.name());
    }
}
