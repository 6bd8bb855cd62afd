//! The MCP server on stdio: one per agent session, a thin surface over `baton-mail` and `baton-jobs`.
//!
//! Its tools are mail and jobs for the model; one more tool, which no list shows, is the agent's hooks without a process. Whose session a call
//! belongs to is looked up with each call, because a server outlives sessions. Every refusal is a tool error with baton's code and
//! hint, never an error of the protocol. It reads no environment, configuration or clock of its own accord beyond what [`Options`] and
//! `baton-mail` give it, and it ends when its client closes stdin.

use baton_agents::Agent;
use baton_core::limits::Limits;
use baton_core::{Code, Error};
use baton_gate::Gate;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

mod bells;
mod binding;
mod desk;
mod hook;
mod overseer;
mod server;
mod tools;
mod upkeep;
mod waker;
mod wire;

/// Reads the environment; passed in, because libraries don't.
pub type Environment = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// What the program knows and the server needs.
pub struct Options {
    /// Whose server this is.
    pub agent: &'static dyn Agent,
    /// Where baton keeps its state.
    pub home: PathBuf,
    /// Where the server was started: the project of a session whose hooks have not spoken yet.
    pub cwd: PathBuf,
    /// Reads the environment.
    pub env: Environment,
    /// Baton's own program, for the workers of jobs.
    pub program: PathBuf,
    /// The environment that jobs inherit: the server's own, of which some agents leave little.
    pub environment: Vec<(OsString, OsString)>,
    /// Reads the settings.
    pub limits: Box<dyn Fn() -> Limits + Send + Sync>,
    /// Opens the guard of a home.
    pub gate: fn(&Path) -> Gate,
    /// Writes a line to the log: for what may not reach the agent.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Serves stdin and stdout until the client closes stdin.
pub fn serve(options: Options) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(Code::Internal, format!("can't start the event loop: {error}")))?;
    let outcome = runtime.block_on(run(options));
    // A read of stdin that nobody waits for any more must not hold the process.
    runtime.shutdown_background();
    outcome
}

async fn run(options: Options) -> Result<(), Error> {
    let (gone, client) = watch::channel(false);
    let desk = Arc::new(desk::Desk::new(options, client));
    let (input, output) = rmcp::transport::stdio_pipes();
    let wire = wire::Wire::new(input, output, gone);
    let upkeep = tokio::spawn(upkeep::keep(Arc::clone(&desk)));
    let waker = tokio::spawn(waker::keep(Arc::clone(&desk)));
    overseer::begin(&desk);
    let outcome = match server::Server::new(desk).serve(wire).await {
        Ok(running) => running
            .waiting()
            .await
            .map(drop)
            .map_err(|error| Error::new(Code::Internal, format!("the server broke: {error}"))),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::TransportError { error, .. }) => {
            Err(Error::new(Code::OutputClosed, format!("the client can't be answered: {error}")))
        }
        Err(error) => Err(Error::new(Code::Internal, format!("the client can't be served: {error}"))),
    };
    upkeep.abort();
    waker.abort();
    outcome
}
