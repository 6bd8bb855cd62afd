//! `cancel_job`: stops a job, and says what was really done.

use super::super::{Call, Effect};
use super::{Job, shown};
use baton_core::{Code, Error};
use baton_jobs::{cancel, start};
use baton_store::Jobs;
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const NAME: &str = "cancel_job";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Input {
    /// The job's id, or the beginning of it.
    job: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Output {
    /// As it stands now; exit says what was done.
    job: Job,
}

pub(in super::super) fn tool() -> Tool {
    super::super::tool::<Input, Output>(
        NAME,
        "Stop a job",
        Effect::Ends,
        "Stop a job: its turn is ended, then its processes. Takes up to ten seconds. What it has changed stays.",
    )
}

pub(in super::super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    call.desk
        .aside(move |_, desk| {
            let host = desk.host();
            let mut jobs = Jobs::open(&host.home)?;
            let row = start::find(&host, &mut jobs, &input.job)?;
            let row = cancel::cancel(&host, &mut jobs, row)?;
            let job = shown(&host, &[row], 0)?.0.pop();
            job.map(|job| Output { job }).ok_or_else(|| Error::new(Code::Internal, "a job is not shown"))
        })
        .await
}
