//! One inbox for all questions of agents, and answers that take effect.
//!
//! A question has one holder, the only process that can hand an answer to the agent: the hook that
//! was asked ([`ask`]), the link of a plugin, or the worker of a job (`baton_jobs::approve`).
//! Without a holder only the agent's own dialog takes the answer. A caller that answers writes into
//! the row and rings ([`inbox`]). The holder takes the answer, once, and hands it over. The answer
//! counts when the agent is seen to have moved on ([`look`]).
//!
//! Every change of a row rings one bell. Holders, callers that have answered and watchers listen to
//! it. There are never many.

pub mod ask;
pub mod inbox;
pub mod look;
pub mod notify;
pub mod reviewers;
pub mod settle;
pub mod trail;
pub mod watch;

use baton_agents::asked;
use baton_core::approval::{AskedBy, Digest, Line, Question, Subject};
use baton_machine::bell::{self, Bell};
use baton_machine::project;
use baton_store::ApprovalRow;
use std::path::Path;

/// Rings: a question was asked, answered or closed.
pub fn ring(home: &Path) {
    bell::ring_at(&bell::inbox(home));
}

/// Listens to that bell. Earlier rings are not heard, so read the store after this and before the
/// first wait.
pub fn listen(home: &Path) -> Result<Bell, baton_core::Error> {
    Bell::listen_at(&bell::inbox(home))
}

/// Identifies what a row asks.
pub fn digest(row: &ApprovalRow) -> Digest {
    let by = AskedBy { agent: &row.agent, asker: &row.session, folder: &row.cwd };
    row.digest.clone().unwrap_or_else(|| question(row).subject.digest(by))
}

/// What lists show of a row.
pub fn line(row: &ApprovalRow) -> Line {
    question(row).line(project::elsewhere(&row.project, &row.cwd))
}

/// What a row asks, and what the guard says about it. A question that can't be read is shown as
/// such, and can still be denied.
pub fn question(row: &ApprovalRow) -> Question {
    let read = serde_json::from_str(&row.question).ok().and_then(|value| asked::from_json(&value));
    let read = read
        .unwrap_or_else(|| Question::new("", Subject::told_only("something that this version can't read")));
    Question { why: row.why.clone(), ..read }
}
