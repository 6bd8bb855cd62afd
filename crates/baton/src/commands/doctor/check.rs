//! One check, and how checks are shown: for people in one block per agent, as data in one list.

use crate::print::{Out, Text, Tone, columns, text};
use baton_agents::Agent;
use baton_core::Error;
use serde_json::{Value, json};

/// Columns before a detail, in addition to the name of its check.
const INDENT: usize = 10;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckLevel {
    /// As it should be.
    Pass,
    /// Worth knowing; nothing is to be done.
    Note,
    /// Works less well than it could.
    Warn,
    /// Does not work.
    Fail,
}

impl CheckLevel {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Pass => Tone::Good,
            Self::Note => Tone::Dim,
            Self::Warn => Tone::Warn,
            Self::Fail => Tone::Bad,
        }
    }
}

/// What was looked at, and what was found.
#[derive(Debug)]
pub struct Check {
    name: &'static str,
    verdict: CheckLevel,
    detail: String,
    hint: Option<String>,
}

impl Check {
    /// A check with its outcome.
    pub fn new(name: &'static str, verdict: CheckLevel, detail: impl Into<String>) -> Self {
        Self { name, verdict, detail: detail.into(), hint: None }
    }

    /// A check that an error ended.
    pub fn error(name: &'static str, verdict: CheckLevel, error: &Error) -> Self {
        Self { hint: error.hint_text().map(str::to_owned), ..Self::new(name, verdict, error.message()) }
    }

    /// With what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// The checks that belong together: an agent's, or baton's own.
pub struct Block {
    /// What they are about, for people.
    pub title: &'static str,
    /// Whose they are; `None` for baton's own.
    pub agent: Option<&'static dyn Agent>,
    /// The checks.
    pub checks: Vec<Check>,
    /// Nothing but that the agent is not there: one word among others for people.
    pub absent: bool,
}

impl Block {
    /// Whether one of them fails.
    pub fn fails(&self) -> bool {
        self.checks.iter().any(|check| check.verdict == CheckLevel::Fail)
    }

    /// The checks as data. Their names say whose they are.
    pub fn documents(&self) -> impl Iterator<Item = Value> {
        self.checks.iter().map(|check| {
            let agent = self.agent.map(|agent| agent.name());
            let name = agent.map_or_else(|| check.name.to_owned(), |agent| format!("{agent} {}", check.name));
            json!({"check": name, "agent": agent, "verdict": check.verdict.as_str(), "detail": check.detail, "hint": check.hint})
        })
    }
}

/// All blocks for people; the agents that are not there in one line.
pub fn shown(out: Out, blocks: &[Block]) -> Text {
    let checks = blocks.iter().flat_map(|block| &block.checks);
    let width = checks.map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = Text::default();
    for block in blocks.iter().filter(|block| !block.absent) {
        text.push(text![out.tone(Tone::Bold, block.title), "\n"]);
        for check in &block.checks {
            let verdict = out.tone(check.verdict.tone(), check.verdict.as_str());
            let name = format_args!("  {:width$}  ", check.name);
            let detail = text![&check.detail].filled(width + INDENT, columns());
            text.push(text!["  ", verdict, name, detail, "\n"]);
            if let Some(hint) = &check.hint {
                let hint = out.tone(Tone::Dim, &format!("hint: {hint}")).filled(width + INDENT, columns());
                text.push(text!["        ", format_args!("{:width$}  ", ""), hint, "\n"]);
            }
        }
    }
    let absent: Vec<_> = blocks.iter().filter(|block| block.absent).filter_map(|block| block.agent).collect();
    if !absent.is_empty() {
        let titles: Vec<_> = absent.iter().map(|agent| agent.title()).collect();
        text.push(text![text!["not installed: ", titles.join(", ")].filled(2, columns()), "\n"]);
    }
    text
}
