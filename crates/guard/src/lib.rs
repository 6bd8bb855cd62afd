//! The guard: judges what agents are about to do, what their tools gave back, and whether a turn may end.
//!
//! Pure: [`judge`] takes a call in canonical form, a set of rules and a [`World`] that answers questions about the machine, and returns a decision with the rule and
//! the reason. It starts no process, opens no store and no network, and never panics: whatever it can't understand is unknown, and unknown is asked about.

pub mod config;
pub mod files;
mod judge;
pub mod path;
pub mod permit;
pub mod redact;
pub mod rules;
pub mod secrets;
pub mod shell;
mod world;

pub use baton_core::guard::{Decision, Verdict};
pub use judge::{Call, Facts, Judgement, Moment, judge};
pub use rules::{Active, Example, Finding, Params, Rule, RuleSet, Unknown};
pub use world::{PullRequest, Repository, Told, World};
