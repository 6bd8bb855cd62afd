//! Finds out where a question really is: which processes live, and what the agent's own files and
//! processes show.

use crate::trail::{self, Kind};
use baton_agents::asked::{
    ProcessProbe, QuestionStatus, RecordedQuestion, guard_question_status, is_guard_question,
};
use baton_core::Error;
use baton_core::approval::{State, Step};
use baton_core::process::Process;
use baton_core::time::Moment;
use baton_machine::process;
use baton_store::{ApprovalRow, Approvals};
use std::collections::HashSet;
use std::io;
use std::path::Path;

/// How much of a file's end is read.
const TAIL_BYTES: u64 = 1 << 20;

/// The step that brings a question to its real state; `None` if it is there already.
pub fn step(row: &ApprovalRow) -> Option<Step> {
    if row.state.is_end() {
        return None;
    }
    // An agent may end right after its tool ran, so what it left behind counts first.
    if let Some(shown) = shown(row) {
        return Some(shown);
    }
    if row.asker.is_some_and(|asker| !process::is_alive(asker)) {
        return Some(Step::Gone);
    }
    let is_held = matches!(row.state, State::Waiting | State::Answered);
    let left = is_held && row.holder.is_none_or(|holder| !process::is_alive(holder));
    // No process is left to hand an answer over. If the agent lives, its own dialog still asks. The
    // row may be older than the holder's end: neither step undoes an answer that it handed over.
    left.then_some(if row.asker.is_some() { Step::Release } else { Step::Abandon })
}

/// What the agent's own files and processes show.
pub fn shown(row: &ApprovalRow) -> Option<Step> {
    let agent = baton_agents::by_name(&row.agent).ok()?;
    let question = crate::question(row);
    let asking = RecordedQuestion {
        session_id: &row.session,
        subagent: row.subagent.as_deref(),
        pid: row.asker.filter(|asker| process::is_alive(*asker)).map(|asker| asker.pid),
        transcript: row.transcript.as_deref().map(Path::new),
        question: &question,
        call: row.call.as_deref(),
        input: row.input,
        since: row.asked_at,
        handed: row.answer.as_ref().filter(|_| row.state == State::Handed),
    };
    let since = as_start(row.handed_at.unwrap_or(row.asked_at));
    let below = |pid: i32| since.map(|since| started_below(pid, since)).unwrap_or_default();
    let probe = ProcessProbe { read: &|file| tail(file).ok(), started_below: &below };
    let status = if is_guard_question(&row.asked) {
        guard_question_status(agent, &asking, probe)
    } else {
        agent.question_status(&asking, probe)
    };
    match status? {
        QuestionStatus::Open => None,
        QuestionStatus::Ran => Some(Step::Ran),
        QuestionStatus::Refused => Some(Step::RefusedThere),
        QuestionStatus::Over => Some(Step::Over),
    }
}

/// The end of a file. A transcript may be long and is read many times; what a question is about is
/// never far from its end.
fn tail(file: &Path) -> io::Result<Vec<u8>> {
    baton_machine::files::end(file, TAIL_BYTES)
}

/// A moment in the kernel's count of process starts, rounded down.
fn as_start(moment: Moment) -> Option<u64> {
    let ago = u64::try_from(baton_machine::clock::now().0 - moment.0).ok()?;
    let ticks = ago.div_ceil(1000 / process::starts_per_second()?.min(1000));
    Some(process::now_as_start()?.saturating_sub(ticks + 1))
}

/// The arguments of each descendant of a process that has started since then.
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

/// Brings a question to its real state, and returns it.
pub fn reconcile(store: &mut Approvals, home: &Path, row: ApprovalRow) -> Result<ApprovalRow, Error> {
    let Some(step) = step(&row) else { return Ok(row) };
    let moved = match step {
        Step::Release => store.release(&row.id)?,
        step => store.close(&row.id, step, None, baton_machine::clock::now())?,
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
