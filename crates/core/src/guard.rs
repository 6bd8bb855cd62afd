//! The guard's decision about a tool call. Crate `guard` has the rules and the engine; crate
//! `agents` puts the decision into an agent's words.

/// A way to make an agent run without hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookSwitch {
    /// The agent's program.
    pub program: &'static str,
    /// Endings of the paths of its settings files.
    pub files: &'static [&'static str],
    /// Texts that turn hooks off in such a file, after blanks and quotes are removed, unless one of
    /// the other texts follows.
    pub words: &'static [(&'static str, &'static [&'static str])],
    /// Options of the program that turn hooks off.
    pub options: &'static [&'static str],
    /// Options of the program whose value must name this for hooks to be read.
    pub sources: &'static [(&'static str, &'static str)],
    /// Variables that give the program another folder of settings, in which there are no hooks.
    pub homes: &'static [&'static str],
}

/// What baton's parser and its table of rights say about a command line of baton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnLine {
    /// An agent may run it.
    Free,
    /// It needs a right that agents don't have: this one.
    Refused(String),
    /// It is no command of baton.
    Unreadable,
}

/// What happens to a tool call, a tool's output or the end of a turn. [`Decision::strength`] orders
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// It may go on.
    #[default]
    Allow,
    /// It goes on, and the model gets a note.
    Note,
    /// The output reaches the model only as this text.
    Redact(String),
    /// The person is asked.
    Ask,
    /// It does not happen. A turn that wants to end goes on.
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

    /// The larger one of two decisions wins.
    pub fn strength(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Note => 1,
            Self::Redact(_) => 2,
            Self::Ask => 3,
            Self::Deny => 4,
        }
    }

    /// Whether the tool must not simply run.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Ask | Self::Deny)
    }
}

/// A decision, the rule that made it, and the reason for the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// The id of the rule that decided; empty if no rule had anything to say.
    pub rule: String,
    /// One line for the model: what, why, what to do instead. Empty for a plain allow.
    pub reason: String,
}

impl Verdict {
    /// It may go on.
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
    fn a_deny_is_stronger_than_everything_else() {
        let others = [Decision::Allow, Decision::Note, Decision::Redact(String::new()), Decision::Ask];
        for other in others {
            assert!(Decision::Deny.strength() > other.strength(), "{other:?}");
        }
        assert!(!Verdict::allow().decision.holds());
    }
}
