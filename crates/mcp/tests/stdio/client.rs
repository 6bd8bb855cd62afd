//! A client of the server: starts it, sends requests, and waits a limited time for answers.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No answer takes this long unless something hangs.
pub const TIMEOUT: Duration = Duration::from_secs(90);

pub const SERVER: &str = env!("CARGO_BIN_EXE_baton-mcp-alone");

/// Who calls, by the metadata of a call.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Claude Code's model: calls name no session.
    Claude,
    /// Codex's model, of this session.
    Codex(&'static str),
    /// A subagent of this Codex session, with its own thread.
    CodexSubagent(&'static str, &'static str),
}

impl Caller {
    fn agent(&self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex(_) | Self::CodexSubagent(..) => "codex",
        }
    }

    fn meta(&self, call: &str, token: u64) -> Value {
        match self {
            Self::Claude => json!({"claudecode/toolUseId": call, "progressToken": token}),
            Self::Codex(session) => {
                json!({"callId": call, "threadId": session, "sessionId": session, "progressToken": token})
            }
            Self::CodexSubagent(session, thread) => {
                json!({"callId": call, "threadId": thread, "sessionId": session, "progressToken": token})
            }
        }
    }
}

/// What a tool answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub result: Value,
}

impl Answer {
    /// The structured content of a successful call.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_ne!(self.result["isError"], json!(true), "{}", self.result);
        let content = self.result["structuredContent"].clone();
        assert!(content.is_object(), "{}", self.result);
        let text = self.result["content"][0]["text"].as_str().expect("text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), content, "older clients see the same");
        content
    }

    /// The code of a refusal, which has a message too.
    #[track_caller]
    pub fn code(self) -> String {
        assert_eq!(self.result["isError"], json!(true), "{}", self.result);
        let error = &self.result["structuredContent"]["error"];
        assert!(
            !error["message"].as_str().expect("a message").is_empty() && error.get("hint").is_some(),
            "{error}"
        );
        error["code"].as_str().expect("a code").to_owned()
    }

    /// The text of a hook's answer.
    #[track_caller]
    pub fn text(self) -> String {
        assert_ne!(self.result["isError"], json!(true), "{}", self.result);
        assert!(self.result.get("structuredContent").is_none(), "hooks read text only");
        self.result["content"][0]["text"].as_str().expect("text").to_owned()
    }
}

/// A server and the connection to it. Killed on drop.
pub struct Client {
    pub child: Child,
    pub caller: Caller,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
    /// Answers and notifications for other waits.
    kept: Vec<Value>,
}

impl Client {
    /// Starts a server of this home in this folder and greets it.
    pub fn start(home: &Path, cwd: &Path, caller: Caller) -> Self {
        let mut command = Command::new(SERVER);
        command.arg(caller.agent()).arg(home);
        let mut client = Self::spawn(&mut command, cwd, caller);
        client.initialize("2025-06-18");
        client
    }

    /// Starts a command that is a server, and sends nothing. The test's own environment is not
    /// passed on.
    pub fn spawn(command: &mut Command, cwd: &Path, caller: Caller) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut child = command
            .env("PATH", path)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON: {error}: {line}"));
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, caller, stdin, lines, next: 0, kept: Vec::new() }
    }

    pub fn initialize(&mut self, version: &str) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        answer["result"].clone()
    }

    /// Sends one line.
    pub fn send(&mut self, line: &str) {
        self.send_bytes(line.as_bytes());
    }

    pub fn send_bytes(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).expect("the server reads");
    }

    /// Closes the server's stdin.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Whether the process has ended within the limit.
    pub fn has_ended(&mut self) -> bool {
        let end = Instant::now() + TIMEOUT;
        while Instant::now() < end {
            if self.child.try_wait().expect("a child process").is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child process");
    }

    pub fn fresh_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Sends a request and waits for its whole answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.fresh_id();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        self.answer_to(id)
    }

    /// Waits for the answer to a request.
    pub fn answer_to(&mut self, id: u64) -> Value {
        self.wait_for(TIMEOUT, |message| message["id"] == json!(id) && message.get("method").is_none())
            .unwrap_or_else(|| panic!("no answer to request {id}"))
    }

    /// Waits for a message. `None` if it does not come in time or the server has ended.
    pub fn wait_for(&mut self, limit: Duration, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return Some(self.kept.remove(at));
        }
        let end = Instant::now() + limit;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(message) if wanted(&message) => return Some(message),
                Ok(message) => self.kept.push(message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Calls a tool as the model does.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let id = self.begin(tool, arguments);
        self.finish(id)
    }

    /// The id of the tool call that goes with a request, as the agent knows it.
    pub fn call_id(request: u64) -> String {
        format!("toolu_{request}")
    }

    /// Sends a model's call and does not wait.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        let id = self.fresh_id();
        let meta = self.caller.meta(&Self::call_id(id), id);
        self.begin_with(id, tool, arguments, Some(meta));
        id
    }

    pub fn begin_with(&mut self, id: u64, tool: &str, arguments: Value, meta: Option<Value>) {
        let mut params = json!({"name": tool, "arguments": arguments});
        if let Some(meta) = meta {
            params["_meta"] = meta;
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
    }

    pub fn finish(&mut self, id: u64) -> Answer {
        let answer = self.answer_to(id);
        assert!(answer.get("error").is_none(), "never an error of the protocol: {answer}");
        Answer { result: answer["result"].clone() }
    }

    /// Calls as a hook of this agent does.
    pub fn hook(&mut self, arguments: Value) -> Answer {
        let id = self.fresh_id();
        let meta = match &self.caller {
            Caller::Claude => None,
            Caller::Codex(thread) | Caller::CodexSubagent(_, thread) => {
                Some(json!({"threadId": thread, "progressToken": id}))
            }
        };
        self.begin_with(id, "hook_event", arguments, meta);
        self.finish(id)
    }

    /// Cancels a request.
    pub fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id, "reason": "the person pressed Esc"});
        self.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string(),
        );
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Fails only if the process has already ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
