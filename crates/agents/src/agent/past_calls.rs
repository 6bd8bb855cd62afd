//! The tool calls of past conversations.

use super::{Env, Profile};
use crate::history::{History, HistoryReader};
use std::path::Path;
use std::time::SystemTime;

/// Used by `baton guard replay`, which checks past calls against today's rules, and to find out
/// whether a call ran that a person confirmed.
///
/// A minimal agent has an empty implementation: its past is unreadable.
pub trait PastCalls: Profile {
    /// Where the agent keeps past conversations; only those that were changed since a time.
    fn history(&self, _user_home: &Path, _since: Option<SystemTime>, _env: Env<'_>) -> History {
        History::Unreadable("the place of its conversations is not documented")
    }

    /// A reader for the calls of one conversation, from its first line.
    fn history_reader(&self, _file: &Path) -> HistoryReader {
        Box::new(|_| Vec::new())
    }
}
