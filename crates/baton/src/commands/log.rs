//! `log`: what happened, in order: mail, wakes, sessions, questions, jobs and rulings of the guard.

mod entry;

use super::CommandContext;
use crate::environment;
use crate::print::{Out, Text, Tone, done, text};
use baton_core::error::Exit;
use baton_core::rights::Caller;
use baton_core::time::{Civil, Moment, Span};
use baton_core::{Code, Error, limits};
use baton_machine::clock;
use baton_mail::caller;
use baton_store::{JobFilter, Jobs, Store};
use clap::Args;
use entry::{Entry, Reader, Seen};
use std::collections::HashMap;

// `baton log`
#[derive(Debug, Args)]
pub struct Log {
    /// Keep printing as things happen
    #[arg(short, long)]
    follow: bool,
    /// Start with this many of the last lines
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    limit: u32,
    /// Only what this participant did, or what happened to it
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only these kinds: mail, wake, session, question, job, guard, or a kind as --json prints it
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<String>,
    /// Only what happened since: a duration such as 2h, or a moment such as 2026-11-20T08:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

/// How many new entries of each source one look takes while the log is followed.
const MAX_NEWS: usize = 1000;
/// How many entries a filter looks through.
const MAX_SEARCHED: usize = 100_000;

impl Log {
    /// Whether it stays until something comes.
    pub fn waits(&self) -> bool {
        self.follow
    }

    /// Shows the trail, one line (or one JSON document a line) each.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let reader = match caller::of(&me.kind, &environment::get) {
            Caller::Person | Caller::Script => Reader::Anyone,
            // An agent reads what was written by it or to it, as in `baton mail`.
            _ => Reader::Only(me.participant.id),
        };
        let since = self.since.as_deref().map(since).transpose()?;
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let filters = self.who.is_some() || !self.kind.is_empty() || since.is_some();
        let most = if filters { limit.max(MAX_SEARCHED) } else { limit };
        // One at least says where the trail ends now.
        let rows = store.trail_tail(most.max(1))?;
        let mut last = rows.last().map_or(0, |row| row.id);
        let mut jobs = JobLog::default();
        let mut guarded = GuardLog::default();
        let mut entries: Vec<Entry> = rows.into_iter().map(|row| Entry::of_trail(row, reader)).collect();
        entries.extend(jobs.news(context, reader, most.max(MAX_NEWS))?);
        entries.extend(guarded.news(context, &store, most));
        entries.retain(|entry| self.shows(entry, since) && (out.is_json() || self.is_worth_a_line(entry)));
        entries.sort_by_key(|entry| entry.at);
        entries.drain(..entries.len().saturating_sub(limit));
        let mut day = None;
        show(out, &entries, &mut day)?;
        if !self.follow {
            return done();
        }
        loop {
            // The trail has no one recipient and so no bell: a person's view may lag by a second.
            std::thread::sleep(limits::SWEEP_INTERVAL.to_std() / 5);
            let rows = store.trail_after(last, MAX_NEWS)?;
            last = rows.last().map_or(last, |row| row.id);
            let mut entries: Vec<Entry> = rows.into_iter().map(|row| Entry::of_trail(row, reader)).collect();
            entries.extend(jobs.news(context, reader, MAX_NEWS)?);
            entries.extend(guarded.news(context, &store, MAX_NEWS));
            entries.retain(|entry| {
                self.shows(entry, None)
                    && (out.is_json() || entry.is_new_of_mail() || self.is_worth_a_line(entry))
            });
            entries.sort_by_key(|entry| entry.at);
            show(out, &entries, &mut day)?;
        }
    }

    fn shows(&self, entry: &Entry, since: Option<Moment>) -> bool {
        let is_of = |name: &String| entry.names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let is_kind = |kind: &String| entry.kind == *kind || entry.group().as_str() == kind;
        self.who.as_ref().is_none_or(is_of)
            && (self.kind.is_empty() || self.kind.iter().any(is_kind))
            && since.is_none_or(|since| entry.at >= since)
    }

    /// The line of a message that was sent also says what became of it.
    fn is_worth_a_line(&self, entry: &Entry) -> bool {
        !matches!(entry.kind.as_str(), "offered" | "seen") || self.kind.contains(&entry.kind)
    }
}

/// A duration before now, or a moment.
fn since(text: &str) -> Result<Moment, Error> {
    let ago = Span::parse(text).map(|span| Moment(clock::now().0.saturating_sub(span.0))).ok();
    ago.or_else(|| Moment::parse(text)).ok_or_else(|| {
        Error::new(
            Code::BadDuration,
            format!("{} is neither a duration nor a moment", baton_core::frame::shown(text, 40)),
        )
        .hint("write a duration such as 30m or 2h, or a moment such as 2026-11-20T08:00:00Z")
    })
}

/// The jobs, and what was reported of them.
#[derive(Default)]
struct JobLog {
    jobs: Option<Jobs>,
    known: HashMap<String, Seen>,
}

impl JobLog {
    /// The starts and ends that were not reported before.
    fn news(&mut self, context: &CommandContext, reader: Reader, most: usize) -> Result<Vec<Entry>, Error> {
        if self.jobs.is_none() {
            self.jobs = Jobs::open_if_any(&context.home)?;
        }
        let Some(jobs) = &self.jobs else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        for job in jobs.list(JobFilter::Everywhere, most)? {
            if reader.may_see_job(&job) {
                entries.extend(Entry::of_job(&job, &mut self.known));
            }
        }
        Ok(entries)
    }
}

/// The guard's log, and how much of it was reported.
#[derive(Default)]
struct GuardLog {
    reported: Option<usize>,
    /// How long the file was then.
    length: u64,
}

impl GuardLog {
    /// The decisions that were not reported before.
    fn news(&mut self, context: &CommandContext, store: &Store, most: usize) -> Vec<Entry> {
        let length = baton_guard_runtime::log::length(&context.home);
        if self.reported.is_some() && length == self.length {
            return Vec::new();
        }
        self.length = length;
        let all = baton_guard_runtime::log::last(&context.home, usize::MAX);
        // A log that was moved aside is shorter than before: it begins again.
        let from = match self.reported {
            Some(reported) if reported <= all.len() => reported,
            Some(_) => 0,
            None => all.len().saturating_sub(most),
        };
        self.reported = Some(all.len());
        all[from..].iter().filter_map(|line| Entry::of_guard(line, store)).collect()
    }
}

fn show(out: &Out, entries: &[Entry], day: &mut Option<Civil>) -> Result<(), Error> {
    let now = clock::local(clock::now());
    for entry in entries {
        out.data(&entry.document(), || {
            let at = clock::local(entry.at);
            let is_new_day = day.is_none_or(|day| !day.is_day_of(&at)) && !at.is_day_of(&now);
            *day = Some(at);
            let heading = match is_new_day {
                true => text![out.tone(Tone::Dim, &at.date(&now)), "\n"],
                false => Text::default(),
            };
            text![heading, out.tone(Tone::Dim, &at.clock()), "  ", entry.line(*out)]
        })?;
    }
    Ok(())
}
