//! Rules that a person writes.

use crate::judge::Facts;
use baton_core::guard::Verdict;

/// A rule from a rule file.
#[derive(Clone, Debug, Default)]
pub struct Custom {
    /// Its id.
    pub id: String,
}

impl Custom {
    /// Whether it may forbid commands.
    pub fn forbids_commands(&self) -> bool {
        false
    }

    /// What it has to say.
    pub fn check(&self, _facts: &Facts<'_>) -> Option<Verdict> {
        None
    }
}
