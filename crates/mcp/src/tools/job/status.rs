//! `job_status`: how one job stands, or all that run here.

use super::super::{Call, Effect, given};
use super::{Job, shown};
use baton_core::{Code, Error};
use baton_jobs::{reconcile, start};
use baton_mail::project;
use baton_store::{JobFilter, Jobs};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const NAME: &str = "job_status";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Input {
    /// The job's id, or the beginning of it; all that run unless told.
    #[serde(default)]
    job: Option<String>,
    /// Those of every project.
    #[serde(default)]
    all: Option<bool>,
    /// Read the result on from there, in characters.
    #[serde(default)]
    result_from: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Output {
    jobs: Vec<Job>,
    /// Jobs that are not in this list because it would be too long; `baton job list` in a shell prints all.
    left_out: usize,
}

pub(in super::super) fn tool() -> Tool {
    super::super::tool::<Input, Output>(
        NAME,
        "Look at jobs",
        Effect::Reads,
        "How a job stands, with the last thing that it did and its result once it has ended; without job, all that run in this project.",
    )
}

pub(in super::super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let here = call.desk.mail(|store| match call.identity(store) {
        Ok(identity) => Ok(identity.project),
        Err(error) if error.code() == Code::UnboundSession => Ok(project::of(&call.desk.options.cwd)),
        Err(error) => Err(error),
    })?;
    call.desk
        .aside(move |_, desk| {
            let host = desk.host();
            let mut jobs = Jobs::open(&host.home)?;
            let rows = match given(input.job.as_ref()) {
                Some(job) => vec![start::find(&host, &mut jobs, job)?],
                None => {
                    let mut open = jobs.list(JobFilter::Open, usize::MAX)?;
                    open.retain(|row| input.all == Some(true) || row.project == here);
                    let mut rows = reconcile::all(&host, &mut jobs, open);
                    rows.retain(|row| !row.status.is_end());
                    rows
                }
            };
            let (jobs, left_out) = shown(&host, &rows, input.result_from.unwrap_or(0))?;
            Ok(Output { jobs, left_out })
        })
        .await
}
