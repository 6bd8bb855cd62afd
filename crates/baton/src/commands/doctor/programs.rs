//! Programs that doctor starts to see whether they answer: the agents, for their version, and
//! baton's own MCP server.

use crate::environment;
use crate::started::{ANSWER_BYTES, Started};
use baton_agents::Agent;
use baton_core::frame;
use baton_core::time::Span;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

/// How long an agent may take to say its version. They are asked at the same time, some take
/// seconds, and machines are busy.
pub const VERSION_TIMEOUT: Span = Span::seconds(15);
/// How far above a program its package's file may lie, and how much of it is read.
const MAX_PACKAGE_DEPTH: usize = 4;
const PACKAGE_BYTES: u64 = 1 << 20;
/// How long our own server may take to say hello.
const SERVER_TIMEOUT: Span = Span::seconds(3);
/// The protocol that the server is greeted in.
const PROTOCOL_VERSION: &str = "2025-06-18";

/// What a program said when it was asked for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// This one.
    Is(String),
    /// Something else, in its words.
    Nonsense(String),
    /// Nothing: it could not be started, or failed. Why.
    Failed(String),
    /// Nothing in time.
    Late,
}

/// Asks all that are there at the same time.
pub fn versions(programs: &[(&'static dyn Agent, Option<PathBuf>)]) -> Vec<Option<Version>> {
    thread::scope(|scope| {
        let ask = |(agent, program): &(&'static dyn Agent, Option<PathBuf>)| {
            let (agent, program) = (*agent, program.clone()?);
            Some(scope.spawn(move || version(agent, &program)))
        };
        let asked: Vec<_> = programs.iter().map(ask).collect();
        let lost = |_| Version::Failed("the answer was lost".to_owned());
        asked.into_iter().map(|answer| Some(answer?.join().unwrap_or_else(lost))).collect()
    })
}

fn version(agent: &dyn Agent, program: &Path) -> Version {
    if agent.quirks().writes_when_asked_for_version
        && let Some(version) = packaged_version(program)
    {
        return Version::Is(version);
    }
    // Without such a home it is asked all the same: what it writes does no harm.
    let home = if agent.quirks().writes_when_asked_for_version { ThrowAway::new().ok() } else { None };
    asked_version(program, home.as_ref().map(ThrowAway::path))
}

fn asked_version(program: &Path, home: Option<&Path>) -> Version {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    for name in environment::own_names() {
        command.env_remove(name);
    }
    if let Some(home) = home {
        command.env("HOME", home);
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
    }
    let mut started = match Started::start(command) {
        Ok(started) => started,
        Err(error) => return Version::Failed(format!("can't be started: {error}")),
    };
    let deadline = Instant::now() + VERSION_TIMEOUT.to_std();
    let answer = started.hear(deadline, |answer| answer.len() == ANSWER_BYTES);
    let status = started.end(Instant::now());
    let whole = answer.len() < ANSWER_BYTES;
    let answer = String::from_utf8_lossy(&answer);
    match (find_version(&answer), status) {
        (Some(version), _) => Version::Is(version.to_owned()),
        (None, None) if whole => Version::Late,
        (None, Some(status)) if !status.success() => Version::Failed(format!("failed: {status}")),
        (None, _) => Version::Nonsense(frame::shown(answer.trim(), 60)),
    }
}

/// The version of the npm package that has this very file as its program.
fn packaged_version(program: &Path) -> Option<String> {
    let program = program.canonicalize().ok()?;
    program.ancestors().skip(1).take(MAX_PACKAGE_DEPTH).find_map(|folder| {
        let file = baton_machine::files::open(&folder.join("package.json")).ok()?;
        let package: Value = serde_json::from_reader(file.take(PACKAGE_BYTES)).ok()?;
        let is_it = |path: &Value| {
            let path = path.as_str().map(|path| folder.join(path).canonicalize());
            path.is_some_and(|path| path.is_ok_and(|path| path == program))
        };
        let named = match &package["bin"] {
            Value::Object(programs) => programs.values().any(is_it),
            one => is_it(one),
        };
        let version = package["version"].as_str().and_then(find_version)?;
        named.then(|| version.to_owned())
    })
}

/// A home that goes when it is dropped.
struct ThrowAway(PathBuf);

impl ThrowAway {
    fn new() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("baton-doctor-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = environment::temp_dir().join(name);
        // A folder of that name that is there already may be anybody's.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        // It is among temporary files, where other programs leave some too.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// The first word that is a version: `0.61.0`, `v1.2.3-beta.1`, `2025.09.12-4852336`.
fn find_version(answer: &str) -> Option<&str> {
    let bare =
        |word| -> &str { str::trim_end_matches(word, ['.', ',', ';', ')']).trim_start_matches(['v', '(']) };
    answer.split_whitespace().map(bare).find(|word| {
        let mut parts = word.split('.');
        let is_number = |part: Option<&str>| {
            part.is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        };
        let rest_is_plain =
            word.len() <= 60 && word.bytes().all(|b| b.is_ascii_alphanumeric() || b".-+_".contains(&b));
        let third = |part: Option<&str>| {
            part.is_some_and(|part| part.bytes().next().is_some_and(|b| b.is_ascii_digit()))
        };
        is_number(parts.next()) && is_number(parts.next()) && third(parts.next()) && rest_is_plain
    })
}

/// Starts our own MCP server as an agent would, and greets it. Gives the version that it says, or
/// what is wrong.
pub fn greet_server(program: &Path, home: &Path, agent: &str) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(["mcp", "--agent", agent, "--home"]).arg(home).stdin(Stdio::piped());
    let deadline = Instant::now() + SERVER_TIMEOUT.to_std();
    let mut started = Started::start(command).map_err(|error| format!("can't be started: {error}"))?;
    let client = json!({"name": "baton-doctor", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    if let Some(stdin) = &mut started.child.stdin {
        // Whether it got there, the answer shows.
        stdin.write_all(format!("{hello}\n").as_bytes()).ok();
    }
    let answer = started.hear(deadline, |answer| answer.contains(&b'\n') || answer.len() == ANSWER_BYTES);
    let status = started.end(deadline);
    let greeting: Value = serde_json::from_slice(&answer).unwrap_or_default();
    match greeting["result"]["serverInfo"]["version"].as_str() {
        Some(version) => Ok(version.to_owned()),
        None if answer.is_empty() => Err(match status {
            Some(status) => format!("ended without an answer: {status}"),
            None => format!("did not answer within {}", SERVER_TIMEOUT.coarse()),
        }),
        None => Err(format!("answered {}", frame::shown(&String::from_utf8_lossy(&answer), 120))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the programs print that the adapters were verified with, and Cursor by its
    /// documentation.
    #[test]
    fn a_version_is_found_in_what_the_agents_print() {
        for (answer, version) in [
            ("2.1.325 (Claude Code)\n", "2.1.325"),
            ("codex-cli 0.166.0\n", "0.166.0"),
            ("1.18.33\n", "1.18.33"),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", "1.0.102"),
            ("2025.09.12-4852336\n", "2025.09.12-4852336"),
            ("v1.2.3-beta.1", "1.2.3-beta.1"),
        ] {
            assert_eq!(find_version(answer), Some(version), "{answer}");
        }
        for answer in ["", "hello", "1", "1.2", "a.b.c", "127.0.0.x/1", "1.2.3\u{1b}[31m", "..", "1..2"] {
            assert_eq!(find_version(answer), None, "{answer}");
        }
    }

    #[test]
    fn a_package_says_the_version_of_its_own_program_alone() {
        let root = tempfile::tempdir().unwrap();
        let package = root.path().join("lib/node_modules/@maker/agent");
        fs::create_dir_all(package.join("bundle/deep")).unwrap();
        for file in ["bundle/agent.js", "bundle/deep/other.js"] {
            fs::write(package.join(file), "").unwrap();
        }
        let link = root.path().join("agent");
        std::os::unix::fs::symlink(package.join("bundle/agent.js"), &link).unwrap();
        let say = |text: &str| fs::write(package.join("package.json"), text).unwrap();
        assert_eq!(packaged_version(&link), None);
        for bin in [r#""bundle/agent.js""#, r#"{"agent": "./bundle/agent.js", "x": 1}"#] {
            say(&format!(r#"{{"version": "0.61.0", "bin": {bin}}}"#));
            assert_eq!(packaged_version(&link).as_deref(), Some("0.61.0"), "{bin}");
            assert_eq!(packaged_version(&package.join("bundle/deep/other.js")), None, "{bin}");
        }
        for nonsense in [
            "{",
            r#"{"version": "0.61.0"}"#,
            r#"{"bin": "bundle/agent.js"}"#,
            r#"{"version": "new", "bin": "bundle/agent.js"}"#,
        ] {
            say(nonsense);
            assert_eq!(packaged_version(&link), None, "{nonsense}");
        }
    }

    #[test]
    fn a_throw_away_home_is_thrown_away() {
        let home = ThrowAway::new().unwrap();
        let path = home.path().to_owned();
        fs::write(path.join("left"), "").unwrap();
        drop(home);
        assert!(!path.exists());
    }

    #[test]
    fn a_server_that_does_not_greet_back_is_told() {
        let greet = |program: &str| greet_server(Path::new(program), Path::new("/h"), "claude");
        assert_eq!(greet("false"), Err("ended without an answer: exit status: 1".to_owned()));
        assert_eq!(greet("echo"), Err("answered mcp --agent claude --home /h\\n".to_owned()));
        assert!(greet("/nowhere/baton").is_err_and(|why| why.starts_with("can't be started: ")));
    }
}
