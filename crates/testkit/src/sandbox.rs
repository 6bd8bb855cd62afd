//! A fresh home, project and environment for one test.
//!
//! Owns the folder that everything happens in and the environment that programs get: of the
//! machine's own environment only the folder of `node` is passed on, which the agents' launchers
//! need. Layout: `home/`, `project/` (a git repository with one commit), `tmp/`, `bin/` (first in
//! `PATH`), `log/` (the output of started programs).

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Finished, Running};

/// One test's world. Removed on drop.
#[derive(Debug)]
pub struct Sandbox {
    root: TempDir,
    environment: BTreeMap<OsString, OsString>,
    started: AtomicUsize,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// Makes the folders and the repository.
    pub fn new() -> Sandbox {
        // Short: unix sockets live below it, and their paths are limited to about 100 bytes.
        let root = tempfile::Builder::new().prefix("bt").tempdir().expect("a folder for the sandbox");
        let mut sandbox = Sandbox { root, environment: BTreeMap::new(), started: AtomicUsize::new(0) };
        for folder in ["home", "project", "tmp", "bin", "log"] {
            fs::create_dir(sandbox.path(folder)).expect("a folder in the sandbox");
        }
        sandbox.set_base_environment();
        sandbox.init_repository();
        sandbox
    }

    fn set_base_environment(&mut self) {
        let mut path = vec![self.path("bin")];
        path.extend(find_in_path("node").and_then(|node| node.parent().map(Path::to_owned)));
        path.extend(["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"].map(PathBuf::from));
        let path = env::join_paths(path).expect("folders without a colon");
        let (home, tmp) = (self.path("home"), self.path("tmp"));
        self.set("PATH", path);
        self.set("HOME", home);
        self.set("TMPDIR", tmp);
        for (name, value) in
            [("LANG", "C.UTF-8"), ("SHELL", "/bin/sh"), ("TERM", "xterm-256color"), ("USER", "tester")]
        {
            self.set(name, value);
        }
    }

    fn init_repository(&self) {
        fs::write(self.path("home/.gitconfig"), "[user]\nname = tester\nemail = tester@example.invalid\n")
            .expect("a git configuration");
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["commit", "--quiet", "--allow-empty", "-m", "start"],
        ] {
            self.run(self.command("git").args(arguments), crate::wait::HANG).expect_ok();
        }
    }

    /// A path below the sandbox's folder.
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(below)
    }

    /// The home folder of everything that runs here.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The git repository in which agents start.
    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Sets a variable for everything started from now on.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.environment.insert(name.into(), value.into());
    }

    /// The environment that programs get, and nothing else.
    pub fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Makes `program` callable as `name` in the sandbox.
    pub fn install(&self, name: &str, program: &Path) {
        let link = self.path("bin").join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(program, &link).expect("a link in the sandbox's bin folder");
        }
    }

    /// A command with this environment only, in the project.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.environment).current_dir(self.project());
        command
    }

    /// Starts a command in its own process group, which ends with the returned value.
    pub fn start(&self, command: &mut Command) -> Running {
        Running::start(command, &self.next_log()).unwrap_or_else(|error| panic!("start {command:?}: {error}"))
    }

    /// Like [`Sandbox::start`], with `input` on standard input.
    pub fn start_with_input(&self, command: &mut Command, input: &[u8]) -> Running {
        Running::start_with_input(command, &self.next_log(), input)
            .unwrap_or_else(|error| panic!("start {command:?}: {error}"))
    }

    /// Runs a command to its end, which must come within `limit`.
    #[track_caller]
    pub fn run(&self, command: &mut Command, limit: Duration) -> Finished {
        self.start(command).finish(limit)
    }

    fn next_log(&self) -> PathBuf {
        self.path(format!("log/{}", self.started.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Where a program is in the test's own `PATH`.
pub fn find_in_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_the_sandbox_environment_and_nothing_else() {
        let mut sandbox = Sandbox::new();
        sandbox.set("EXTRA", "1");
        let limit = crate::wait::HANG;
        let printed = sandbox.run(&mut sandbox.command("env"), limit).expect_ok().stdout;
        let mut names: Vec<_> =
            printed.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
        names.sort_unstable();
        assert_eq!(names, ["EXTRA", "HOME", "LANG", "PATH", "SHELL", "TERM", "TMPDIR", "USER"]);
        let place = sandbox.run(&mut sandbox.command("pwd"), limit).expect_ok().stdout;
        assert_eq!(Path::new(place.trim()), sandbox.project().canonicalize().unwrap());
    }

    #[test]
    fn the_project_is_a_repository_with_a_commit() {
        let sandbox = Sandbox::new();
        let mut log = sandbox.command("git");
        let head = sandbox.run(log.args(["log", "--format=%s"]), crate::wait::HANG).expect_ok();
        assert_eq!(head.stdout.trim(), "start");
    }
}
