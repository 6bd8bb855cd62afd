//! Agents that are woken: the push is a line without mail, and the prompt hook that follows brings
//! the mail.

use super::{SESSION, World, until};
use baton_agents::agent::Env;
use baton_core::event::{Event, EventKind, Reply};
use baton_core::limits::Limits;
use baton_core::wake::NOTHING_WAITS;
use baton_machine::bell;
use baton_mail::hook_event::{self, Caller};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ONE_WAITS: &str = "[baton] Mail from script is waiting for you.";
const NOBODY: Env<'static> = &|_| None;

/// What a hook of the session answers.
fn hook(world: &World, kind: EventKind, turn: &str) -> Reply {
    let agent = baton_agents::by_name(world.agent).unwrap();
    let caller = Caller { agent, env: NOBODY, limits: &Limits::default };
    let event = Event { turn: Some(turn.to_owned()), cwd: Some("/".into()), ..Event::new(kind, SESSION) };
    hook_event::handle(&mut world.store(), &caller, &event).unwrap().reply
}

fn brings(reply: &Reply, text: &str) -> bool {
    matches!(reply, Reply::Context(shown) if shown.contains(text))
}

#[test]
fn an_idle_session_is_woken_by_a_line_and_its_prompt_brings_the_mail() {
    let world = World::of("copilot");
    let mut plugin = world.plugin();
    plugin.tell("extension.joined", &json!({"processing": false}));
    assert_eq!(world.state(), "idle");
    world.send("wake up");
    assert_eq!(plugin.pushed(), json!({"session_id": SESSION, "prompt": ONE_WAITS}));
    assert!(world.queued(), "nothing was claimed for it");
    let reply = hook(&world, EventKind::Woken, "hook-1");
    assert!(brings(&reply, "wake up"), "{reply:?}");
    assert_eq!(world.state(), "busy");
    // There is no wake while a turn runs, and none for mail that was taken.
    world.send("and this");
    let (_, pushes) = plugin.tell("assistant.turn_start", &json!({}));
    assert_eq!(pushes, [Value::Null; 0]);
    // Mail that came meanwhile wakes the session again as soon as it is idle, because the model has
    // answered.
    plugin.tell("assistant.message", &json!({"model": "m"}));
    let (_, mut pushes) = plugin.tell("assistant.idle", &json!({}));
    let line = pushes.pop().unwrap_or_else(|| plugin.pushed())["prompt"].clone();
    assert!(line.as_str().is_some_and(baton_core::wake::line::is_line), "{line}");
    plugin.close();
}

#[test]
fn a_wake_without_effect_is_repeated_after_a_while() {
    let world = World::of("copilot");
    let mut plugin = world.plugin();
    plugin.tell("extension.joined", &json!({"processing": false}));
    world.send("wake up");
    plugin.pushed();
    let woken = Instant::now();
    // Ten rings at once cause one wake.
    for n in 0..10 {
        world.send(&format!("more {n}"));
    }
    assert_eq!(plugin.pushed()["prompt"], "[baton] 11 messages from script are waiting for you.");
    assert!(woken.elapsed() >= Duration::from_secs(1), "not one for each message");
    plugin.close();
}

/// If the person interrupts, or the model can't be reached, each further wake waits longer.
#[test]
fn a_wake_that_was_not_answered_is_repeated_after_growing_delays() {
    let world = World::of("copilot");
    let mut plugin = world.plugin();
    plugin.tell("extension.joined", &json!({"processing": false}));
    world.send("wake up");
    plugin.pushed();
    let mut last = Instant::now();
    for at_least in [1, 3] {
        plugin.tell("assistant.turn_start", &json!({}));
        let (_, pushes) = plugin.tell("assistant.idle", &json!({}));
        assert_eq!(pushes, [Value::Null; 0]);
        plugin.pushed();
        assert!(last.elapsed() >= Duration::from_secs(at_least), "{:?}", last.elapsed());
        last = Instant::now();
    }
    plugin.close();
}

#[test]
fn a_session_that_was_busy_when_the_plugin_joined_is_not_woken() {
    let world = World::of("copilot");
    let mut plugin = world.plugin();
    plugin.tell("extension.joined", &json!({"processing": true}));
    assert_eq!(world.state(), "busy");
    world.send("not now");
    let (_, pushes) = plugin.tell("assistant.turn_start", &json!({}));
    assert_eq!(pushes, [Value::Null; 0]);
    plugin.close();
}

#[test]
fn a_line_that_finds_nothing_is_blocked_and_is_no_turn() {
    let world = World::of("copilot");
    let mut plugin = world.plugin();
    plugin.tell("extension.joined", &json!({"processing": false}));
    assert_eq!(hook(&world, EventKind::Woken, "hook-1"), Reply::Block(NOTHING_WAITS.to_owned()));
    assert_eq!(world.state(), "idle", "no turn has begun");
    plugin.close();
}

/// If baton is set up for the user and for the project, two hooks run for one prompt.
#[test]
fn a_second_hook_of_the_same_line_does_not_block_it() {
    for _ in 0..20 {
        let world = World::of("copilot");
        let mut plugin = world.plugin();
        plugin.tell("extension.joined", &json!({"processing": false}));
        world.send("wake up");
        let (first, second) = std::thread::scope(|scope| {
            let run = || hook(&world, EventKind::Woken, "hook-1");
            let other = scope.spawn(run);
            (run(), other.join().unwrap())
        });
        let replies = [first, second];
        assert_eq!(replies.iter().filter(|reply| brings(reply, "wake up")).count(), 1, "{replies:?}");
        assert_eq!(replies.iter().filter(|reply| **reply == Reply::Silent).count(), 1, "{replies:?}");
        plugin.close();
    }
}

#[test]
fn a_woken_turn_is_not_a_persons() {
    let world = World::of("copilot");
    let mut plugin = world.plugin();
    plugin.tell("extension.joined", &json!({"processing": false}));
    world.send("wake up");
    hook(&world, EventKind::Woken, "hook-1");
    let last_prompt = || world.store().heard().unwrap()[0].prompt;
    assert_eq!(last_prompt(), None);
    hook(&world, EventKind::Prompt, "hook-2");
    assert!(last_prompt().is_some());
    plugin.close();
}

/// The agent's hooks work without the plugin, and report the session's end themselves.
#[test]
fn the_session_outlives_its_plugin_and_only_the_attendance_ends() {
    let world = World::of("copilot");
    let mut plugin = world.plugin();
    plugin.tell("extension.joined", &json!({"processing": false}));
    until("a process attends", || bell::is_attended(world.home.path(), world.participant()));
    plugin.close();
    assert_eq!(world.state(), "idle");
    assert!(!bell::is_attended(world.home.path(), world.participant()));
}
