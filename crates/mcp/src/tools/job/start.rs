//! `start_job`: a task for another agent, in the background.
//!
//! The asker is the session that the server serves, even if a subagent calls. The parent gets the
//! result as a message.

use crate::tools::{Call, Effect, non_empty};
use baton_core::frame;
use baton_core::job::Allow;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_jobs::place::Place;
use baton_jobs::start::{self, JobSpec};
use baton_jobs::{Runtime, follow_hint};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(crate) const NAME: &str = "start_job";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Input {
    #[schemars(description = format!("The agent that does it: {}.", baton_agents::agent::names_to_choose()))]
    agent: String,
    /// The task, at most 1 MiB. The agent knows nothing else.
    prompt: String,
    /// The model, by the agent's own name for it.
    #[serde(default)]
    model: Option<String>,
    /// The reasoning effort, by the agent's own name for it.
    #[serde(default)]
    effort: Option<String>,
    /// Where it works. Your own folder by default.
    #[serde(default)]
    cwd: Option<String>,
    /// Work in a new git worktree and branch.
    #[serde(default)]
    worktree: Option<bool>,
    /// It must not change anything.
    #[serde(default)]
    read_only: Option<bool>,
    /// What it may do without asking: ask, edits or all.
    #[serde(default)]
    allow: Option<String>,
    /// The job whose session to continue.
    #[serde(default)]
    resume: Option<String>,
    /// The time limit, such as 30m or 4h.
    #[serde(default)]
    timeout: Option<String>,
    /// Makes a retry safe: the same key with the same content is one job.
    #[serde(default)]
    key: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Output {
    job_id: String,
    status: &'static str,
    /// The file that records what it does.
    log: String,
    /// It was accepted before, with the same key.
    again: bool,
    /// How to get the result.
    hint: String,
}

pub(crate) fn tool() -> Tool {
    crate::tools::tool::<Input, Output>(
        NAME,
        "Start a job",
        Effect::Delegates,
        "Hand a task to another agent. It works in the background; wait_job waits for the result, which also reaches you as a message.",
    )
}

pub(crate) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let me = call.server.with_store(|store| call.identity(store))?;
    // Before the job exists, so that its end can't be missed.
    call.server.askers.add(me.participant.id);
    let base = me.participant.cwd.as_ref().map_or_else(|| call.server.options.cwd.clone(), PathBuf::from);
    call.server
        .in_background(move |store, server| {
            let runtime = server.runtime();
            let spec = job_spec(&runtime, &input)?;
            let cwd = base.join(non_empty(input.cwd.as_ref()).unwrap_or_default());
            let accepted = start::start(&runtime, store, &me, &JobSpec { cwd: &cwd, ..spec })?;
            // The hint below already says it.
            follow_hint::record_first_time(&runtime.home, &accepted.id, follow_hint::FOLLOW_FILE);
            Ok(Output {
                job_id: accepted.id.to_string(),
                status: "queued",
                log: Place::of(&runtime.home, &accepted.id).log().to_string_lossy().into_owned(),
                again: accepted.again,
                hint: format!(
                    "wait_job with jobs [\"{0}\"] waits for it; call it again while it has not ended. Never report that it was started as if that were its result. Or go on with \
                     your own work: the result comes to you as a message.",
                    accepted.id
                ),
            })
        })
        .await
}

fn job_spec<'a>(runtime: &Runtime, input: &'a Input) -> Result<JobSpec<'a>, Error> {
    let limits = &runtime.limits;
    let allow = match non_empty(input.allow.as_ref()) {
        None => limits.job_allow,
        Some(word) => Allow::parse(word).ok_or_else(|| {
            Error::new(Code::Usage, format!("allow can't be {}", frame::shown(word, 40)))
                .hint("one of ask, edits, all")
        })?,
    };
    let timeout = non_empty(input.timeout.as_ref()).map(Span::parse).transpose()?;
    Ok(JobSpec {
        agent: &input.agent,
        prompt: &input.prompt,
        model: non_empty(input.model.as_ref()),
        effort: non_empty(input.effort.as_ref()),
        cwd: Path::new(""),
        worktree: input.worktree.unwrap_or(false),
        read_only: input.read_only.unwrap_or(false),
        allow,
        resume: non_empty(input.resume.as_ref()),
        timeout: timeout.unwrap_or(limits.job_timeout),
        idle: limits.job_idle,
        retry: limits.job_retry,
        depth: limits.job_depth,
        told: false,
        key: non_empty(input.key.as_ref()),
    })
}
