//! What the guard decides about a tool call. The rules and the engine are in crate `guard`; how an agent is told is in crate `agents`.

/// What is to happen with a tool call, a tool's output or the end of a turn. Stronger ones come later in [`Decision::strength`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// Nothing speaks against it.
    #[default]
    Allow,
    /// It goes on, and the model is told something.
    Note,
    /// The output reaches the model only as this text.
    Redact(String),
    /// The person is asked.
    Ask,
    /// It does not happen; for a stop: the turn goes on.
    Deny,
}

impl Decision {
    /// The word for it, as `guard check` prints it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Note => "note",
            Self::Redact(_) => "redact",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Which of two wins: the larger.
    pub fn strength(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Note => 1,
            Self::Redact(_) => 2,
            Self::Ask => 3,
            Self::Deny => 4,
        }
    }

    /// Whether the tool may not simply run.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Ask | Self::Deny)
    }
}

/// A decision, with the rule that made it and what the model is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What happens.
    pub decision: Decision,
    /// The id of the rule that decided; empty where none had anything to say.
    pub rule: String,
    /// One line for the model: what, why, what to do instead. Empty for a plain allow.
    pub reason: String,
}

impl Verdict {
    /// Nothing speaks against it.
    pub fn allow() -> Self {
        Self::default()
    }

    /// A decision of a rule.
    pub fn new(decision: Decision, rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { decision, rule: rule.into(), reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deny_is_stronger_than_all_else() {
        let others = [Decision::Allow, Decision::Note, Decision::Redact(String::new()), Decision::Ask];
        for other in others {
            assert!(Decision::Deny.strength() > other.strength(), "{other:?}");
        }
        assert!(!Verdict::allow().decision.holds());
    }
}
