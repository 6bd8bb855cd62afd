//! Opens the guard with this program's places and environment.

use crate::environment;
use baton_guard_runtime::{Guard, Places};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the guard waits for a repository's host at the end of a turn. Agents wait longer for
/// their hooks; baton's plugins wait only a little longer.
const HOST_TIMEOUT: Duration = Duration::from_millis(1500);

pub fn open(home: &Path) -> Guard {
    let (config, unknown) = match environment::own_config_file() {
        Ok(config) => (config, None),
        Err(error) => (None, Some(error)),
    };
    let guard = Guard::open(Places {
        home: home.to_owned(),
        config,
        named_config: environment::named_config_file(),
        user_home: environment::user_home().unwrap_or_else(|_| PathBuf::from("/")),
        cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        env: environment::get,
        now: baton_machine::clock::now,
        patience: HOST_TIMEOUT,
        aside: baton_jobs::follow_hint::after_tool,
        own_line: crate::cli::own_line,
    });
    match unknown {
        Some(error) => guard.without_user_file(error),
        None => guard,
    }
}
