//! `cancel_job`: stops a job, and reports what was done.

use super::{Job, shown};
use crate::tools::{Call, Effect};
use baton_core::{Code, Error};
use baton_jobs::{cancel, start};
use baton_store::Jobs;
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const NAME: &str = "cancel_job";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Input {
    /// The job's id, or the beginning of it.
    job: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Output {
    /// The job as it is now. exit says how it was stopped.
    job: Job,
}

pub(crate) fn tool() -> Tool {
    crate::tools::tool::<Input, Output>(
        NAME,
        "Stop a job",
        Effect::Ends,
        "Stop a job: first its turn, then its processes. Takes up to ten seconds. Its changes stay.",
    )
}

pub(crate) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    call.server
        .in_background(move |_, server| {
            let runtime = server.runtime();
            let mut jobs = Jobs::open(&runtime.home)?;
            let row = start::find(&runtime, &mut jobs, &input.job)?;
            let row = cancel::cancel(&runtime, &mut jobs, row)?;
            let job = shown(&runtime, &[row], 0)?.jobs.pop();
            job.map(|job| Output { job }).ok_or_else(|| Error::new(Code::Internal, "a job is not shown"))
        })
        .await
}
