//! The gate as this program opens it: with its places and its environment.

use crate::environment;
use baton_gate::{Gate, Places};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the host of a repository is waited for at the end of a turn: the agents wait longer for their hooks, our plugins not much.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Opens it for a home.
pub fn open(home: &Path) -> Gate {
    Gate::open(Places {
        home: home.to_owned(),
        config: environment::own_config_file(),
        named_config: environment::named_config_file(),
        user_home: environment::user_home().unwrap_or_else(|_| PathBuf::from("/")),
        cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        env: environment::get,
        now: baton_mail::now,
        patience: PATIENCE,
        aside: baton_jobs::notice::after_tool,
    })
}
