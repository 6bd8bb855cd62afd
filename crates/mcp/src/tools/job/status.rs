//! `job_status`: the status of one job, or of all that run here.

use super::{Job, ShownJobs, shown};
use crate::tools::{Call, Effect, non_empty};
use baton_core::{Code, Error};
use baton_jobs::{reconcile, start};
use baton_machine::project;
use baton_store::{JobFilter, Jobs};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const NAME: &str = "job_status";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Input {
    /// The job's id, or the beginning of it. By default, all jobs that run.
    #[serde(default)]
    job: Option<String>,
    /// List the jobs of every project.
    #[serde(default)]
    all: Option<bool>,
    /// Show the result from this character on.
    #[serde(default)]
    result_from: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Output {
    jobs: Vec<Job>,
    /// How many jobs did not fit into this list. `baton job list` in a shell prints all.
    left_out: usize,
}

pub(crate) fn tool() -> Tool {
    crate::tools::tool::<Input, Output>(
        NAME,
        "Look at jobs",
        Effect::Reads,
        "Show the status of a job, what it did last, and its result once it has ended. Without job, show all jobs that run in this project.",
    )
}

pub(crate) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let here = call.server.with_store(|store| match call.identity(store) {
        Ok(identity) => Ok(identity.project),
        Err(error) if error.code() == Code::UnboundSession => Ok(project::of(&call.server.options.cwd)),
        Err(error) => Err(error),
    })?;
    call.server
        .in_background(move |_, server| {
            let runtime = server.runtime();
            let mut jobs = Jobs::open(&runtime.home)?;
            let rows = match non_empty(input.job.as_ref()) {
                Some(job) => vec![start::find(&runtime, &mut jobs, job)?],
                None => {
                    let mut open = jobs.list(JobFilter::Open, usize::MAX)?;
                    open.retain(|row| input.all == Some(true) || row.project == here);
                    let mut rows = reconcile::all(&runtime, &mut jobs, open);
                    rows.retain(|row| !row.status.is_end());
                    rows
                }
            };
            let ShownJobs { jobs, left_out } = shown(&runtime, &rows, input.result_from.unwrap_or(0))?;
            Ok(Output { jobs, left_out })
        })
        .await
}
