//! The demo's stage and its two actors: scripts that call baton as the real agents do and write transcripts as they do.

use baton_core::{Code, Error};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A throw-away home and project.
#[derive(Debug)]
pub struct Stage {
    root: PathBuf,
    program: PathBuf,
}

fn broken(what: &str, error: impl std::fmt::Display) -> Error {
    Error::new(Code::Internal, format!("the demo can't {what}: {error}"))
        .hint("is the temporary folder writable?")
}

impl Stage {
    /// Builds the stage in the temporary folder.
    pub fn build() -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(|error| broken("find its own program", error))?;
        let unique = baton_core::id::MessageId::from_random(baton_mail::random());
        let root = std::env::temp_dir().join(format!("baton-demo-{unique}"));
        for folder in ["home", "project", "transcripts"] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(root.join(folder))
                .map_err(|error| broken("build its stage", error))?;
        }
        Ok(Self { root, program })
    }

    /// Takes the stage down.
    pub fn clear(&self) {
        // Left-overs in the temporary folder hurt nobody.
        fs::remove_dir_all(&self.root).ok();
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn command(&self, actor: Option<&Actor<'_>>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("BATON_HOME", self.root.join("home"))
            .env("HOME", &self.root)
            .env("NO_COLOR", "1")
            .current_dir(self.project());
        if let Some(actor) = actor {
            match actor.style {
                Style::Claude => command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", &actor.session),
                Style::Codex => {
                    command.env("CODEX_SESSION_ID", &actor.session).env("CODEX_THREAD_ID", &actor.session)
                }
            };
        }
        command
    }

    /// Runs a command of baton, as a script or in an actor's shell, and gives what it printed.
    pub fn baton(&self, actor: Option<&Actor<'_>>, arguments: &[&str], input: &str) -> Result<String, Error> {
        let mut command = self.command(actor);
        command.args(arguments);
        let (printed, status) = run(command, input)?;
        if status {
            Ok(printed)
        } else {
            Err(broken(&format!("run baton {}", arguments.join(" ")), "it failed"))
        }
    }

    /// One actor asks in the background while the other takes the question with a tool result and answers it.
    pub fn ask_and_answer(
        &self,
        asker: &mut Actor<'_>,
        peer: &mut Actor<'_>,
        question: &str,
        answer: &str,
    ) -> Result<String, Error> {
        peer.prompt("keep going")?;
        let asking = self
            .command(Some(asker))
            .args(["ask", &peer.name, question, "--timeout", "20s"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| broken("start the ask", error))?;
        let mut got = String::new();
        while got.is_empty() {
            got = peer.tool()?;
        }
        let message = got
            .split("message_id ")
            .nth(1)
            .and_then(|rest| rest.split(',').next())
            .unwrap_or_default()
            .to_owned();
        self.baton(Some(peer), &["reply", &message, answer], "")?;
        let output = asking.wait_with_output().map_err(|error| broken("wait for the answer", error))?;
        peer.stop()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        asker.shell_showed(&printed)?;
        Ok(printed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Claude,
    Codex,
}

/// A scripted agent session.
#[derive(Debug)]
pub struct Actor<'a> {
    stage: &'a Stage,
    style: Style,
    name: String,
    session: String,
    turn: u32,
    step: u32,
}

impl<'a> Actor<'a> {
    /// A session that writes like Claude Code.
    pub fn claude(stage: &'a Stage, name: &str) -> Result<Self, Error> {
        Self::start(stage, name, Style::Claude)
    }

    /// A session that writes like Codex.
    pub fn codex(stage: &'a Stage, name: &str) -> Result<Self, Error> {
        Self::start(stage, name, Style::Codex)
    }

    fn start(stage: &'a Stage, name: &str, style: Style) -> Result<Self, Error> {
        let actor =
            Self { stage, style, name: name.to_owned(), session: format!("demo-{name}"), turn: 0, step: 0 };
        File::create(actor.transcript()).map_err(|error| broken("write a transcript", error))?;
        actor.hook("SessionStart", json!({"source": "startup"}))?;
        stage.baton(Some(&actor), &["name", name], "")?;
        Ok(actor)
    }

    fn transcript(&self) -> PathBuf {
        self.stage.root.join("transcripts").join(format!("{}.jsonl", self.session))
    }

    fn turn_id(&self) -> String {
        format!("{}-turn-{}", self.session, self.turn)
    }

    fn payload(&self, event: &str, mut more: Value) -> String {
        more["hook_event_name"] = json!(event);
        more["session_id"] = json!(self.session);
        more["transcript_path"] = json!(self.transcript());
        more["cwd"] = json!(self.stage.project());
        let turn = if self.style == Style::Claude { "prompt_id" } else { "turn_id" };
        if self.turn > 0 {
            more[turn] = json!(self.turn_id());
        }
        more.to_string()
    }

    fn hook_command(&self) -> Command {
        let mut command = self.stage.command(None);
        command.args(["hook", if self.style == Style::Claude { "claude" } else { "codex" }]);
        command
    }

    /// Runs a hook and gives the text that it put into the context.
    fn hook(&self, event: &str, more: Value) -> Result<String, Error> {
        let (printed, _) = run(self.hook_command(), &self.payload(event, more))?;
        let answer: Value = serde_json::from_str(&printed).unwrap_or(Value::Null);
        let text = answer["hookSpecificOutput"]["additionalContext"].as_str().or(answer["reason"].as_str());
        Ok(text.unwrap_or_default().to_owned())
    }

    fn write(&self, line: &Value) -> Result<(), Error> {
        let mut file = OpenOptions::new()
            .append(true)
            .open(self.transcript())
            .map_err(|error| broken("write a transcript", error))?;
        writeln!(file, "{line}").map_err(|error| broken("write a transcript", error))
    }

    fn took(&self, text: &str, stop: bool) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.write(&match (self.style, stop) {
            (Style::Claude, _) => json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [text]}}),
            (Style::Codex, false) => message("developer", text),
            (Style::Codex, true) => message("user", &format!("<hook_prompt>{text}</hook_prompt>")),
        })
    }

    fn answered(&mut self) -> Result<(), Error> {
        self.step += 1;
        let id = format!("{}-response-{}", self.session, self.step);
        self.write(&match self.style {
            Style::Claude => json!({"type": "assistant", "message": {"id": id, "content": [{"type": "text", "text": "working"}]}}),
            Style::Codex => message("assistant", "working"),
        })
    }

    /// The person types a prompt, and the model answers.
    pub fn prompt(&mut self, text: &str) -> Result<String, Error> {
        self.turn += 1;
        let got = self.hook("UserPromptSubmit", json!({"prompt": text}))?;
        match self.style {
            Style::Claude => self
                .write(&json!({"type": "user", "promptId": self.turn_id(), "message": {"content": text}}))?,
            Style::Codex => {
                self.write(&json!({"type": "turn_context", "payload": {"turn_id": self.turn_id()}}))?;
                self.write(&message("user", text))?;
            }
        }
        self.took(&got, false)?;
        self.answered()?;
        Ok(got)
    }

    /// A tool runs, and the model answers.
    pub fn tool(&mut self) -> Result<String, Error> {
        self.step += 1;
        let call = format!("call_{}_{}", self.name, self.step);
        let got = match self.style {
            Style::Claude => {
                let id = format!("{}-response-{}", self.session, self.step);
                self.write(&json!({"type": "assistant", "message": {"id": id, "content": [{"type": "tool_use", "id": call}]}}))?;
                self.write(&json!({"type": "user", "promptId": self.turn_id(), "message": {"content": [{"type": "tool_result", "tool_use_id": call, "content": "ok"}]}}))?;
                self.hook("PostToolBatch", json!({"tool_calls": [{"tool_use_id": call}]}))?
            }
            Style::Codex => {
                self.write(
                    &json!({"type": "response_item", "payload": {"type": "function_call", "call_id": call}}),
                )?;
                let got = self.hook("PostToolUse", json!({"tool_name": "Bash", "tool_use_id": call}))?;
                self.took(&got, false)?;
                self.write(&json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": call, "output": "ok"}}))?;
                self.answered()?;
                return Ok(got);
            }
        };
        self.took(&got, false)?;
        self.answered()?;
        Ok(got)
    }

    /// A shell command of the session printed something, and the model answers. Only the Claude actor uses its shell in the demo.
    fn shell_showed(&mut self, printed: &str) -> Result<(), Error> {
        let call = format!("call_{}_shell", self.name);
        self.write(&json!({"type": "user", "promptId": self.turn_id(), "message": {"content": [{"type": "tool_result", "tool_use_id": call, "content": printed}]}}))?;
        self.answered()
    }

    /// The turn ends.
    pub fn stop(&mut self) -> Result<String, Error> {
        let got = self.hook("Stop", json!({"stop_hook_active": false}))?;
        self.took(&got, true)?;
        Ok(got)
    }

    /// The turn ends while somebody kills the stop hook: it has claimed the mail, but nobody reads what it prints, and it dies.
    pub fn stop_killed(&mut self) -> Result<(), Error> {
        let mut hook = self
            .hook_command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| broken("start a hook", error))?;
        if let Some(mut input) = hook.stdin.take() {
            input
                .write_all(self.payload("Stop", json!({"stop_hook_active": false})).as_bytes())
                .map_err(|error| broken("call a hook", error))?;
        }
        // It may be done before the kill; its output is dropped either way, as Codex does with a hook that was killed.
        std::thread::sleep(std::time::Duration::from_millis(100));
        hook.kill().map_err(|error| broken("kill a hook", error))?;
        hook.wait().map(drop).map_err(|error| broken("bury a hook", error))
    }
}

fn message(role: &str, text: &str) -> Value {
    json!({"type": "response_item", "payload": {"type": "message", "role": role, "content": [{"type": "text", "text": text}]}})
}

fn run(mut command: Command, input: &str) -> Result<(String, bool), Error> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| broken("start itself", error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input may be gone already.
        stdin.write_all(input.as_bytes()).ok();
    }
    let output = child.wait_with_output().map_err(|error| broken("wait for itself", error))?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success()))
}
