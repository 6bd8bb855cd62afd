//! `wait_job`: until jobs have ended, with progress.
//!
//! The waiting is done by a thread that blocks on the kernel's word; here is only who waits for it. When nobody does any more, the thread is told.

use super::super::{Call, Effect, given, report};
use super::{Job, shown};
use baton_core::frame;
use baton_core::id::JobId;
use baton_core::time::Span;
use baton_core::{Code, Error, limits};
use baton_jobs::place::Place;
use baton_jobs::wait::{self, Until};
use baton_jobs::{describe, start};
use baton_mail::bell;
use baton_store::{JobRow, Jobs};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::{Instant, MissedTickBehavior};

pub(in super::super) const NAME: &str = "wait_job";

const SHORTEST: Span = Span::seconds(1);
const LONGEST: Span = Span::minutes(10);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Input {
    /// Their ids, or the beginnings of them.
    jobs: Vec<String>,
    /// Until one of them has ended; all of them unless told.
    #[serde(default)]
    any: Option<bool>,
    /// How long to wait, 1s to 10m; unless told, as long as your program lets a tool run.
    #[serde(default)]
    max_wait: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Output {
    /// What was waited for is there; if not, call again.
    ended: bool,
    jobs: Vec<Job>,
    /// Jobs that are not in this list because it would be too long; job_status shows each.
    left_out: usize,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub(in super::super) fn tool() -> Tool {
    super::super::tool::<Input, Output>(
        NAME,
        "Wait for jobs",
        Effect::Reads,
        "Wait until jobs have ended, and get their results. If they have not in time they go on: call it again, or let the results reach you as messages.",
    )
}

pub(in super::super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let longest = longest(call, &input)?;
    let until = if input.any == Some(true) { Until::Any } else { Until::All };
    let ids = call.desk.aside(move |_, desk| find(&desk.host(), &input.jobs)).await?;
    let stop = Stop {
        home: call.desk.options.home.clone(),
        ids: ids.clone(),
        said: Arc::default(),
        crumb: Arc::default(),
    };
    let begun = Instant::now();
    let rows = watch(call, &stop, ids, until, longest, begun).await?;
    let ended = rows.iter().filter(|row| row.status.is_end()).count();
    let enough = match until {
        Until::All => ended == rows.len(),
        Until::Any => ended > 0,
    };
    let left = call.is_abandoned();
    call.desk
        .aside(move |_, desk| {
            let host = desk.host();
            let (shown, left_out) = shown(&host, &rows, 0)?;
            let mut jobs = Jobs::open(&host.home)?;
            for (row, job) in rows.iter().zip(&shown).filter(|(row, _)| row.status.is_end()) {
                // Read is what was shown to somebody, whole.
                if !left && job.cut.is_none() {
                    jobs.set_read(&row.id, baton_mail::now())?;
                }
            }
            let hint = (!enough).then(|| {
                format!("not yet, after {}: call wait_job again with the same jobs", longest.coarse())
            });
            Ok(Output { ended: enough, jobs: shown, left_out, hint })
        })
        .await
}

fn longest(call: &Call<'_>, input: &Input) -> Result<Span, Error> {
    match given(input.max_wait.as_ref()).map(Span::parse).transpose()? {
        None => Ok(call.desk.options.agent.lets_tools_run()),
        Some(span) if span < SHORTEST || span > LONGEST => {
            Err(Error::new(Code::BadDuration, "max_wait must lie between 1s and 10m")
                .hint("wait again for longer"))
        }
        Some(span) => Ok(span),
    }
}

fn find(host: &baton_jobs::Host, texts: &[String]) -> Result<Vec<JobId>, Error> {
    let mut jobs = Jobs::open(&host.home)?;
    let mut ids: Vec<JobId> = Vec::new();
    for text in texts {
        let id = start::find(host, &mut jobs, text)?.id;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if ids.is_empty() {
        return Err(Error::new(Code::Usage, "wait_job needs the id of a job").hint("job_status lists them"));
    }
    Ok(ids)
}

/// Ends the thread that waits, however the call ends.
struct Stop {
    home: PathBuf,
    ids: Vec<JobId>,
    said: Arc<AtomicBool>,
    crumb: Arc<Mutex<String>>,
}

impl Stop {
    fn say(&self) {
        if !self.said.swap(true, Ordering::Relaxed) {
            self.ids.iter().for_each(|id| bell::ring_at(&Place::of(&self.home, id).bell()));
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.say();
    }
}

async fn watch(
    call: &Call<'_>,
    stop: &Stop,
    ids: Vec<JobId>,
    until: Until,
    longest: Span,
    begun: Instant,
) -> Result<Vec<JobRow>, Error> {
    let (said, crumb) = (Arc::clone(&stop.said), Arc::clone(&stop.crumb));
    let deadline = (begun + longest.to_std()).into_std();
    let waited = call.desk.aside(move |_, desk| {
        let host = desk.host();
        let mut jobs = Jobs::open(&host.home)?;
        wait::wait(&host, &mut jobs, &ids, until, deadline, &mut |rows| {
            *crumb.lock().unwrap_or_else(PoisonError::into_inner) = in_words(rows);
            !said.load(Ordering::Relaxed)
        })
    });
    tokio::pin!(waited);
    let sweep = limits::SWEEP.to_std();
    let mut ticks = tokio::time::interval_at(begun + sweep, sweep);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut abandoned = false;
    loop {
        tokio::select! {
            biased;
            rows = &mut waited => return rows,
            () = call.abandoned(), if !abandoned => {
                abandoned = true;
                stop.say();
            }
            _ = ticks.tick() => {
                let words = stop.crumb.lock().unwrap_or_else(PoisonError::into_inner).clone();
                report(call, begun.elapsed().as_secs_f64(), longest, &words);
            }
        }
    }
}

/// What those that go on do just now.
fn in_words(rows: &[JobRow]) -> String {
    let open: Vec<&JobRow> = rows.iter().filter(|row| !row.status.is_end()).collect();
    match open.as_slice() {
        [row] => {
            let last = row.activity.as_ref().map_or(row.phase.as_str(), |(what, _)| what.as_str());
            let age = describe::elapsed(row).coarse();
            format!("{} {} for {age}: {}", row.agent, row.status, frame::shown(last, 80))
        }
        several => format!("{} jobs go on", several.len()),
    }
}
