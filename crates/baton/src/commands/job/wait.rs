//! `job wait`, and what `run` does after the start.

use super::changes::say_changes;
use super::{CommandContext, host};
use crate::commands::asking::{Asking, Numbers};
use crate::keys::Interrupts;
use crate::print::{Out, Progress, Text, Tone, text};
use baton_approvals::inbox;
use baton_core::error::Exit;
use baton_core::foreign::Foreign;
use baton_core::id::JobId;
use baton_core::job::Status;
use baton_core::time::Span;
use baton_core::{Code, Error, name};
use baton_jobs::wait::{self, SWEEP_INTERVAL, Until, Watcher};
use baton_jobs::{Runtime, asker_mail, describe, start};
use baton_store::{Activity, JobRow, Jobs};
use clap::Args;
use serde_json::{Value, json};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How much of a result the last line of a followed job shows.
const TERMINAL_CHARS: usize = 1500;
/// A followed job that is quiet is heard of this often.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(300);

// `baton job wait`
#[derive(Debug, Args)]
pub struct Wait {
    /// The jobs, by their ids or the beginnings of them
    #[arg(required = true)]
    jobs: Vec<String>,
    /// Stop waiting when the first of them has ended
    #[arg(long)]
    any: bool,
    /// How long to wait, 1s to 10m
    #[arg(long, default_value = "8m", value_name = "DURATION")]
    max_wait: String,
    /// Print a line at each change
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
            return Err(Error::new(Code::BadDuration, "--max-wait must be between 1s and 10m")
                .hint("an agent's own limit on a command is close to that; to wait longer, wait again"));
        }
        Ok(Self(span.to_std()))
    }

    /// What is left of it, if it began then.
    pub fn left(self, began: Instant) -> Duration {
        self.0.saturating_sub(began.elapsed())
    }

    /// The same limit for what comes after something that began then.
    pub fn after(self, began: Instant) -> Self {
        Self(self.left(began))
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
    /// The jobs as they are now.
    pub rows: Vec<JobRow>,
    /// The person pressed Ctrl-C.
    pub interrupted: bool,
}

impl Wait {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let limit = Limit::parse(&self.max_wait)?;
        let host = host(context)?;
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
        let mut asking = Asking::of_person(context, &host, *out, Numbers::None)?;
        let watched = match watch(&host, &mut jobs, &ids, until, Some(limit), style, asking.as_mut()) {
            Ok(watched) => watched,
            Err(error) => return broke_off(&ids, &error, out),
        };
        if watched.interrupted {
            out.say("the jobs go on");
            return Ok(Exit::NotYet);
        }
        if self.follow {
            for row in watched.rows.iter().filter(|row| row.status.is_end()) {
                out.afterwards(was_seen(context, &host, row));
            }
            return Ok(verdict(&watched.rows, until));
        }
        report(context, &host, &mut jobs, watched.rows, until, out)
    }
}

/// Waits for jobs and shows how they go on.
pub fn watch(
    host: &Runtime,
    jobs: &mut Jobs,
    ids: &[JobId],
    until: Until,
    limit: Option<Limit>,
    style: Style,
    asking: Option<&mut Asking<'_>>,
) -> Result<Watched, Error> {
    // Past any timeout that a job may have.
    let longest = limit.map_or(Duration::from_secs(8 * 24 * 3600), |limit| limit.0);
    let deadline = Instant::now() + longest;
    let began = Instant::now();
    let view = View::new(host, style, deadline);
    let mut person = AtTerminal { view, asking, interrupts: Interrupts::listen(), interrupted: false };
    let rows = wait::wait_with(host, jobs, ids, until, deadline, &mut person);
    if let Some(asking) = &mut person.asking {
        asking.end(&inbox::of_jobs(rows.as_deref().unwrap_or_default()));
    }
    let rows = rows?;
    if let Some(asking) = &person.asking {
        asking.tell_ends(&rows, began);
    }
    person.view.close(&rows, until);
    Ok(Watched { rows, interrupted: person.interrupted })
}

