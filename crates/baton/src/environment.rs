//! Every environment variable that baton reads, and the places that follow from them. No other
//! module touches the environment.
//!
//! | variable | meaning |
//! |---|---|
//! | `BATON_HOME` | where baton keeps its state |
//! | `XDG_DATA_HOME`, `HOME` | where it is otherwise |
//! | `BATON_CONFIG` | the configuration file; it can only make the guard stricter |
//! | `XDG_CONFIG_HOME`, `HOME` | where it is otherwise |
//! | `BATON_READ_ONLY` | the guard allows no change; set in jobs that only read |
//! | `BATON_JOB`, `BATON_JOB_DEPTH`, `BATON_SERVER` | mark the processes of a job |
//! | `BATON_PI_MODE` | how Pi was started; baton's extension sets it for the hook that it runs |
//! | `VISUAL`, `EDITOR` | the editor of `baton config --edit` |
//! | `NO_COLOR`, `CLICOLOR_FORCE`, `TERM` | no colours, colours in pipes too, a terminal without them |
//! | `TZ` | the time zone; the C library reads it |
//! | `TMPDIR` | where doctor makes a home for programs that write files when they print their version |
//! | `PATH` | where the agents' programs are |
//! | `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `COPILOT_HOME` | where those agents keep their files, for setup and doctor |
//!
//! The agents' adapters read, through [`get`], the variables that say in which agent's shell this
//! process runs.

use baton_agents::install::CONFIG_RECORD;
use baton_core::{Code, Error, installed, limits};
use baton_machine::own;
use baton_mail::identity;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Reads one variable. An empty one counts as unset.
pub fn get(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The person's editor.
pub fn editor() -> OsString {
    get("VISUAL").or_else(|| get("EDITOR")).unwrap_or_else(|| "vi".into())
}

/// What decided where baton keeps its state, for people.
pub fn home_from(flag: Option<&Path>) -> &'static str {
    let set = ["BATON_HOME", "XDG_DATA_HOME"].into_iter().find(|name| get(name).is_some());
    flag.map_or(set.unwrap_or("default"), |_| "--home")
}

/// Where baton keeps its state: the flag, else `BATON_HOME`, else the user's data folder.
pub fn home(flag: Option<PathBuf>) -> Result<PathBuf, Error> {
    match flag.or_else(|| home_of(&get)) {
        Some(home) => {
            let home = std::path::absolute(&home).map_err(|error| {
                Error::new(
                    Code::StoreUnavailable,
                    format!("{} can't be baton's home: {error}", home.display()),
                )
            })?;
            RECORDED.get_or_init(|| (home.clone(), recorded_config_file(&home)));
            Ok(home)
        }
        None => Err(Error::new(
            Code::StoreUnavailable,
            "baton has no home folder: neither BATON_HOME nor HOME is set",
        )
        .hint("set BATON_HOME or HOME")),
    }
}

fn home_of(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    variable("BATON_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("XDG_DATA_HOME").map(|data| PathBuf::from(data).join("baton")))
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".local/share/baton")))
}

/// The home in use, and what it names as the person's configuration file.
static RECORDED: OnceLock<(PathBuf, Result<Option<PathBuf>, Error>)> = OnceLock::new();

/// The configuration file that a home records; `None` if it records none. A record that exists and
/// names no file is a mistake in the configuration: it must not let the environment choose.
pub fn recorded_config_file(home: &Path) -> Result<Option<PathBuf>, Error> {
    let record = home.join(CONFIG_RECORD);
    let damaged = |why: &str| {
        let what = format!("{}: {why}, so the person's configuration is not known", record.display());
        Error::new(Code::ConfigMalformed, what).hint("run `baton setup` again: it writes that file")
    };
    let text = match own::read(&record, limits::POINTER_BYTES) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(damaged(&format!("can't be read ({error})"))),
    };
    let named = text.strip_suffix(b"\n").unwrap_or(&text);
    let file = PathBuf::from(OsStr::from_bytes(named));
    let is_path = file.is_absolute() && !named.iter().any(|byte| matches!(byte, b'\0' | b'\n'));
    if is_path { Ok(Some(file)) } else { Err(damaged("names no file")) }
}

