//! The judges: from the picture of a backend to a verdict. Each looks at one thing, and can be tested by a table.
//!
//! [`all`] asks them in order. A proof of the end comes before any doubt: a backend that has finished and died has finished.

use super::watch::{Life, Watch};
use super::{Channel, Fault, Finish, Said};
use crate::time::{Moment, Span};
use crate::{Code, Error};

/// How long what may take. Each is a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Nothing new for so long is a stall.
    pub idle: Span,
    /// So often may a living tool extend that.
    pub extensions: u32,
    /// The whole may take so long.
    pub cap: Span,
    /// A shell call without a process is stuck after so many looks.
    pub stuck_looks: u32,
    /// All ways to hear it may be lost for so long.
    pub lost: Span,
    /// Its model may be out of reach for so long.
    pub retry: Span,
    /// Idle without a last word for so long is an end without an answer.
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

/// The moment of judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since the worker began, by a clock that nobody sets.
    pub since: Span,
    /// By the wall clock, for what others say about it.
    pub wall: Moment,
    /// Whether the backend can be asked at all.
    pub looks: bool,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is done, and this is the result.
    Completed(String),
    /// It has failed by itself.
    Failed(Fault),
    /// Its turn was aborted.
    Aborted,
    /// It goes on, but must not: abort its turn, and then it has failed for this reason.
    Stop(Fault),
    /// It can't be heard: look once at what it really has, and if that is no end it has failed for this reason.
    Lost(Fault),
    /// A living tool extends its time.
    Extend,
}

/// Asks every judge; the first verdict counts.
pub fn all(watch: &Watch, patience: &Patience, now: Now) -> Option<Verdict> {
    end(watch, patience, now)
        .or_else(|| gone(watch))
        .or_else(|| transport(watch, patience, now))
        .or_else(|| stuck_tool(watch, patience))
        .or_else(|| cap(watch, patience, now))
        .or_else(|| wall(watch, patience, now))
        .or_else(|| idle(watch, patience, now))
}

/// What a backend has that nobody watches any more: its end, if it has come to one.
pub fn recalled(watch: &Watch) -> Option<Verdict> {
    let settled = watch.said.as_ref().is_some_and(|said| said.finish == Finish::Absent);
    match end_by_words(watch) {
        None if watch.idle_since.is_some() && settled && watch.open_tools().next().is_none() => {
            watch.said.as_ref().map(|said| Verdict::Completed(said.text.clone()))
        }
        verdict => verdict,
    }
}

/// Has the turn ended? An error and an abort are ends. A result needs an idle backend, a last message that is a real end, and no open tool.
pub fn end(watch: &Watch, patience: &Patience, now: Now) -> Option<Verdict> {
    end_by_words(watch).or_else(|| {
        let idle_since = watch.idle_since?;
        if watch.open_tools().next().is_some() || !watch.questions.is_empty() {
            return None;
        }
        let long = now.since.0 - idle_since.0 >= patience.speechless.0;
        match &watch.said {
            // Some versions send no finish: believed once it has been idle on two looks.
            Some(Said { finish: Finish::Absent, text }) if watch.idle_looks >= 2 || (!now.looks && long) => {
                Some(Verdict::Completed(text.clone()))
            }
            said if long => Some(Verdict::Failed(speechless(said.as_ref()))),
            _ => None,
        }
    })
}

fn end_by_words(watch: &Watch) -> Option<Verdict> {
    if let Some(fault) = &watch.fault {
        return Some(Verdict::Failed(fault.clone()));
    }
    if watch.aborted {
        return Some(Verdict::Aborted);
    }
    let quiet = watch.idle_since.is_some() && watch.open_tools().next().is_none() && watch.has_final_word();
    let text = watch.said.as_ref().filter(|_| quiet)?;
    Some(Verdict::Completed(text.text.clone()))
}

fn speechless(said: Option<&Said>) -> Fault {
    let how = match said.map(|said| said.finish) {
        Some(Finish::ToolCalls) => "its last message asks for tools that never ran",
        Some(Finish::Summary) => "its last message is the summary of a compaction",
        Some(_) => "its last message ended in a way that is not known as an end",
        None => "it said nothing after the prompt",
    };
    Fault::new(Code::BackendError, format!("the agent stopped without a last word: {how}"))
        .hint("`baton job logs` shows what it did; `baton job start … --resume` lets it go on")
}

