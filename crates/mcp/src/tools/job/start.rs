//! `start_job`: a task for another agent, in the background.
//!
//! The asker is the session that the server serves, also where a subagent calls: the result comes to its parent as a message.

use super::super::{Call, Effect, given};
use baton_core::frame;
use baton_core::job::Allow;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_jobs::place::Place;
use baton_jobs::start::{self, Wish};
use baton_jobs::{Host, notice};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(in super::super) const NAME: &str = "start_job";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Input {
    /// Who shall do it: claude, codex, opencode, gemini, copilot, cursor or pi.
    agent: String,
    /// What it shall do, at most 1 MiB. It knows nothing but this.
    prompt: String,
    /// The model, in the agent's own words.
    #[serde(default)]
    model: Option<String>,
    /// How hard to think, in the agent's own words.
    #[serde(default)]
    effort: Option<String>,
    /// Where it works; your own folder unless told.
    #[serde(default)]
    cwd: Option<String>,
    /// Work in a git worktree and branch of its own.
    #[serde(default)]
    worktree: Option<bool>,
    /// It must not change anything.
    #[serde(default)]
    read_only: Option<bool>,
    /// What it may do without asking: ask, edits or all.
    #[serde(default)]
    allow: Option<String>,
    /// The job whose session shall go on.
    #[serde(default)]
    resume: Option<String>,
    /// How long it may take in all, such as 30m or 4h.
    #[serde(default)]
    timeout: Option<String>,
    /// Makes a retry safe: the same key with the same content is one job.
    #[serde(default)]
    key: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Output {
    job_id: String,
    status: &'static str,
    /// What it does is written here.
    log: String,
    /// It had been accepted before, under the same key.
    again: bool,
    /// How to get the result.
    hint: String,
}

pub(in super::super) fn tool() -> Tool {
    super::super::tool::<Input, Output>(
        NAME,
        "Start a job",
        Effect::Delegates,
        "Hand a task to another agent. It works in the background, beside you; wait_job waits for the result, which also reaches you as a message.",
    )
}

pub(in super::super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let me = call.desk.mail(|store| call.identity(store))?;
    // Before it is there, so that its end can't be missed.
    call.desk.askers.add(me.participant.id);
    let base = me.participant.cwd.as_ref().map_or_else(|| call.desk.options.cwd.clone(), PathBuf::from);
    call.desk
        .aside(move |store, desk| {
            let host = desk.host();
            let wish = wish(&host, &input)?;
            let cwd = base.join(given(input.cwd.as_ref()).unwrap_or_default());
            let accepted = start::start(&host, store, &me, &Wish { cwd: &cwd, ..wish })?;
            // The hint below says it.
            notice::is_first(&host.home, &accepted.id, notice::FOLLOW);
            Ok(Output {
                job_id: accepted.id.to_string(),
                status: "queued",
                log: Place::of(&host.home, &accepted.id).log().to_string_lossy().into_owned(),
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

fn wish<'a>(host: &Host, input: &'a Input) -> Result<Wish<'a>, Error> {
    let limits = &host.limits;
    let allow = match given(input.allow.as_ref()) {
        None => limits.job_allow,
        Some(word) => Allow::parse(word).ok_or_else(|| {
            Error::new(Code::Usage, format!("allow can't be {}", frame::shown(word, 40)))
                .hint("one of ask, edits, all")
        })?,
    };
    let timeout = given(input.timeout.as_ref()).map(Span::parse).transpose()?;
    Ok(Wish {
        agent: &input.agent,
        prompt: &input.prompt,
        model: given(input.model.as_ref()),
        effort: given(input.effort.as_ref()),
        cwd: Path::new(""),
        worktree: input.worktree.unwrap_or(false),
        read_only: input.read_only.unwrap_or(false),
        allow,
        resume: given(input.resume.as_ref()),
        timeout: timeout.unwrap_or(limits.job_timeout),
        idle: limits.job_idle,
        retry: limits.job_retry,
        depth: limits.job_depth,
        told: false,
        key: given(input.key.as_ref()),
    })
}
