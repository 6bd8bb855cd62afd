//! `job start` and `run`.

use super::wait::{Limit, Style, report, watch};
use super::{Session, host};
use crate::print::{Out, Tone, done};
use baton_core::error::Exit;
use baton_core::id::JobId;
use baton_core::job::Allow;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_jobs::place::Place;
use baton_jobs::start::{self, Accepted, PROMPT_BYTES, Wish};
use baton_jobs::wait::Until;
use baton_jobs::{Host, cancel};
use baton_store::Jobs;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;

// What a job is started with.
#[derive(Debug, Args)]
pub struct Start {
    /// claude, codex, opencode, gemini, copilot, cursor or pi
    agent: String,
    /// What it shall do; - or nothing reads stdin
    #[arg(conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// Read what it shall do from a file
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// The model, in the agent's own words
    #[arg(long)]
    model: Option<String>,
    /// How hard to think, in the agent's own words
    #[arg(long)]
    effort: Option<String>,
    /// Where it works (else here)
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Work in a git worktree and branch of its own
    #[arg(long)]
    worktree: bool,
    /// It must not change anything
    #[arg(long)]
    read_only: bool,
    /// What it may do without asking (else jobs.allow)
    #[arg(long, value_enum)]
    allow: Option<AllowWord>,
    /// Go on with the session of that job
    #[arg(long, value_name = "JOB")]
    resume: Option<String>,
    /// How long it may take in all (else jobs.timeout)
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// A key that makes a retry safe
    #[arg(long)]
    key: Option<String>,
}

// `baton run`
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    start: Start,
    /// Wait so long at most; the job goes on (exit 2)
    #[arg(long, value_name = "DURATION")]
    max_wait: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AllowWord {
    Ask,
    Edits,
    All,
}

impl From<AllowWord> for Allow {
    fn from(word: AllowWord) -> Self {
        match word {
            AllowWord::Ask => Self::Ask,
            AllowWord::Edits => Self::Edits,
            AllowWord::All => Self::All,
        }
    }
}

impl Start {
    /// Starts it and says which it is.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let host = host(session)?;
        let accepted = self.accept(session, &host)?;
        let log = Place::of(&host.home, &accepted.id).log();
        let document = json!({
            "job_id": accepted.id.as_str(), "status": "queued", "log": log.to_string_lossy(), "again": accepted.again,
        });
        out.data(&document, || {
            let again = if accepted.again { " (accepted before, under this key)" } else { "" };
            format!("{}{again}", out.tone(Tone::Bold, accepted.id.as_str()))
        })?;
        out.say(&out.tone(Tone::Dim, &format!("wait for it with: baton job wait {}", accepted.id)));
        done()
    }

    fn accept(self, session: &Session, host: &Host) -> Result<Accepted, Error> {
        let prompt = prompt(self.prompt, self.prompt_file)?;
        let limits = &host.limits;
        let timeout = self.timeout.as_deref().map(Span::parse).transpose()?.unwrap_or(limits.job_timeout);
        let mut store = session.store()?;
        let me = session.identity(&mut store)?;
        let wish = Wish {
            agent: &self.agent,
            prompt: &prompt,
            model: self.model.as_deref(),
            effort: self.effort.as_deref(),
            cwd: self.cwd.as_deref().unwrap_or(&session.cwd),
            worktree: self.worktree,
            read_only: self.read_only,
            allow: self.allow.map_or(limits.job_allow, Allow::from),
            resume: self.resume.as_deref(),
            timeout,
            idle: limits.job_idle,
            retry: limits.job_retry,
            depth: limits.job_depth,
            told: false,
            key: self.key.as_deref(),
        };
        start::start(host, &mut store, &me, &wish)
    }
}

impl Run {
    /// Starts it, and waits for its end.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let limit = self.max_wait.as_deref().map(Limit::parse).transpose()?;
        let host = host(session)?;
        let accepted = self.start.accept(session, &host)?;
        let ids = [accepted.id];
        out.say(&out.tone(Tone::Dim, &format!("job {}", ids[0])));
        let mut jobs = Jobs::open(&host.home)?;
        loop {
            let style = Style { out: *out, follow: false };
            let watched = watch(&host, &mut jobs, &ids, Until::All, limit, style)?;
            if !watched.interrupted {
                return report(&host, &mut jobs, watched.rows, Until::All, out);
            }
            match after_interrupt(&host, &mut jobs, &ids[0])? {
                Some(exit) => return Ok(exit),
                None => continue,
            }
        }
    }
}

/// Ctrl-C ends the waiting, not the job, unless the person says so. `None`: go on waiting.
fn after_interrupt(host: &Host, jobs: &mut Jobs, id: &JobId) -> Result<Option<Exit>, Error> {
    let left = || {
        eprintln!("job {id} goes on; `baton job wait {id}` waits for it, `baton job cancel {id}` stops it");
        Ok(Some(Exit::NotYet))
    };
    if !std::io::stdin().is_terminal() {
        return left();
    }
    eprint!("\ncancel job {id}, leave it running, or go on waiting? [c/l/W] ");
    std::io::stderr().flush().ok();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok();
    match answer.trim().to_ascii_lowercase().as_str() {
        "c" | "cancel" => {
            if let Some(row) = jobs.get(id)? {
                let row = cancel::cancel(host, jobs, row)?;
                eprintln!("job {id} is {}: {}", row.status, row.exit.as_deref().unwrap_or("it had ended"));
            }
            Ok(Some(Exit::Failed))
        }
        "l" | "leave" => left(),
        _ => Ok(None),
    }
}

/// The prompt: the argument, a file, or stdin.
fn prompt(argument: Option<String>, file: Option<PathBuf>) -> Result<String, Error> {
    let unreadable = |error: std::io::Error, what: &str| {
        Error::new(Code::BodyUnreadable, format!("{what} could not be read: {error}"))
            .hint("nothing was started; try again")
    };
    let longest = PROMPT_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    match (argument, file) {
        (Some(text), _) if text != "-" => return Ok(text),
        (_, Some(file)) => {
            let name = file.display().to_string();
            let opened = std::fs::File::open(&file).map_err(|error| unreadable(error, &name))?;
            opened.take(longest).read_to_end(&mut bytes).map_err(|error| unreadable(error, &name))?;
        }
        (None, None) if std::io::stdin().is_terminal() => {}
        _ => {
            let read = std::io::stdin().lock().take(longest).read_to_end(&mut bytes);
            read.map_err(|error| unreadable(error, "the prompt"))?;
        }
    }
    String::from_utf8(bytes).map_err(|_| {
        Error::new(Code::BodyNotUtf8, "the prompt is not UTF-8").hint("nothing was started; convert it first")
    })
}
