//! Pi: what its extension reports, what it is answered, and the extension's file.

use baton_agents::agent::{HookCodec as _, Identity as _, Profile as _, Waking as _};
use baton_agents::install::{Install, Scope};
use baton_agents::pi::install::Pi;
use baton_agents::{ContextLimit, Push, Shell, by_name, pi};
use baton_core::event::{Event, EventKind, Reply, Source};
use baton_core::frame::Unit;
use baton_core::id::Nonce;
use baton_core::time::Moment;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;

use crate::world::{Files, HOME, install};

/// A line as the extension sent it from Pi 0.87.1.
fn told(name: &str, more: &Value) -> Event {
    let mut payload = json!({
        "session_id": "01a1e1f8-4b4d-72e4-9100-a0c8b4ff47cb",
        "hook_event_name": name,
        "cwd": "/home/dev/proj",
        "transcript_path": "/home/dev/.pi/agent/sessions/--home-dev-proj--/2026-11-16T01-28-28-238Z_01a1e1f8.jsonl",
        "turn_id": "f95d76b5-0005-43da-9c19-62dc14826235",
    });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    pi::Pi.parse(payload.to_string().as_bytes(), None).unwrap()
}

#[test]
fn what_the_extension_tells_is_understood() {
    let by_source = |name: &str, source: &str| told(name, &json!({"source": source})).kind;
    for (source, kind) in [
        ("startup", Source::Startup),
        ("resume", Source::Resume),
        ("new", Source::Clear),
        ("fork", Source::Fork),
        ("reload", Source::Other),
    ] {
        assert_eq!(by_source("session_start", source), EventKind::Start(kind), "{source}");
    }
    for (name, kind) in [
        ("before_agent_start", EventKind::Prompt),
        ("agent_start", EventKind::BeforeTool),
        ("context", EventKind::Request),
        ("tool_result", EventKind::AfterTool),
        ("agent_settled", EventKind::IdleNotice),
        ("session_before_compact", EventKind::Compacting),
        ("session_compact", EventKind::Start(Source::Compact)),
        ("PushFailed", EventKind::PushFailed),
        ("session_tree", EventKind::PushFailed),
        ("turn_end", EventKind::Unknown),
    ] {
        assert_eq!(told(name, &json!({})).kind, kind, "{name}");
    }
    assert_eq!(by_source("agent_before_settle", "completed"), EventKind::Stop);
    assert_eq!(by_source("agent_before_settle", "error"), EventKind::IdleNotice, "it would fail again");
    assert_eq!(by_source("session_shutdown", "quit"), EventKind::End);
    assert_eq!(by_source("session_shutdown", "new"), EventKind::End);
}

#[test]
fn an_event_has_its_session_turn_call_and_what_was_shown() {
    let event = told("tool_result", &json!({"tool_name": "bash", "tool_use_id": "call_0_0"}));
    assert_eq!(event.session_id, "01a1e1f8-4b4d-72e4-9100-a0c8b4ff47cb");
    assert_eq!(event.turn.as_deref(), Some("f95d76b5-0005-43da-9c19-62dc14826235"));
    assert_eq!((event.tool.as_deref(), &event.calls[..]), (Some("bash"), &["call_0_0".to_owned()][..]));
    assert_eq!(event.cwd.as_deref(), Some(Path::new("/home/dev/proj")));
    let shown = json!({"shown": {"marks": ["[baton-offer n0tpex3g9ax3w]"], "ids": ["f95d76b5", "call_0_0"]}});
    let event = told("context", &shown);
    assert_eq!(event.shown.marks, ["[baton-offer n0tpex3g9ax3w]"]);
    assert_eq!(event.shown.ids, ["f95d76b5", "call_0_0"]);
    // Without a turn, before the first one, and without a file, as with --no-session.
    let event = told("session_start", &json!({"source": "startup", "turn_id": "", "transcript_path": null}));
    assert_eq!((event.turn, event.transcript), (None, None));
}

