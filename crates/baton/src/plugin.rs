//! A plugin of an agent, beside what setup wrote: two ways to the same baton. The entries of a
//! plugin stand aside where setup has entries, so nothing is said, asked or offered twice.

use crate::environment;
use baton_agents::Agent;
use baton_agents::install::plugin::holds_setup;
use baton_agents::install::{Install, Scope};
use baton_core::limits;
use baton_machine::files;
use std::path::Path;

/// Whether the agent's own file says that the plugin is installed and on.
pub fn is_installed(agent: &dyn Agent) -> bool {
    let record = environment::user_home().ok().and_then(|home| agent.plugin_record(&home, &environment::get));
    record.is_some_and(|(file, name)| {
        files::text(&file, limits::AGENT_FILE_BYTES).is_ok_and(|text| text.contains(name))
    })
}

/// Whether setup has hooks for this agent and home in the person's own files. Those of a project
/// don't count: a repository could switch the guard off with a file that only looks like them. What
/// can't be read holds none: then the plugin works, and mail is still claimed once.
pub fn stands_aside(agent: &str, home: &Path) -> bool {
    let Ok(agent) = baton_agents::by_name(agent) else { return false };
    let (Ok(program), Ok(user_home)) = (environment::own_program(), environment::user_home()) else {
        return false;
    };
    let target = Install::new(&program, home, Scope::User)
        .and_then(|install| agent.target(install, &user_home, &environment::get));
    // The file with the hooks. Others may be large, and every event comes here.
    let Some(hooks) = target.ok().and_then(|target| target.files().into_iter().next()) else { return false };
    files::read(&hooks, limits::AGENT_FILE_BYTES)
        .is_ok_and(|bytes| holds_setup(&bytes, agent.name(), &home.display().to_string()))
}
