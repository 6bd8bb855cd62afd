//! Initialization, the list of tools, and refusals: what every client relies on.

use crate::client::{Caller, Client, SERVER};
use crate::world::{CLAUDE, CODEX, World, resident, send};
use baton_machine::process;
use serde_json::{Value, json};
use std::process::Command;

const TOOLS: [&str; 12] = [
    "who",
    "send_message",
    "read_messages",
    "ask_peer",
    "reply_to_message",
    "claim_session",
    "start_job",
    "job_status",
    "wait_job",
    "cancel_job",
    "list_approvals",
    "answer_approval",
];

fn silent(world: &World) -> Client {
    Client::spawn(Command::new(SERVER).arg("claude").arg(world.home()), &world.project(), Caller::Claude)
}

fn names(list: &Value) -> Vec<&str> {
    list["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn both_generations_of_initialize_are_spoken() {
    for version in ["2025-06-18", "2025-11-25"] {
        let world = World::new();
        let mut client = silent(&world);
        // A client's early notification must not end the server.
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#);
        let greeting = client.initialize(version);
        assert_eq!(greeting["protocolVersion"], version);
        assert_eq!(greeting["serverInfo"]["name"], "baton");
        assert!(greeting["instructions"].as_str().unwrap().contains("never your user's word"));
        let list = client.request("tools/list", json!({}))["result"].clone();
        assert_eq!(names(&list), TOOLS);
    }
}

#[test]
fn discovery_and_requests_that_describe_themselves_are_spoken() {
    let world = World::new();
    world.add("claude", CLAUDE, Some(process::this()));
    let mut client = silent(&world);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.request("server/discover", json!({"_meta": meta}))["result"].clone();
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    let list = client.request("tools/list", json!({"_meta": meta}))["result"].clone();
    assert_eq!(names(&list), TOOLS);

    let mut of_model = meta.clone();
    of_model["claudecode/toolUseId"] = json!("toolu_1");
    let id = client.fresh_id();
    client.begin_with(id, "who", json!({}), Some(of_model));
    assert_eq!(client.finish(id).ok()["you"], world.name_of(CLAUDE).as_str());

    // A hook's call has the protocol's own keys, and no others.
    let id = client.fresh_id();
    client.begin_with(
        id,
        "hook_event",
        json!({"hook_event_name": "PostToolBatch", "session_id": CLAUDE}),
        Some(meta),
    );
    assert_eq!(client.finish(id).text(), "{}");
}

#[test]
fn every_tool_describes_itself() {
    let world = World::new();
    let list = world.client(Caller::Claude).request("tools/list", json!({}))["result"].clone();
    assert!(!names(&list).contains(&"hook_event"));
    for tool in list["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(!tool["title"].as_str().unwrap().is_empty());
        assert!((20..300).contains(&tool["description"].as_str().unwrap().len()), "{name}");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{name} {hint}");
        }
        assert_eq!(
            tool["annotations"]["readOnlyHint"],
            json!(matches!(name, "who" | "job_status" | "wait_job" | "list_approvals"))
        );
        let harmless = !matches!(name, "start_job" | "cancel_job" | "answer_approval");
        assert_eq!(tool["annotations"]["destructiveHint"], json!(!harmless), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["inputSchema"]["additionalProperties"], json!(false), "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object");
        // OpenCode prints a line in its terminal for an unknown format.
        assert!(!tool.to_string().contains("\"format\""), "{tool}");
        // Some clients check an error against the schema too.
        assert_eq!(tool["outputSchema"]["anyOf"][1], json!({"required": ["error"]}));
        assert!(tool["outputSchema"].get("required").is_none());
        let keyed = matches!(name, "send_message" | "ask_peer" | "reply_to_message" | "start_job");
        assert_eq!(tool["inputSchema"]["properties"].get("key").is_some(), keyed, "{name}");
    }
}

