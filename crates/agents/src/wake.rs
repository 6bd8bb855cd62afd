//! The routes by which an idle session can be made to take a turn: what each is, not when it is used.
//!
//! Which are there is read off the session as it is now, with the files handed in, so all of this is pure. Deciding is `baton_core::wake`, performing
//! is `baton_mail::wake`.

use baton_core::wake::RouteKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// An idle session, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Idle<'a> {
    /// The agent's own id.
    pub session_id: &'a str,
    /// Where its conversation is written down.
    pub transcript: Option<&'a Path>,
    /// Where it works.
    pub cwd: Option<&'a Path>,
    /// Its process, where one runs it alone.
    pub pid: Option<i32>,
    /// The arguments of that process.
    pub arguments: &'a [String],
}

/// Reads a file; `None` where it can't.
pub type Read<'a> = &'a dyn Fn(&Path) -> Option<Vec<u8>>;

/// A route, with what is needed to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Our plugin pushes by itself as soon as the doorbell rings.
    Plugin,
    /// A line for a socket of the session's process.
    Socket {
        /// Where it is.
        path: PathBuf,
        /// What to write, line break included.
        line: Vec<u8>,
    },
    /// A command of the agent's own, which ends when the line is queued.
    Queue {
        /// The program.
        program: OsString,
        /// Its arguments.
        arguments: Vec<OsString>,
        /// What its environment must say besides ours.
        environment: Vec<(&'static str, PathBuf)>,
    },
    /// A hook of ours that waits in the session's background, if one does.
    Waiter,
    /// Its terminal, if it runs in one that can be typed into.
    Terminal,
}

impl Route {
    /// Its kind.
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
