//! One test's world: a home, a project, sessions in the store, and transcripts as the agents write
//! them.

use crate::client::{Caller, Client};
use baton_core::id::MessageId;
use baton_core::mail::Delivery;
use baton_core::process::Process;
use baton_core::session::State;
use baton_machine::process;
use baton_store::{Role, Sighting, Store};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The session of Claude Code in most tests. This process runs it, and the server is its child.
pub const CLAUDE: &str = "claude-session-1";
/// The session of Codex in most tests.
pub const CODEX: &str = "codex-thread-1";

pub struct World {
    folder: TempDir,
}

impl World {
    pub fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir(world.project()).expect("a project");
        world
    }

    /// A world with a session of each agent, and a client for each: Claude's first.
    pub fn with_two() -> (Self, Client, Client) {
        let world = Self::new();
        world.add("claude", CLAUDE, Some(process::this()));
        world.add("codex", CODEX, None);
        let (claude, codex) = (world.client(Caller::Claude), world.client(Caller::Codex(CODEX)));
        (world, claude, codex)
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub fn client(&self, caller: Caller) -> Client {
        Client::start(&self.home(), &self.project(), caller)
    }

    pub fn store(&self) -> Store {
        Store::open(&self.home(), Role::Command).expect("a store")
    }

    /// Registers a session, as its start hook does.
    pub fn add(&self, agent: &str, session: &str, process: Option<Process>) {
        let project = self.project();
        self.store()
            .sight_session(&Sighting {
                agent,
                native: session,
                project: &baton_machine::project::of(&project),
                cwd: &project.to_string_lossy(),
                transcript: Some(&self.transcript(session).path.to_string_lossy()),
                process,
                source: None,
                state: State::Busy,
                now: baton_machine::clock::now(),
            })
            .expect("registered");
    }

    pub fn name_of(&self, session: &str) -> String {
        self.store().participant_of(None, session).expect("a store").expect("known").0.name
    }

    pub fn transcript(&self, session: &str) -> Transcript {
        Transcript { path: self.folder.path().join(format!("{session}.jsonl")) }
    }

    /// Where a message is at its only recipient.
    pub fn state(&self, message: &str) -> Delivery {
        let id = MessageId::parse(message).expect("an id");
        self.store().message(&id).expect("a store").expect("known").deliveries[0].state
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home().join("test.log")).unwrap_or_default()
    }
}

/// Polls until the condition is true, for a limited time.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + crate::client::TIMEOUT;
    while !condition() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A transcript that a test writes line by line, as the agents do.
pub struct Transcript {
    pub path: PathBuf,
}

impl Transcript {
    fn add(&self, line: &Value) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).expect("a transcript");
        writeln!(file, "{line}").expect("room for a line");
    }

    pub fn claude_prompt(&self, id: &str) {
        self.add(&json!({"type": "user", "promptId": id, "parentUuid": id, "message": {"role": "user", "content": "do it"}}));
    }

    pub fn claude_calls(&self, response: &str, call: &str) {
        let block = json!({"type": "tool_use", "id": call, "name": "mcp__baton__read_messages", "input": {}});
        self.add(&json!({"type": "assistant", "message": {"id": response, "content": [block]}}));
    }

    pub fn claude_result(&self, call: &str, text: &str) {
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": text});
        self.add(&json!({"type": "user", "promptId": "p1", "message": {"role": "user", "content": [block]}}));
    }

    pub fn claude_context(&self, event: &str, text: &str) {
        let attachment = json!({"type": "hook_additional_context", "hookEvent": event, "content": [text]});
        self.add(&json!({"type": "attachment", "attachment": attachment}));
    }

    pub fn claude_says(&self, response: &str) {
        let block = json!({"type": "text", "text": "done"});
        self.add(&json!({"type": "assistant", "message": {"id": response, "content": [block]}}));
    }

    fn codex_item(&self, payload: &Value) {
        self.add(&json!({"type": "response_item", "payload": payload}));
    }

    pub fn codex_turn(&self, id: &str) {
        self.add(&json!({"type": "turn_context", "payload": {"turn_id": id}}));
        let content = json!([{"type": "input_text", "text": "do it"}]);
        self.codex_item(&json!({"type": "message", "role": "user", "content": content}));
    }

    pub fn codex_calls(&self, call: &str) {
        self.codex_item(
            &json!({"type": "function_call", "name": "read_messages", "call_id": call, "arguments": "{}"}),
        );
    }

    pub fn codex_result(&self, call: &str, text: &str) {
        self.codex_item(&json!({"type": "function_call_output", "call_id": call, "output": text}));
    }

    pub fn codex_context(&self, text: &str) {
        let content = json!([{"type": "input_text", "text": text}]);
        self.codex_item(&json!({"type": "message", "role": "developer", "content": content}));
    }

    pub fn codex_says(&self) {
        let content = json!([{"type": "output_text", "text": "done"}]);
        self.codex_item(&json!({"type": "message", "role": "assistant", "content": content}));
    }
}

/// Sends a message and returns its id.
pub fn send(client: &mut Client, to: &str, body: &str) -> String {
    let sent = client.call("send_message", json!({"to": to, "body": body})).ok();
    sent["message_id"].as_str().expect("an id").to_owned()
}

/// The bodies of an answer of read_messages.
pub fn bodies(read: &Value) -> Vec<String> {
    read["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| message["body"].as_str().expect("text").to_owned())
        .collect()
}

/// The resident memory of a process in KiB.
pub fn resident(pid: u32) -> u64 {
    let status =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches("kB").trim().parse().expect("a number")
}
