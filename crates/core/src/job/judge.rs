//! The judges: each looks at one aspect of a backend's picture and may reach a verdict. Each can be
//! tested by a table.
//!
//! [`all`] asks them in order. A proof of the end comes first: a backend that finished and then
//! died has finished.

use super::watch::{Life, Retry, Watch};
use super::{Channel, Fault, Finish, Said};
use crate::time::{Moment, Span};
use crate::{Code, Error};

/// How long each wait may take. Most are settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A backend that shows nothing new for this long has stalled.
    pub idle: Span,
    /// How often a living tool may extend `idle`.
    pub extensions: u32,
    /// How long the job may take in all.
    pub cap: Span,
    /// A shell call is stuck after this many looks in a row without a process.
    pub stuck_looks: u32,
    /// How long all channels to the backend may be lost.
    pub lost: Span,
    /// How long the backend's model may be out of reach.
    pub retry: Span,
    /// A backend that is idle this long without a last message has ended without an answer.
    pub speechless: Span,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            idle: Span::minutes(60),
            extensions: 3,
            cap: Span::minutes(240),
            stuck_looks: 3,
            lost: Span::seconds(5),
            retry: Span::minutes(10),
            speechless: Span::seconds(10),
        }
    }
}

/// The time at which the judges are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since the worker began, by a clock that can't be set.
    pub since: Span,
    /// By the wall clock, to compare with times that others name.
    pub wall: Moment,
    /// Whether the backend can be asked at all.
    pub looks: bool,
}

/// What the worker must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobVerdict {
    /// It is done, and this is the result.
    Completed(String),
    /// It has failed by itself.
    Failed(Fault),
    Aborted,
    /// It runs but must stop: abort its turn; then it has failed for this reason.
    Stop(Fault),
    /// No channel is left: look once at what it has. If that is no end, it has failed for this
    /// reason.
    Lost(Fault),
    /// A living tool extends its time.
    Extend,
}

/// Asks every judge; the first verdict counts.
pub fn all(watch: &Watch, patience: &Patience, now: Now) -> Option<JobVerdict> {
    end(watch, patience, now)
        .or_else(|| gone(watch))
        .or_else(|| transport(watch, patience, now))
        .or_else(|| stuck_tool(watch, patience))
        .or_else(|| cap(watch, patience, now))
        .or_else(|| wall(watch, patience, now))
        .or_else(|| idle(watch, patience, now))
}

/// The end of a backend that no worker watches any more, if it reached one.
pub fn recalled(watch: &Watch) -> Option<JobVerdict> {
    let settled = watch.said.as_ref().is_some_and(|said| said.finish == Finish::Absent);
    match end_by_words(watch) {
        None if watch.idle_since.is_some() && settled && watch.open_tools().next().is_none() => {
            watch.said.as_ref().map(|said| JobVerdict::Completed(said.text.clone()))
        }
        verdict => verdict,
    }
}

/// Has the turn ended? An error and an abort are ends. A result needs an idle backend, a last
/// message that is a real end, and no open tool.
pub fn end(watch: &Watch, patience: &Patience, now: Now) -> Option<JobVerdict> {
    end_by_words(watch).or_else(|| {
        let idle_since = watch.idle_since?;
        if watch.open_tools().next().is_some() || !watch.questions.is_empty() {
            return None;
        }
        let long = now.since.0 - idle_since.0 >= patience.speechless.0;
        match &watch.said {
            // Some versions send no finish. The end counts once the backend was idle on two looks.
            Some(Said { finish: Finish::Absent, text }) if watch.idle_looks >= 2 || (!now.looks && long) => {
                Some(JobVerdict::Completed(text.clone()))
            }
            said if long => Some(JobVerdict::Failed(speechless(said.as_ref()))),
            _ => None,
        }
    })
}

fn end_by_words(watch: &Watch) -> Option<JobVerdict> {
    if let Some(fault) = &watch.fault {
        return Some(JobVerdict::Failed(fault.clone()));
    }
    if watch.aborted {
        return Some(JobVerdict::Aborted);
    }
    let quiet = watch.idle_since.is_some() && watch.open_tools().next().is_none() && watch.has_final_word();
    let text = watch.said.as_ref().filter(|_| quiet)?;
    Some(JobVerdict::Completed(text.text.clone()))
}

fn speechless(said: Option<&Said>) -> Fault {
    let how = match said.map(|said| said.finish) {
        Some(Finish::ToolCalls) => "its last message asks for tools that never ran",
        Some(Finish::Summary) => "its last message is the summary of a compaction",
        Some(_) => "its last message ended in an unknown way",
        None => "it said nothing after the prompt",
    };
    Fault::new(Code::BackendError, format!("the agent stopped without a final answer: {how}"))
        .hint("`baton job logs` shows what it did; `baton job start … --resume` continues it")
}

