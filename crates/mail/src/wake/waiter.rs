//! A hook that waits in the background of a session until there is a reason to wake it, and then ends in the way that does.
//!
//! It polls nothing: the kernel tells it of the doorbell and of the end of the agent's process. There is one for each session; a second finds the first alive
//! and leaves.

use crate::bell::Bell;
use crate::process;
use baton_core::id::{ParticipantId, SessionRow};
use baton_core::wake::Outcome;
use baton_core::{Code, Error};
use baton_store::{Process, Role, Store};
use rustix::fs::FlockOperation;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A bell that could not be heard, or the end of a process that can't be watched, is noticed after this.
const SWEEP: Duration = Duration::from_secs(30);

/// What a wait came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The session is to be woken now.
    Wake,
    /// The session is over, or somebody else waits for it.
    Leave,
}

fn file(home: &Path, session: SessionRow) -> PathBuf {
    home.join("waiter").join(session.0.to_string())
}

/// Whether somebody waits for that session.
pub fn waits(home: &Path, session: SessionRow) -> bool {
    std::fs::read_to_string(file(home, session))
        .ok()
        .and_then(|text| parse(&text))
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
) -> Result<Waited, Error> {
    let mut bell = Bell::listen(home, participant)?;
    if !take_place(home, session)? {
        return Ok(Waited::Leave);
    }
    let ending = process::ending(agent);
    let waited = loop {
        match look(home, session)? {
            Some(waited) => break waited,
            None if !process::is_alive(agent) => break Waited::Leave,
            None => bell.wait_or_end(ending.as_ref(), SWEEP),
        }
    };
    if waited == Waited::Leave {
        // Nobody will wait for a session that is over.
        std::fs::remove_file(file(home, session)).ok();
    }
    Ok(waited)
}

/// What is to be done now, by the store. It is opened for each look: a waiter lives for days, and must hold nothing.
fn look(home: &Path, session: SessionRow) -> Result<Option<Waited>, Error> {
    let mut store = Store::open(home, Role::Command)?;
    if let Some(wake) = store.wake_for_waiter(session)? {
        store.end_wake(wake, Outcome::Pushed, None, crate::now())?;
        return Ok(Some(Waited::Wake));
    }
    let present = store.session(session)?.is_some_and(|info| {
        info.state != baton_core::session::State::Gone
            && store
                .participant(info.participant)
                .ok()
                .flatten()
                .is_some_and(|owner| owner.session == Some(session))
    });
    Ok((!present).then_some(Waited::Leave))
}

/// Takes the place of the one that waits for a session, unless somebody alive has it. One at a time decides that.
fn take_place(home: &Path, session: SessionRow) -> Result<bool, Error> {
    let path = file(home, session);
    let refused = |error: std::io::Error| {
        Error::new(Code::StoreUnavailable, format!("can't wait at {}: {error}", path.display()))
            .hint("check the rights of BATON_HOME")
    };
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    }
    let open =
        || OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
    let mut place: File = open().map_err(refused)?;
    rustix::fs::flock(&place, FlockOperation::LockExclusive).map_err(|error| refused(error.into()))?;
    let mut text = String::new();
    place.read_to_string(&mut text).map_err(refused)?;
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
