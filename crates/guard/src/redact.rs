//! Secrets in what tools give back.

use crate::rules::{Rule, RuleSet};

pub(crate) const RULES: &[Rule] = &[];

/// A text without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// The text.
    pub text: String,
    /// The rule that replaced something first.
    pub rule: String,
    /// What was replaced.
    pub reason: String,
}

/// The text without its secrets; `None` where there are none.
pub fn redact(_text: &str, _rules: &RuleSet) -> Option<Redacted> {
    None
}
