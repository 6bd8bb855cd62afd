//! Which participant a new session belongs to: after a clear the same one goes on in it, and no
//! other participant's mail comes to it.

use crate::post::NOW;
use baton_core::event::Source;
use baton_core::id::ParticipantId;
use baton_core::process::Process;
use baton_core::session::State;
use baton_store::{Role, Sighting, Store};

fn sight(store: &mut Store, id: &str, start: u64, source: Option<Source>, state: State) -> ParticipantId {
    let sighting = Sighting {
        agent: "copilot",
        native: id,
        project: "/project",
        cwd: "/project",
        transcript: None,
        process: Some(Process { pid: 100, start }),
        source,
        state,
        now: NOW,
    };
    store.sight_session(&sighting).unwrap().participant
}

#[test]
fn a_new_session_in_a_process_whose_session_has_ended_is_its_participants() {
    // The start, or an event that came before it.
    for source in [Some(Source::New), None] {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(home.path(), Role::Command).unwrap();
        let first = sight(&mut store, "a", 1, Some(Source::New), State::Idle);
        sight(&mut store, "a", 1, None, State::Gone);
        assert_eq!(sight(&mut store, "b", 1, source, State::Idle), first, "{source:?}");
        assert_eq!(sight(&mut store, "b", 1, Some(Source::New), State::Idle), first, "and stays so");
        assert_ne!(sight(&mut store, "c", 2, source, State::Idle), first, "another process of that number");
    }
}

#[test]
fn a_new_session_beside_a_running_one_is_a_new_participant() {
    for (source, cleared) in [(Some(Source::New), false), (None, false), (Some(Source::Clear), true)] {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(home.path(), Role::Command).unwrap();
        let first = sight(&mut store, "a", 1, Some(Source::New), State::Idle);
        assert_eq!(sight(&mut store, "b", 1, source, State::Idle) == first, cleared, "{source:?}");
    }
}

#[test]
fn a_fork_is_a_new_participant() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Store::open(home.path(), Role::Command).unwrap();
    let first = sight(&mut store, "a", 1, Some(Source::Startup), State::Gone);
    assert_ne!(sight(&mut store, "b", 1, Some(Source::Fork), State::Idle), first);
}