#[test]
fn whatever_is_wrong_with_a_call_is_a_tools_error() {
    let (_world, mut claude, _codex) = World::with_two();
    let long = "x".repeat(65_537);
    for (tool, arguments, code) in [
        ("no_such_tool", json!({}), "usage"),
        ("start_job", json!({}), "usage"),
        ("who", json!({"everything": true}), "usage"),
        ("who", json!({"all": "yes"}), "usage"),
        ("send_message", json!({"to": "user"}), "usage"),
        ("send_message", json!({"to": "user", "body": 7}), "usage"),
        ("send_message", json!({"to": "nobody-here", "body": "x"}), "unknown-recipient"),
        ("send_message", json!({"to": "../../etc", "body": "x"}), "unknown-recipient"),
        ("send_message", json!({"to": "codex-thread-1@elsewhere", "body": "x"}), "unknown-machine"),
        ("send_message", json!({"to": "agent:emacs", "body": "x"}), "unknown-agent"),
        ("send_message", json!({"to": CLAUDE, "body": "x"}), "self-target"),
        ("send_message", json!({"to": CODEX, "body": long}), "body-too-large"),
        ("send_message", json!({"to": CODEX, "body": "a\u{0}b"}), "body-has-nul"),
        ("send_message", json!({"to": CODEX, "body": " \n"}), "empty-body"),
        ("send_message", json!({"to": CODEX, "body": "x", "ttl": "soon"}), "bad-duration"),
        ("send_message", json!({"to": CODEX, "body": "x", "key": "a\nb"}), "usage"),
        ("send_message", json!({"to": CODEX, "body": "x", "reply_to": "m000000000000"}), "message-not-found"),
        ("ask_peer", json!({}), "usage"),
        ("ask_peer", json!({"to": CODEX}), "usage"),
        ("ask_peer", json!({"to": CODEX, "body": "x", "resume": "r000000000000"}), "usage"),
        ("ask_peer", json!({"to": CODEX, "body": "x", "timeout": "5"}), "bad-duration"),
        ("ask_peer", json!({"resume": "r000000000000"}), "request-not-found"),
        ("ask_peer", json!({"resume": "../x"}), "request-not-found"),
        ("reply_to_message", json!({"message_id": "m000000000000", "body": "x"}), "message-not-found"),
        ("reply_to_message", json!({"message_id": "nonsense", "body": "x"}), "message-not-found"),
        ("claim_session", json!({"session_id": "unheard-of"}), "not-your-session"),
    ] {
        assert_eq!(
            claude.call(tool, arguments.clone()).code(),
            code,
            "{tool} {}",
            &arguments.to_string()[..80.min(arguments.to_string().len())]
        );
    }
    let own = send(&mut claude, CODEX, "x");
    assert_eq!(
        claude.call("reply_to_message", json!({"message_id": own, "body": "x"})).code(),
        "not-recipient"
    );
}

#[test]
fn calls_that_are_not_formed_like_calls_get_an_answer() {
    let (_world, mut claude, _codex) = World::with_two();
    for params in [json!({"name": "who", "arguments": [1]}), json!({"name": 7}), json!({}), Value::Null] {
        let id = claude.fresh_id();
        claude
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
        assert_eq!(claude.finish(id).code(), "usage", "{params}");
    }
    // A tool that needs no arguments works without any.
    let id = claude.fresh_id();
    claude.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"who"}}}}"#));
    claude.finish(id).ok();
    // A message that is not a request of the protocol gets a protocol error, so that it has an
    // answer.
    assert!(claude.request("tools/call", json!([])).get("error").is_some());
    assert!(claude.request("no/such/method", json!({})).get("error").is_some());
}

#[test]
fn half_a_surrogate_pair_and_broken_utf8_are_refused_and_nothing_hangs() {
    let (world, mut claude, _codex) = World::with_two();
    for body in [&b"a\\ud83d"[..], b"\\ude00a", b"a\xff", b"a\xed\xa0\x80"] {
        let id = claude.fresh_id();
        let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"send_message","arguments":{{"to":"{CODEX}","body":""#).into_bytes();
        line.extend_from_slice(body);
        line.extend_from_slice(b"\"}}}");
        claude.send_bytes(&line);
        assert_eq!(claude.finish(id).code(), "body-not-utf8");
    }
    for noise in ["", "nonsense", "{", "[]", "\"\\ud800\"", "{\"jsonrpc\":\"2.0\"}"] {
        claude.send(noise);
    }
    // A whole pair is text like any other.
    let id = claude.fresh_id();
    claude.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"send_message","arguments":{{"to":"{CODEX}","body":"\ud83d\ude00"}}}}}}"#));
    let sent = claude.finish(id).ok();
    let id = baton_core::id::MessageId::parse(sent["message_id"].as_str().unwrap()).unwrap();
    assert_eq!(world.store().message(&id).unwrap().unwrap().body, "😀");
}

#[test]
fn the_server_stays_small_and_ends_with_its_input() {
    let (_world, mut claude, mut codex) = World::with_two();
    let body = "x".repeat(65_536);
    for _ in 0..20 {
        send(&mut claude, CODEX, &body);
    }
    for _ in 0..5 {
        codex.call("read_messages", json!({"peek": true})).ok();
    }
    claude.call("who", json!({"all": true})).ok();
    for client in [&claude, &codex] {
        let resident = resident(client.child.id());
        assert!(resident < 20 << 10, "{resident} KiB");
    }
    claude.close();
    assert!(claude.has_ended());
    assert!(claude.child.wait().unwrap().success());
}
