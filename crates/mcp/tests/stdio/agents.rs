//! The server below the real agents: what they really send, and which answers reach their models.
//!
//! All hooks here are calls of the server. The command hooks run a program of another crate.

use crate::client::SERVER;
use baton_core::body::Body;
use baton_core::id::MessageId;
use baton_core::limits::Limits;
use baton_core::mail::{Delivery, proof};
use baton_core::name;
use baton_core::wake::Attention;
use baton_mail::identity::{Identity, Kind};
use baton_mail::post::{self, Draft, Everyone};
use baton_mail::reconcile;
use baton_store::{Role, Store};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::claude::Claude;
use baton_testkit::codex::Codex;
use baton_testkit::model::Kind as RequestKind;
use baton_testkit::{Model, Request, Sandbox, Script, Step, isolated};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Ids of the messages that were posted.
type Posted = Arc<Mutex<Vec<MessageId>>>;

/// A person who writes to a session.
#[derive(Clone)]
struct Person {
    home: PathBuf,
    posted: Posted,
}

impl Person {
    fn new(home: PathBuf) -> Self {
        Self { home, posted: Posted::default() }
    }

    fn store(&self) -> Store {
        Store::open(&self.home, Role::Command).expect("a store")
    }

    fn write(&self, session: &str, text: &str) {
        let mut store = self.store();
        let project = store.participant_of(None, session).expect("a store").expect("registered").0.project;
        let participant = store.ensure_outsider(name::USER, baton_machine::clock::now()).expect("a mailbox");
        let identity = Identity { participant, kind: Kind::Person, project };
        let body = Body::from_text(text.to_owned()).expect("a body");
        let draft = Draft {
            to: &[session],
            everyone: Everyone::NotSaid,
            body: &body,
            reply_to: None,
            thread: None,
            key: None,
            ttl: None,
            attention: Attention::Ordinary,
        };
        let sent =
            post::send(&mut store, &self.home, &identity, &draft, &Limits::default()).expect("accepted");
        self.posted.lock().expect("no panic").push(sent.id);
    }

    /// The present state of every message.
    fn states(&self) -> Vec<Delivery> {
        let mut store = self.store();
        reconcile::settle_offers(&mut store, None).expect("a store");
        let posted = self.posted.lock().expect("no panic");
        posted
            .iter()
            .map(|id| store.message(id).expect("a store").expect("known").deliveries[0].state)
            .collect()
    }
}

/// A body whose lines can be counted.
fn long_body(lines: usize) -> String {
    (0..lines).map(|n| format!("line {n:06} \"of\" many\n")).collect()
}

/// The conversation: list sessions, read a long message, get a refusal, run a command and get a
/// message with its hook, end.
fn script(person: Person, lines: usize) -> Script {
    Script::by(move |request: &Request| match request.results().len() {
        0 => {
            person.write(&request.session, &long_body(lines));
            Step::mcp("baton", "read_messages", json!({}))
        }
        1 => Step::mcp("baton", "send_message", json!({"to": "nobody-here", "body": "x"})),
        2 => Step::mcp(
            "baton",
            "hook_event",
            json!({"hook_event_name": "Stop", "session_id": request.session}),
        ),
        3 => {
            person.write(&request.session, "THE-SECOND");
            Step::shell("true")
        }
        4 => Step::shell("true"),
        _ => Step::say("done"),
    })
}

fn hook(event: &str, turn: &str, more: &[(&str, &str)]) -> Value {
    let mut input = json!({"hook_event_name": event, "session_id": "${session_id}", "transcript_path": "${transcript_path}", "cwd": "${cwd}"});
    input[turn] = json!(format!("${{{turn}}}"));
    for (key, value) in more {
        input[key] = json!(value);
    }
    json!({"type": "mcp_tool", "server": "baton", "tool": "hook_event", "input": input, "timeout": 10})
}

fn check(model: &Model, person: &Person, lines: usize) {
    let requests = model.requests_of(RequestKind::Main);
    let last = requests.last().expect("a request");
    let results = last.results();
    let read = &results[0].text;
    for n in 0..lines {
        assert!(
            read.contains(&format!("line {n:06} ")),
            "line {n} of {lines} did not reach the model: {} bytes",
            read.len()
        );
    }
    assert_eq!(read.matches(proof::MARK).count(), 1);
    assert!(results[1].text.contains("\"code\":\"unknown-recipient\""), "{}", results[1].text);
    assert!(!results[2].text.contains("baton-mail"), "a model has no such tool: {}", results[2].text);
    assert_eq!(last.count("| THE-SECOND"), 1, "by the hook, once");
    assert_eq!(person.states(), [Delivery::Seen, Delivery::Seen]);
}

/// Whether the pinned agent is installed. `scripts/test --no-agents` works without.
fn is_installed(agent: Agent) -> bool {
    agent.locate().inspect_err(|missing| eprintln!("skipped: {missing}")).is_ok()
}

fn log(home: &Path) -> String {
    std::fs::read_to_string(home.join("test.log")).unwrap_or_default()
}

#[test]
fn claude_code_reads_whole_messages_and_its_hooks_deliver() {
    if !is_installed(Agent::Claude) {
        return;
    }
    isolated(|| {
        let sandbox = Sandbox::new();
        let person = Person::new(sandbox.path("baton"));
        let lines = 320;
        let model = Model::start(script(person.clone(), lines));
        let claude = Claude::new(&sandbox, &model);
        let home = person.home.to_str().expect("a path").to_owned();
        claude.add_mcp_server("baton", SERVER, &["claude", &home]);
        claude.add_hook(
            "UserPromptSubmit",
            hook("UserPromptSubmit", "prompt_id", &[("agent_id", "${agent_id}")]),
        );
        let call = ("tool_use_id", "${tool_calls.0.tool_use_id}");
        claude.add_hook(
            "PostToolBatch",
            hook("PostToolBatch", "prompt_id", &[("agent_id", "${agent_id}"), call]),
        );
        claude.run(Session::New, "go");
        assert_eq!(log(&person.home), "");
        check(&model, &person, lines);
    });
}

#[test]
fn codex_reads_whole_messages_and_its_hooks_deliver() {
    if !is_installed(Agent::Codex) {
        return;
    }
    isolated(|| {
        let sandbox = Sandbox::new();
        let person = Person::new(sandbox.path("baton"));
        let lines = 320;
        let model = Model::start(script(person.clone(), lines));
        let codex = Codex::new(&sandbox, &model).trusting_hooks();
        codex.add_mcp_server("baton", SERVER, &["codex", person.home.to_str().expect("a path")]);
        codex.add_hook("UserPromptSubmit", hook("UserPromptSubmit", "turn_id", &[]));
        codex.add_hook("PostToolUse", hook("PostToolUse", "turn_id", &[("tool_use_id", "${tool_use_id}")]));
        codex.run(Session::New, "go");
        assert_eq!(log(&person.home), "");
        check(&model, &person, lines);
    });
}
