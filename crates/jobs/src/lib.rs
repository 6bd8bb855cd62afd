//! Jobs: a task handed to another agent in the background, watched by one process of its own.
//!
//! What may be said about a job is decided in `baton_core::job`; this crate starts and watches real programs. The record is there before the worker,
//! and a lock of the kernel's says whether the worker lives ([`place`]). Everybody who reads looks first whether what stands there is true
//! ([`reconcile`]). One file per backend in [`backend`], behind one trait.

pub mod answers;
pub mod approve;
pub mod backend;
pub mod cancel;
pub mod describe;
pub mod notice;
pub mod notify;
pub mod place;
pub mod processes;
pub mod reconcile;
pub mod request;
pub mod review;
pub mod start;
pub mod tell;
pub mod upkeep;
pub mod wait;
pub mod worker;
pub mod worktree;

use baton_core::limits::Limits;
use baton_gate::Gate;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where jobs run: what the program has read from its surroundings, once.
#[derive(Clone, Debug)]
pub struct Host {
    /// Baton's home.
    pub home: PathBuf,
    /// Baton's own program, for the workers.
    pub program: PathBuf,
    /// The environment that jobs inherit.
    pub environment: Vec<(OsString, OsString)>,
    /// The limits in force, for the mail that tells of an end.
    pub limits: Limits,
    /// Opens the guard of a home.
    pub gate: fn(&Path) -> Gate,
}

impl Host {
    /// The guard, and what the person has set about questions.
    pub fn gate(&self) -> Gate {
        (self.gate)(&self.home)
    }

    /// A variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.iter().find(|(key, _)| key.as_os_str() == name).map(|(_, value)| value)
    }
}
