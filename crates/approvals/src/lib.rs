//! One inbox for everything that agents wait for, and answers that land.
//!
//! A question has one holder, the only process that can hand an answer to the agent: the hook that was asked ([`ask`]), the link of a plugin, the worker
//! of a job (`baton_jobs::approve`), or nobody but the agent's own dialog. Whoever answers writes into the row and rings ([`inbox`]); the holder takes
//! the answer, once, and hands it over; and it counts when the agent is seen to have moved on ([`look`]).
//!
//! Everything that changes a row rings one bell, at which holders, those who have answered and those who watch listen. There are never many.

pub mod ask;
pub mod inbox;
pub mod look;
pub mod notify;
pub mod reviewers;
pub mod settle;
pub mod trail;
pub mod watch;

use baton_agents::asked;
use baton_core::approval::Question;
use baton_mail::bell::{self, Bell};
use baton_store::ApprovalRow;
use std::path::{Path, PathBuf};

fn changed(home: &Path) -> PathBuf {
    home.join("bell").join("approvals")
}

/// Says that a question was asked, answered or closed.
pub fn ring(home: &Path) {
    bell::ring_at(&changed(home));
}

/// Listens for that. What was rung before is not heard, so look at the store after this and before the first wait.
pub fn listen(home: &Path) -> Result<Bell, baton_core::Error> {
    Bell::listen_at(&changed(home))
}

/// What a row asks. One that can't be read is shown as such, and can still be denied.
pub fn question(row: &ApprovalRow) -> Question {
    let read = serde_json::from_str(&row.question).ok().and_then(|value| asked::from_json(&value));
    read.unwrap_or_else(|| Question::permission("", "something that this version can't read"))
}
