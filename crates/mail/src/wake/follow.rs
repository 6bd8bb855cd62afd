//! Follows the mail of a session that has no other process to do so, until no mail waits.
//!
//! A sender that can't wake its recipient now ends, and an idle session may have no event for
//! hours. So a sender or a hook that leaves mail behind starts one process for that participant,
//! unless one holds the participant's watch: the session's MCP server, or such a process from
//! before. It looks at the bell's rings, at the end of the agent and after growing pauses. It ends
//! when a look says that no other look is needed.
//!
//! The watch is a kernel lock. A process that ends releases it first and then looks once more, so a
//! sender that found the lock held is not left alone.

use super::{WakeRequest, wake};
use baton_core::Error;
use baton_core::id::ParticipantId;
use baton_core::limits::Limits;
use baton_core::process::Process;
use baton_core::time::Span;
use baton_core::wake::{self as decision, Look};
use baton_machine::bell::{self, Bell, Following};
use baton_machine::process;
use baton_store::{Participant, Role, Store};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The hidden command of the process.
pub const FOLLOWER_COMMAND: &str = "follow-mail";

/// Starts a process that follows a participant's mail, unless a process does. Best effort: if it
/// can't start, the next event or the next sender starts one.
pub fn start(home: &Path, program: &Path, participant: ParticipantId) {
    if bell::is_followed(home, participant) {
        return;
    }
    let mut command = Command::new(program);
    command.arg(FOLLOWER_COMMAND).arg("--home").arg(home).arg(participant.0.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    if let Ok(mut child) = command.spawn() {
        // A process that lives long must reap its children.
        std::thread::spawn(move || child.wait().ok());
    }
}

/// Starts such a process for a participant with waiting mail, if one is needed and none is there.
pub fn start_if_needed(
    store: &Store,
    id: ParticipantId,
    home: &Path,
    rules: &Limits,
    program: &Path,
) -> Result<(), Error> {
    if bell::is_followed(home, id) {
        return Ok(());
    }
    let Some(participant) = store.participant(id)? else { return Ok(()) };
    let request = WakeRequest { home, rules, wanted: true, by_hand: false, follower: None };
    if super::is_followable(store, &participant, &request)? {
        start(home, program, id);
    }
    Ok(())
}

/// Starts such a process for each participant with waiting mail that needs one and has none: a
/// sender, a server or a follower was killed.
pub fn adopt_stranded(store: &Store, home: &Path, rules: &Limits, program: &Path) -> Result<(), Error> {
    for id in store.waiting_sessions()? {
        start_if_needed(store, id, home, rules, program)?;
    }
    Ok(())
}

/// Follows the mail of a participant until no look is needed. `limits` reads the settings.
pub fn follow(
    home: &Path,
    participant: ParticipantId,
    limits: &dyn Fn() -> Result<Limits, Error>,
) -> Result<(), Error> {
    let mut bell = Bell::listen(home, participant)?;
    let Some(mut watch) = Following::begin(home, participant)? else { return Ok(()) };
    let mut pause = decision::FIRST_LOOK;
    // The process that started this one has just looked.
    wait(&mut bell, None, pause);
    loop {
        let mut looked = look(home, participant, limits)?;
        if !looked.again {
            watch.release();
            // A sender may have come between that look and the release, and found the lock held.
            looked = look(home, participant, limits)?;
            if !looked.again || !watch.renew() {
                return Ok(());
            }
        }
        if wait(&mut bell, looked.agent, pause) {
            pause = decision::FIRST_LOOK;
        } else {
            pause = decision::next_pause(pause);
        }
    }
}

/// Waits for this long. A ring shortens the rest to the time in which its sender wakes by itself.
/// True if it rang.
fn wait(bell: &mut Bell, agent: Option<Process>, pause: Span) -> bool {
    let ending = agent.and_then(process::ending);
    let mut until = Instant::now() + pause.to_std();
    let mut rang = false;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return rang;
        }
        if bell.wait_or_end(ending.as_ref(), left) {
            // Later rings don't move it: mail that comes all the time must not keep this waiting.
            until = if rang { until } else { until.min(Instant::now() + decision::FIRST_LOOK.to_std()) };
            rang = true;
            if agent.is_some_and(|agent| !process::is_alive(agent)) {
                return true;
            }
        }
    }
}

struct Looked {
    again: bool,
    /// The agent's process, whose end this waits for.
    agent: Option<Process>,
}

/// Looks once, and wakes the session if it should be woken. Each look opens the store, because a
/// process that waits must hold nothing.
fn look(home: &Path, id: ParticipantId, limits: &dyn Fn() -> Result<Limits, Error>) -> Result<Looked, Error> {
    let Some((mut store, mut participant)) = open(home, id)? else {
        return Ok(Looked { again: false, agent: None });
    };
    let rules = limits().unwrap_or_default();
    let request = WakeRequest { home, rules: &rules, wanted: true, by_hand: false, follower: None };
    let woken = wake(&mut store, &mut participant, &request)?;
    store.tidy();
    let waits = store.may_be_woken(id)?;
    let again = decision::must_look_again(&Look { outcome: woken.outcome, route: woken.route, waits });
    Ok(Looked { again, agent: participant.process })
}

fn open(home: &Path, id: ParticipantId) -> Result<Option<(Store, Participant)>, Error> {
    // A home that was removed is not made again.
    if !Store::path(home).exists() {
        return Ok(None);
    }
    let store = Store::open(home, Role::Command)?;
    let participant = store.participant(id)?;
    Ok(participant.map(|participant| (store, participant)))
}
