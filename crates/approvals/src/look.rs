//! Looks how a question stands by now: who is still there, and what the agent's own files and processes show.

use crate::trail::{self, Kind};
use baton_agents::asked::{Asking, Look, Standing, is_of_call, standing_of_call};
use baton_core::Error;
use baton_core::approval::{State, Step};
use baton_core::time::Moment;
use baton_mail::process;
use baton_store::{ApprovalRow, Approvals, Process};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Bytes of a file that are looked at.
const TAIL: u64 = 1 << 20;

/// The step that brings a question to where it really stands; `None` if it stands there already.
pub fn step(row: &ApprovalRow) -> Option<Step> {
    if row.state.is_end() {
        return None;
    }
    if row.asker.is_some_and(|asker| !process::is_alive(asker)) {
        return Some(Step::Gone);
    }
    if let Some(shown) = shown(row) {
        return Some(shown);
    }
    let is_held = matches!(row.state, State::Waiting | State::Answered);
    let left = is_held && row.holder.is_none_or(|holder| !process::is_alive(holder));
    // Nobody is left to hand an answer over. Where the agent is known to be there, its own dialog is.
    left.then_some(if row.asker.is_some() { Step::Release } else { Step::Gone })
}

/// What the agent's own files and processes show.
pub fn shown(row: &ApprovalRow) -> Option<Step> {
    let agent = baton_agents::by_name(&row.agent).ok()?;
    let question = crate::question(row);
    let asking = Asking {
        session_id: &row.session,
        subagent: row.subagent.as_deref(),
        pid: row.asker.map(|asker| asker.pid),
        transcript: row.transcript.as_deref().map(Path::new),
        question: &question,
        call: row.call.as_deref(),
        input: row.input,
        since: row.asked_at,
        handed: row.answer.as_ref().filter(|_| row.state == State::Handed),
    };
    let since = as_start(row.handed_at.unwrap_or(row.asked_at));
    let below = |pid: i32| since.map(|since| started_below(pid, since)).unwrap_or_default();
    let look = Look { read: &|file| tail(file).ok(), started_below: &below };
    let standing = if is_of_call(&row.asked) {
        standing_of_call(agent, &asking, look)
    } else {
        agent.standing(&asking, look)
    };
    match standing? {
        Standing::Open => None,
        Standing::Ran => Some(Step::Ran),
        Standing::Refused => Some(Step::RefusedThere),
        Standing::Over => Some(Step::Over),
    }
}

/// The end of a file. A transcript may be long, and is looked at again and again; what is asked about is never far from its end.
fn tail(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A moment in the kernel's count of when processes start, rounded down.
fn as_start(moment: Moment) -> Option<u64> {
    let ago = u64::try_from(baton_mail::now().0 - moment.0).ok()?;
    let ticks = ago.div_ceil(1000 / process::starts_per_second()?.min(1000));
    Some(process::now_as_start()?.saturating_sub(ticks + 1))
}

/// The arguments of each process below one that has started since.
fn started_below(pid: i32, since: u64) -> Vec<Vec<String>> {
    let all: Vec<(Process, i32)> = process::all();
    let mut family = HashSet::from([pid]);
    let mut grew = true;
    while grew {
        let more: Vec<i32> = all
            .iter()
            .filter(|(one, parent)| family.contains(parent) && !family.contains(&one.pid))
            .map(|(one, _)| one.pid)
            .collect();
        grew = !more.is_empty();
        family.extend(more);
    }
    let young =
        all.iter().filter(|(one, _)| one.pid != pid && family.contains(&one.pid) && one.start >= since);
    young.map(|(one, _)| process::arguments(one.pid)).collect()
}

/// Brings a question to where it really stands; gives it back as it stands then.
pub fn reconcile(store: &mut Approvals, home: &Path, row: ApprovalRow) -> Result<ApprovalRow, Error> {
    let Some(step) = step(&row) else { return Ok(row) };
    let moved = match step {
        Step::Release => store.release(&row.id)?,
        step => store.close(&row.id, step, None, baton_mail::now())?,
    };
    let Some(moved) = moved else { return Ok(row) };
    if moved.moved {
        crate::ring(home);
        if moved.row.state.is_end() {
            trail::note(home, Kind::Closed, &moved.row);
        }
    }
    Ok(moved.row)
}
