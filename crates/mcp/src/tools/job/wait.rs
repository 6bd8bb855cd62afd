//! `wait_job`: waits until jobs have ended, and reports progress.
//!
//! A thread blocks in the kernel until a job ends, and this call waits for the thread. When the
//! call is abandoned, it stops the thread.

use super::{Job, ShownJobs, shown};
use crate::tools::{Call, Effect, non_empty, report_progress};
use baton_core::frame;
use baton_core::id::JobId;
use baton_core::time::Span;
use baton_core::{Code, Error, limits};
use baton_jobs::place::Place;
use baton_jobs::wait::{self, Until};
use baton_jobs::{describe, start};
use baton_machine::bell;
use baton_store::{JobRow, Jobs};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::{Instant, MissedTickBehavior};

pub(crate) const NAME: &str = "wait_job";

const MIN_WAIT: Span = Span::seconds(1);
const MAX_WAIT: Span = Span::minutes(10);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Input {
    /// The ids of the jobs, or the beginnings of them.
    jobs: Vec<String>,
    /// Wait until one of them has ended. By default, until all have.
    #[serde(default)]
    any: Option<bool>,
    /// How long to wait, 1s to 10m. By default, as long as your program lets a tool run.
    #[serde(default)]
    max_wait: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Output {
    /// The jobs have ended as asked. If false, call again.
    ended: bool,
    jobs: Vec<Job>,
    /// How many jobs did not fit into this list. job_status shows each.
    left_out: usize,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub(crate) fn tool() -> Tool {
    crate::tools::tool::<Input, Output>(
        NAME,
        "Wait for jobs",
        Effect::Reads,
        "Wait until jobs have ended, and get their results. If they don't end in time, they go on: call it again, or let the results reach you as messages.",
    )
}

pub(crate) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let max_wait = max_wait(call, &input)?;
    let until = if input.any == Some(true) { Until::Any } else { Until::All };
    let ids = call.server.in_background(move |_, server| find(&server.runtime(), &input.jobs)).await?;
    let stop = Stop {
        home: call.server.options.home.clone(),
        ids: ids.clone(),
        stopped: Arc::default(),
        progress: Arc::default(),
    };
    let begun = Instant::now();
    let rows = watch(call, &stop, ids, until, max_wait, begun).await?;
    let ended = rows.iter().filter(|row| row.status.is_end()).count();
    let enough = match until {
        Until::All => ended == rows.len(),
        Until::Any => ended > 0,
    };
    let left = call.is_abandoned();
    call.server
        .in_background(move |_, server| {
            let runtime = server.runtime();
            let ShownJobs { jobs: shown, left_out } = shown(&runtime, &rows, 0)?;
            let mut jobs = Jobs::open(&runtime.home)?;
            for (row, job) in rows.iter().zip(&shown).filter(|(row, _)| row.status.is_end()) {
                // A result counts as read only if it was shown in full.
                if !left && job.cut.is_none() {
                    // The result goes out even if this can't be recorded.
                    jobs.set_read(&row.id, baton_machine::clock::now()).ok();
                }
            }
            let hint = (!enough).then(|| {
                format!("not yet, after {}: call wait_job again with the same jobs", max_wait.coarse())
            });
            Ok(Output { ended: enough, jobs: shown, left_out, hint })
        })
        .await
}

fn max_wait(call: &Call<'_>, input: &Input) -> Result<Span, Error> {
    match non_empty(input.max_wait.as_ref()).map(Span::parse).transpose()? {
        None => Ok(call.server.options.agent.quirks().mcp_tool_time),
        Some(span) if span < MIN_WAIT || span > MAX_WAIT => {
            Err(Error::new(Code::BadDuration, "max_wait must be between 1s and 10m")
                .hint("to wait longer, call wait_job again"))
        }
        Some(span) => Ok(span),
    }
}

fn find(runtime: &baton_jobs::Runtime, texts: &[String]) -> Result<Vec<JobId>, Error> {
    let mut jobs = Jobs::open(&runtime.home)?;
    let mut ids: Vec<JobId> = Vec::new();
    for text in texts {
        let id = start::find(runtime, &mut jobs, text)?.id;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if ids.is_empty() {
        return Err(Error::new(Code::Usage, "wait_job needs the id of a job").hint("job_status lists them"));
    }
    Ok(ids)
}

/// Stops the waiting thread, however the call ends.
struct Stop {
    home: PathBuf,
    ids: Vec<JobId>,
    stopped: Arc<AtomicBool>,
    progress: Arc<Mutex<String>>,
}

impl Stop {
    fn stop(&self) {
        if !self.stopped.swap(true, Ordering::Relaxed) {
            self.ids.iter().for_each(|id| bell::ring_at(&Place::of(&self.home, id).bell()));
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn watch(
    call: &Call<'_>,
    stop: &Stop,
    ids: Vec<JobId>,
    until: Until,
    max_wait: Span,
    begun: Instant,
) -> Result<Vec<JobRow>, Error> {
    let (stopped, progress) = (Arc::clone(&stop.stopped), Arc::clone(&stop.progress));
    let deadline = (begun + max_wait.to_std()).into_std();
    let waited = call.server.in_background(move |_, server| {
        let runtime = server.runtime();
        let mut jobs = Jobs::open(&runtime.home)?;
        wait::wait(&runtime, &mut jobs, &ids, until, deadline, &mut |rows| {
            *progress.lock().unwrap_or_else(PoisonError::into_inner) = describe_progress(rows);
            !stopped.load(Ordering::Relaxed)
        })
    });
    tokio::pin!(waited);
    let sweep = limits::SWEEP_INTERVAL.to_std();
    let mut ticks = tokio::time::interval_at(begun + sweep, sweep);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut abandoned = false;
    loop {
        tokio::select! {
            biased;
            rows = &mut waited => return rows,
            () = call.abandoned(), if !abandoned => {
                abandoned = true;
                stop.stop();
            }
            _ = ticks.tick() => {
                let progress = stop.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
                report_progress(call, begun.elapsed().as_secs_f64(), max_wait, &progress);
            }
        }
    }
}

/// What the jobs that still run are doing now.
fn describe_progress(rows: &[JobRow]) -> String {
    let open: Vec<&JobRow> = rows.iter().filter(|row| !row.status.is_end()).collect();
    match open.as_slice() {
        [row] => {
            let last = row.activity.as_ref().map_or(row.phase.as_str(), |activity| activity.what.as_str());
            let age = describe::elapsed(row).coarse();
            format!("{} {} for {age}: {}", row.agent, row.status, frame::shown(last, 80))
        }
        several => format!("{} jobs go on", several.len()),
    }
}
