//! What happens to questions, in the trail. Best effort: the row has the truth.

use baton_core::id::ParticipantId;
use baton_core::time::Moment;
use baton_store::{ApprovalRow, Role, Store};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for another writer.
const LOCK_WAIT: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Asked,
    Answered,
    Closed,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "approval-asked",
            Self::Answered => "approval-answered",
            Self::Closed => "approval-closed",
        }
    }
}

/// Records what happened to a session's question.
pub fn note(home: &Path, kind: Kind, row: &ApprovalRow) {
    if let Ok(mut store) = Store::open(home, Role::Hook) {
        store.set_deadline(Instant::now() + LOCK_WAIT);
        note_in(&mut store, kind, row);
    }
}

/// The same with a store that is open.
pub(crate) fn note_in(store: &mut Store, kind: Kind, row: &ApprovalRow) {
    let by = row.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let word = row.answer.as_ref().map_or("", |answer| answer.in_words().0);
    let what = crate::line(row).text;
    let said = match kind {
        Kind::Asked => row.state.to_string(),
        Kind::Answered => format!("{word}{by}"),
        Kind::Closed => format!("{}{by}", row.state),
    };
    write(store, kind, row.participant, &format!("{} {said}: {what}", row.id));
}

/// Records the answer to a job's question.
pub(crate) fn note_job(home: &Path, participant: ParticipantId, id: &str, said: &str, what: &str) {
    if let Ok(mut store) = Store::open(home, Role::Hook) {
        store.set_deadline(Instant::now() + LOCK_WAIT);
        write(&mut store, Kind::Answered, Some(participant), &format!("{id} {said}: {what}"));
    }
}

fn write(store: &mut Store, kind: Kind, participant: Option<ParticipantId>, detail: &str) {
    let now: Moment = baton_machine::clock::now();
    store.note(now, kind.as_str(), participant, detail).ok();
}
