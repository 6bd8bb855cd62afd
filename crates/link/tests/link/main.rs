//! The link on a real store. The test plays the plugin, line by line.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod held;
mod questions;
mod wake;

use baton_core::body::Body;
use baton_core::id::{MessageId, ParticipantId};
use baton_core::limits::Limits;
use baton_core::session::State;
use baton_core::wake::Attention;
use baton_guard_runtime::{Guard, Places};
use baton_link::Options;
use baton_store::{NewMail, Role, Store, Verb};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SESSION: &str = "ses_1";

/// No answer takes longer.
const TIMEOUT: Duration = Duration::from_secs(90);

struct Plugin {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    link: JoinHandle<()>,
    next: u64,
}

impl Plugin {
    fn start(home: &Path, agent: &'static str, env: Env) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (home, guarded) = (home.to_owned(), home.to_owned());
        let link = std::thread::spawn(move || {
            let options = Options {
                home,
                agent: baton_agents::by_name(agent).unwrap(),
                program: None,
                env,
                limits: Box::new(|_| Limits::default()),
                guard: Box::new(move || {
                    Guard::open(Places {
                        home: guarded.clone(),
                        config: Some(guarded.join("config.toml")),
                        named_config: None,
                        user_home: guarded.join("nobody"),
                        cwd: "/".into(),
                        env: |_| None,
                        now: baton_machine::clock::now,
                        patience: std::time::Duration::from_millis(500),
                        aside: |_, _, _| None,
                        own_line: |_| baton_core::guard::OwnLine::Unreadable,
                    })
                }),
                jobs: Box::new(|_| {}),
                log: Box::new(|_| {}),
            };
            // The test sees the end in the store.
            baton_link::serve(options, theirs.try_clone().unwrap(), theirs).ok();
        });
        let lines = BufReader::new(ours.try_clone().unwrap());
        Self { stream: ours, lines, link, next: 1 }
    }

    fn write(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Forwards an event and waits for its answer. Also returns pushes that come meanwhile.
    fn tell(&mut self, event: &str, more: &Value) -> (Value, Vec<Value>) {
        let id = self.next;
        self.next += 1;
        // Each agent's plugin has its own field names for these, and ignores the others.
        let mut payload = json!({"hook_event_name": event, "session_id": SESSION, "cwd": "/", "extensionEvent": event, "sessionId": SESSION});
        payload.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        self.write(&json!({"id": id, "payload": payload}).to_string());
        let mut pushes = Vec::new();
        loop {
            let line = self.read();
            if line["id"] == id {
                return (line["answer"].clone(), pushes);
            }
            pushes.push(line["push"].clone());
        }
    }

    /// The next line, which must be a push.
    fn pushed(&mut self) -> Value {
        let line = self.read();
        assert!(line["push"].is_object(), "{line}");
        line["push"].clone()
    }

    fn close(self) {
        self.stream.shutdown(std::net::Shutdown::Both).unwrap();
        self.link.join().unwrap();
    }
}

/// Reads the environment of the link.
type Env = fn(&str) -> Option<OsString>;

struct World {
    home: TempDir,
    agent: &'static str,
    env: Env,
}

impl World {
    fn new() -> Self {
        Self::of("opencode")
    }

    fn of(agent: &'static str) -> Self {
        Self { home: tempfile::tempdir().unwrap(), agent, env: |_| None }
    }

    fn plugin(&self) -> Plugin {
        Plugin::start(self.home.path(), self.agent, self.env)
    }

    fn store(&self) -> Store {
        Store::open(self.home.path(), Role::Command).unwrap()
    }

    fn participant(&self) -> ParticipantId {
        self.store().participant_of(Some(self.agent), SESSION).unwrap().unwrap().0.id
    }

