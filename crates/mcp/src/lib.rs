//! The MCP server on stdio: one per agent session, a thin surface over `baton-mail` and
//! `baton-jobs`.
//!
//! Its tools give the model mail and jobs. One more tool, which no list shows, replaces the agent's
//! hook processes. Each call looks up its session again, because a server outlives sessions. Every
//! refusal is a tool error with baton's code and hint, never a protocol error. The server reads the
//! environment, the settings and the clock only through [`Options`] and `baton-mail`. It ends when
//! its client closes stdin.

use baton_agents::Agent;
use baton_core::limits::Limits;
use baton_core::{Code, Error};
use baton_guard_runtime::Guard;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

mod bells;
mod binding;
mod hook;
mod job_watcher;
mod server;
mod server_state;
mod tools;
mod upkeep;
mod waker;
mod wire;

/// Reads the environment. The program passes it in, because libraries must not read it.
pub type Environment = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// What the program knows and the server needs.
pub struct Options {
    /// Whose server this is.
    pub agent: &'static dyn Agent,
    /// Whether it has tools. A second server of one session has none.
    pub offers_tools: bool,
    /// Where baton keeps its state.
    pub home: PathBuf,
    /// Where the server was started. It gives the project of a session whose hooks have not run
    /// yet.
    pub cwd: PathBuf,
    pub env: Environment,
    /// The baton program, for the workers of jobs.
    pub program: PathBuf,
    /// The environment that jobs inherit: the server's own. Some agents pass on only a small part
    /// of theirs.
    pub environment: Vec<(OsString, OsString)>,
    /// Reads the settings.
    pub limits: Box<dyn Fn() -> Limits + Send + Sync>,
    /// Opens the guard of a home.
    pub guard: fn(&Path) -> Guard,
    /// Writes a line to the log, for what must not reach the agent.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Serves stdin and stdout until the client closes stdin.
pub fn serve(options: Options) -> Result<(), Error> {
    baton_mail::identity::mark_agent(options.agent);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(Code::Internal, format!("can't start the event loop: {error}")))?;
    let outcome = runtime.block_on(run(options));
    // A pending read of stdin must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

async fn run(options: Options) -> Result<(), Error> {
    let (gone, client) = watch::channel(false);
    let server = Arc::new(server_state::ServerState::new(options, client));
    let (input, output) = rmcp::transport::stdio_pipes();
    let wire = wire::Wire::new(input, output, gone);
    let upkeep = tokio::spawn(upkeep::run(Arc::clone(&server)));
    let waker = tokio::spawn(waker::run(Arc::clone(&server)));
    job_watcher::start(&server);
    let outcome = match server::Server::new(server).serve(wire).await {
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
