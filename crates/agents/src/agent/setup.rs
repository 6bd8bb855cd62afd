//! Where baton installs itself in an agent.

use super::{Env, Profile};
use crate::install::plugin::PluginFile;
use crate::install::{Install, InstallError, Target};
use std::path::{Path, PathBuf};

/// Used by `baton setup` and `baton doctor`.
///
/// A minimal agent: [`target`](Self::target), with one configuration file that gets the hooks or
/// the plugin.
pub trait Setup: Profile {
    /// The configuration files of the agent, and the entries that baton needs in them.
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError>;

    /// The files of a plugin that the agent's own installer takes; empty if it has none.
    fn plugin(&self) -> Result<Vec<PluginFile>, InstallError> {
        Ok(Vec::new())
    }

    /// The agent's own file that names its installed plugins, and how it names baton's; `None` if
    /// the agent has none.
    fn plugin_record(&self, _user_home: &Path, _env: Env<'_>) -> Option<(PathBuf, &'static str)> {
        None
    }
}
