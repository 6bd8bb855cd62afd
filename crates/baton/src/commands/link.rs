//! `link`: the long-lived other end of an agent's plugin.

use super::CommandContext;
use crate::settings::Settings;
use crate::{environment, guard, hook, print};
use baton_core::error::Exit;
use baton_core::limits::Limits;
use baton_core::{Code, Error};
use baton_store::{Role, Store};
use clap::Args;
use std::os::fd::AsFd as _;
use std::path::Path;

// `baton link`
#[derive(Debug, Args)]
pub struct Link {
    /// The agent whose plugin calls
    agent: String,
}

impl Link {
    /// Serves until stdin closes.
    pub fn run(self, context: &CommandContext) -> Result<Exit, Error> {
        let (home, gated, log) = (context.home.clone(), context.home.clone(), context.home.clone());
        let of_jobs = context.home.clone();
        // Nobody reads what would be printed; the plugin starts us again.
        std::panic::set_hook(Box::new(move |panic| hook::append_log(&log, &format!("internal: {panic}"))));
        let options = baton_link::Options {
            home: context.home.clone(),
            agent: baton_agents::by_name(&self.agent)?,
            program: environment::own_program().ok(),
            env: environment::get,
            // A malformed file must not stop the mail; doctor shows it.
            limits: Box::new(|cwd: &Path| {
                Settings::load(cwd).map_or_else(|_| Limits::default(), |settings| settings.limits)
            }),
            guard: Box::new(move || guard::open(&gated)),
            jobs: Box::new(move |jobs| {
                // What goes wrong here is found by the next one who looks.
                let store = Store::open(&of_jobs, Role::Hook);
                store
                    .and_then(|mut store| {
                        hook::look_after_jobs(&of_jobs, &mut store, jobs, Limits::default())
                    })
                    .ok();
            }),
            log: Box::new(move |line| hook::append_log(&home, line)),
        };
        // Not std's own, which is buffered: the kernel must know better than we what there is to
        // read.
        let input = std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
        let input = input.map_err(|error| Error::new(Code::Internal, format!("no stdin: {error}")))?;
        #[expect(clippy::disallowed_methods, reason = "lines of JSON for a plugin")]
        let output = std::io::stdout();
        baton_link::serve(options, input, output)?;
        print::done()
    }
}
