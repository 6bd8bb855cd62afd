//! Jobs as a model sees them, and what their tools share.
//!
//! All text from a job is defused, like a message. One answer is short enough for every agent to
//! take in full. A longer result is cut, and another field says so.

pub(crate) mod cancel;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod wait;

use super::defuse_texts;
use baton_core::frame;
use baton_core::{Code, Error};
use baton_jobs::{Runtime, describe};
use baton_store::JobRow;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every agent takes a tool result of this size in full, with what it adds around it (see
/// `message`).
const ANSWER_BYTES: usize = 9_000;
/// Room for the note about a cut.
const CUT_NOTE_BYTES: usize = 160;

/// The same shape as the command line's.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
pub(super) struct Job {
    /// The id that the other job tools take.
    job_id: String,
    agent: String,
    /// queued, starting, running, blocked (waits for an answer), completed, failed or cancelled.
    status: String,
    phase: String,
    prompt_head: String,
    cwd: String,
    worktree: Option<String>,
    created_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    elapsed_ms: i64,
    /// What it did last.
    last_activity: Option<Activity>,
    /// The questions that it waits with.
    questions: Vec<Question>,
    backend_session: Option<String>,
    /// Its last message: the result, if it is completed.
    result: Option<String>,
    /// Set if result is cut; says how to read the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
    /// What it changed in its worktree, according to git.
    changes: Option<Changes>,
    /// Why it failed.
    error: Option<Trouble>,
    /// How its program ended, and how it was stopped.
    exit: Option<String>,
    requested_by: String,
    log: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct Activity {
    what: String,
    at: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct Question {
    id: String,
    /// permission or input.
    kind: String,
    what: String,
    choices: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct Changes {
    branch: Option<String>,
    /// Null if it changed nothing. Then its worktree is deleted.
    path: Option<String>,
    base: Option<String>,
    files: Vec<Changed>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct Changed {
    status: String,
    path: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct Trouble {
    code: String,
    message: String,
    hint: Option<String>,
    /// When it makes sense to try again.
    again_at: Option<String>,
}

impl Job {
    /// A job as it is now, with its result from this character on.
    fn new(runtime: &Runtime, row: &JobRow, from: usize) -> Result<Self, Error> {
        let mut document = describe::job(runtime, row);
        defuse_texts(&mut document);
        let mut job: Self = serde_json::from_value(document)
            .map_err(|error| Error::new(Code::Internal, format!("a job that can't be shown: {error}")))?;
        if from > 0 {
            job.result = job.result.map(|result| result.chars().skip(from).collect());
        }
        Ok(job)
    }

    /// Its size as JSON in bytes, with the comma.
    fn size(&self) -> usize {
        serde_json::to_string(self).map_or(0, |text| text.len()) + 1
    }

    /// The same with as much of its result as fits.
    fn within(mut self, room: usize, from: usize) -> Self {
        if self.size() <= room {
            return self;
        }
        let Some(result) = self.result.take() else { return self };
        let room = room.saturating_sub(self.size() + CUT_NOTE_BYTES);
        let end = frame::json_end(&result, room).unwrap_or(result.len());
        let kept = &result[..end];
        let next = from + kept.chars().count();
        self.cut = Some(format!(
            "cut here, {} characters more: job_status with job {} and result_from {next}, or `baton job result {}`",
            result[end..].chars().count(),
            self.job_id,
            self.job_id
        ));
        self.result = Some(kept.to_owned());
        self
    }
}

/// Jobs as one answer shows them.
struct ShownJobs {
    jobs: Vec<Job>,
    /// How many did not fit.
    left_out: usize,
}

/// Shows results in full while there is room, then cuts them, then leaves jobs out.
fn shown(runtime: &Runtime, rows: &[JobRow], from: usize) -> Result<ShownJobs, Error> {
    let mut left = ANSWER_BYTES;
    let mut jobs: Vec<Job> = Vec::new();
    for row in rows {
        let job = Job::new(runtime, row, from)?.within(left, from);
        if job.size() > left && !jobs.is_empty() {
            break;
        }
        left = left.saturating_sub(job.size());
        jobs.push(job);
    }
    let left_out = rows.len() - jobs.len();
    Ok(ShownJobs { jobs, left_out })
}
