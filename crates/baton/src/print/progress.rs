//! How far something is, on the person's terminal. What is shown there is [`Text`] too.

use super::{Text, stderr_can_redraw};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A spinner or a bar; nothing where no person looks.
pub struct Progress(ProgressBar);

impl Progress {
    /// Something that takes as long as it takes; `None` where stderr is no terminal that can redraw
    /// a line.
    pub fn spinner() -> Option<Self> {
        stderr_can_redraw().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(look) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                spinner.set_style(look);
            }
            spinner.enable_steady_tick(Duration::from_millis(120));
            Self(spinner)
        })
    }

    /// So many conversations.
    pub fn conversations(whose: &'static str, length: usize) -> Self {
        if !stderr_can_redraw() {
            return Self(ProgressBar::hidden());
        }
        let bar = Self(ProgressBar::new(length as u64));
        bar.say(whose);
        match ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} conversations") {
            Ok(style) => Self(bar.0.with_style(style)),
            Err(_) => bar,
        }
    }

    /// What is done now.
    #[expect(clippy::disallowed_methods, reason = "what it gets is Text")]
    pub fn say(&self, words: impl Into<Text>) {
        self.0.set_message(words.into().to_string());
    }

    /// One more is done.
    pub fn step(&self) {
        self.0.inc(1);
    }

    /// It is over and leaves no trace.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