/// The one who waits: sees how the jobs go on, answers what they ask, and may press Ctrl-C.
struct AtTerminal<'v, 'a> {
    view: View<'v>,
    asking: Option<&'v mut Asking<'a>>,
    interrupts: Option<&'static Interrupts>,
    interrupted: bool,
}

impl Watcher for AtTerminal<'_, '_> {
    fn changed(&mut self, rows: &[JobRow]) -> bool {
        self.interrupted |= self.interrupts.is_some_and(Interrupts::take);
        if self.interrupted {
            return false;
        }
        if let Some(asking) = &mut self.asking {
            // What was typed is about what is on the screen, so it comes before what is new.
            asking.take_keys();
            let waiting = inbox::of_jobs(rows);
            if !asking.is_open() && asking.would_ask(&waiting) {
                self.view.hush();
            }
            asking.look(&waiting);
            if asking.is_open() {
                return true;
            }
        }
        self.view.show(rows);
        true
    }

    fn also(&self) -> Vec<BorrowedFd<'_>> {
        let keys = self.asking.as_ref().and_then(|asking| asking.fd());
        keys.into_iter().chain(self.interrupts.map(Interrupts::fd)).collect()
    }

    fn longest(&self) -> Duration {
        match &self.asking {
            Some(asking) => asking.longest(),
            None => SWEEP_INTERVAL,
        }
    }
}

/// The jobs go on, whatever became of the wait for them.
pub fn broke_off(ids: &[JobId], error: &Error, out: &Out) -> Result<Exit, Error> {
    let names: Vec<&str> = ids.iter().map(JobId::as_str).collect();
    let (which, wait) = (names.join(", "), names.join(" "));
    let error = Error::new(
        Code::WaitFailed,
        format!("waiting for {which} failed, but nothing was stopped: {}", error.message()),
    )
    .hint(format!("don't start it again; wait for it: baton job wait {wait}"));
    let document = match names.as_slice() {
        [id] => json!({"job_id": id}),
        several => json!({"job_ids": several}),
    };
    out.wait_failed(document, &error)
}

/// Prints what jobs have come to. The exit status says it too.
pub fn report(
    context: &CommandContext,
    host: &Runtime,
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
        Text::join(shown.iter().filter_map(|row| result_text(row, several, out)), "\n")
    })?;
    for row in &shown {
        say_trouble(row, out);
    }
    // Read once it was printed, and only then.
    for row in rows.iter().filter(|row| row.status.is_end()) {
        out.afterwards(jobs.set_read(&row.id, baton_machine::clock::now()));
        out.afterwards(was_seen(context, host, row));
    }
    jobs.tidy();
    Ok(verdict(&rows, until))
}

/// The end of a job was printed. If the person started it and reads this, it needs no mail.
pub fn was_seen(context: &CommandContext, host: &Runtime, row: &JobRow) -> Result<(), Error> {
    if row.asker_name != name::USER {
        return Ok(());
    }
    let mut store = context.store()?;
    let me = context.identity(&mut store)?;
    asker_mail::person_saw_end(host, row, &me)
}

fn result_text(row: &JobRow, several: bool, out: &Out) -> Option<Text> {
    let result = row.result.as_ref().filter(|_| row.status == Status::Completed)?;
    if several {
        let head = out.tone(Tone::Dim, &format!("── {} ({})", row.id, row.agent));
        Some(text![head, "\n", Foreign::new(result).lines(), "\n"])
    } else {
        Some(text![Foreign::new(result).lines()])
    }
}

/// What a person should know besides the result.
pub fn say_trouble(row: &JobRow, out: &Out) {
    if !row.status.is_end() {
        let so_far = describe::elapsed(row).coarse();
        out.say(text![
            "job ",
            format_args!("{} goes on after {so_far}: {} ({})", row.id, row.status, crumb(row))
        ]);
        out.say(out.tone(Tone::Dim, &format!("wait for it again with: baton job wait {}", row.id)));
        return;
    }
    say_changes(row, out);
    if row.status == Status::Completed {
        return;
    }
    if let Some(fault) = &row.fault {
        let message = format!("job {} {}: {}", row.id, row.status, fault.error.message());
        out.trouble(&message, fault.error.hint_text());
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
        Some(Activity { what, at }) if !row.status.is_end() => {
            format!("{what}, {} ago", baton_machine::clock::now().since(*at).coarse())
        }
        Some(activity) => activity.what.clone(),
        None => row.phase.clone(),
    }
}

