//! The demo's stage: a throw-away home, a project, and the programs that the demo starts there.

use super::broken;
use crate::environment;
use baton_core::Error;
use baton_core::id::MessageId;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a job of the demo runs: it speaks the lines of `claude -p`, and its answer is in the
/// script.
const SCRIPTED_CLAUDE: &str = r#"#!/bin/sh
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"demo-job"}'
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"The test reads the clock twice."}],"stop_reason":"end_turn"}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"The test reads the clock twice.","stop_reason":"end_turn"}'
while read -r line; do :; done
"#;

/// The longest that a step may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A throw-away home and project. Dropping it removes both.
#[derive(Debug)]
pub struct Stage {
    root: PathBuf,
    program: PathBuf,
    /// The person's search path, behind the stage's programs.
    path: OsString,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub exit: Option<i32>,
}

impl Ran {
    pub fn from_json(reply: &Value) -> Self {
        let text = |key: &str| reply[key].as_str().unwrap_or_default().to_owned();
        let exit = reply["exit"].as_i64().and_then(|exit| i32::try_from(exit).ok());
        Self { stdout: text("stdout"), stderr: text("stderr"), exit }
    }

    /// Standard output, or an error with what the command said about its failure.
    pub fn done(self, arguments: &[&str]) -> Result<String, Error> {
        if self.exit == Some(0) {
            return Ok(self.stdout);
        }
        let said = self.stderr.lines().next().unwrap_or("it was ended");
        Err(broken(&format!("run `baton {}`", arguments.join(" ")), said.trim_start_matches("error: ")))
    }
}

impl Stage {
    pub fn build() -> Result<Self, Error> {
        let program = environment::own_program()?;
        let unique = MessageId::from_random(baton_machine::random::id());
        let root = environment::temp_dir().join(format!("baton-demo-{unique}"));
        let bin = root.join("bin");
        let mut path = bin.clone().into_os_string();
        if let Some(rest) = environment::get("PATH") {
            path.push(":");
            path.push(rest);
        }
        let stage = Self { root, program, path };
        stage.furnish(&bin).map_err(|error| broken("build its stage", error))?;
        Ok(stage)
    }

    fn furnish(&self, bin: &Path) -> std::io::Result<()> {
        for folder in ["home", "project", "bin", ".claude/projects/demo", ".claude/sessions", ".config/baton"]
        {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(self.root.join(folder))?;
        }
        fs::write(bin.join("claude"), SCRIPTED_CLAUDE)?;
        fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o700))
    }

    /// Names a session that may answer questions, as the person would in the configuration file.
    pub fn name_reviewer(&self, name: &str) -> Result<(), Error> {
        let project = self.project().canonicalize().map_err(|error| broken("find its project", error))?;
        let key = json!(project.to_string_lossy());
        let text = format!("[approvals.reviewers]\n{key} = [{}]\n", json!(name));
        fs::write(self.path(".config/baton/config.toml"), text)
            .map_err(|error| broken("write its settings", error))
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// This program with the stage's environment and nothing else.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("BATON_HOME", self.path("home"))
            .env("HOME", &self.root)
            .env("PATH", &self.path)
            .env("NO_COLOR", "1")
            // The scripted agent of jobs needs no login; baton asks for one before it starts a job.
            .env("ANTHROPIC_API_KEY", "demo")
            .current_dir(self.project());
        command
    }

    /// Starts a command of baton outside of the agents: the person's, or a script's.
    pub fn start(&self, arguments: &[&str]) -> Result<Child, Error> {
        self.command()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| broken("start baton", error))
    }

    pub fn end(child: Child) -> Result<Ran, Error> {
        let output = child.wait_with_output().map_err(|error| broken("wait for baton", error))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ran { stdout: text(&output.stdout), stderr: text(&output.stderr), exit: output.status.code() })
    }

    /// Runs a command of baton outside of the agents; gives what it printed.
    pub fn baton(&self, arguments: &[&str]) -> Result<String, Error> {
        Self::end(self.start(arguments)?)?.done(arguments)
    }

    /// The same with `--json`.
    pub fn read(&self, arguments: &[&str]) -> Result<Value, Error> {
        let printed = self.baton(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&printed).map_err(|error| broken("read what baton printed", error))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A job that a failed step left behind; there is none after a whole demo.
        if let Ok(jobs) = self.read(&["job", "list", "--all"]) {
            let is_open = |job: &&Value| job["ended_at"].is_null();
            for job in jobs.as_array().into_iter().flatten().filter(is_open) {
                self.baton(&["job", "cancel", job["job_id"].as_str().unwrap_or_default()]).ok();
            }
        }
        // Left-overs in the temporary folder do no harm.
        fs::remove_dir_all(&self.root).ok();
    }
}

/// Tries until there is something, for up to [`STEP_TIMEOUT`].
pub fn until<T>(what: &str, mut found: impl FnMut() -> Result<Option<T>, Error>) -> Result<T, Error> {
    let deadline = Instant::now() + STEP_TIMEOUT;
    loop {
        if let Some(found) = found()? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(broken("go on", format_args!("{what} did not happen within {STEP_TIMEOUT:?}")));
        }
        thread::sleep(POLL_INTERVAL);
    }
}
