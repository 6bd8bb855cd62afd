//! `job wait`, and what `run` does after the start.

use super::{Session, host};
use crate::print::{Out, Tone};
use baton_core::error::Exit;
use baton_core::id::JobId;
use baton_core::job::Status;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_jobs::wait::{self, Until};
use baton_jobs::{Host, describe, start};
use baton_store::{JobRow, Jobs};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How much of a result the last line of a followed job shows.
const TERMINAL_CHARS: usize = 1500;
/// A followed job that is quiet is heard of this often.
const HEARTBEAT: Duration = Duration::from_secs(300);

// `baton job wait`
#[derive(Debug, Args)]
pub struct Wait {
    /// The jobs, or the beginnings of their ids
    #[arg(required = true)]
    jobs: Vec<String>,
    /// Until one of them has ended
    #[arg(long)]
    any: bool,
    /// How long to wait, 1s to 10m
    #[arg(long, default_value = "8m", value_name = "DURATION")]
    max_wait: String,
    /// A line at each change
    #[arg(long)]
    follow: bool,
}

/// How long a wait may take.
#[derive(Clone, Copy, Debug)]
pub struct Limit(Duration);

impl Limit {
    /// Reads `--max-wait`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let span = Span::parse(text)?;
        if span < Span::seconds(1) || span > Span::minutes(10) {
            return Err(Error::new(Code::BadDuration, "--max-wait must lie between 1s and 10m")
                .hint("agents' own limits on a command are near that; wait again for longer"));
        }
        Ok(Self(span.to_std()))
    }
}

/// How the waiting is shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Where to.
    pub out: Out,
    /// A line at each change.
    pub follow: bool,
}

/// What a wait has come to.
pub struct Watched {
    /// The jobs as they stand.
    pub rows: Vec<JobRow>,
    /// The person pressed Ctrl-C.
    pub interrupted: bool,
}

impl Wait {
    /// Waits.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let limit = Limit::parse(&self.max_wait)?;
        let host = host(session)?;
        let mut jobs = Jobs::open(&host.home)?;
        let mut ids: Vec<JobId> = Vec::new();
        for text in &self.jobs {
            let id = start::find(&host, &mut jobs, text)?.id;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let until = if self.any { Until::Any } else { Until::All };
        let style = Style { out: *out, follow: self.follow };
        let watched = watch(&host, &mut jobs, &ids, until, Some(limit), style)?;
        if watched.interrupted {
            out.say("the jobs go on");
            return Ok(Exit::NotYet);
        }
        if self.follow {
            return Ok(verdict(&watched.rows, until));
        }
        report(&host, &mut jobs, watched.rows, until, out)
    }
}

/// Waits for jobs and shows how they go on.
pub fn watch(
    host: &Host,
    jobs: &mut Jobs,
    ids: &[JobId],
    until: Until,
    limit: Option<Limit>,
    style: Style,
) -> Result<Watched, Error> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let handler = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted));
    // Past any timeout that a job may have.
    let longest = limit.map_or(Duration::from_secs(8 * 24 * 3600), |limit| limit.0);
    let deadline = Instant::now() + longest;
    let mut view = View::new(host, style, deadline);
    let rows = wait::wait(host, jobs, ids, until, deadline, &mut |rows| {
        view.show(rows);
        !interrupted.load(Ordering::Relaxed)
    })?;
    view.close(&rows, until);
    if let Ok(handler) = handler {
        signal_hook::low_level::unregister(handler);
    }
    Ok(Watched { rows, interrupted: interrupted.load(Ordering::Relaxed) })
}

/// Prints what jobs have come to. The exit status says it too.
pub fn report(
    host: &Host,
    jobs: &mut Jobs,
    rows: Vec<JobRow>,
    until: Until,
    out: &Out,
) -> Result<Exit, Error> {
    let describe = |row: &JobRow| match row.status.is_end() {
        true => describe::job(host, row),
        false => describe::not_yet(host, row),
    };
    let document = match rows.as_slice() {
        [row] => describe(row),
        rows => Value::from_iter(rows.iter().map(describe)),
    };
    let shown: Vec<&JobRow> = match until {
        Until::All => rows.iter().collect(),
        Until::Any => rows.iter().filter(|row| row.status.is_end()).collect(),
    };
    out.data(&document, || {
        let several = rows.len() > 1;
        shown.iter().filter_map(|row| result_text(row, several, out)).collect::<Vec<_>>().join("\n")
    })?;
    for row in &shown {
        say_trouble(row, out);
    }
    // Read once it was printed, and only then.
    for row in rows.iter().filter(|row| row.status.is_end()) {
        jobs.set_read(&row.id, baton_mail::now())?;
    }
    jobs.tidy();
    Ok(verdict(&rows, until))
}

fn result_text(row: &JobRow, several: bool, out: &Out) -> Option<String> {
    let result = row.result.as_ref().filter(|_| row.status == Status::Completed)?;
    if several {
        Some(format!("{}\n{result}\n", out.tone(Tone::Dim, &format!("── {} ({})", row.id, row.agent))))
    } else {
        Some(result.clone())
    }
}

/// What a person should know besides the result.
pub fn say_trouble(row: &JobRow, out: &Out) {
    if !row.status.is_end() {
        out.say(&format!("job {} is {} ({})", row.id, row.status, crumb(row)));
        return;
    }
    if let Some(changes) = row.changes.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        out.say(&changes_in_words(&changes));
    }
    if row.status == Status::Completed {
        return;
    }
    if let Some(fault) = &row.fault {
        eprintln!("error: job {} {}: {}", row.id, row.status, fault.error.message());
        if let Some(hint) = fault.error.hint_text() {
            eprintln!("hint: {hint}");
        }
    }
}