/// How a wait looks: a spinner on a terminal, plain lines elsewhere, lines of JSON when asked.
struct View<'a> {
    host: &'a Runtime,
    style: Style,
    /// There is one while nothing else is on the terminal.
    spinner: Option<Progress>,
    spins: bool,
    last: Vec<(JobId, String)>,
    spoke: Instant,
    deadline: Instant,
}

impl<'a> View<'a> {
    fn new(host: &'a Runtime, style: Style, deadline: Instant) -> Self {
        let spins = !style.out.is_json() && !style.follow;
        Self { host, style, spinner: None, spins, last: Vec::new(), spoke: Instant::now(), deadline }
    }

    /// Leaves the terminal to a question.
    fn hush(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.clear();
        }
    }

    fn show(&mut self, rows: &[JobRow]) {
        if self.spinner.is_none() && self.spins {
            self.spinner = Progress::spinner();
        }
        if let Some(spinner) = &self.spinner {
            let open: Vec<&JobRow> = rows.iter().filter(|row| !row.status.is_end()).collect();
            let words = match open.as_slice() {
                [] => text!["done"],
                [row] => text![format_args!("{} {} · {}", row.agent, row.status, crumb(row))],
                several => text![format_args!("{}", several.len()), " jobs go on"],
            };
            spinner.say(words);
            return;
        }
        if !self.style.follow {
            return;
        }
        for row in rows {
            let now = if row.status.is_end() {
                row.status.as_str().to_owned()
            } else {
                let what =
                    row.activity.as_ref().map_or(row.phase.as_str(), |activity| activity.what.as_str());
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
        if self.spoke.elapsed() >= HEARTBEAT_INTERVAL {
            for row in rows.iter().filter(|row| !row.status.is_end()) {
                self.line(row, &format!("{} · still at it", row.status));
            }
        }
    }

    fn close(&mut self, rows: &[JobRow], until: Until) {
        if let Some(spinner) = &self.spinner {
            spinner.clear();
        }
        let ran_out = Instant::now() >= self.deadline && verdict(rows, until) == Exit::NotYet;
        if self.style.follow && ran_out {
            for row in rows.iter().filter(|row| !row.status.is_end()) {
                let so_far = describe::elapsed(row).coarse();
                let words = text![format_args!(
                    "TERMINAL=timeout job {} after {so_far}: it is {} and goes on",
                    row.id, row.status
                )];
                self.print(&json!({"event": "timeout", "job": describe::not_yet(self.host, row)}), words);
            }
        }
    }

    fn line(&mut self, row: &JobRow, words: &str) {
        let document = json!({"event": "change", "job": describe::not_yet(self.host, row)});
        let text = text![format_args!("[+{}] {} {words}", describe::elapsed(row).coarse(), row.id)];
        self.print(&document, text);
    }

    fn terminal(&mut self, row: &JobRow) {
        let said = match (&row.result, &row.fault) {
            (Some(result), _) if row.status == Status::Completed => result.clone(),
            (_, Some(fault)) => fault.error.message().to_owned(),
            (result, _) => result.clone().unwrap_or_default(),
        };
        // One line, whatever is in it, that can be read back: a backslash of its own is two.
        let said = said.replace('\\', "\\\\");
        let text = text![
            format_args!(
                "TERMINAL={} job {} after {}: ",
                row.status,
                row.id,
                describe::elapsed(row).coarse()
            ),
            Foreign::new(said).line(TERMINAL_CHARS)
        ];
        self.print(&json!({"event": "end", "job": describe::job(self.host, row)}), text);
    }

    fn print(&mut self, document: &Value, text: Text) {
        self.spoke = Instant::now();
        // Nobody is left to tell if the output is closed; the job goes on.
        self.style.out.data(document, || text).ok();
    }
}
