//! The real agent programs, run offline in a separate home, with only PATH from this machine's
//! environment, and never for longer than a limit.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The limit of a single run of a program.
const LIMIT: Duration = Duration::from_secs(60);

fn cache() -> PathBuf {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    var("BATON_TEST_CACHE")
        .or_else(|| Some(var("XDG_CACHE_HOME")?.join("baton-test")))
        .or_else(|| Some(var("HOME")?.join(".cache/baton-test")))
        .expect("one of BATON_TEST_CACHE, XDG_CACHE_HOME and HOME is set")
}

fn program(name: &str) -> PathBuf {
    let version = baton_agents::by_name(name).unwrap().verified().unwrap();
    let path = cache().join("agents").join(format!("{name}-{version}")).join("node_modules/.bin").join(name);
    assert!(path.exists(), "{} is missing: run scripts/test, which installs it", path.display());
    path
}

pub fn claude() -> PathBuf {
    program("claude")
}

pub fn codex() -> PathBuf {
    program("codex")
}

/// A home for one test. Not below the system's temporary directory, which Codex refuses.
pub fn sandbox() -> tempfile::TempDir {
    let dir = cache().join("tmp");
    std::fs::create_dir_all(&dir).unwrap();
    tempfile::Builder::new().prefix("setup-").tempdir_in(std::fs::canonicalize(dir).unwrap()).unwrap()
}

pub fn command(program: &Path, home: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).current_dir(dir).process_group(0);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn output(mut command: Command) -> String {
    let mut child = Owned(command.spawn().unwrap());
    let (out, err) = (child.0.stdout.take().unwrap(), child.0.stderr.take().unwrap());
    let (out, err) = (lines(out), lines(err));
    child.wait();
    // Limited too: a grandchild may hold the pipes open.
    let rest = |lines: Receiver<String>| std::iter::from_fn(move || lines.recv_timeout(LIMIT).ok());
    rest(out).chain(rest(err)).map(|line| line + "\n").collect()
}

/// A child that does not outlive the test, and neither do its own children: they share a process
/// group.
struct Owned(Child);

impl Owned {
    fn wait(&mut self) {
        let start = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < LIMIT, "the program took too long");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let group = rustix::process::Pid::from_child(&self.0);
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
            self.0.wait().ok();
        }
    }
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(from).lines().map_while(Result::ok);
        lines.map(|line| send.send(line)).take_while(Result::is_ok).count()
    });
    receive
}

/// What Codex's app server answers to `hooks/list` for a directory.
pub fn codex_hooks(home: &Path, codex_home: &Path, dir: &Path) -> Value {
    let mut command = command(&codex(), home, dir);
    command.arg("app-server").env("CODEX_HOME", codex_home).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = Owned(command.spawn().unwrap());
    let mut stdin = child.0.stdin.take().unwrap();
    let answers = lines(child.0.stdout.take().unwrap());
    let mut ask = |message: Value| writeln!(stdin, "{message}").unwrap();
    let answer = |id: u64| loop {
        let line = answers.recv_timeout(LIMIT).expect("codex app-server answers");
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == id {
            return message["result"].clone();
        }
    };
    ask(
        json!({ "id": 1, "method": "initialize", "params": { "clientInfo": { "name": "t", "version": "0" } } }),
    );
    answer(1);
    ask(json!({ "method": "initialized" }));
    ask(json!({ "id": 2, "method": "hooks/list", "params": { "cwds": [dir] } }));
    let list = answer(2)["data"][0].clone();
    drop(stdin);
    child.wait();
    list
}
