//! How mail reaches an idle session.

use super::{Env, HookCodec};
use crate::screen::Screen;
use crate::wake::{Idle, Read, Route};
use baton_core::event::EventKind;
use baton_core::id::Nonce;
use baton_core::session::State;
use baton_core::time::Moment;
use std::path::PathBuf;

/// Used when mail arrives for a session that does nothing, and to find out whether a session really
/// does nothing.
///
/// A minimal agent has an empty implementation: its mail waits for the next prompt.
pub trait Waking: HookCodec {
    /// The routes by which an idle session can be made to take a turn, best first. baton uses a
    /// route only if it is really there.
    fn routes(&self, _idle: &Idle<'_>, _read: Read<'_>) -> Vec<Route> {
        if self.context_limit(EventKind::IdleNotice).is_some() { vec![Route::Plugin] } else { Vec::new() }
    }

    /// A message that makes our plugin push mail into an idle session; `None` if nothing can be
    /// pushed. The limit of its text is that of [`EventKind::IdleNotice`].
    fn push(&self, _push: &Push<'_>) -> Option<serde_json::Value> {
        None
    }

    /// A message that makes our plugin wake an idle session with this line. Its prompt hook then
    /// brings the mail. `None` if a push carries the mail itself.
    fn wake(&self, _session_id: &str, _line: &str) -> Option<serde_json::Value> {
        None
    }

    /// Whether a hook should wait in the background of this session to wake it, by the hook's
    /// environment.
    fn wants_waiter(&self, _env: Env<'_>) -> bool {
        false
    }

    /// What the agent's terminal shows, by a capture with colours. Only a screen that is recognised
    /// for certain is ready to be typed into.
    fn screen(&self, _capture: &str) -> Screen {
        Screen::Unknown
    }

    /// Whether a user sits in front of this process of the agent.
    fn is_client(&self, _args: &[String]) -> bool {
        true
    }

    /// When the user interrupted the last turn, by the end of the transcript; `None` if that turn
    /// went on, ended in another way, or the transcript does not tell. An agent that tells holds
    /// back what is queued for the session until its user types.
    fn interrupted_at(&self, _transcript_end: &[u8]) -> Option<Moment> {
        None
    }

    /// The file in which the agent itself records what a session does, by its process and
    /// transcript; `None` if there is none.
    fn registry(&self, _pid: i32, _transcript: &str) -> Option<PathBuf> {
        None
    }

    /// What that file says about a session.
    fn registry_state(&self, _file: &[u8], _session_id: &str) -> Option<State> {
        None
    }
}

/// Mail to push into an idle session.
#[derive(Clone, Copy, Debug)]
pub struct Push<'a> {
    /// The agent's own session id.
    pub session_id: &'a str,
    /// The framed mail.
    pub text: &'a str,
    /// The lines about it for the person at the terminal.
    pub glance: Option<&'a str>,
    /// The offer's nonce. It stays the same when the push is repeated.
    pub nonce: &'a Nonce,
    /// When the offer was made. It stays the same too.
    pub made_at: Moment,
}
