//! Which session's mail a call gets.

use crate::client::{Caller, Client, SERVER};
use crate::world::{CLAUDE, CODEX, World, bodies, send};
use baton_core::event::Source;
use baton_core::process::Process;
use baton_core::session::State;
use baton_machine::process;
use baton_store::Sighting;
use serde_json::json;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// A running process without a relation to baton. Killed on drop.
struct Stranger(Child);

impl Stranger {
    fn new() -> Self {
        Self(Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep"))
    }

    fn process(&self) -> Process {
        process::find(self.0.id().cast_signed()).expect("it runs")
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A server below its own process, as below an agent.
fn below_a_shell(world: &World, session: &str) -> Client {
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\"; exit $?", "sh", SERVER, "claude"]).arg(world.home());
    let mut client = Client::spawn(&mut shell, &world.project(), Caller::Claude);
    let process = process::find(client.child.id().cast_signed()).expect("it runs");
    world.add("claude", session, Some(process));
    client.initialize("2025-11-25");
    client
}

/// A server below a process that is an agent's by its arguments, and that no hook has reported.
fn below_an_agent(world: &World, agent: &str) -> Client {
    let mut shell = Command::new("sh");
    shell.arg0(agent).args(["-c", "\"$@\"; exit $?", "sh", SERVER, "claude"]).arg(world.home());
    let mut client = Client::spawn(&mut shell, &world.project(), Caller::Claude);
    client.initialize("2025-11-25");
    client
}

fn you(client: &mut Client) -> serde_json::Value {
    client.call("who", json!({})).ok()["you"].clone()
}

#[test]
fn each_server_serves_the_session_of_the_process_above_it() {
    let world = World::new();
    let (mut one, mut two) = (below_a_shell(&world, "one"), below_a_shell(&world, "two"));
    assert_eq!(you(&mut one), world.name_of("one").as_str());
    assert_eq!(you(&mut two), world.name_of("two").as_str());
    send(&mut one, "two", "for two");
    assert!(bodies(&one.call("read_messages", json!({})).ok()).is_empty());
    assert_eq!(bodies(&two.call("read_messages", json!({})).ok()), ["for two"]);
    // No server can claim another's session.
    assert_eq!(one.call("claim_session", json!({"session_id": "two"})).code(), "not-your-session");
    assert_eq!(
        one.call("claim_session", json!({"session_id": "one"})).ok()["name"],
        world.name_of("one").as_str()
    );
    for mut client in [one, two] {
        client.close();
        assert!(client.has_ended());
    }
}

#[test]
fn the_server_follows_a_clear_and_a_fork() {
    let (world, mut claude, mut codex) = World::with_two();
    let name = world.name_of(CLAUDE);
    assert_eq!(you(&mut claude), name.as_str());
    let project = world.project();
    let go_on = |native: &str, source| {
        let sighting = Sighting {
            agent: "claude",
            native,
            project: &baton_machine::project::of(&project),
            cwd: &project.to_string_lossy(),
            transcript: None,
            process: Some(process::this()),
            source: Some(source),
            state: State::Idle,
            now: baton_machine::clock::now(),
        };
        world.store().sight_session(&sighting).unwrap();
    };
    go_on("after-the-clear", Source::Clear);
    assert_eq!(you(&mut claude), name.as_str());
    send(&mut codex, &name, "still you");
    assert_eq!(bodies(&claude.call("read_messages", json!({})).ok()), ["still you"]);
    let seen = claude.call("who", json!({})).ok();
    assert!(
        seen["sessions"].as_array().unwrap().iter().any(|session| session["session_id"] == "after-the-clear")
    );

    go_on("the-fork", Source::Fork);
    assert_eq!(you(&mut claude), world.name_of("the-fork").as_str());
    assert_ne!(you(&mut claude), name.as_str());
}

#[test]
fn without_hooks_the_environment_names_the_session() {
    let world = World::new();
    let start = |session: &str| {
        let mut command = Command::new(SERVER);
        command.arg("claude").arg(world.home()).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", session);
        let mut client = Client::spawn(&mut command, &world.project(), Caller::Claude);
        client.initialize("2025-06-18");
        client
    };
    let mut client = start("by-environment");
    let name = you(&mut client);
    assert_eq!(name, world.name_of("by-environment").as_str());
    assert_eq!(you(&mut client), name, "the second time it is known");

    // An environment that was inherited from a session in another process does not count.
    let stranger = Stranger::new();
    world.add("claude", "of-a-stranger", Some(stranger.process()));
    let mut client = start("of-a-stranger");
    assert_eq!(client.call("read_messages", json!({})).code(), "unbound-session");
    drop(stranger);
    assert_eq!(
        you(&mut client),
        world.name_of("of-a-stranger").as_str(),
        "resumed here, and its former process is gone"
    );
}

#[test]
fn s12_a_server_that_no_agent_of_its_kind_runs_serves_no_one() {
    let world = World::new();
    world.add("claude", "one", None);
    let calls = [
        ("who", json!({})),
        ("who", json!({"all": true})),
        ("list_approvals", json!({})),
        ("job_status", json!({})),
        ("claim_session", json!({"session_id": "one"})),
        ("send_message", json!({"to": "user", "body": "x"})),
    ];
    // A script runs it, and then another agent does.
    for mut client in [world.client(Caller::Claude), below_an_agent(&world, "codex")] {
        for (tool, arguments) in &calls {
            assert_eq!(client.call(tool, arguments.clone()).code(), "unbound-session", "{tool}");
        }
    }
    let mut subagent = world.client(Caller::CodexSubagent("nowhere", "nothing"));
    assert_eq!(subagent.call("who", json!({})).code(), "unbound-session");
    let mut own = below_an_agent(&world, "claude");
    assert_eq!(own.call("who", json!({})).ok()["sessions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_unbound_server_may_claim_only_a_session_that_can_be_no_others() {
    let world = World::new();
    let mut client = below_an_agent(&world, "claude");
    for tool in ["read_messages", "send_message", "ask_peer", "reply_to_message"] {
        let arguments = match tool {
            "read_messages" => json!({}),
            "reply_to_message" => json!({"message_id": "m000000000000", "body": "x"}),
            _ => json!({"to": "user", "body": "x"}),
        };
        let answer = client.call(tool, arguments);
        assert!(answer.result.to_string().contains("claim_session"));
        assert_eq!(answer.code(), "unbound-session", "{tool}");
    }
    assert_eq!(you(&mut client), json!(null));

    let stranger = Stranger::new();
    world.add("claude", "of-a-stranger", Some(stranger.process()));
    world.add("claude", "one", None);
    world.add("claude", "two", None);
    world.add("codex", CODEX, None);
    for session in ["of-a-stranger", "one", "two", CODEX, "unheard-of"] {
        assert_eq!(
            client.call("claim_session", json!({"session_id": session})).code(),
            "not-your-session",
            "{session}"
        );
    }
    let mut store = world.store();
    let (two, session) = store.participant_of(None, "two").unwrap().unwrap();
    store.correct_state(session, two.state_since, State::Gone, baton_machine::clock::now()).unwrap();
    assert_eq!(
        client.call("claim_session", json!({"session_id": "two"})).code(),
        "not-your-session",
        "it has ended"
    );
    assert_eq!(
        client.call("claim_session", json!({"session_id": "one"})).ok()["name"],
        world.name_of("one").as_str()
    );
    assert_eq!(you(&mut client), world.name_of("one").as_str());
    send(&mut world.client(Caller::Codex(CODEX)), "one", "hello");
    assert_eq!(bodies(&client.call("read_messages", json!({})).ok()), ["hello"]);

    // If its hooks name a process that is not above the server, the session was not the server's.
    world.add("claude", "one", Some(stranger.process()));
    assert_eq!(client.call("read_messages", json!({})).code(), "unbound-session");
}

#[test]
fn a_call_that_names_its_session_is_believed_and_can_claim_no_other() {
    let world = World::new();
    let mut codex = world.client(Caller::Codex(CODEX));
    let name = you(&mut codex);
    assert_eq!(name, world.name_of(CODEX).as_str(), "registered by its first call");
    world.add("codex", "codex-thread-2", None);
    assert_eq!(
        codex.call("claim_session", json!({"session_id": "codex-thread-2"})).code(),
        "not-your-session"
    );
    codex.caller = Caller::Codex("codex-thread-2");
    assert_eq!(you(&mut codex), world.name_of("codex-thread-2").as_str(), "one server may serve several");
}

#[test]
fn a_subagent_may_look_and_send_but_never_takes_its_parents_mail() {
    let (world, mut claude, mut codex) = World::with_two();
    let question = send(&mut codex, CLAUDE, "for the parent");
    send(&mut claude, CODEX, "for the other parent");
    let refused = [
        ("read_messages", json!({})),
        ("read_messages", json!({"peek": true})),
        ("ask_peer", json!({"to": CODEX, "body": "x"})),
        ("reply_to_message", json!({"message_id": question, "body": "x"})),
        ("claim_session", json!({"session_id": CLAUDE})),
    ];
    for (tool, arguments) in &refused {
        // Claude Code's hook announces the call of its subagent before it is made.
        let id = claude.fresh_id();
        let call = Client::call_id(id);
        let announced = json!({"hook_event_name": "PreToolUse", "session_id": CLAUDE, "agent_id": "sub-1",
            "tool_name": format!("mcp__baton__{tool}"), "tool_use_id": call, "transcript_path": "", "cwd": "", "prompt_id": ""});
        assert_eq!(claude.hook(announced).text(), "{}");
        claude.begin_with(
            id,
            tool,
            arguments.clone(),
            Some(json!({"claudecode/toolUseId": call, "progressToken": id})),
        );
        assert_eq!(claude.finish(id).code(), "subagent", "{tool}");
    }
    codex.caller = Caller::CodexSubagent(CODEX, "codex-thread-1-sub");
    for (tool, arguments) in &refused {
        assert_eq!(codex.call(tool, arguments.clone()).code(), "subagent", "{tool}");
    }

    assert_eq!(you(&mut codex), world.name_of(CODEX).as_str());
    let from_below = send(&mut codex, CLAUDE, "from below too");

    let id = claude.fresh_id();
    let call = Client::call_id(id);
    claude.hook(json!({"hook_event_name": "PreToolUse", "session_id": CLAUDE, "agent_id": "sub-1",
        "tool_name": "mcp__baton__send_message", "tool_use_id": call}));
    let meta = json!({"claudecode/toolUseId": call});
    claude.begin_with(id, "send_message", json!({"to": CODEX, "body": "from below"}), Some(meta));
    claude.finish(id).ok();
    codex.caller = Caller::Codex(CODEX);
    let read = codex.call("read_messages", json!({})).ok();
    assert_eq!(bodies(&read), ["for the other parent", "from below"]);
    assert_eq!(read["messages"][1]["from_name"], world.name_of(CLAUDE).as_str());
    let read = claude.call("read_messages", json!({})).ok();
    assert_eq!(bodies(&read), ["for the parent", "from below too"]);
    assert_eq!(read["messages"][1]["message_id"], json!(from_below));
    assert_eq!(read["messages"][1]["from"], CODEX);
}
