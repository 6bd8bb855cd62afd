//! Jobs as a model gets them, and what their tools share.
//!
//! Everything that a job has said is defused, like a message. One answer holds what every agent takes whole; a result that is longer is cut, and a
//! field beside it says so.

pub(super) mod cancel;
pub(super) mod start;
pub(super) mod status;
pub(super) mod wait;

use super::harmless;
use baton_core::frame;
use baton_core::{Code, Error};
use baton_jobs::{Host, describe};
use baton_store::JobRow;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What every agent takes whole as the result of one tool call, without what stands around it (see `message`).
const ANSWER_BYTES: usize = 9_000;
/// Room for the words about a cut.
const CUT: usize = 160;

/// The same shape as the command line's.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
pub(super) struct Job {
    /// What the other tools of jobs take.
    job_id: String,
    agent: String,
    /// queued, starting, running, blocked (it waits for an answer), completed, failed or cancelled.
    status: String,
    phase: String,
    prompt_head: String,
    cwd: String,
    worktree: Option<String>,
    created_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    elapsed_ms: i64,
    /// The last thing that it did.
    last_activity: Option<Activity>,
    /// What it waits for.
    questions: Vec<Question>,
    backend_session: Option<String>,
    /// Its last words: the result, if it is completed.
    result: Option<String>,
    /// Set if result is not all of it; says how to read the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
    /// What it changed in its worktree, by git.
    changes: Option<Changes>,
    /// Why it failed.
    error: Option<Trouble>,
    /// How its program ended, and what was done to end it.
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
    /// Null if it changed nothing; then its worktree is gone.
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
    /// A job as it stands; of its result what comes after so many characters.
    fn new(host: &Host, row: &JobRow, from: usize) -> Result<Self, Error> {
        let mut document = describe::job(host, row);
        harmless(&mut document);
        let mut job: Self = serde_json::from_value(document)
            .map_err(|error| Error::new(Code::Internal, format!("a job that can't be shown: {error}")))?;
        if from > 0 {
            job.result = job.result.map(|result| result.chars().skip(from).collect());
        }
        Ok(job)
    }

    /// Its bytes as JSON, with the comma.
    fn size(&self) -> usize {
        serde_json::to_string(self).map_or(0, |text| text.len()) + 1
    }

    /// The same with as much of its result as fits.
    fn within(mut self, room: usize, from: usize) -> Self {
        if self.size() <= room {
            return self;
        }
        let Some(result) = self.result.take() else { return self };
        let room = room.saturating_sub(self.size() + CUT);
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

/// Jobs as one answer shows them: results in full while there is room, then cut. And how many are left out.
fn shown(host: &Host, rows: &[JobRow], from: usize) -> Result<(Vec<Job>, usize), Error> {
    let mut left = ANSWER_BYTES;
    let mut jobs: Vec<Job> = Vec::new();
    for row in rows {
        let job = Job::new(host, row, from)?.within(left, from);
        if job.size() > left && !jobs.is_empty() {
            break;
        }
        left = left.saturating_sub(job.size());
        jobs.push(job);
    }
    let left_out = rows.len() - jobs.len();
    Ok((jobs, left_out))
}
