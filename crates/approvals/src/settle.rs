//! What a session's later events say about its questions.

use crate::look;
use crate::trail::{self, Kind};
use baton_agents::asked::is_guard_question;
use baton_core::Error;
use baton_core::approval::{State, Step};
use baton_core::event::{Event, EventKind, Source};
use baton_store::{ApprovalRow, Approvals};
use std::path::Path;

/// Closes the questions of a session that an event shows to be over.
pub fn by_event(home: &Path, agent: &str, event: &Event) -> Result<(), Error> {
    let Some(mut store) = Approvals::open_if_asking(home, agent, &event.session_id)? else { return Ok(()) };
    let mut closed = false;
    for row in store.of_session(agent, &event.session_id)? {
        // The agent's own files tell more than the end of the turn: whether a denied call has run
        // all the same.
        let step = look::shown(&row).or_else(|| seen_by(event, &row));
        match step {
            Some(step) => {
                let moved = store.close(&row.id, step, None, baton_machine::clock::now())?;
                if let Some(moved) = moved.filter(|moved| moved.moved) {
                    trail::note(home, Kind::Closed, &moved.row);
                    closed = true;
                }
            }
            None => _ = look::reconcile(&mut store, home, row)?,
        }
    }
    if closed {
        crate::ring(home);
    }
    Ok(())
}

fn seen_by(event: &Event, row: &ApprovalRow) -> Option<Step> {
    let of_the_session = event.subagent.is_none();
    match event.kind {
        EventKind::AfterTool | EventKind::AfterTools => {
            // Some agents also report the end of a call that our own hook has refused. Then the
            // transcript says which it was.
            let call = row.call.as_ref().filter(|_| !is_guard_question(&row.asked))?;
            event.calls.contains(call).then_some(Step::Ran)
        }
        // The agent's own files show whether an answer on its way was in time. They may be written
        // later than this event.
        EventKind::Stop | EventKind::Interrupted | EventKind::SubagentStop if row.state == State::Handed => {
            None
        }
        EventKind::Prompt if row.state == State::Handed && of_the_session => Some(Step::Over),
        // A background subagent goes on when its parent's turn is over.
        EventKind::Stop | EventKind::Interrupted | EventKind::SubagentStop
            if event.subagent == row.subagent =>
        {
            Some(Step::Over)
        }
        EventKind::Start(Source::Startup | Source::New | Source::Resume | Source::Clear)
            if of_the_session =>
        {
            Some(Step::Over)
        }
        EventKind::End if of_the_session => Some(Step::Gone),
        _ => None,
    }
}