    fn send(&self, text: &str) {
        static IDS: AtomicU64 = AtomicU64::new(1 << 16);
        let mut store = self.store();
        let (to, _) = store.participant_of(Some(self.agent), SESSION).unwrap().unwrap();
        let sender = store.ensure_outsider("script", baton_machine::clock::now()).unwrap().id;
        let body = Body::from_text(text.to_owned()).unwrap();
        let id = MessageId::from_random(IDS.fetch_add(1 << 16, Ordering::SeqCst).to_be_bytes());
        let recipient = to.id;
        let mail = NewMail {
            id,
            sender,
            session: None,
            by_person: false,
            verb: Verb::Send,
            recipients: vec![to],
            body: &body,
            thread: None,
            reply_to: None,
            key: None,
            waiter: None,
            ttl: Limits::default().ttl,
            attention: Attention::Ordinary,
            now: baton_machine::clock::now(),
        };
        store.accept_mail(mail, &Limits::default()).unwrap();
        baton_machine::bell::ring(self.home.path(), recipient);
    }

    /// Messages that wait or are on their way.
    fn unread(&self) -> u32 {
        self.store().participant(self.participant()).unwrap().unwrap().unread
    }

    fn queued(&self) -> bool {
        self.store().hook_view(self.agent, SESSION).unwrap().unwrap().queued
    }

    fn state(&self) -> String {
        self.store().hook_view(self.agent, SESSION).unwrap().unwrap().state.as_str().to_owned()
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn mark(text: &str) -> String {
    let from = text.rfind("[baton-offer ").unwrap();
    text[from..=from + text[from..].find(']').unwrap()].to_owned()
}

#[test]
fn a_prompt_brings_mail_and_the_request_that_holds_it_is_the_proof() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("chat.message", &json!({"turn_id": "msg_1", "prompt": "hello"}));
    world.send("the first");
    let (answer, pushes) = plugin.tell("chat.message", &json!({"turn_id": "msg_2", "prompt": "go on"}));
    let text = answer["text"].as_str().unwrap();
    assert!(
        text.contains("the first") && pushes.is_empty(),
        "nothing is pushed into a busy session: {pushes:?}"
    );
    // A request of the turn before proves nothing. A request with the prompt but without the mark
    // proves that the mail was not taken.
    plugin.tell("request", &json!({"turn_id": "msg_1", "shown": {"marks": [], "ids": ["msg_1"]}}));
    assert!(!world.queued());
    plugin.tell("request", &json!({"turn_id": "msg_2", "shown": {"marks": [], "ids": ["msg_1", "msg_2"]}}));
    assert!(world.queued(), "it was not taken, and waits again");
    let (answer, _) =
        plugin.tell("tool.execute.after", &json!({"tool_name": "bash", "tool_use_id": "call_1"}));
    let mark = mark(answer["text"].as_str().unwrap());
    plugin.tell(
        "request",
        &json!({"turn_id": "msg_2", "shown": {"marks": [mark], "ids": ["msg_2", "call_1"]}}),
    );
    assert_eq!(world.unread(), 0);
    plugin.close();
}

#[test]
fn an_idle_session_is_pushed_and_the_same_push_comes_again_with_the_same_ids() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    world.send("wake up");
    let first = plugin.pushed();
    assert!(first["text"].as_str().unwrap().contains("wake up"));
    assert!(first["message_id"].as_str().unwrap().starts_with("msg_"));
    world.send("and this");
    // The push had no effect, so the same push comes again, and no other.
    assert_eq!(plugin.pushed(), first);
    plugin.tell("chat.message", &json!({"turn_id": first["message_id"], "prompt": first["text"]}));
    let marks = json!({"marks": [first["mark"]], "ids": [first["message_id"]]});
    plugin.tell("request", &json!({"turn_id": first["message_id"], "shown": marks}));
    assert_eq!(world.unread(), 1);
    let (_, mut pushes) = plugin.tell("session.idle", &json!({}));
    let second = pushes.pop().unwrap_or_else(|| plugin.pushed());
    assert!(second["text"].as_str().unwrap().contains("and this"));
    assert_ne!(second["message_id"], first["message_id"]);
    plugin.close();
}

#[test]
fn a_push_that_failed_goes_back_and_comes_again_later() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    world.send("wake up");
    let first = plugin.pushed();
    plugin.tell("push.failed", &json!({"shown": {"marks": [first["mark"]]}}));
    assert!(world.queued());
    let second = plugin.pushed();
    assert_ne!(second["mark"], first["mark"], "a new offer");
    plugin.close();
}

