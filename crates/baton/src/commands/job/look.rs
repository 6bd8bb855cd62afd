//! Looking after jobs: list, status, result, logs, cancel, heal, prune.

use super::changes::say_changes;
use super::wait::{crumb, report};
use super::{CommandContext, host};
use crate::print::{Out, Text, Tone, done, table, text};
use baton_core::error::Exit;
use baton_core::job;
use baton_core::time::Span;
use baton_core::words::counted;
use baton_core::{Code, Error};
use baton_jobs::place::Place;
use baton_jobs::wait::Until;
use baton_jobs::worker::head;
use baton_jobs::{Runtime, cancel, describe, reconcile, start, worktree};
use baton_machine::bell::Bell;
use baton_machine::project;
use baton_store::{JobFilter, JobRow, Jobs};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

/// The longest list.
const MAX_JOBS_SHOWN: usize = 200;
/// How much of a result `job status` shows.
const RESULT_CHARS: usize = 200;

// `baton job list`
#[derive(Debug, Args)]
pub struct List {
    /// Jobs of every project
    #[arg(long)]
    all: bool,
}

// `baton job status`
#[derive(Debug, Args)]
pub struct Status {
    /// The job (default: all that run)
    job: Option<String>,
    /// Jobs of every project
    #[arg(long)]
    all: bool,
}

// `baton job result`
#[derive(Debug, Args)]
pub struct ShowResult {
    /// The job
    job: String,
}

// `baton job logs`
#[derive(Debug, Args)]
pub struct Logs {
    /// The job
    job: String,
    /// Follow the log until the job has ended
    #[arg(short, long)]
    follow: bool,
}

// `baton job cancel`
#[derive(Debug, Args)]
pub struct Cancel {
    /// The job
    job: String,
}

// `baton job heal`
#[derive(Debug, Args)]
pub struct Heal {
    /// Jobs of every project
    #[arg(long)]
    all: bool,
    /// Only list the dead ones
    #[arg(long)]
    dry_run: bool,
}

// `baton job prune`
#[derive(Debug, Args)]
pub struct Prune {
    /// Remove jobs that ended longer ago than this (default: jobs.keep)
    #[arg(long, value_name = "DURATION")]
    older_than: Option<String>,
    /// Jobs of every project
    #[arg(long)]
    all: bool,
}

fn filter<'a>(all: bool, project: &'a str) -> JobFilter<'a> {
    if all { JobFilter::Everywhere } else { JobFilter::Project(project) }
}

fn rows(context: &CommandContext, host: &Runtime, jobs: &mut Jobs, all: bool) -> Result<Vec<JobRow>, Error> {
    let project = project::of(&context.cwd);
    let rows = jobs.list(filter(all, &project), MAX_JOBS_SHOWN)?;
    Ok(reconcile::all(host, jobs, rows))
}

fn show(host: &Runtime, rows: &[JobRow], out: &Out, nothing: &'static str) -> Result<(), Error> {
    let document = Value::from_iter(rows.iter().map(|row| describe::job(host, row)));
    out.data(&document, || {
        if rows.is_empty() {
            return Text::from(nothing);
        }
        let lines: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                vec![
                    row.id.to_string(),
                    row.agent.clone(),
                    row.status.to_string(),
                    describe::elapsed(row).coarse(),
                    row.asker_name.clone(),
                    head(&row.prompt, 32),
                    head(&last(row), 60),
                ]
            })
            .collect();
        let heads = ["JOB", "AGENT", "STATUS", "TIME", "BY", "TASK", "LAST"];
        table(&heads, &lines, &[Some(Tone::Bold)])
    })
}

/// The last thing of a job: why it failed, else what it did, else what it said.
fn last(row: &JobRow) -> String {
    match (&row.fault, crumb(row)) {
        (Some(fault), _) if row.status.is_end() && row.status != job::Status::Completed => {
            fault.error.message().to_owned()
        }
        (_, crumb) if crumb.is_empty() => row.result.clone().unwrap_or_default(),
        (_, crumb) => crumb,
    }
}

impl List {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        let mut jobs = Jobs::open(&host.home)?;
        let rows = rows(context, &host, &mut jobs, self.all)?;
        show(&host, &rows, out, "no jobs here; --all shows those of other projects")?;
        done()
    }
}

impl Status {
    /// Shows one job, or all that run.
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        let mut jobs = Jobs::open(&host.home)?;
        let Some(job) = &self.job else {
            let mut rows = rows(context, &host, &mut jobs, self.all)?;
            rows.retain(|row| !row.status.is_end());
            show(&host, &rows, out, "no job runs here")?;
            return done();
        };
        let row = start::find(&host, &mut jobs, job)?;
        out.data(&describe::job(&host, &row), || in_full(&host, &row, out))?;
        if row.status.is_end() {
            say_changes(&row, out);
        }
        done()
    }
}

