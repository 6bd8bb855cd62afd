//! `mcp`: the MCP server on stdio.

use super::CommandContext;
use crate::settings::Settings;
use crate::{environment, guard, hook, plugin, print};
use baton_agents::{ALL, Agent};
use baton_core::error::Exit;
use baton_core::limits::Limits;
use baton_core::{Code, Error};
use baton_machine::process;
use clap::Args;

// `baton mcp`
#[derive(Debug, Args)]
pub struct Mcp {
    /// The agent that starts the server
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// A plugin starts the server: it offers nothing where setup has its own
    #[arg(long)]
    plugin: bool,
}

impl Mcp {
    /// Serves until stdin closes.
    pub fn run(self, context: &CommandContext) -> Result<Exit, Error> {
        let agent = match &self.agent {
            Some(name) => baton_agents::by_name(name)?,
            None => around_us()?,
        };
        let cwd = context.cwd.clone();
        let home = context.home.clone();
        let offers_tools = !(self.plugin && plugin::stands_aside(agent.name(), &home));
        baton_mcp::serve(baton_mcp::Options {
            offers_tools,
            home: context.home.clone(),
            agent,
            cwd: context.cwd.clone(),
            env: Box::new(environment::get),
            program: environment::own_program()?,
            environment: environment::all(),
            guard: guard::open,
            // A malformed file must not stop the mail; doctor shows it.
            log: Box::new(move |line| hook::append_log(&home, line)),
            limits: Box::new(move || {
                Settings::load(&cwd).map_or_else(|_| Limits::default(), |settings| settings.limits)
            }),
        })?;
        print::done()
    }
}

/// The agent that started us: the nearest one above, else the one whose environment we have. That
/// one may be an agent's in whose shell the other was started.
fn around_us() -> Result<&'static dyn Agent, Error> {
    let by_process = process::ancestors().iter().find_map(|above| {
        let arguments = process::arguments(above.pid);
        ALL.iter().copied().find(|agent| agent.is_process(&arguments))
    });
    let by_environment = || ALL.iter().copied().find(|agent| agent.shell(&environment::get).is_some());
    by_process.or_else(by_environment).ok_or_else(|| {
        Error::new(Code::UnknownAgent, "no agent started this server")
            .hint("name the agent: baton mcp --agent NAME")
    })
}
