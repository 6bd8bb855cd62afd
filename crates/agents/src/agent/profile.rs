//! Who an agent is.

use crate::facts::{Facts, Quirks};
use crate::tools::Tools;

/// Names and constant facts of an agent. Every other trait builds on this one.
///
/// A minimal agent: [`facts`](Self::facts), which is a constant in its `facts.rs`.
pub trait Profile: Sync {
    /// The agent's names, its tools, its quirks, and its column in `docs/agents.md`.
    fn facts(&self) -> &'static Facts;

    /// The agent's name on baton's command line.
    fn name(&self) -> &'static str {
        self.facts().name
    }

    /// The agent's name for people.
    fn title(&self) -> &'static str {
        self.facts().title
    }

    /// The program's name on the search path.
    fn program(&self) -> &'static str {
        self.facts().program
    }

    /// The version that the adapter was verified with; `None` if it follows the documentation only.
    fn verified(&self) -> Option<&'static str> {
        self.facts().verified
    }

    /// What the agent calls its tools.
    fn tools(&self) -> &'static Tools {
        self.facts().tools
    }

    /// Where the agent behaves differently from most.
    fn quirks(&self) -> &'static Quirks {
        &self.facts().quirks
    }
}
