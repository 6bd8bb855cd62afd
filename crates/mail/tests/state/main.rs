//! Finds out what a session does now, without an event.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use baton_core::session::State;
use baton_core::time::Span;
use baton_mail::reconcile;
use baton_store::{Role, Sighting, Store};

/// A blocked session without a known process or terminal, with this at the end of its rollout.
fn state_after(rollout: &str, in_state: State) -> State {
    let home = tempfile::tempdir().unwrap();
    let transcript = home.path().join("rollout.jsonl");
    std::fs::write(&transcript, rollout).unwrap();
    let mut store = Store::open(home.path(), Role::Command).unwrap();
    let sighting = Sighting {
        agent: "codex",
        native: "thread",
        project: "/",
        cwd: "/",
        transcript: transcript.to_str(),
        process: None,
        source: None,
        state: in_state,
        now: baton_machine::clock::now(),
    };
    store.sight_session(&sighting).unwrap();
    let mut participant = store.participant_of(Some("codex"), "thread").unwrap().unwrap().0;
    reconcile::correct_state(&mut store, &mut participant).unwrap();
    let stored = store.participant_of(Some("codex"), "thread").unwrap().unwrap().0;
    assert_eq!(stored.state, participant.state);
    stored.state
}

fn event(kind: &str, away: Span) -> String {
    let at = baton_machine::clock::now().plus(away).to_rfc3339();
    format!("{{\"timestamp\":\"{at}\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"{kind}\"}}}}\n")
}

/// E5: the hook that reports Esc may be killed, and there may be no pane to check.
#[test]
fn e5_the_transcript_tells_that_a_dialog_is_over() {
    let (before, after) = (Span::seconds(-60), Span::seconds(60));
    let begun = event("task_started", before);
    let ends = |rollout: String| state_after(&rollout, State::Blocked);
    assert_eq!(ends(begun.clone() + &event("turn_aborted", after)), State::Idle);
    assert_eq!(ends(begun.clone()), State::Blocked, "it still asks");
    let earlier = event("turn_aborted", before);
    assert_eq!(
        ends(earlier.clone()),
        State::Blocked,
        "an interruption of before the question says nothing of it"
    );
    assert_eq!(ends(event("turn_aborted", after) + &event("task_started", after)), State::Blocked);
    assert_eq!(state_after(&(begun + &earlier), State::Busy), State::Busy, "only a question is looked after");
}
