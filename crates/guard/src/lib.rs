//! The guard: judges what agents are about to do, what their tools return, and whether a turn may
//! end.
//!
//! It is pure. [`judge`] takes a request in canonical form, a set of rules and a [`World`] that
//! answers questions about the machine. It returns a decision with the rule and the reason. It
//! starts no process, opens no store and no network, and never panics. What it can't understand is
//! unknown, and the person is asked about that.

pub mod config;
pub mod files;
mod judge;
pub mod path;
pub mod permit;
pub mod reading;
pub mod redact;
pub mod rules;
pub mod secrets;
pub mod shell;
pub mod tables;
mod world;

pub use baton_core::guard::{Decision, Verdict};
pub use judge::{Facts, GuardEvent, Judgement, Request, judge};
pub use rules::{Active, Example, Finding, Params, Rule, RuleSet, Unknown};
pub use world::{ChangeScope, CleanOptions, FakeWorld, PullRequest, Repository, World};
