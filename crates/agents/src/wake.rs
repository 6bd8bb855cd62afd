//! The routes to an idle session: what each one is, not when it is used.
//!
//! Adapters find the routes by the session's current state and by files that the caller reads for
//! them, so this module is pure. `baton_core::wake` decides, `baton_mail::wake` performs.

use baton_core::wake::RouteKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What baton knows about an idle session.
#[derive(Clone, Copy, Debug)]
pub struct Idle<'a> {
    /// The agent's own session id.
    pub session_id: &'a str,
    pub transcript: Option<&'a Path>,
    pub cwd: Option<&'a Path>,
    /// The process, if it runs this session only.
    pub pid: Option<i32>,
    /// The arguments of that process.
    pub arguments: &'a [String],
    /// The line that wakes it.
    pub line: &'a str,
}

/// Reads a file; `None` if it can't be read.
pub type Read<'a> = &'a dyn Fn(&Path) -> Option<Vec<u8>>;

/// A route, with everything that is needed to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Our plugin pushes as soon as the bell rings.
    Plugin,
    /// A socket of the session's process takes a line.
    Socket {
        path: PathBuf,
        /// The text to write, with its line break.
        line: Vec<u8>,
    },
    /// A command of the agent queues a line for the session.
    Queue {
        program: OsString,
        arguments: Vec<OsString>,
        /// Variables to set in addition to baton's environment.
        environment: Vec<(&'static str, PathBuf)>,
    },
    /// A hook of baton that waits in the background of the session.
    Waiter,
    /// The terminal, if baton can type into it.
    Terminal,
}

impl Route {
    pub fn kind(&self) -> RouteKind {
        match self {
            Self::Plugin => RouteKind::Plugin,
            Self::Socket { .. } => RouteKind::Socket,
            Self::Queue { .. } => RouteKind::Queue,
            Self::Waiter => RouteKind::Waiter,
            Self::Terminal => RouteKind::Terminal,
        }
    }
}
