//! `review`: another agent reviews what has changed, and changes nothing.

use super::Session;
use super::job::{Limit, Style, host, report, watch};
use crate::print::{Out, Tone, done};
use baton_core::error::Exit;
use baton_core::frame;
use baton_core::job::Status;
use baton_core::{Code, Error};
use baton_jobs::describe;
use baton_jobs::review::changes::{self, Changes, Diff};
use baton_jobs::review::{self, Opinion, Order, Review as Opinions, Severity};
use baton_jobs::wait::Until;
use baton_store::{JobRow, Jobs};
use clap::Args;
use serde_json::json;

// `baton review`
#[derive(Debug, Args)]
pub struct Review {
    /// Review the branch since it left that commit, instead of what is not committed
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Who reviews (else another agent than the one that asks)
    #[arg(long)]
    agent: Option<String>,
    /// Wait so long at most; the review goes on as a job (exit 2)
    #[arg(long, value_name = "DURATION")]
    max_wait: Option<String>,
}

impl Review {
    /// Has it reviewed, and shows what was found. Findings are data: the exit status is 0 with them too.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let limit = self.max_wait.as_deref().map(Limit::parse).transpose()?;
        let host = host(session)?;
        let changes = changes::since(&session.cwd, self.base.as_deref())?;
        let mut store = session.store()?;
        let me = session.identity(&mut store)?;
        let order = Order {
            agent: self.agent.as_deref(),
            cwd: &changes.root,
            timeout: host.limits.job_timeout,
            told: false,
        };
        let (agent, job) = review::ask(&host, &mut store, &me, &order, &changes)?;
        let how = if changes.diff == Diff::TooLong {
            ", too much for a prompt: it is told where to look"
        } else {
            ""
        };
        out.say(&out.tone(
            Tone::Dim,
            &format!(
                "{agent} reviews {} files changed since {}{how} (job {})",
                changes.files.len(),
                changes.base_name,
                job.id
            ),
        ));
        let mut jobs = Jobs::open(&host.home)?;
        let style = Style { out: *out, follow: false };
        let watched = watch(&host, &mut jobs, std::slice::from_ref(&job.id), Until::All, limit, style)?;
        if watched.interrupted {
            out.say(&format!("the review goes on; `baton job result {}` has what it says", job.id));
            return Ok(Exit::NotYet);
        }
        match watched.rows.as_slice() {
            [row] if row.status == Status::Completed => show(&mut jobs, row, agent, &changes, out),
            _ => report(&host, &mut jobs, watched.rows, Until::All, out),
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
    jobs.set_read(&row.id, baton_mail::now())?;
    jobs.tidy();
    done()
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
    eprintln!("error: {message}\nhint: {hint}");
    out.data(&document, || answer.to_owned())?;
    jobs.set_read(&row.id, baton_mail::now())?;
    jobs.tidy();
    Ok(Exit::Failed)
}

fn in_words(review: &Opinions, out: &Out) -> String {
    let tone = if review.opinion == Opinion::Approve { Tone::Good } else { Tone::Bad };
    let mut text = format!("{}  {}\n", out.tone(tone, review.opinion.as_str()), line(&review.summary));
    for finding in &review.findings {
        let tone = match finding.severity {
            Severity::Critical | Severity::High => Tone::Bad,
            Severity::Medium => Tone::Warn,
            Severity::Low => Tone::Dim,
        };
        let severity = out.tone(tone, &format!("{:<8}", finding.severity.as_str()));
        let sure = out.tone(Tone::Dim, &format!("({:.0} % sure)", finding.confidence * 100.0));
        text.push_str(&format!("\n{severity}  {}  {} {sure}\n", finding.place(), line(&finding.title)));
        text.push_str(&format!("          {}\n", line(&finding.body)));
        if !finding.recommendation.trim().is_empty() {
            text.push_str(&format!("          → {}\n", line(&finding.recommendation)));
        }
    }
    text
}

/// One line without control characters, whatever an agent said.
fn line(text: &str) -> String {
    frame::shown(&text.split_whitespace().collect::<Vec<_>>().join(" "), 2000)
}
