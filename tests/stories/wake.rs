//! An idle session notices its mail: by its agent's own inbox, by a hook that waits in its background, by the agent's queue.

use crate::stage::{LIMIT, Stage};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::tmux::Tmux;
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::Value;

/// An agent in a terminal that has answered once and is idle now.
fn idle<'a>(stage: &'a Stage, agent: Agent, open: impl FnOnce() -> Tmux<'a>) -> (Tmux<'a>, String) {
    let terminal = open();
    terminal.submit("first words");
    stage.request(|request| request.shows("first words"));
    let name = stage.name_of(agent);
    is_in_state(stage, &name, "idle");
    (terminal, name)
}

fn is_in_state(stage: &Stage, name: &str, state: &str) {
    let is = wait::poll(LIMIT, || (of(stage, name)["state"] == state).then_some(()));
    assert!(is.is_some(), "{name} is {} and not {state}: {}", of(stage, name), stage.trouble());
}

fn of(stage: &Stage, name: &str) -> Value {
    let who = stage.json(&["who", "--all"]);
    let found = who.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == name).cloned());
    found.unwrap_or(Value::Null)
}

/// Sends to an idle session and sees it woken by that route, the mail in its model's request, and the draft of its person untouched.
fn woken(stage: &Stage, terminal: &Tmux<'_>, name: &str, route: &str) {
    assert_eq!(of(stage, name)["wake_routes"][0], route, "{}", of(stage, name));
    for (round, draft) in ["", "half a sentence"].into_iter().enumerate() {
        terminal.type_text(draft);
        let body = format!("WAKE-{route}-{round}");
        let sent = stage.json(&["send", name, &body]);
        // Right after another wake it is left to the server of the session, which looks a moment later.
        let expected = ["pushed", "skipped_debounced"];
        assert!(expected.contains(&sent["wake"].as_str().unwrap_or_default()), "{sent} {}", stage.trouble());
        stage.request(|request| request.shows(&body));
        assert_eq!(stage.end_of(&body), "seen", "{}", stage.trouble());
        stage.shown_once(&body);
        is_in_state(stage, name, "idle");
        let last = &of(stage, name)["last_wake"];
        assert_eq!(
            (&last["route"], &last["outcome"]),
            (&route.into(), &"confirmed".into()),
            "{}",
            stage.trouble()
        );
        assert!(terminal.screen().contains(draft), "the draft is gone: {}", terminal.screen());
    }
}

#[test]
fn an_idle_claude_session_is_woken_through_its_inbox() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (terminal, name) =
            idle(&stage, Agent::Claude, || stage.claude().asking().open("claude", Session::New));
        woken(&stage, &terminal, &name, "socket");
    });
}

#[test]
fn a_claude_session_that_bypasses_permissions_is_woken_by_a_hook_in_its_background() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Claude, || stage.claude().open("claude", Session::New));
        woken(&stage, &terminal, &name, "waiter");
    });
}

#[test]
fn an_idle_codex_thread_is_woken_through_its_queue() {
    isolated(|| {
        let stage = Stage::with(&[Agent::Codex], Script::by(|_| Step::say("fine")));
        let (terminal, name) = idle(&stage, Agent::Codex, || stage.open(Agent::Codex, Session::New));
        woken(&stage, &terminal, &name, "queue");
    });
}
