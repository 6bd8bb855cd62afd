//! A scripted agent: it calls the real hooks as the agents do, and writes its transcript and its
//! registry as they do.

use super::broken;
use super::stage::{Ran, Stage, until};
use baton_core::Error;
use baton_core::time::Moment;
use serde_json::{Map, Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Claude,
    Codex,
}

impl Style {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// A scripted session, with the process that stands in for its agent.
#[derive(Debug)]
pub struct Actor<'a> {
    stage: &'a Stage,
    style: Style,
    name: &'static str,
    session: String,
    turn: u32,
    step: u32,
    process: Child,
    orders: ChildStdin,
    replies: BufReader<ChildStdout>,
}

/// A permission that the agent waits for, by its call.
#[derive(Debug)]
pub struct Permission {
    call: String,
}

impl<'a> Actor<'a> {
    /// A session that writes like Claude Code.
    pub fn claude(stage: &'a Stage, name: &'static str) -> Result<Self, Error> {
        Self::start(stage, name, Style::Claude)
    }

    /// A session that writes like Codex.
    pub fn codex(stage: &'a Stage, name: &'static str) -> Result<Self, Error> {
        Self::start(stage, name, Style::Codex)
    }

    fn start(stage: &'a Stage, name: &'static str, style: Style) -> Result<Self, Error> {
        let mut process = stage
            .command()
            .arg0(style.name())
            .args(["demo", "--stand-in"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| broken("start an agent", error))?;
        let (Some(orders), Some(replies)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(broken("start an agent", "it has no pipes"));
        };
        let replies = BufReader::new(replies);
        let session = format!("demo-{name}");
        let mut actor = Self { stage, style, name, session, turn: 0, step: 0, process, orders, replies };
        File::create(actor.transcript()).map_err(|error| broken("write a transcript", error))?;
        if style == Style::Claude {
            actor.request(&json!({"do": "listen", "socket": actor.socket()}))?;
        }
        actor.registers("idle")?;
        actor.hook("SessionStart", json!({"source": "startup"}))?;
        actor.shell(&["name", name])?;
        Ok(actor)
    }

    fn transcript(&self) -> PathBuf {
        self.stage.path(&format!(".claude/projects/demo/{}.jsonl", self.session))
    }

    fn socket(&self) -> PathBuf {
        self.stage.path(&format!("{}.sock", self.name))
    }

    /// Claude Code keeps a registry of its processes: which session each runs, and what it does.
    fn registers(&self, status: &str) -> Result<(), Error> {
        if self.style == Style::Codex {
            return Ok(());
        }
        let pid = self.process.id();
        let entry = json!({"pid": pid, "sessionId": self.session, "messagingSocketPath": self.socket(), "status": status});
        fs::write(self.stage.path(&format!(".claude/sessions/{pid}.json")), entry.to_string())
            .map_err(|error| broken("write a registry", error))
    }

    fn turn_id(&self) -> String {
        format!("{}-turn-{}", self.session, self.turn)
    }

    fn fresh(&mut self, what: &str) -> String {
        self.step += 1;
        format!("{}-{what}-{}", self.session, self.step)
    }

    fn order(&mut self, order: &Value) -> Result<(), Error> {
        writeln!(self.orders, "{order}").map_err(|error| self.lost(error))
    }

    fn reply(&mut self) -> Result<Value, Error> {
        let mut line = String::new();
        let read = self.replies.read_line(&mut line).map_err(|error| self.lost(error))?;
        if read == 0 {
            return Err(self.lost("it ended"));
        }
        let reply: Value = serde_json::from_str(&line).map_err(|error| self.lost(error))?;
        match reply["error"].as_str() {
            Some(error) => Err(self.lost(error)),
            None => Ok(reply),
        }
    }

    fn lost(&self, why: impl std::fmt::Display) -> Error {
        broken(&format!("use the process of {}", self.name), why)
    }

    fn request(&mut self, order: &Value) -> Result<Value, Error> {
        self.order(order)?;
        self.reply()
    }

    fn command(&self, action: &str, arguments: &[&str], variables: Map<String, Value>, input: &str) -> Value {
        json!({
            "do": action, "program": self.stage.program(), "arguments": arguments, "variables": variables, "input": input,
        })
    }

    fn shell_order(&self, arguments: &[&str]) -> Value {
        let names: &[&str] = match self.style {
            Style::Claude => &["CLAUDE_CODE_SESSION_ID"],
            Style::Codex => &["CODEX_SESSION_ID", "CODEX_THREAD_ID"],
        };
        let mut variables: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!(self.session))).collect();
        if self.style == Style::Claude {
            variables.insert("CLAUDECODE".to_owned(), json!("1"));
        }
        self.command("run", arguments, variables, "")
    }

    /// Runs a command of baton in the agent's shell; gives what it printed.
    pub fn shell(&mut self, arguments: &[&str]) -> Result<String, Error> {
        let order = self.shell_order(arguments);
        Ran::from_json(&self.request(&order)?).done(arguments)
    }

    /// The same with `--json`.
    pub fn read(&mut self, arguments: &[&str]) -> Result<Value, Error> {
        let printed = self.shell(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&printed).map_err(|error| broken("read what baton printed", error))
    }

    /// The state of a message that this session sent.
    pub fn delivery(&mut self, message: &str) -> Result<String, Error> {
        let mail = self.read(&["mail", message])?;
        Ok(mail["deliveries"][0]["state"].as_str().unwrap_or_default().to_owned())
    }

    /// Begins a command in the agent's shell; [`Actor::shell_ends`] gives what it printed.
    pub fn shell_begins(&mut self, arguments: &[&str]) -> Result<(), Error> {
        let order = self.shell_order(arguments);
        self.order(&order)
    }

    pub fn shell_ends(&mut self, arguments: &[&str]) -> Result<String, Error> {
        Ran::from_json(&self.reply()?).done(arguments)
    }

    fn hook_order(&self, action: &str, event: &str, mut payload: Value) -> Value {
        payload["hook_event_name"] = json!(event);
        payload["session_id"] = json!(self.session);
        payload["transcript_path"] = json!(self.transcript());
        payload["cwd"] = json!(self.stage.project());
        if self.turn > 0 {
            payload[if self.style == Style::Claude { "prompt_id" } else { "turn_id" }] =
                json!(self.turn_id());
        }
        let arguments: &[&str] = match event {
            "PreToolUse" => &["hook", self.style.name(), event, "--guard"],
            _ => &["hook", self.style.name()],
        };
        // How Claude Code says that no person sits in front of a session.
        let variables = Map::from_iter([("CLAUDE_CODE_SESSION_ATTENDED".to_owned(), json!("0"))]);
        self.command(action, arguments, variables, &payload.to_string())
    }

    /// Runs a hook; gives its whole answer.
    fn hook_answer(&mut self, event: &str, payload: Value) -> Result<Value, Error> {
        let order = self.hook_order("run", event, payload);
        let printed = Ran::from_json(&self.request(&order)?).done(&["hook", self.style.name(), event])?;
        Ok(serde_json::from_str(&printed).unwrap_or_default())
    }

    /// Runs a hook; gives the text that it put into the context.
    fn hook(&mut self, event: &str, payload: Value) -> Result<String, Error> {
        let answer = self.hook_answer(event, payload)?;
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

    /// How often the agent's transcript has these words.
    pub fn heard(&self, words: &str) -> Result<usize, Error> {
        let text =
            fs::read_to_string(self.transcript()).map_err(|error| broken("read a transcript", error))?;
        Ok(text.matches(words).count())
    }

    fn took(&self, text: &str, is_stop: bool) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.write(&match (self.style, is_stop) {
            (Style::Claude, _) => json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [text]}}),
            (Style::Codex, false) => message("developer", text),
            (Style::Codex, true) => message("user", &format!("<hook_prompt>{text}</hook_prompt>")),
        })
    }

    fn answers(&mut self) -> Result<(), Error> {
        let id = self.fresh("response");
        self.write(&match self.style {
            Style::Claude => json!({"type": "assistant", "message": {"id": id, "content": [{"type": "text", "text": "working"}]}}),
            Style::Codex => message("assistant", "working"),
        })
    }

    /// Claude Code writes a call into its transcript before it runs the tool.
    fn calls(&mut self, tool: &Value) -> Result<String, Error> {
        let (id, call) = (self.fresh("response"), self.fresh("call"));
        let mut content = tool.clone();
        content["type"] = json!("tool_use");
        content["id"] = json!(call);
        self.write(
            &json!({"type": "assistant", "message": {"id": id, "role": "assistant", "content": [content]}}),
        )?;
        Ok(call)
    }

    /// Claude Code writes what a tool gave.
    fn tool_gave(&self, call: &str, output: &str) -> Result<(), Error> {
        let content =
            json!([{"type": "tool_result", "tool_use_id": call, "is_error": false, "content": output}]);
        self.write(&json!({"type": "user", "promptId": self.turn_id(), "timestamp": now(), "message": {"role": "user", "content": content}}))
    }

    /// The person, or a wake, begins a turn, and the model answers.
    pub fn prompt(&mut self, text: &str) -> Result<String, Error> {
        self.turn += 1;
        self.registers("busy")?;
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
        self.answers()?;
        Ok(got)
    }

    /// A tool runs, and the model answers; gives what the hook brought.
    pub fn tool(&mut self) -> Result<String, Error> {
        let got = match self.style {
            Style::Claude => {
                let call = self.calls(&json!({"name": "Bash", "input": {"command": "make"}}))?;
                self.tool_gave(&call, "ok")?;
                let got = self.hook("PostToolBatch", json!({"tool_calls": [{"tool_use_id": call}]}))?;
                self.took(&got, false)?;
                got
            }
            Style::Codex => {
                let call = self.codex_calls()?;
                let got = self.hook("PostToolUse", json!({"tool_name": "Bash", "tool_use_id": call}))?;
                self.took(&got, false)?;
                self.codex_gave(&call)?;
                got
            }
        };
        self.answers()?;
        Ok(got)
    }

    fn codex_calls(&mut self) -> Result<String, Error> {
        let call = self.fresh("call");
        self.write(&json!({"type": "response_item", "payload": {"type": "function_call", "call_id": call}}))?;
        Ok(call)
    }

    fn codex_gave(&self, call: &str) -> Result<(), Error> {
        self.write(&json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": call, "output": "ok"}}))
    }

    /// A tool of Codex runs, and its hook is killed when it has claimed the mail and can't print
    /// it; gives the signal that ended the hook.
    pub fn tool_with_killed_hook(
        &mut self,
        mut has_claimed: impl FnMut() -> Result<bool, Error>,
    ) -> Result<Option<i64>, Error> {
        let call = self.codex_calls()?;
        let payload = json!({"tool_name": "Bash", "tool_use_id": call});
        let order = self.hook_order("stick", "PostToolUse", payload);
        self.request(&order)?;
        until("the claim of a message", || Ok(has_claimed()?.then_some(())))?;
        let ended = self.request(&json!({"do": "kill"}))?;
        self.codex_gave(&call)?;
        self.answers()?;
        Ok(ended["signal"].as_i64())
    }

    /// Tools run until a hook brings mail.
    pub fn tools_until_mail(&mut self) -> Result<String, Error> {
        until("mail", || self.tool().map(|got| Some(got).filter(|got| !got.is_empty())))
    }

    /// A command in the agent's shell printed something, and the model answers. Only Claude Code's
    /// actor uses it.
    pub fn shell_showed(&mut self, printed: &str) -> Result<(), Error> {
        let call = self.calls(&json!({"name": "Bash", "input": {"command": "baton ask"}}))?;
        self.tool_gave(&call, printed)?;
        self.answers()
    }

    /// The turn ends; gives what the hook brought.
    pub fn stop(&mut self) -> Result<String, Error> {
        let got = self.hook("Stop", json!({"stop_hook_active": false}))?;
        self.took(&got, true)?;
        self.registers("idle")?;
        Ok(got)
    }

    /// The line that woke the session.
    pub fn next_wake(&mut self) -> Result<String, Error> {
        let reply = self.request(&json!({"do": "next-wake"}))?;
        let line: Value =
            serde_json::from_str(reply["line"].as_str().unwrap_or_default()).unwrap_or_default();
        Ok(line["message"]["content"].as_str().unwrap_or_default().to_owned())
    }

    /// The guard's answer to a command that the agent is about to run.
    pub fn judged(&mut self, command: &str) -> Result<(String, String), Error> {
        let answer =
            self.hook_answer("PreToolUse", json!({"tool_name": "Bash", "tool_input": {"command": command}}))?;
        let said = |key: &str| answer["hookSpecificOutput"][key].as_str().unwrap_or_default().to_owned();
        Ok((said("permissionDecision"), said("permissionDecisionReason")))
    }

    /// Claude Code asks for a permission, and its hook is held. [`Actor::permission_ends`] gives
    /// the answer.
    pub fn permission_begins(&mut self, command: &str) -> Result<Permission, Error> {
        let input = json!({"command": command});
        let call = self.calls(&json!({"name": "Bash", "input": input}))?;
        let order =
            self.hook_order("run", "PermissionRequest", json!({"tool_name": "Bash", "tool_input": input}));
        self.order(&order)?;
        Ok(Permission { call })
    }

    /// The hook has its answer; if that is a yes, the tool runs.
    pub fn permission_ends(&mut self, permission: &Permission) -> Result<String, Error> {
        let printed = Ran::from_json(&self.reply()?).done(&["hook", "claude", "PermissionRequest"])?;
        let answer: Value = serde_json::from_str(&printed).unwrap_or_default();
        let behaviour = answer["hookSpecificOutput"]["decision"]["behavior"].as_str().unwrap_or_default();
        if behaviour == "allow" {
            self.tool_gave(&permission.call, "published")?;
        }
        Ok(behaviour.to_owned())
    }
}

impl Drop for Actor<'_> {
    fn drop(&mut self) {
        // With what runs below it; all of that may have ended by itself.
        if let Some(group) = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        self.process.wait().ok();
    }
}

fn message(role: &str, text: &str) -> Value {
    json!({"type": "response_item", "payload": {"type": "message", "role": role, "content": [{"type": "text", "text": text}]}})
}

/// The time as Claude Code writes it.
fn now() -> String {
    let Moment(millis) = baton_machine::clock::now();
    format!("{}.{:03}Z", Moment(millis).to_rfc3339().trim_end_matches('Z'), millis % 1000)
}