/// Does its program run?
pub fn gone(watch: &Watch) -> Option<JobVerdict> {
    let how = watch.gone.as_ref()?;
    Some(JobVerdict::Lost(
        Fault::new(Code::BackendGone, format!("the agent's program ended in the middle of the work: {how}"))
            .hint("`baton job logs` shows its last words; `--resume` continues its session"),
    ))
}

/// Is a channel to it left? One is enough.
pub fn transport(watch: &Watch, patience: &Patience, now: Now) -> Option<JobVerdict> {
    let (stream, why) = watch.lost(Channel::Stream)?;
    let (since, why) = match watch.lost(Channel::Look) {
        Some((look, why_not)) => (stream.max(look), format!("{why}; {why_not}")),
        None if now.looks => return None,
        None => (stream, why.to_owned()),
    };
    (now.since.0 - since.0 >= patience.lost.0).then(|| {
        JobVerdict::Lost(
            Fault::new(Code::TransportLost, format!("the connection to the agent is lost: {why}"))
                .hint("its server may have stopped; `baton doctor` checks it"),
        )
    })
}

/// Does a shell call count as running although it has no process?
pub fn stuck_tool(watch: &Watch, patience: &Patience) -> Option<JobVerdict> {
    let stuck = watch.open_tools().find(|open| {
        open.running_since.is_some() && open.life == Life::Absent && open.absent >= patience.stuck_looks
    })?;
    Some(JobVerdict::Stop(
        Fault::new(
            Code::StuckTool,
            format!(
                "`{}` counts as running, but {} checks in a row found none of its processes",
                stuck.tool.what, stuck.absent
            ),
        )
        .hint("its turn was stopped; `--resume` continues from there"),
    ))
}

/// Has it taken too long in all?
pub fn cap(_watch: &Watch, patience: &Patience, now: Now) -> Option<JobVerdict> {
    (now.since >= patience.cap).then(|| {
        JobVerdict::Stop(
            Fault::new(Code::JobTimeout, format!("the job took longer than {}", patience.cap.coarse())).hint(
                format!(
                    "jobs.timeout is {}; start it with a longer --timeout, or continue it with --resume",
                    patience.cap.coarse()
                ),
            ),
        )
    })
}

/// Is its model out of reach? A wait that would be longer than the limit is not started.
pub fn wall(watch: &Watch, patience: &Patience, now: Now) -> Option<JobVerdict> {
    let retry = watch.retry.as_ref()?;
    let ahead = retry.until.map_or(Span(0), |until| until.since(now.wall));
    let behind = Span(now.since.0 - retry.since.0);
    let hint = || format!("jobs.retry is {}; `--resume` continues later", patience.retry.coarse());
    (ahead >= patience.retry || behind >= patience.retry).then(|| out_of_reach(retry, hint()))
}

fn out_of_reach(retry: &Retry, hint: String) -> JobVerdict {
    let code = if is_rate_limit(&retry.message) { Code::RateLimited } else { Code::BackendError };
    let error = Error::new(code, format!("the agent's model is out of reach: {}", retry.message)).hint(hint);
    JobVerdict::Stop(Fault { error, again_at: retry.until })
}

/// Has nothing happened for too long? While it waits for a person, nothing has to. A living tool
/// extends the time, a limited number of times.
pub fn idle(watch: &Watch, patience: &Patience, now: Now) -> Option<JobVerdict> {
    let quiet = Span(now.since.0 - watch.changed_at.0);
    let patience_so_far = patience.idle.0.saturating_mul(i64::from(watch.extensions) + 1);
    if !watch.questions.is_empty() || quiet.0 < patience_so_far {
        return None;
    }
    if watch.extensions < patience.extensions && watch.open_tools().any(|open| open.life == Life::Alive) {
        return Some(JobVerdict::Extend);
    }
    // It is quiet because its model refuses it, so that is the reason to report.
    if let Some(retry) = &watch.retry {
        let hint = format!("jobs.idle is {}; `--resume` continues later", patience.idle.coarse());
        return Some(out_of_reach(retry, hint));
    }
    let last = watch.crumb.as_ref().map_or("nothing", |crumb| crumb.what.as_str());
    Some(JobVerdict::Stop(
        Fault::new(
            Code::Stalled,
            format!("nothing happened for {} seconds; the last thing was: {last}", quiet.0 / 1000),
        )
        .hint(format!("jobs.idle is {}; raise it if the work is silent for longer", patience.idle.coarse())),
    ))
}

/// Whether a message of a backend or its model is about a limit on requests.
pub fn is_rate_limit(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    [
        "429",
        "rate limit",
        "rate_limit",
        "ratelimit",
        "quota",
        "too many requests",
        "usage limit",
        "overloaded",
    ]
    .iter()
    .any(|sign| words.contains(sign))
}

#[cfg(test)]
mod tests;
