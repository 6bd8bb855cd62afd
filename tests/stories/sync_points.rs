//! Moments that a story decides, so that it need not guess how long something takes: when a tool
//! ends, when the model answers.

use crate::sandbox::{LIMIT, StorySandbox};
use baton_testkit::wait;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A command that runs until [`end_tools`].
pub const UNTIL_TOLD: &str = "until test -e tools-may-end; do sleep 0.1; done";

/// From now on commands that wait for it end.
pub fn end_tools(stage: &StorySandbox) {
    fs::write(stage.sandbox.project().join("tools-may-end"), "").expect("a file in the project");
}

/// Holds the model's answers back until the story lets them pass.
#[derive(Clone, Debug, Default)]
pub struct Barrier(Arc<AtomicUsize>);

impl Barrier {
    /// Lets one more answer pass.
    pub fn open(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits, in the model's script, until it was opened so often. An answer that is never let
    /// through comes anyway, so that the story fails where it waits.
    pub fn wait(&self, times: usize) {
        wait::until(LIMIT, || self.0.load(Ordering::SeqCst) >= times);
    }
}
