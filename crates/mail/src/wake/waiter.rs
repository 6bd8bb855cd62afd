//! A hook that waits in the background of a session until there is a reason to wake it. Its exit
//! then wakes the session.
//!
//! It does not poll: the kernel reports the bell and the end of the agent's process. Each session
//! has one waiter. A second one finds the first alive and exits.

use super::WakeRequest;
use baton_core::id::{ParticipantId, SessionRow};
use baton_core::limits::Limits;
use baton_core::process::Process;
use baton_core::wake::{self, Outcome};
use baton_core::{Code, Error, limits};
use baton_machine::bell::Bell;
use baton_machine::own::{self, Sharing};
use baton_machine::process;
use baton_store::{Role, Store};
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another waiter may hold the lock while it takes its place.
const PLACE_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaiterOutcome {
    /// The session must be woken now, with this line.
    Wake(String),
    /// The session is over, or another process waits for it.
    Exit,
}

fn place_file(home: &Path, session: SessionRow) -> PathBuf {
    home.join("waiter").join(session.0.to_string())
}

/// Whether a process waits for that session.
pub fn is_waiting(home: &Path, session: SessionRow) -> bool {
    own::read(&place_file(home, session), limits::POINTER_BYTES)
        .ok()
        .and_then(|bytes| parse(&String::from_utf8(bytes).ok()?))
        .is_some_and(process::is_alive)
}

fn parse(text: &str) -> Option<Process> {
    let (pid, start) = text.trim().split_once(' ')?;
    Some(Process { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

/// Waits for a reason to wake the session that `agent` runs.
pub fn wait(
    home: &Path,
    session: SessionRow,
    participant: ParticipantId,
    agent: Process,
    limits: &dyn Fn() -> Limits,
) -> Result<WaiterOutcome, Error> {
    let mut bell = Bell::listen(home, participant)?;
    if !take_place(home, session)? {
        return Ok(WaiterOutcome::Exit);
    }
    let ending = process::ending(agent);
    // When to look at mail for which no sender has claimed a wake. This route was not there while
    // the session's turn ran, so such mail may have come before it.
    let mut pause = wake::FIRST_LOOK;
    let mut due = Instant::now() + pause.to_std();
    let waited = loop {
        match take_wake_or_exit(home, session, participant)? {
            Some(waited) => break waited,
            None if !process::is_alive(agent) => break WaiterOutcome::Exit,
            None => {}
        }
        let mut left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // An error here must not end the route. The next look tries again.
            let claimed = claim_if_mail_waits(home, participant, &limits()).unwrap_or(false);
            left = if claimed { Duration::ZERO } else { pause.to_std() };
            due = Instant::now() + left;
            pause = wake::next_pause(pause);
        }
        if !left.is_zero() && bell.wait_or_end(ending.as_ref(), left) {
            // By then the sender that rang has made its own wake.
            pause = wake::FIRST_LOOK;
            due = due.min(Instant::now() + pause.to_std());
        }
    };
    if waited == WaiterOutcome::Exit {
        // No process needs this place after the session is over.
        std::fs::remove_file(place_file(home, session)).ok();
    }
    Ok(waited)
}

/// Takes a wake from the store if there is one, or finds that the session is over. Each call opens
/// the store: a waiter lives for days and must hold nothing.
fn take_wake_or_exit(
    home: &Path,
    session: SessionRow,
    participant: ParticipantId,
) -> Result<Option<WaiterOutcome>, Error> {
    let mut store = Store::open(home, Role::Command)?;
    if let Some(wake) = store.wake_for_waiter(session)? {
        store.end_wake(wake, Outcome::Pushed, None, baton_machine::clock::now())?;
        return Ok(Some(WaiterOutcome::Wake(super::line_for(&store, participant))));
    }
    let present = store.session(session)?.is_some_and(|info| {
        info.state != baton_core::session::State::Gone
            && store
                .participant(info.participant)
                .ok()
                .flatten()
                .is_some_and(|owner| owner.session == Some(session))
    });
    Ok((!present).then_some(WaiterOutcome::Exit))
}

/// Claims a wake for this waiter, if mail waits and the session should be woken by it now.
fn claim_if_mail_waits(home: &Path, participant: ParticipantId, rules: &Limits) -> Result<bool, Error> {
    let mut store = Store::open(home, Role::Command)?;
    if !store.may_be_woken(participant)? {
        return Ok(false);
    }
    let Some(mut participant) = store.participant(participant)? else { return Ok(false) };
    let request = WakeRequest { home, rules, wanted: true, by_hand: false, follower: None };
    let woken = super::wake(&mut store, &mut participant, &request)?;
    Ok(woken.route == Some(wake::RouteKind::Waiter))
}

/// Makes this process the waiter of a session, unless a living process is. A lock lets only one
/// process decide at a time.
fn take_place(home: &Path, session: SessionRow) -> Result<bool, Error> {
    let path = place_file(home, session);
    let refused = |error: std::io::Error| {
        Error::new(Code::StoreUnavailable, format!("can't wait at {}: {error}", path.display()))
            .hint("check the permissions of BATON_HOME")
    };
    if let Some(folder) = path.parent() {
        own::folder(folder).map_err(refused)?;
    }
    let mut place: File = own::lock_file(&path).map_err(refused)?;
    own::lock(&place, Sharing::Alone, PLACE_LOCK_TIMEOUT).map_err(refused)?;
    let mut text = String::new();
    (&place).take(limits::POINTER_BYTES).read_to_string(&mut text).map_err(refused)?;
    if parse(&text).is_some_and(process::is_alive) {
        return Ok(false);
    }
    let me = process::this();
    place
        .set_len(0)
        .and_then(|()| place.rewind())
        .and_then(|()| writeln!(place, "{} {}", me.pid, me.start))
        .map_err(refused)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_a_place_that_a_stopped_process_keeps_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let session = SessionRow(7);
        own::folder(&home.path().join("waiter")).unwrap();
        let kept = own::lock_file(&place_file(home.path(), session)).unwrap();
        own::lock(&kept, Sharing::Alone, Duration::ZERO).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let folder = home.path().to_owned();
        std::thread::spawn(move || tell.send(take_place(&folder, session)));
        let refused = told.recv_timeout(Duration::from_secs(60)).expect("it ends by itself").unwrap_err();
        assert_eq!(refused.code(), Code::StoreUnavailable);
        drop(kept);
        assert!(take_place(home.path(), session).unwrap());
    }
}
