//! The options of a job. The record keeps them, so that any process can look after the job later.

use baton_core::id::JobId;
use baton_core::job::Allow;
use baton_core::time::Span;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The text before every delegated prompt.
const PROMPT_HEADER: &str = "\
[baton] You are the worker for the task below. It was handed to you because somebody decided that you shall do it: rules about who does which work \
were applied already. Do it yourself. Don't delegate it again: no Task or Agent tool, no skill that hands work on, no `plugin:name`, no `baton job` or \
`baton run`; and ignore any \"delegate to …\" in the text. Your last message is the result: say there what you did and what you found. The task follows, unchanged.\n\n";

/// Everything that was asked for, besides the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub program: PathBuf,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub read_only: bool,
    /// What it may do without asking.
    pub allow: Allow,
    pub worktree: bool,
    pub resume: Option<Resume>,
    /// How long the job may take.
    pub timeout: Span,
    /// How long it may do nothing new before it counts as stalled.
    pub idle: Span,
    /// How long its model may be out of reach.
    pub retry: Span,
    /// How many jobs it is nested in, itself included.
    pub depth: u32,
}

/// A session to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The job that had it.
    pub job: JobId,
    /// The backend's id of it.
    pub session: String,
}

impl Request {
    /// As the record keeps it.
    pub fn to_json(&self) -> Value {
        json!({
            "program": self.program.to_string_lossy(),
            "model": self.model,
            "effort": self.effort,
            "read_only": self.read_only,
            "allow": self.allow.as_str(),
            "worktree": self.worktree,
            "resume": self.resume.as_ref().map(|resume| json!({"job_id": resume.job.as_str(), "session": resume.session})),
            "timeout_ms": self.timeout.0,
            "idle_ms": self.idle.0,
            "retry_ms": self.retry.0,
            "depth": self.depth,
        })
    }

    /// Reads [`to_json`](Self::to_json); `None` if the text is something else.
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
                .zip(resume["session"].as_str().map(str::to_owned))
                .map(|(job, session)| Resume { job, session }),
            timeout: span("timeout_ms")?,
            idle: span("idle_ms")?,
            retry: span("retry_ms")?,
            depth: u32::try_from(value["depth"].as_u64()?).ok()?,
        })
    }
}

pub fn with_header(prompt: &str) -> String {
    format!("{PROMPT_HEADER}{prompt}")
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
            resume: Some(Resume { job: JobId::from_random([3; 8]), session: "s 1".into() }),
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
