//! `review`: another agent reviews what has changed, and changes nothing.

use super::CommandContext;
use super::asking::{Asking, Numbers};
use super::job::{Limit, Style, broke_off, host, report, was_seen, watch};
use crate::print::{Out, Text, Tone, columns, text};
use baton_core::error::Exit;
use baton_core::frame;
use baton_core::job::Status;
use baton_core::words::counted;
use baton_core::{Code, Error};
use baton_jobs::describe;
use baton_jobs::review::changes::{Changes, Diff, Repository};
use baton_jobs::review::{self, Opinion, Order, Review as Opinions, Severity};
use baton_jobs::wait::Until;
use baton_store::{JobRow, Jobs};
use clap::Args;
use serde_json::json;
use std::time::Instant;

// `baton review`
#[derive(Debug, Args)]
pub struct Review {
    /// Review the branch since it left this commit, instead of uncommitted changes
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// The agent that reviews (default: another one than the one that asks)
    #[arg(long)]
    agent: Option<String>,
    /// The longest time to wait; then the review goes on as a job (exit 2)
    #[arg(long, value_name = "DURATION")]
    max_wait: Option<String>,
}

impl Review {
    /// Has it reviewed, and shows what was found. The exit status says whether it approved.
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let limit = self.max_wait.as_deref().map(Limit::parse).transpose()?;
        let host = host(context)?;
        let began = Instant::now();
        let repository =
            Repository::in_command(&context.cwd, &host.environment, limit.map(|limit| limit.left(began)))?;
        let changes = repository.since(self.base.as_deref())?;
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let order = Order {
            agent: self.agent.as_deref(),
            cwd: &changes.root,
            timeout: host.limits.job_timeout,
            told: false,
        };
        let (agent, job) = review::ask(&host, &mut store, &me, &order, &changes)?;
        let how = if changes.diff == Diff::TooLong {
            ", too much for a prompt: the prompt says where to look"
        } else {
            ""
        };
        out.say(out.tone(
            Tone::Dim,
            &format!(
                "{agent} reviews {} changed since {}{how} (job {})",
                counted(changes.files.len(), "file"),
                changes.base_name,
                job.id
            ),
        ));
        let mut jobs = match Jobs::open(&host.home) {
            Ok(jobs) => jobs,
            Err(error) => return broke_off(std::slice::from_ref(&job.id), &error, out),
        };
        let style = Style { out: *out, follow: false };
        let mut asking = match Asking::of_person(context, &host, *out, Numbers::None) {
            Ok(asking) => asking,
            Err(error) => return broke_off(std::slice::from_ref(&job.id), &error, out),
        };
        let watched = watch(
            &host,
            &mut jobs,
            std::slice::from_ref(&job.id),
            Until::All,
            limit.map(|limit| limit.after(began)),
            style,
            asking.as_mut(),
        );
        let watched = match watched {
            Ok(watched) => watched,
            Err(error) => return broke_off(std::slice::from_ref(&job.id), &error, out),
        };
        if watched.interrupted {
            out.say(format!("the review goes on; `baton job result {}` shows its result", job.id));
            return Ok(Exit::NotYet);
        }
        match watched.rows.as_slice() {
            [row] if row.status == Status::Completed => {
                let exit = show(&mut jobs, row, agent, &changes, out)?;
                out.afterwards(was_seen(context, &host, row));
                Ok(exit)
            }
            _ => report(context, &host, &mut jobs, watched.rows, Until::All, out),
        }
    }
}

fn show(jobs: &mut Jobs, row: &JobRow, agent: &str, changes: &Changes, out: &Out) -> Result<Exit, Error> {
    let answer = row.result.as_deref().unwrap_or_default();
    let review = match Opinions::parse(answer) {
        Ok(review) => review,
        Err(why) => return show_raw(jobs, row, agent, answer, &why, out),
    };
    let mut document = review.to_json();
    document["job_id"] = json!(row.id.as_str());
    document["agent"] = json!(agent);
    document["base"] = json!(changes.base);
    document["elapsed_ms"] = json!(describe::elapsed(row).0);
    document["files"] = json!(changes.files.len());
    out.data(&document, || in_words(&review, out))?;
    out.afterwards(jobs.set_read(&row.id, baton_machine::clock::now()));
    jobs.tidy();
    Ok(match review.opinion {
        Opinion::Approve => Exit::Done,
        Opinion::RequestChanges => Exit::Failed,
    })
}

/// What is no review is shown as it came.
fn show_raw(
    jobs: &mut Jobs,
    row: &JobRow,
    agent: &str,
    answer: &str,
    why: &str,
    out: &Out,
) -> Result<Exit, Error> {
    let message = format!("the answer of {agent} is no review: {why}");
    let hint = format!("it is shown as it came; `baton job result {}` shows it again", row.id);
    let document = json!({
        "error": {"code": Code::BadReview.as_str(), "message": message, "hint": hint},
        "job_id": row.id.as_str(), "agent": agent, "raw": answer,
    });
    out.trouble(&message, Some(&hint));
    out.data(&document, || answer.to_owned())?;
    out.afterwards(jobs.set_read(&row.id, baton_machine::clock::now()));
    jobs.tidy();
    Ok(Exit::Failed)
}

/// Columns before what a finding says.
const FINDING_INDENT: usize = 10;

fn in_words(review: &Opinions, out: &Out) -> Text {
    let tone = if review.opinion == Opinion::Approve { Tone::Good } else { Tone::Bad };
    let head = text![out.tone(tone, review.opinion.as_str()), "  ", line(&review.summary)];
    let mut text = text![head.filled(0, columns()), "\n"];
    for finding in &review.findings {
        let tone = match finding.severity {
            Severity::Critical | Severity::High => Tone::Bad,
            Severity::Medium => Tone::Warn,
            Severity::Low => Tone::Dim,
        };
        let severity = out.tone(tone, &format!("{:<8}", finding.severity.as_str()));
        let sure = out.tone(Tone::Dim, &format!("({:.0} % sure)", finding.confidence * 100.0));
        let place = format!("{}  {} ", finding.place(), line(&finding.title));
        let filled = |text: Text| text.filled(FINDING_INDENT, columns());
        text.push(text!["\n", severity, "  ", filled(text![place, sure]), "\n"]);
        text.push(text!["          ", filled(text![line(&finding.body)]), "\n"]);
        if !finding.recommendation.trim().is_empty() {
            let what = text!["→ ", line(&finding.recommendation)];
            text.push(text!["          ", filled(what), "\n"]);
        }
    }
    text
}

/// One line without control characters, whatever an agent said.
fn line(text: &str) -> String {
    frame::shown(&text.split_whitespace().collect::<Vec<_>>().join(" "), 2000)
}