/// Records the person's configuration file in a home, so that an agent's environment can't choose
/// another. Setup does this.
pub fn record_config_file(home: &Path) -> std::io::Result<()> {
    let Some(file) = environment_config_file().and_then(|file| std::path::absolute(file).ok()) else {
        return Ok(());
    };
    own::folder(home)?;
    let draft = home.join(format!("{CONFIG_RECORD}.{}", std::process::id()));
    own::rewrite(&draft)?.write_all(&[file.as_os_str().as_bytes(), b"\n"].concat())?;
    std::fs::rename(&draft, home.join(CONFIG_RECORD))
}

/// The configuration file that the environment names. A repository can set an agent's environment,
/// so this file can't loosen the guard.
pub fn named_config_file() -> Option<PathBuf> {
    get("BATON_CONFIG").map(PathBuf::from)
}

/// The person's configuration file: the one that setup recorded in the home, else the one in the
/// user's own folder.
pub fn own_config_file() -> Result<Option<PathBuf>, Error> {
    let recorded = match RECORDED.get() {
        None => None,
        Some((_, Ok(recorded))) => recorded.clone(),
        // Setup may have repaired it meanwhile.
        Some((home, Err(_))) => recorded_config_file(home)?,
    };
    Ok(recorded.or_else(environment_config_file))
}

fn environment_config_file() -> Option<PathBuf> {
    config_file_of(&get)
}

fn config_file_of(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    variable("XDG_CONFIG_HOME")
        .map(|config| PathBuf::from(config).join("baton/config.toml"))
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".config/baton/config.toml")))
}

/// The configuration file that may give agents more rights, for a process below an agent. The
/// environment that the person gave that agent decides, because the agent's shell can set `HOME`,
/// `XDG_CONFIG_HOME` and `BATON_HOME` for any command. `None` means that no agent is above, and
/// [`own_config_file`] applies.
pub fn config_file_above_agent() -> Option<Option<PathBuf>> {
    identity::outermost_agent_variable("HOME")?;
    let variable = |name: &str| identity::outermost_agent_variable(name).flatten();
    match home_of(&variable).map_or(Ok(None), |home| recorded_config_file(&home)) {
        Ok(recorded) => Some(recorded.or_else(|| config_file_of(&variable))),
        // Nothing gives more.
        Err(_) => Some(None),
    }
}

/// The person's home folder.
pub fn user_home() -> Result<PathBuf, Error> {
    get("HOME")
        .map(PathBuf::from)
        .ok_or_else(|| Error::new(Code::Usage, "HOME is not set").hint("set HOME to your home folder"))
}

/// The names of baton's own variables that are set. The programs that it starts must not get them.
pub fn own_names() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.as_encoded_bytes().starts_with(b"BATON_")).collect()
}

/// The whole environment, for the agents that jobs run in.
pub fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// The path of this program, for processes that start it again.
pub fn own_program() -> Result<PathBuf, Error> {
    baton_machine::process::own_program()
        .map_err(|error| Error::new(Code::Internal, format!("baton can't find its own program: {error}")))
}

/// The path of this program that still names it after an upgrade, for entries in agents' files.
pub fn lasting_program() -> Result<PathBuf, Error> {
    let program = own_program()?;
    let program = program.canonicalize().unwrap_or(program);
    let stable = installed::stable_path(&program.display().to_string()).map(PathBuf::from);
    Ok(stable.filter(|stable| stable.canonicalize().is_ok_and(|real| real == program)).unwrap_or(program))
}

pub fn temp_dir() -> PathBuf {
    std::env::temp_dir()
}

/// Finds a program on the search path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = get("PATH")?;
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program)
}