/// Is its program there?
pub fn gone(watch: &Watch) -> Option<Verdict> {
    let how = watch.gone.as_ref()?;
    Some(Verdict::Lost(
        Fault::new(Code::BackendGone, format!("the agent's program ended in the middle of the work: {how}"))
            .hint("`baton job logs` shows its last words; `--resume` lets its session go on"),
    ))
}

/// Can it be heard? One way is enough.
pub fn transport(watch: &Watch, patience: &Patience, now: Now) -> Option<Verdict> {
    let (stream, why) = watch.lost(Channel::Stream)?;
    let (since, why) = match watch.lost(Channel::Look) {
        Some((look, why_not)) => (stream.max(look), format!("{why}; {why_not}")),
        None if now.looks => return None,
        None => (stream, why.to_owned()),
    };
    (now.since.0 - since.0 >= patience.lost.0).then(|| {
        Verdict::Lost(
            Fault::new(Code::TransportLost, format!("the agent can't be heard any more: {why}"))
                .hint("its server may have been ended; `baton doctor` looks at it"),
        )
    })
}

/// Is a shell call running on paper only?
pub fn stuck_tool(watch: &Watch, patience: &Patience) -> Option<Verdict> {
    let stuck = watch.open_tools().find(|open| {
        open.running_since.is_some() && open.life == Life::Absent && open.absent >= patience.stuck_looks
    })?;
    Some(Verdict::Stop(
        Fault::new(
            Code::StuckTool,
            format!(
                "`{}` counts as running, but none of its processes was there on {} looks in a row",
                stuck.tool.what, stuck.absent
            ),
        )
        .hint("its turn was ended; `--resume` lets the agent go on from there"),
    ))
}

/// Has it taken too long in all?
pub fn cap(_watch: &Watch, patience: &Patience, now: Now) -> Option<Verdict> {
    (now.since >= patience.cap).then(|| {
        Verdict::Stop(
            Fault::new(Code::JobTimeout, format!("the job took longer than {}", patience.cap.coarse())).hint(
                format!(
                    "jobs.timeout is {}; start it with a longer --timeout, or let it go on with --resume",
                    patience.cap.coarse()
                ),
            ),
        )
    })
}

/// Does its model refuse to work? A wait that is longer than our patience is not begun.
pub fn wall(watch: &Watch, patience: &Patience, now: Now) -> Option<Verdict> {
    let retry = watch.retry.as_ref()?;
    let ahead = retry.until.map_or(Span(0), |until| until.since(now.wall));
    let behind = Span(now.since.0 - retry.since.0);
    (ahead >= patience.retry || behind >= patience.retry).then(|| {
        let code = if is_rate_limit(&retry.message) { Code::RateLimited } else { Code::BackendError };
        let error = Error::new(code, format!("the agent's model is out of reach: {}", retry.message)).hint(
            format!("jobs.retry is {}; `--resume` lets the agent go on later", patience.retry.coarse()),
        );
        Verdict::Stop(Fault { error, again_at: retry.until })
    })
}

/// Has nothing happened for too long? While it waits for a person, nothing has to. A living tool may extend it, so often.
pub fn idle(watch: &Watch, patience: &Patience, now: Now) -> Option<Verdict> {
    let quiet = Span(now.since.0 - watch.changed_at.0);
    let patience_so_far = patience.idle.0.saturating_mul(i64::from(watch.extensions) + 1);
    if !watch.questions.is_empty() || quiet.0 < patience_so_far {
        return None;
    }
    if watch.extensions < patience.extensions && watch.open_tools().any(|open| open.life == Life::Alive) {
        return Some(Verdict::Extend);
    }
    let last = watch.crumb.as_ref().map_or("nothing", |crumb| crumb.what.as_str());
    Some(Verdict::Stop(
        Fault::new(
            Code::Stalled,
            format!("nothing happened for {} seconds; the last thing was: {last}", quiet.0 / 1000),
        )
        .hint(format!(
            "jobs.idle is {}; raise it for work that is silent for longer",
            patience.idle.coarse()
        )),
    ))
}

/// Whether words of a backend or its model speak of a limit on how much may be asked.
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