fn in_full(host: &Runtime, row: &JobRow, out: &Out) -> Text {
    let document = describe::job(host, row);
    let mut text = text![
        out.tone(Tone::Bold, row.id.as_str()),
        format_args!(" {} {} ", row.agent, row.status),
        out.tone(Tone::Dim, &describe::elapsed(row).coarse()),
        "\n"
    ];
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let name = out.tone(Tone::Dim, &format!("{name:<9}"));
            text.push(text!["  ", name, " ", value.to_owned(), "\n"]);
        }
    };
    line("task", &head(&row.prompt, 100));
    line("last", &crumb(row));
    for question in document["questions"].as_array().into_iter().flatten() {
        line("waits for", question["what"].as_str().unwrap_or_default());
    }
    if let Some(fault) = row.fault.as_ref().filter(|_| row.status != job::Status::Completed) {
        line("why", &format!("{} ({})", fault.error.message(), fault.error.code()));
        line("hint", fault.error.hint_text().unwrap_or_default());
    }
    line("said", &head(row.result.as_deref().unwrap_or_default(), RESULT_CHARS));
    line("folder", row.worktree.as_deref().unwrap_or(&row.cwd));
    line("session", row.session.as_deref().unwrap_or_default());
    line("by", &row.asker_name);
    line("exit", row.exit.as_deref().unwrap_or_default());
    line("log", document["log"].as_str().unwrap_or_default());
    text
}

impl ShowResult {
    /// Shows what it has come to; exits as `wait` does.
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        let mut jobs = Jobs::open(&host.home)?;
        let row = start::find(&host, &mut jobs, &self.job)?;
        report(context, &host, &mut jobs, vec![row], Until::All, out)
    }
}

impl Logs {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        let mut jobs = Jobs::open(&host.home)?;
        let row = start::find(&host, &mut jobs, &self.job)?;
        let place = Place::of(&host.home, &row.id);
        let unreadable = |error: io::Error| {
            Error::new(Code::UnknownJob, format!("the log of job {} can't be read: {error}", row.id))
                .hint("was its folder removed by hand?")
        };
        let mut bell = Bell::listen_at(&place.bell())?;
        let mut log = baton_machine::own::open(&place.log()).map_err(unreadable)?;
        let mut at = 0;
        loop {
            // Whether it had ended before what is read now: then this is all.
            let ended = jobs
                .get(&row.id)?
                .map(|row| reconcile::one(&host, &mut jobs, row))
                .is_none_or(|row| row.status.is_end());
            let mut text = Vec::new();
            log.seek(SeekFrom::Start(at)).and_then(|_| log.read_to_end(&mut text)).map_err(unreadable)?;
            at += text.len() as u64;
            out.log(&String::from_utf8_lossy(&text))?;
            if !self.follow || ended {
                return done();
            }
            bell.wait(Instant::now() + Duration::from_secs(1));
        }
    }
}

impl Cancel {
    /// Cancels, and says what was really done.
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        let mut jobs = Jobs::open(&host.home)?;
        let row = start::find(&host, &mut jobs, &self.job)?;
        let row = cancel::cancel(&host, &mut jobs, row)?;
        out.data(&describe::job(&host, &row), || {
            let how = row.exit.as_deref().unwrap_or("it ended by itself");
            text![format_args!("{} {}: {how}", row.id, row.status)]
        })?;
        done()
    }
}

impl Heal {
    /// Looks at every job that has not ended.
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        let mut jobs = Jobs::open(&host.home)?;
        let project = project::of(&context.cwd);
        let mut open = jobs.list(JobFilter::Open, usize::MAX)?;
        open.retain(|row| self.all || row.project == project);
        let looked = open.len();
        let healed: Vec<JobRow> = if self.dry_run {
            open.into_iter().filter(|row| reconcile::is_dead(&host, row)).collect()
        } else {
            let mut rows = reconcile::all(&host, &mut jobs, open);
            rows.retain(|row| row.status.is_end());
            rows
        };
        let document = json!({
            "looked_at": looked,
            "dry_run": self.dry_run,
            "healed": healed.iter().map(|row| describe::job(&host, row)).collect::<Vec<_>>(),
        });
        out.data(&document, || {
            let lines = healed.iter().map(|row| format!("{} {} {}", row.id, row.agent, row.status));
            let verb = match (self.dry_run, healed.len()) {
                (true, _) => "would be ended",
                (false, 1) => "was ended",
                (false, _) => "were ended",
            };
            let head = format!("{} looked at, {} {verb}", counted(looked, "job"), healed.len());
            Text::join([head].into_iter().chain(lines), "\n")
        })?;
        done()
    }
}

impl Prune {
    /// Forgets what is old and read.
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        let keep = self.older_than.as_deref().map(Span::parse).transpose()?.unwrap_or(host.limits.job_keep);
        let mut jobs = Jobs::open(&host.home)?;
        let project = project::of(&context.cwd);
        let mut rows = jobs.list(filter(self.all, &project), usize::MAX)?;
        rows = reconcile::all(&host, &mut jobs, rows);
        let now = baton_machine::clock::now();
        let (mut forgotten, mut unread, mut worktrees) = (Vec::new(), 0, 0);
        for row in rows.iter().filter(|row| row.ended_at.is_some_and(|at| now.since(at) >= keep)) {
            let cleaned = worktree::clean(&host.home, &row.id).unwrap_or(false);
            worktrees += usize::from(cleaned);
            let kept = worktree::path(&host.home, &row.id).exists();
            if row.read_at.is_none() {
                unread += 1;
            } else if !kept && jobs.forget(&row.id)? {
                // The record is gone; a folder that stays is removed by the next one who looks.
                std::fs::remove_dir_all(Place::of(&host.home, &row.id).folder()).ok();
                forgotten.push(row.id.to_string());
            }
        }
        jobs.tidy();
        let document = json!({"forgotten": forgotten, "unread": unread, "worktrees_removed": worktrees});
        out.data(&document, || {
            format!(
                "{} removed, {unread} kept with unread results, {} removed",
                counted(forgotten.len(), "job"),
                counted(worktrees, "worktree")
            )
        })?;
        done()
    }
}