#[test]
fn answers_and_pushes_are_what_the_extension_reads() {
    let event = Event::new(EventKind::Prompt, "s");
    let answer = |reply: Reply| pi::Pi.render(&event, &reply, None);
    let text = "<baton-mail to=\"a\">\n| \"quoted\" \\ \u{1f600} \u{2028}\t</baton-mail>";
    assert_eq!(answer(Reply::Silent), "");
    let parsed = |reply: Reply| serde_json::from_str::<Value>(&answer(reply)).unwrap();
    assert_eq!(parsed(Reply::Context(text.into())), json!({"text": text}));
    assert_eq!(parsed(Reply::Continue(text.into())), json!({"text": text}));
    let nonce = Nonce::from_random([7; 8]);
    let push = Push { session_id: "s", text, glance: None, nonce: &nonce, made_at: Moment(1) };
    let mark = format!("[baton-offer {nonce}]");
    assert_eq!(pi::Pi.push(&push), Some(json!({"session_id": "s", "mark": mark, "text": text})));
    for kind in [EventKind::Prompt, EventKind::AfterTool, EventKind::Stop, EventKind::IdleNotice] {
        assert_eq!(pi::Pi.context_limit(kind), Some(ContextLimit::new(60_000, Unit::Bytes)), "{kind:?}");
    }
    assert_eq!(pi::Pi.context_limit(EventKind::Start(Source::Startup)), None);
    assert!(pi::Pi.quirks().shows_requests);
}

#[test]
fn its_shell_and_its_process_are_known() {
    let env = |name: &str| (name == "PI_SESSION_ID").then(|| OsString::from("the-session"));
    let shell = Shell { session_id: "the-session".into(), call: None, subagent: false };
    assert_eq!(pi::Pi.shell(&env), Some(shell));
    assert_eq!(pi::Pi.shell(&|_: &str| None), None);
    let is_pi = |args: &[&str]| {
        by_name("pi").unwrap().is_process(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    };
    assert!(is_pi(&["pi"]) && is_pi(&["/usr/bin/node", "/x/node_modules/.bin/pi", "-p"]));
    assert!(!is_pi(&["node", "server.js", "pi"]) && !is_pi(&["pip"]) && !is_pi(&[]));
}

fn target(scope: Scope) -> Pi {
    Pi::new(install(scope), Path::new("/home/dev"), None).unwrap()
}

#[test]
fn nothing_is_left_of_the_extension() {
    for scope in [Scope::User, Scope::Project("/home/dev/proj".into())] {
        let target = target(scope);
        let (after, records) = Files::default().installed(&target).unwrap();
        assert_eq!(after.0.len(), 1, "{after:?}");
        assert_eq!(after.installed(&target).unwrap().0, after, "twice is the same as once");
        let edited = format!("// mine\n{}", after.text(target.path()));
        let edited = after.clone().and(target.path(), edited.as_bytes());
        for files in [after, edited] {
            assert_eq!(files.removed(&target, &records).unwrap(), Files::default());
        }
    }
}

#[test]
fn a_moved_program_is_brought_up_to_date() {
    let old = Files::default().installed(&target(Scope::User)).unwrap().0;
    let install = Install::new(Path::new("/usr/bin/baton"), Path::new(HOME), Scope::User).unwrap();
    let moved = Pi::new(install, Path::new("/home/dev"), None).unwrap();
    let new = old.installed(&moved).unwrap().0;
    assert!(new.text(moved.path()).contains("const BATON: string = \"/usr/bin/baton\";"));
}

#[test]
fn a_file_of_another_program_stays() {
    let target = target(Scope::User);
    let files = Files::with(target.path(), b"export default () => {};");
    assert_eq!(files.installed(&target).unwrap_err().code(), "setup-file-taken");
    assert_eq!(files.removed(&target, &Default::default()).unwrap(), files);
}
