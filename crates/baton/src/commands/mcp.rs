//! `mcp`: the MCP server on stdio.

use super::Session;
use crate::settings::Settings;
use crate::{environment, print};
use baton_core::Error;
use baton_core::error::Exit;
use baton_core::limits::Limits;
use clap::Args;

/// `baton mcp`
#[derive(Debug, Args)]
pub struct Mcp {
    /// The agent that starts the server
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

impl Mcp {
    /// Serves until stdin closes.
    pub fn run(self, session: &Session) -> Result<Exit, Error> {
        let agent = self.agent.as_deref().map(baton_agents::by_name).transpose()?;
        let cwd = session.cwd.clone();
        baton_mcp::serve(baton_mcp::Options {
            home: session.home.clone(),
            agent,
            cwd: session.cwd.clone(),
            env: Box::new(environment::get),
            // A malformed file must not stop the mail; doctor shows it.
            limits: Box::new(move || Settings::load(&cwd).map_or_else(|_| Limits::default(), |settings| settings.limits)),
        })?;
        print::done()
    }
}
