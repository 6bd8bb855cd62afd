//! Every environment variable that baton reads, and the places that follow from them. Nothing else in the program touches the environment.
//!
//! | variable | meaning |
//! |---|---|
//! | `BATON_HOME` | where the store lies |
//! | `XDG_DATA_HOME`, `HOME` | where it lies otherwise |
//! | `BATON_CONFIG` | the configuration file; what it says about the guard only tightens |
//! | `XDG_CONFIG_HOME`, `HOME` | where it lies otherwise |
//! | `BATON_READ_ONLY` | the guard lets nothing be changed; set in jobs that only read |
//! | `BATON_JOB`, `BATON_JOB_DEPTH`, `BATON_SERVER` | mark the processes of a job |
//! | `BATON_PI_MODE` | how Pi was started; set by our extension for the hook that it runs |
//! | `NO_COLOR` | no colours |
//! | `TMPDIR` | where doctor makes a home for programs that write when they are asked for their version |
//! | `PATH` | where the agents' programs are |
//! | `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `COPILOT_HOME` | where those agents keep their files, for setup and doctor |
//!
//! The agents' own variables that say whose shell we run in are read by their adapters, through [`get`].

use baton_core::{Code, Error};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Reads one variable; empty counts as unset.
pub fn get(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Where the store lies: the flag, else `BATON_HOME`, else the user's data folder.
pub fn home(flag: Option<PathBuf>) -> Result<PathBuf, Error> {
    let chosen = flag
        .or_else(|| get("BATON_HOME").map(PathBuf::from))
        .or_else(|| get("XDG_DATA_HOME").map(|data| PathBuf::from(data).join("baton")))
        .or_else(|| get("HOME").map(|home| PathBuf::from(home).join(".local/share/baton")));
    match chosen {
        Some(home) if home.is_absolute() => Ok(home),
        Some(home) => std::path::absolute(&home).map_err(|error| {
            Error::new(Code::StoreUnavailable, format!("{} is no usable home: {error}", home.display()))
        }),
        None => {
            Err(Error::new(Code::StoreUnavailable, "there is no home for baton")
                .hint("set BATON_HOME or HOME"))
        }
    }
}

/// The user's configuration file.
pub fn config_file() -> Option<PathBuf> {
    named_config_file().or_else(own_config_file)
}

/// The configuration file that the environment names. A repository can set an agent's environment, so it loosens nothing that guards.
pub fn named_config_file() -> Option<PathBuf> {
    get("BATON_CONFIG").map(PathBuf::from)
}

/// The configuration file in the user's own folder.
pub fn own_config_file() -> Option<PathBuf> {
    get("XDG_CONFIG_HOME")
        .map(|config| PathBuf::from(config).join("baton/config.toml"))
        .or_else(|| get("HOME").map(|home| PathBuf::from(home).join(".config/baton/config.toml")))
}

/// The person's home folder.
pub fn user_home() -> Result<PathBuf, Error> {
    get("HOME")
        .map(PathBuf::from)
        .ok_or_else(|| Error::new(Code::Usage, "HOME is not set").hint("set HOME to your home folder"))
}

/// The names of baton's own variables that are set: not meant for the programs that it starts.
pub fn own_names() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.as_encoded_bytes().starts_with(b"BATON_")).collect()
}

/// The whole environment, for the agents that jobs run in.
pub fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// This program, for those that it starts again.
pub fn own_program() -> Result<PathBuf, Error> {
    std::env::current_exe()
        .map_err(|error| Error::new(Code::Internal, format!("baton does not know its own program: {error}")))
}

/// Where temporary files lie.
pub fn temp_dir() -> PathBuf {
    std::env::temp_dir()
}

/// Where a program lies on the search path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = get("PATH")?;
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program)
}
