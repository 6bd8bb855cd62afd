//! What happens to questions, in the trail. Best effort: the truth is in the row.

use baton_core::frame;
use baton_core::id::ParticipantId;
use baton_core::time::Moment;
use baton_store::{ApprovalRow, Role, Store};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a line of the trail may wait for another writer.
const PATIENCE: Duration = Duration::from_millis(200);
/// How much of a question stands in it.
const WHAT_CHARS: usize = 120;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A question was asked.
    Asked,
    /// It has an answer.
    Answered,
    /// It is over.
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

/// Notes what happened to a question of a session.
pub fn note(home: &Path, kind: Kind, row: &ApprovalRow) {
    if let Ok(mut store) = Store::open(home, Role::Hook) {
        store.set_deadline(Instant::now() + PATIENCE);
        note_in(&mut store, kind, row);
    }
}

/// The same where the store is open.
pub(crate) fn note_in(store: &mut Store, kind: Kind, row: &ApprovalRow) {
    let by = row.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let word = row.answer.as_ref().map_or("", |answer| answer.in_words().0);
    let what = frame::shown(&crate::question(row).what, WHAT_CHARS);
    let said = match kind {
        Kind::Asked => row.state.to_string(),
        Kind::Answered => format!("{word}{by}"),
        Kind::Closed => format!("{}{by}", row.state),
    };
    write(store, kind, row.participant, &format!("{} {said}: {what}", row.id));
}

/// Notes the answer to a question of a job.
pub(crate) fn note_job(home: &Path, participant: ParticipantId, id: &str, said: &str, what: &str) {
    if let Ok(mut store) = Store::open(home, Role::Hook) {
        store.set_deadline(Instant::now() + PATIENCE);
        let what = frame::shown(what, WHAT_CHARS);
        write(&mut store, Kind::Answered, Some(participant), &format!("{id} {said}: {what}"));
    }
}

fn write(store: &mut Store, kind: Kind, participant: Option<ParticipantId>, detail: &str) {
    let now: Moment = baton_mail::now();
    store.note(now, kind.as_str(), participant, detail).ok();
}