#[test]
fn what_was_summarized_before_it_was_shown_comes_again() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("chat.message", &json!({"turn_id": "msg_1", "prompt": "hello"}));
    world.send("the first");
    let tool = |call: &str| json!({"tool_name": "bash", "tool_use_id": call});
    let (answer, _) = plugin.tell("tool.execute.after", &tool("call_1"));
    let first = mark(answer["text"].as_str().unwrap());
    plugin.tell("session.compacted", &json!({"shown": {"marks": ["[baton-offer other]"]}}));
    assert!(!world.queued(), "that was another one");
    plugin.tell("session.compacted", &json!({"shown": {"marks": [first]}}));
    assert!(world.queued());
    assert_eq!(world.state(), "busy", "the turn goes on");
    let (answer, _) = plugin.tell("tool.execute.after", &tool("call_2"));
    assert_ne!(mark(answer["text"].as_str().unwrap()), first, "a new offer");
    plugin.close();
}

#[test]
fn an_idle_session_is_idle_after_a_compaction_too() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    plugin.tell("session.compacted", &json!({"shown": {"marks": []}}));
    assert_eq!(world.state(), "idle");
    world.send("wake up");
    assert!(plugin.pushed()["text"].as_str().unwrap().contains("wake up"));
    plugin.close();
}

#[test]
fn a_blocked_or_busy_session_is_not_pushed() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    for (event, state) in
        [("permission.asked", "blocked"), ("permission.replied", "busy"), ("question.asked", "blocked")]
    {
        plugin.tell(event, &json!({}));
        assert_eq!(world.state(), state);
        world.send("not now");
        // A push would come before the next answer.
        let (_, pushes) = plugin.tell("unheard.of", &json!({}));
        assert_eq!(pushes, [Value::Null; 0], "{event}");
    }
    let (_, mut pushes) = plugin.tell("session.idle", &json!({}));
    let push = pushes.pop().unwrap_or_else(|| plugin.pushed());
    assert_eq!(push["text"].as_str().unwrap().matches("not now").count(), 3);
    plugin.close();
}

/// A process that waits for the session hears the bell, as it does after a hook.
#[test]
fn the_end_of_a_session_rings_its_bell() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    plugin.tell("session.idle", &json!({}));
    let bell = baton_machine::bell::Bell::listen(world.home.path(), world.participant()).unwrap();
    let mut rung = [rustix::event::PollFd::new(bell.watch(), rustix::event::PollFlags::IN)];
    plugin.tell("session.deleted", &json!({}));
    assert_eq!(world.state(), "gone");
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    until("it rings", || rustix::event::poll(&mut rung, Some(&now)).unwrap() == 1);
    plugin.close();
}

#[test]
fn a_subagent_takes_nothing() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("chat.message", &json!({"turn_id": "msg_1", "prompt": "delegate"}));
    world.send("for the parent");
    for event in ["chat.message", "tool.execute.after", "session.idle"] {
        let (answer, pushes) = plugin.tell(event, &json!({"agent_id": "ses_2", "tool_use_id": "c"}));
        assert_eq!((answer, pushes), (Value::Null, Vec::new()), "{event}");
    }
    assert_eq!(world.state(), "busy", "a child's idleness is not its parent's");
    plugin.close();
}

#[test]
fn the_link_survives_any_input() {
    let world = World::new();
    let mut plugin = world.plugin();
    for line in ["", "null", "{", "[]", "\u{0}", "{\"id\": \"x\", \"payload\": {}}", "{\"id\": 1}"] {
        plugin.write(line);
    }
    for payload in
        [json!(null), json!([]), json!({}), json!({"session_id": "", "hook_event_name": "request"})]
    {
        plugin.write(&json!({"id": 7, "payload": payload}).to_string());
        assert_eq!(plugin.read(), json!({"id": 7, "answer": null}));
    }
    let shown = json!({"shown": {"marks": ["[baton-offer x]"], "ids": vec!["i"; 1000]}});
    assert_eq!(plugin.tell("request", &shown).0, Value::Null);
    assert_eq!(world.state(), "busy");
    plugin.tell("brand.new", &json!({}));
    let agent = baton_agents::by_name("opencode").unwrap();
    let unknown = baton_mail::unknown_events::list(world.home.path(), agent).names;
    assert!(unknown.iter().any(|unknown| unknown.name == "brand.new"), "doctor will show it");
    plugin.close();
}

