//! Which agent a puppet plays, at which event, and what a hook printed then.

use crate::world::Done;
use baton_testkit::faults::Outcome;

/// Which agent it plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Claude,
    Codex,
}

impl Style {
    pub const BOTH: [Style; 2] = [Style::Claude, Style::Codex];

    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// An event that brings mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Prompt,
    Tools,
    Stop,
}

/// What a hook printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Printed {
    pub text: String,
    pub killed: bool,
}

impl Printed {
    /// A hook that never ran, or whose output was not read.
    pub fn nothing() -> Printed {
        Printed { text: String::new(), killed: true }
    }
}

impl From<Done> for Printed {
    #[track_caller]
    fn from(done: Done) -> Self {
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "a hook never fails: {done:?}");
        Printed { text: done.stdout, killed: false }
    }
}

impl From<Outcome> for Printed {
    fn from(outcome: Outcome) -> Self {
        Printed { text: String::from_utf8_lossy(&outcome.stdout).into_owned(), killed: outcome.killed }
    }
}
