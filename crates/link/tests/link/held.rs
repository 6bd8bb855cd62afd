//! A call that the guard wants confirmed: the link decides whether the plugin holds it, and the
//! plugin reports it as a question.

use super::{Env, Plugin, SESSION, World};
use baton_approvals::watch::Watcher;
use baton_core::approval::{Answer, State};
use baton_core::limits::Limits;
use baton_store::ApprovalRow;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;

/// The person's rule that wants `touch` confirmed. The auto_approve rule for `touch` must not
/// answer it.
const RULES: &str = "[approvals]\nauto_approve = [\"bash: touch *\"]\n[[guard.rule]]\nid = \"count-files\"\ndecision = \"ask\"\n\
    command = \"touch **\"\nreason = \"Files are counted.\"\n";

impl World {
    /// A world where `touch` must be confirmed.
    fn counting(env: Env) -> Self {
        let world = Self { env, ..Self::new() };
        fs::write(world.home.path().join("config.toml"), RULES).unwrap();
        world
    }
}

impl Plugin {
    /// The link's answer before a command.
    fn before(&mut self, command: &str) -> Value {
        let call = json!({"tool": "bash", "callID": "call_1", "args": {"command": command}});
        self.tell("tool.execute.before", &call).0
    }

    /// The plugin holds a call.
    fn holds(&mut self, world: &World, call: &str) -> ApprovalRow {
        let request = format!("held-{SESSION}-{call}");
        let (tool, args) = ("bash", json!({"command": "touch it"}));
        let why = "Files are counted. (baton guard: count-files)";
        let held = json!({"request": request, "tool": tool, "callID": call, "args": args, "why": why});
        self.tell("call.asked", &held);
        world.question(&request)
    }
}

#[test]
fn a_call_is_held_if_a_person_watches_and_else_refused_at_once() {
    let world = World::counting(|_| None);
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    let refused = plugin.before("touch it");
    assert!(refused["deny"].as_str().unwrap().contains("A person has to decide"), "{refused}");
    assert_eq!(refused["hold"], Value::Null, "no person watches");
    let watcher = Watcher::begin(world.home.path()).unwrap();
    let held = plugin.before("touch it");
    assert_eq!(held["deny"], refused["deny"], "what is said when the time is over");
    assert_eq!(held["hold"]["ms"], Limits::default().approval_hold.0);
    assert!(held["hold"]["why"].as_str().unwrap().starts_with("Files are counted."), "{held}");
    assert_eq!(plugin.before("ls"), Value::Null);
    let denied = plugin.before("sudo ls");
    assert!(
        denied["deny"].is_string() && denied["hold"].is_null(),
        "no person can allow what is denied: {denied}"
    );
    drop(watcher);
    assert_eq!(plugin.before("touch it"), refused);
    plugin.close();
}

#[test]
fn the_call_of_a_job_is_refused_at_once() {
    let world = World::counting(|name| (name == "BATON_JOB").then(|| OsString::from("j1")));
    let _watcher = Watcher::begin(world.home.path()).unwrap();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    let refused = plugin.before("touch it");
    assert!(refused["deny"].is_string() && refused["hold"].is_null(), "{refused}");
    plugin.close();
}

#[test]
fn an_extension_that_has_a_hook_wait_is_told_to() {
    let world = World { agent: "pi", ..World::counting(|_| None) };
    let _watcher = Watcher::begin(world.home.path()).unwrap();
    let mut plugin = world.plugin();
    plugin.tell("session_start", &json!({"source": "startup"}));
    let call = json!({"toolName": "bash", "toolCallId": "call_1", "input": {"command": "touch it"}});
    assert_eq!(plugin.tell("tool_call", &call).0["hold"], true);
    plugin.close();
}

#[test]
fn a_held_call_waits_for_the_person_with_its_reason_and_no_rule_answers_it() {
    let world = World::counting(|_| None);
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    for (call, answer, words, end) in [
        ("call_1", Answer::Allow, Value::Null, State::Approved),
        ("call_2", Answer::Deny("use trash".into()), json!("use trash"), State::Denied),
        ("call_3", Answer::Deny(String::new()), json!("A person said no to this."), State::Denied),
    ] {
        let row = plugin.holds(&world, call);
        assert_eq!((row.state, row.call.as_deref()), (State::Waiting, Some(call)));
        assert!(row.why.as_deref().is_some_and(|why| why.starts_with("Files are counted.")), "{row:?}");
        assert_eq!(world.state(), "blocked");
        plugin.is_silent();
        assert!(world.answer(&row, &answer));
        let reply = plugin.replied();
        assert_eq!((&reply["request"], &reply["kind"]), (&json!(row.asked), &json!("call")));
        assert_eq!(reply["message"], words);
        plugin.tell("call.decided", &json!({}));
        assert_eq!(world.state(), "busy");
        world.becomes(&row, State::Handed);
        plugin.outcome(&row.asked, "effective");
        world.becomes(&row, end);
    }
    assert_eq!(world.approvals().pending().unwrap(), []);
    plugin.close();
}

#[test]
fn a_held_call_without_an_answer_is_closed_by_the_plugins_report() {
    let world = World::counting(|_| None);
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    let late = plugin.holds(&world, "call_1");
    plugin.outcome(&late.asked, "gone");
    let row = world.becomes(&late, State::Elsewhere);
    assert_eq!(row.note.as_deref(), Some("so it was"));
    assert!(!world.answer(&late, &Answer::Allow), "the plugin no longer waits for an answer");
    let dropped = plugin.holds(&world, "call_2");
    plugin.tell("approval.gone", &json!({"request": dropped.asked}));
    world.becomes(&dropped, State::Elsewhere);
    // The answer was on its way when the time ran out.
    let crossed = plugin.holds(&world, "call_3");
    world.answer(&crossed, &Answer::Allow);
    plugin.replied();
    plugin.outcome(&crossed.asked, "gone");
    world.becomes(&crossed, State::Elsewhere);
    plugin.close();
}