#[test]
fn what_could_not_be_passed_on_goes_back_and_the_sessions_are_gone() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    // The plugin no longer reads, and then it is gone.
    plugin.stream.shutdown(std::net::Shutdown::Read).unwrap();
    world.send("too late");
    until("the session is gone", || world.state() == "gone");
    assert!(world.queued(), "the push could not be written, so it was none");
    plugin.close();
}

#[test]
fn a_tool_call_is_judged_and_mail_waits_behind_an_output_that_is_changed() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("chat.message", &json!({"turn_id": "msg_1", "prompt": "go"}));
    let sudo = json!({"tool": "bash", "callID": "c1", "args": {"command": "sudo id"}});
    let (answer, _) = plugin.tell("tool.execute.before", &sudo);
    assert!(answer["deny"].as_str().is_some_and(|why| why.contains("block-sudo")), "{answer}");
    let harmless = json!({"tool": "bash", "callID": "c2", "args": {"command": "ls"}});
    assert_eq!(plugin.tell("tool.execute.before", &harmless).0, Value::Null);

    world.send("behind a secret");
    let output = |text: &str| json!({"tool_use_id": "c2", "tool": "bash", "output": {"output": text}});
    let secret = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    let (answer, _) = plugin.tell("tool.execute.after", &output(&format!("before {secret} behind")));
    let shown = answer["output"]["output"].as_str().unwrap();
    assert!(shown.contains("before") && shown.contains("behind") && !shown.contains(secret), "{shown}");
    assert_eq!(answer.get("text"), None, "{answer}");
    let (answer, _) = plugin.tell("tool.execute.after", &output("nothing"));
    assert!(answer["text"].as_str().is_some_and(|text| text.contains("behind a secret")), "{answer}");
    plugin.close();
}

#[test]
fn a_call_that_can_t_be_judged_is_held_and_the_link_lives_on() {
    let world = World::new();
    std::fs::write(world.home.path().join("config.toml"), "[guard]\nmode = 7\n").unwrap();
    let mut plugin = world.plugin();
    let call = json!({"tool": "bash", "callID": "c1", "args": {"command": "ls"}});
    let (answer, _) = plugin.tell("tool.execute.before", &call);
    assert!(answer["deny"].as_str().is_some_and(|why| why.contains("line 2")), "{answer}");
    std::fs::write(world.home.path().join("config.toml"), "[guard]\nmode = \"off\"\n").unwrap();
    assert_eq!(plugin.tell("tool.execute.before", &call).0, Value::Null);
    plugin.close();
}

/// E10: some agents don't report that they resume a session. Their first event shows it, and
/// replaces the dead process.
#[test]
fn e10_a_session_that_ended_is_back_with_its_first_event() {
    let dead = {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = baton_machine::process::find(i32::try_from(child.id()).unwrap());
        child.wait().unwrap();
        process.unwrap()
    };
    for (noticed, event) in
        [(true, "chat.message"), (false, "chat.message"), (true, "session.idle"), (false, "session.idle")]
    {
        let world = World::new();
        world
            .store()
            .sight_session(&baton_store::Sighting {
                agent: "opencode",
                native: SESSION,
                project: "/",
                cwd: "/",
                transcript: None,
                process: Some(dead),
                source: None,
                state: if noticed { State::Gone } else { State::Idle },
                now: baton_machine::clock::now(),
            })
            .unwrap();
        let mut plugin = world.plugin();
        plugin.tell(event, &json!({"turn_id": "msg_1", "prompt": "go on"}));
        let mut store = world.store();
        let mut participant = store.participant_of(Some("opencode"), SESSION).unwrap().unwrap().0;
        baton_mail::reconcile::correct_state(&mut store, &mut participant).unwrap();
        assert_ne!(participant.state, State::Gone, "{event}, noticed: {noticed}");
        if event == "session.idle" {
            world.send("welcome back");
            assert!(plugin.pushed()["text"].as_str().unwrap().contains("welcome back"));
        }
        plugin.close();
    }
}