fn changes_in_words(changes: &Value) -> String {
    let files: Vec<String> = changes["files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|file| Some(format!("  {} {}", file["status"].as_str()?, file["path"].as_str()?)))
        .collect();
    match changes["path"].as_str() {
        Some(path) => {
            format!("branch {} in {path}\n{}", changes["branch"].as_str().unwrap_or("?"), files.join("\n"))
        }
        None => "it changed nothing; its worktree was removed".to_owned(),
    }
}

/// What the process exits with: 0 if completed, 1 if not, 2 if not yet.
fn verdict(rows: &[JobRow], until: Until) -> Exit {
    let ended: Vec<&JobRow> = rows.iter().filter(|row| row.status.is_end()).collect();
    let enough = match until {
        Until::All => ended.len() == rows.len(),
        Until::Any => !ended.is_empty(),
    };
    match enough {
        false => Exit::NotYet,
        true if ended.iter().all(|row| row.status == Status::Completed) => Exit::Done,
        true => Exit::Failed,
    }
}

/// The last thing that a job did, and how long ago.
pub fn crumb(row: &JobRow) -> String {
    match &row.activity {
        Some((what, at)) if !row.status.is_end() => {
            format!("{what}, {} ago", baton_mail::now().since(*at).coarse())
        }
        Some((what, _)) => what.clone(),
        None => row.phase.clone(),
    }
}

/// How a wait looks: a spinner on a terminal, plain lines elsewhere, lines of JSON when asked.
struct View<'a> {
    host: &'a Host,
    style: Style,
    spinner: Option<ProgressBar>,
    last: Vec<(JobId, String)>,
    spoke: Instant,
    deadline: Instant,
}

impl<'a> View<'a> {
    fn new(host: &'a Host, style: Style, deadline: Instant) -> Self {
        let spins = std::io::stderr().is_terminal() && !style.out.is_json() && !style.follow;
        let spinner = spins.then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(look) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                spinner.set_style(look);
            }
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        Self { host, style, spinner, last: Vec::new(), spoke: Instant::now(), deadline }
    }

    fn show(&mut self, rows: &[JobRow]) {
        if let Some(spinner) = &self.spinner {
            let open: Vec<&JobRow> = rows.iter().filter(|row| !row.status.is_end()).collect();
            let words = match open.as_slice() {
                [] => "done".to_owned(),
                [row] => format!("{} {} · {}", row.agent, row.status, crumb(row)),
                several => format!("{} jobs go on", several.len()),
            };
            spinner.set_message(words);
            return;
        }
        if !self.style.follow {
            return;
        }
        for row in rows {
            let now = if row.status.is_end() {
                row.status.as_str().to_owned()
            } else {
                let what = row.activity.as_ref().map_or(row.phase.as_str(), |(what, _)| what.as_str());
                format!("{} · {what}", row.status)
            };
            let known = self.last.iter().position(|(id, _)| *id == row.id);
            match known {
                Some(at) if self.last[at].1 == now => continue,
                Some(at) => self.last[at].1.clone_from(&now),
                None => self.last.push((row.id.clone(), now.clone())),
            }
            if row.status.is_end() { self.terminal(row) } else { self.line(row, &now) }
        }
        if self.spoke.elapsed() >= HEARTBEAT {
            for row in rows.iter().filter(|row| !row.status.is_end()) {
                self.line(row, &format!("{} · still at it", row.status));
            }
        }
    }

    fn close(&mut self, rows: &[JobRow], until: Until) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
        let ran_out = Instant::now() >= self.deadline && verdict(rows, until) == Exit::NotYet;
        if self.style.follow && ran_out {
            for row in rows.iter().filter(|row| !row.status.is_end()) {
                let words = format!("TERMINAL=timeout job {} is {} and goes on", row.id, row.status);
                self.print(&json!({"event": "timeout", "job": describe::not_yet(self.host, row)}), &words);
            }
        }
    }

    fn line(&mut self, row: &JobRow, words: &str) {
        let document = json!({"event": "change", "job": describe::not_yet(self.host, row)});
        let text = format!("[+{}] {} {words}", describe::elapsed(row).coarse(), row.id);
        self.print(&document, &text);
    }

    fn terminal(&mut self, row: &JobRow) {
        let said = match (&row.result, &row.fault) {
            (Some(result), _) if row.status == Status::Completed => result.clone(),
            (_, Some(fault)) => fault.error.message().to_owned(),
            (result, _) => result.clone().unwrap_or_default(),
        };
        let beginning: String = said.chars().take(TERMINAL_CHARS).collect();
        // One line, whatever is in it.
        let beginning = beginning.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
        let text = format!(
            "TERMINAL={} job {} after {}: {beginning}",
            row.status,
            row.id,
            describe::elapsed(row).coarse()
        );
        self.print(&json!({"event": "end", "job": describe::job(self.host, row)}), &text);
    }

    fn print(&mut self, document: &Value, text: &str) {
        self.spoke = Instant::now();
        let line = if self.style.out.is_json() { document.to_string() } else { text.to_owned() };
        // Nobody is left to tell if the output is closed; the job goes on.
        writeln!(std::io::stdout(), "{line}").ok();
    }
}
