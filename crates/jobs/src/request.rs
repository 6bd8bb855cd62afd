//! What is asked for with a job, besides the prompt: kept with the record, so that anybody can look after it later.

use baton_core::id::JobId;
use baton_core::job::Allow;
use baton_core::time::Span;
use serde_json::{Value, json};
use std::path::PathBuf;

/// What stands before every delegated prompt.
const HEADER: &str = "\
[baton] You are the worker for the task below. It was handed to you because somebody decided that you shall do it: rules about who does which work \
were applied already. Do it yourself. Don't delegate it again: no Task or Agent tool, no skill that hands work on, no `plugin:name`, no `baton job` or \
`baton run`; and ignore any \"delegate to …\" in the text. Your last message is the result: say there what you did and what you found. The task follows, unchanged.\n\n";

/// Everything that was asked for, but the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The agent's program.
    pub program: PathBuf,
    /// The model to take.
    pub model: Option<String>,
    /// How hard to think.
    pub effort: Option<String>,
    /// It must not change anything.
    pub read_only: bool,
    /// What it may do without asking.
    pub allow: Allow,
    /// It works in a worktree of its own.
    pub worktree: bool,
    /// The job whose session goes on, and that session.
    pub resume: Option<(JobId, String)>,
    /// How long the whole may take.
    pub timeout: Span,
    /// Nothing new for so long is a stall.
    pub idle: Span,
    /// Its model may be out of reach for so long.
    pub retry: Span,
    /// How many jobs stand above it.
    pub depth: u32,
}

impl Request {
    /// As kept with the record.
    pub fn to_json(&self) -> Value {
        json!({
            "program": self.program.to_string_lossy(),
            "model": self.model,
            "effort": self.effort,
            "read_only": self.read_only,
            "allow": self.allow.as_str(),
            "worktree": self.worktree,
            "resume": self.resume.as_ref().map(|(job, session)| json!({"job_id": job.as_str(), "session": session})),
            "timeout_ms": self.timeout.0,
            "idle_ms": self.idle.0,
            "retry_ms": self.retry.0,
            "depth": self.depth,
        })
    }

    /// Reads [`to_json`](Self::to_json); `None` if it is not that.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let words = |key: &str| value[key].as_str().map(str::to_owned);
        let span = |key: &str| value[key].as_i64().map(Span);
        let resume = &value["resume"];
        Some(Self {
            program: PathBuf::from(value["program"].as_str()?),
            model: words("model"),
            effort: words("effort"),
            read_only: value["read_only"].as_bool()?,
            allow: Allow::parse(value["allow"].as_str()?)?,
            worktree: value["worktree"].as_bool()?,
            resume: resume["job_id"]
                .as_str()
                .and_then(JobId::parse)
                .zip(resume["session"].as_str().map(str::to_owned)),
            timeout: span("timeout_ms")?,
            idle: span("idle_ms")?,
            retry: span("retry_ms")?,
            depth: u32::try_from(value["depth"].as_u64()?).ok()?,
        })
    }
}

/// The prompt as the model gets it.
pub fn with_header(prompt: &str) -> String {
    format!("{HEADER}{prompt}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back() {
        let request = Request {
            program: "/bin/x".into(),
            model: Some("m".into()),
            effort: None,
            read_only: true,
            allow: Allow::Edits,
            worktree: false,
            resume: Some((JobId::from_random([3; 8]), "s 1".into())),
            timeout: Span(1),
            idle: Span(2),
            retry: Span(3),
            depth: 1,
        };
        assert_eq!(Request::parse(&request.to_json().to_string()), Some(request));
        assert_eq!(Request::parse("{}"), None);
    }

    #[test]
    fn the_users_words_stand_last_and_unchanged() {
        let words = "-x \"$&\" `\\n` delegate to codex\r\n\u{2028}";
        assert!(with_header(words).ends_with(words));
    }
}
