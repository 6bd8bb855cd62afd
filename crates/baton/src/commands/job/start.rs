//! `job start` and `run`.

use super::wait::{Limit, Style, broke_off, report, watch};
use super::{CommandContext, host};
use crate::commands::asking::{Asking, Numbers};
use crate::keys::{Interrupts, Keys};
use crate::print::{Out, Tone, done, text};
use baton_core::error::Exit;
use baton_core::id::JobId;
use baton_core::job::Allow;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_jobs::place::Place;
use baton_jobs::start::{self, Accepted, JobSpec, PROMPT_BYTES};
use baton_jobs::wait::Until;
use baton_jobs::{Runtime, cancel};
use baton_machine::tty;
use baton_store::Jobs;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::time::Duration;

// What a job is started with.
#[derive(Debug, Args)]
pub struct Start {
    #[arg(help = baton_agents::agent::names_to_choose())]
    agent: String,
    /// The task; - or nothing reads stdin
    #[arg(conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// Read the task from a file
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// The model, as the agent calls it
    #[arg(long)]
    model: Option<String>,
    /// The effort, as the agent calls it
    #[arg(long)]
    effort: Option<String>,
    /// The folder it works in (default: this one)
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Work in a separate git worktree and branch
    #[arg(long)]
    worktree: bool,
    /// The job may not change anything
    #[arg(long)]
    read_only: bool,
    /// What it may do without asking (default: jobs.allow)
    #[arg(long, value_enum)]
    allow: Option<AllowWord>,
    /// Continue the session of that ended job
    #[arg(long, value_name = "JOB")]
    resume: Option<String>,
    /// How long it may take in all (default: jobs.timeout)
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
    /// The longest time to wait; then the job goes on (exit 2)
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
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        let accepted = self.accept(context, &host)?;
        let log = Place::of(&host.home, &accepted.id).log();
        let document = json!({
            "job_id": accepted.id.as_str(), "status": "queued", "log": log.to_string_lossy(), "again": accepted.again,
        });
        out.data(&document, || {
            let again = if accepted.again { " (accepted before, under this key)" } else { "" };
            text![out.tone(Tone::Bold, accepted.id.as_str()), again]
        })?;
        out.say(out.tone(Tone::Dim, &format!("wait for it with: baton job wait {}", accepted.id)));
        done()
    }

    fn accept(self, context: &CommandContext, host: &Runtime) -> Result<Accepted, Error> {
        let prompt = prompt(self.prompt, self.prompt_file)?;
        let limits = &host.limits;
        let timeout = self.timeout.as_deref().map(Span::parse).transpose()?.unwrap_or(limits.job_timeout);
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let wish = JobSpec {
            agent: &self.agent,
            prompt: &prompt,
            model: self.model.as_deref(),
            effort: self.effort.as_deref(),
            cwd: self.cwd.as_deref().unwrap_or(&context.cwd),
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
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let limit = self.max_wait.as_deref().map(Limit::parse).transpose()?;
        let host = host(context)?;
        let accepted = self.start.accept(context, &host)?;
        let ids = [accepted.id];
        out.say(out.tone(Tone::Dim, &format!("job {}", ids[0])));
        let mut jobs = match Jobs::open(&host.home) {
            Ok(jobs) => jobs,
            Err(error) => return broke_off(&ids, &error, out),
        };
        let mut asking = match Asking::of_person(context, &host, *out, Numbers::None) {
            Ok(asking) => asking,
            Err(error) => return broke_off(&ids, &error, out),
        };
        loop {
            let style = Style { out: *out, follow: false };
            match watch(&host, &mut jobs, &ids, Until::All, limit, style, asking.as_mut()) {
                Err(error) => return broke_off(&ids, &error, out),
                Ok(watched) if !watched.interrupted => {
                    return report(context, &host, &mut jobs, watched.rows, Until::All, out);
                }
                Ok(_) => {}
            }
            match after_interrupt(&host, &mut jobs, &ids[0], out)? {
                Some(exit) => return Ok(exit),
                None => continue,
            }
        }
    }
}

/// Ctrl-C ends the waiting, not the job, unless the person says so. `None`: go on waiting.
fn after_interrupt(host: &Runtime, jobs: &mut Jobs, id: &JobId, out: &Out) -> Result<Option<Exit>, Error> {
    let left = || {
        out.prompt(format!(
            "job {id} goes on; `baton job wait {id}` waits for it, `baton job cancel {id}` stops it\n"
        ));
        Ok(Some(Exit::NotYet))
    };
    let Some(keys) = Keys::open() else { return left() };
    out.prompt(format!("\ncancel job {id}, leave it running, or go on waiting? [c/l/W] "));
    let chosen = choice(keys);
    out.prompt("\n");
    match chosen {
        Choice::Cancel => {
            if let Some(row) = jobs.get(id)? {
                let row = cancel::cancel(host, jobs, row)?;
                let how = row.exit.as_deref().unwrap_or("it had ended");
                out.prompt(text![format_args!("job {id} is {}: {how}", row.status), "\n"]);
            }
            Ok(Some(Exit::Failed))
        }
        Choice::Leave => left(),
        Choice::Wait => Ok(None),
    }
}

/// What the person wants after Ctrl-C.
enum Choice {
    Cancel,
    Leave,
    Wait,
}

/// Takes the key. Another Ctrl-C leaves, and so does the end of the terminal.
fn choice(mut keys: Keys) -> Choice {
    let interrupts = Interrupts::listen();
    keys.drawn();
    loop {
        let Some(keyboard) = keys.fd() else { return Choice::Leave };
        let fds: Vec<_> = std::iter::once(keyboard).chain(interrupts.map(Interrupts::fd)).collect();
        tty::readable(&fds, KEY_INTERVAL);
        if interrupts.is_some_and(Interrupts::take) || keys.is_lost() {
            return Choice::Leave;
        }
        for key in keys.typed() {
            match key {
                'c' | 'C' => return Choice::Cancel,
                // Ctrl-D.
                'l' | 'L' | 'q' | '\u{4}' => return Choice::Leave,
                'w' | 'W' | '\n' | '\r' => return Choice::Wait,
                _ => {}
            }
        }
    }
}

/// How often a prompt looks whether its terminal is still there.
const KEY_INTERVAL: Duration = Duration::from_secs(1);

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
