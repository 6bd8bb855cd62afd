//! Jobs: tasks that other agents do in the background, each watched by a worker process.
//!
//! `baton_core::job` decides what may be said about a job; this crate starts and watches real
//! programs. The record exists before the worker, and a kernel lock says whether the worker lives
//! ([`place`]). Every reader first checks whether the record is still true ([`reconcile`]). Each
//! backend has a file in [`backend`], behind one trait.
//!
//! Four modules report about jobs, each to someone else. [`asker_mail`] sends mail to the session
//! that asked for the job. [`follow_hint`] adds a hint to the result of an agent's tool call.
//! [`spawn_notifier`] starts the process that notifies people of a question, and
//! `baton_approvals::notify` is what that process does.

pub mod answers;
pub mod approve;
pub mod asker_mail;
pub mod backend;
pub mod cancel;
pub mod describe;
pub mod follow_hint;
pub mod place;
pub mod processes;
pub mod reconcile;
pub mod request;
pub mod review;
pub mod spawn_notifier;
pub mod start;
pub mod upkeep;
pub mod wait;
pub mod worker;
pub mod worktree;

use baton_core::limits::Limits;
use baton_guard_runtime::Guard;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the program has read from its surroundings, once: where jobs run and with what.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub home: PathBuf,
    /// Baton's own program, for the workers.
    pub program: PathBuf,
    /// The environment that jobs inherit.
    pub environment: Vec<(OsString, OsString)>,
    pub limits: Limits,
    pub guard: fn(&Path) -> Guard,
}

impl Runtime {
    /// The guard, with what the user has set about questions.
    pub fn guard(&self) -> Guard {
        (self.guard)(&self.home)
    }

    pub fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.iter().find(|(key, _)| key.as_os_str() == name).map(|(_, value)| value)
    }
}
