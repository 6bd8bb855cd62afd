//! How baton proves that the model was shown its mail.

use super::{Env, Profile};
use crate::activity::Activity;
use baton_core::mail::{Anchor, Item};
use std::path::PathBuf;

/// Turns the lines of one transcript, in order, into items.
pub type TranscriptReader = Box<dyn FnMut(&str) -> Vec<Item>>;

/// Used when a hook checks what became of the mail that an earlier hook offered.
///
/// A minimal agent has an empty implementation: without items nothing is ever proven, so mail may
/// come twice, marked so. An agent whose plugin sees each request
/// ([`Quirks::shows_requests`](crate::facts::Quirks::shows_requests)) needs no transcript either.
pub trait Transcript: Profile {
    /// A reader for one of the agent's transcripts.
    fn transcript(&self) -> TranscriptReader {
        Box::new(|_| Vec::new())
    }

    /// What a session works on, by the end of its transcript. For lists that people read.
    fn activity(&self, _end: &[u8]) -> Activity {
        Activity::default()
    }

    /// Where the agent writes the conversation of a session, if its payloads don't say so.
    fn transcript_path(&self, _session_id: &str, _env: Env<'_>) -> Option<PathBuf> {
        None
    }

    /// The place in the transcript where the answer to the MCP call of this id appears.
    fn call_anchor(&self, call: &str) -> Anchor {
        Anchor::Call(call.to_owned())
    }
}
