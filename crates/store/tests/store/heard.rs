//! What was last heard of an agent is what it said, not what a reader noticed later.

use baton_core::event::Source;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_store::{Heard, Role, SessionSeen, Sighting, Store};

fn sight(store: &mut Store, agent: &str, native: &str, at: i64) -> SessionSeen {
    let sighting = Sighting {
        agent,
        native,
        project: "/p",
        cwd: "/p",
        transcript: None,
        process: None,
        source: Some(Source::Startup),
        state: State::Busy,
        now: Moment(at),
    };
    store.sight_session(&sighting).unwrap()
}

fn heard(agent: &str, last: i64) -> Heard {
    Heard { agent: agent.to_owned(), last: Moment(last), prompt: None }
}

#[test]
fn a_session_that_is_found_dead_was_not_heard_of_then() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Role::Command).unwrap();
    assert_eq!(store.heard().unwrap(), []);
    sight(&mut store, "claude", "a", 100);
    sight(&mut store, "codex", "b", 150);
    let newest = sight(&mut store, "claude", "c", 200);
    let both = [heard("claude", 200), heard("codex", 150)];
    assert_eq!(store.heard().unwrap(), both);
    store.correct_state(newest.session, Moment(200), State::Gone, Moment(900)).unwrap();
    assert_eq!(store.session(newest.session).unwrap().unwrap().state_since, Moment(900));
    assert_eq!(store.heard().unwrap(), both);
}
