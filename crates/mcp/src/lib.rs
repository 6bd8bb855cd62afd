//! MCP server: placeholder until the real one is merged.

use baton_agents::Agent;
use baton_core::{Code, Error};
use baton_core::limits::Limits;
use std::ffi::OsString;
use std::path::PathBuf;

/// What the server runs with.
pub struct Options {
    /// Where the store lies.
    pub home: PathBuf,
    /// The agent that started it.
    pub agent: Option<&'static dyn Agent>,
    /// Where it was started.
    pub cwd: PathBuf,
    /// The environment.
    pub env: Box<dyn Fn(&str) -> Option<OsString>>,
    /// The settings, read when needed.
    pub limits: Box<dyn Fn() -> Limits>,
}

/// Serves.
pub fn serve(_options: Options) -> Result<(), Error> {
    Err(Error::new(Code::Internal, "not built yet"))
}
