//! One test's world: a home, a project, and the real program with a cleared environment.
//!
//! Every call has a limit and a watchdog. A command is run as an agent's session (by its
//! environment), as a script (no terminal, no agent above) or as the person (on a pseudo-terminal).
//! Homes can be saved and put back, so that one prepared world serves many kill points.

use baton_testkit::{Sandbox, sandbox};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// No call of baton may take longer; only a broken one does.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What a call left behind.
#[derive(Clone, Debug)]
pub struct Done {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Done {
    /// Fails the test with everything that was printed unless it ended with `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr))
    }

    /// Expects a failure with this exit code and error code, on stderr and as JSON on stdout; gives
    /// its hint.
    #[track_caller]
    pub fn expect_error(self, exit: i32, code: &str) -> String {
        let done = self.expect(exit);
        let error = &done.json()["error"];
        assert_eq!(error["code"], code, "{error}");
        let message = error["message"].as_str().expect("a message");
        assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
        assert!(done.stderr.starts_with(&format!("error: {message}\n")), "stderr: {}", done.stderr);
        let hint = error["hint"].as_str().unwrap_or_default().to_owned();
        assert!(
            hint.is_empty() || done.stderr.contains(&format!("hint: {hint}\n")),
            "stderr: {}",
            done.stderr
        );
        hint
    }
}

/// A world.
pub struct World {
    sandbox: Sandbox,
    home: PathBuf,
}

impl World {
    /// An empty one: no store yet.
    pub fn new() -> World {
        let mut sandbox = Sandbox::new();
        let home = sandbox.path("baton");
        sandbox.set("BATON_HOME", &home);
        sandbox.set("NO_COLOR", "1");
        for folder in ["claude", "codex", "other/.git"] {
            fs::create_dir_all(sandbox.path(folder)).expect("a folder");
        }
        fs::write(sandbox.path("other/.git/HEAD"), "ref: refs/heads/main\n").expect("a repository");
        World { sandbox, home }
    }

    /// One in which two agents may write to each other without end.
    pub fn talkative() -> World {
        let world = World::new();
        world.configure("[limits]\npair_messages = 10000\nhops = 100\n");
        world
    }

    /// Writes the user's configuration.
    pub fn configure(&self, text: &str) {
        let folder = self.sandbox.path("home/.config/baton");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("config.toml"), text).expect("a configuration");
    }

    /// Where the store is.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A path in this world.
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.sandbox.path(below)
    }

    /// The folder that everybody works in.
    pub fn project(&self) -> PathBuf {
        self.sandbox.project()
    }

    /// A program with this world's environment, in the project.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.sandbox.command(program)
    }

    /// The program under test.
    pub fn baton(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(program());
        command.args(arguments);
        command
    }

    /// Runs baton as a script: without a terminal, even where the tests run in one.
    pub fn script(&self, arguments: &[&str]) -> Done {
        self.script_with(arguments, b"")
    }

    /// The same with something on standard input.
    pub fn script_with(&self, arguments: &[&str], input: &[u8]) -> Done {
        run(self.as_script(arguments), input)
    }

    /// The command of a script.
    pub fn as_script(&self, arguments: &[&str]) -> Command {
        let Some(setsid) = sandbox::find_in_path("setsid") else { return self.baton(arguments) };
        let mut command = self.command(setsid);
        command.arg("--wait").arg(program()).args(arguments);
        command
    }

    /// Runs a shell command line on a pseudo-terminal; stdout has everything that was shown there.
    pub fn on_terminal(&self, line: &str, environment: &[(&str, &str)]) -> Done {
        let mut command = self.command("script");
        command
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .envs(environment.iter().copied());
        run(command, b"")
    }

    /// Runs baton as the person at a terminal. Panics below an agent: ask [`World::has_person`]
    /// first.
    pub fn person(&self, arguments: &[&str]) -> Done {
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        self.on_terminal(&format!("{} {}", quoted(program()), words.join(" ")), &[])
    }

    /// Whether a terminal makes a person here. It does not when the tests themselves run below an
    /// agent; then says so.
    pub fn has_person(&self) -> bool {
        let kind = self.person(&["whoami", "--json"]).json()["kind"].clone();
        if kind != "person" {
            eprintln!("skipped: the tests run below an agent, so nobody here is the person");
        }
        kind == "person"
    }

    /// Everything that was ever sent, with the state of each delivery.
    pub fn mail(&self) -> Vec<Value> {
        let done = self.script(&["mail", "--limit", "100000", "--json"]).expect(0);
        serde_json::from_str(&done.stdout).expect("a list")
    }

    /// The state of a message at its only recipient.
    #[track_caller]
    pub fn state(&self, message: &str) -> String {
        let done = self.script(&["mail", message, "--json"]).expect(0);
        done.json()["deliveries"][0]["state"].as_str().expect("a state").to_owned()
    }

    /// A participant as `who --all` shows it.
    #[track_caller]
    pub fn who(&self, session: &str) -> Value {
        let all = self.script(&["who", "--all", "--json"]).expect(0).json();
        let found = all.as_array().into_iter().flatten().find(|row| row["session_id"] == session);
        found.unwrap_or_else(|| panic!("{session} is not in {all}")).clone()
    }

    /// The lines that hooks have logged.
    pub fn hook_log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.home.join("hook.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Keeps a copy of the home.
    pub fn save(&self) -> PathBuf {
        let copy = self.path("saved");
        fs::remove_dir_all(&copy).ok();
        copy_folder(&self.home, &copy);
        copy
    }

    /// Puts the copy back. Nothing may be running.
    pub fn restore(&self, copy: &Path) {
        fs::remove_dir_all(&self.home).expect("nothing holds the home");
        copy_folder(copy, &self.home);
    }
}

/// The program under test.
pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_baton")
}

/// How often a random or racing test is repeated: `BATON_ROUNDS`, else `default`.
pub fn rounds(default: usize) -> usize {
    std::env::var("BATON_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs a command to its end.
pub fn run(mut command: Command, input: &[u8]) -> Done {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (ended, watch) = mpsc::channel::<()>();
    let pid = Pid::from_child(&child);
    let watchdog = thread::spawn(move || {
        let late = watch.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            kill_process(pid, Signal::KILL).ok();
        }
        late
    });
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = thread::spawn(move || stdin.write_all(&input).ok());
    let output = child.wait_with_output().expect("its output");
    drop(ended);
    writer.join().expect("the writer ends");
    assert!(!watchdog.join().expect("the watchdog ends"), "{command:?} ran for more than {LIMIT:?}");
    done(output.status, &output.stdout, &output.stderr)
}

/// What is left of a program that ended.
pub fn done(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Done {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new folder");
    fs::set_permissions(to, fs::metadata(from).expect("a folder").permissions()).expect("its rights");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}
