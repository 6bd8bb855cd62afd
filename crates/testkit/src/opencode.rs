//! OpenCode in a sandbox, against the scripted model.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agents::{Agent, Program, Session};
use crate::model::Model;
use crate::process::{Finished, Running};
use crate::sandbox::Sandbox;
use crate::tmux::Tmux;
use crate::wait;

/// Until the interactive screen is there.
const START_LIMIT: Duration = Duration::from_secs(90);

/// No call of a server takes longer, a whole turn included.
const CALL_LIMIT: Duration = Duration::from_secs(120);

/// The password of a server that wants one, and the header that carries it.
const PASSWORD: &str = "secret";
const AUTHORIZATION: &str = "authorization: Basic b3BlbmNvZGU6c2VjcmV0\r\n";

/// OpenCode, ready to start.
#[derive(Debug)]
pub struct OpenCode<'a> {
    sandbox: &'a Sandbox,
    /// Whether tools wait for the user.
    asks: bool,
    /// Whether its server wants a password.
    locked: bool,
    /// Whether its terminal listens at a port too.
    listens: bool,
}

impl<'a> OpenCode<'a> {
    /// Prepares the sandbox's home for OpenCode, unless it is prepared already. Panics when
    /// OpenCode is not installed.
    pub fn new(sandbox: &'a Sandbox, model: &Model) -> OpenCode<'a> {
        let program = Agent::OpenCode.locate().unwrap_or_else(|missing| panic!("{missing}"));
        sandbox.install("opencode", &program);
        let config = sandbox.path("home/.config/opencode/opencode.json");
        if !config.exists() {
            fs::create_dir_all(config.parent().expect("a folder")).expect("a folder in the home");
            let limit = json!({"context": 200_000, "output": 8_000});
            let settings = json!({
                "autoupdate": false, "share": "disabled",
                "model": "scripted/main", "small_model": "scripted/small", "enabled_providers": ["scripted"],
                "permission": {"*": "allow", "external_directory": "allow", "doom_loop": "allow"},
                "provider": {"scripted": {
                    "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
                    "options": {"baseURL": format!("{}/v1", model.url_for(Agent::OpenCode)), "apiKey": "not-a-key"},
                    "models": {
                        "main": {"name": "Main", "tool_call": true, "limit": limit},
                        "other": {"name": "Other", "tool_call": true, "limit": limit},
                        "small": {"name": "Small", "tool_call": true, "limit": limit},
                    },
                }},
            });
            fs::write(config, format!("{settings:#}\n")).expect("a configuration");
        }
        OpenCode { sandbox, asks: false, locked: false, listens: false }
    }

    /// The same, but shell commands ask the user.
    pub fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    /// The same, but its server wants a password.
    pub fn behind_a_password(mut self) -> Self {
        self.locked = true;
        self
    }

    /// The same, but in a terminal it listens at a port too.
    pub fn listening(mut self) -> Self {
        self.listens = true;
        self
    }

    /// A command of OpenCode.
    pub fn command(&self) -> Command {
        let mut command = self.sandbox.command("opencode");
        for switch in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE"] {
            command.env(format!("OPENCODE_DISABLE_{switch}"), "1");
        }
        // With any plugin it installs a package first, and without a network it would try that for
        // a minute.
        command.env("npm_config_offline", "true").env("npm_config_fetch_retries", "0");
        if self.asks {
            command.env("OPENCODE_PERMISSION", r#"{"bash":"ask"}"#);
        }
        if self.locked {
            command.env("OPENCODE_SERVER_PASSWORD", PASSWORD);
        }
        command
    }

    /// `opencode serve` on a free port.
    pub fn serve(&self) -> Command {
        let mut command = self.command();
        command.args(["serve", "--hostname", "127.0.0.1", "--port", "0"]);
        command
    }
}

impl<'a> Program<'a> for OpenCode<'a> {
    fn headless(&self, session: Session<'_>, prompt: &str) -> Command {
        let mut command = self.command();
        command.args(["run", "--format", "json"]);
        match session {
            Session::New => {}
            Session::Resume(id) => _ = command.args(["--session", id]),
            Session::Fork(id) => _ = command.args(["--session", id, "--fork"]),
        }
        command.arg(prompt);
        command
    }

    fn open(&self, session: Session<'_>) -> Tmux<'a> {
        let mut command = self.command();
        match session {
            Session::New => {}
            Session::Resume(id) => _ = command.args(["--session", id]),
            Session::Fork(id) => _ = command.args(["--session", id, "--fork"]),
        }
        if self.listens {
            command.args(["--port", "0"]);
        }
        let terminal = Tmux::start(self.sandbox, "opencode", &command);
        let shown =
            terminal.wait_until("OpenCode's input line", START_LIMIT, |screen| screen.contains("Main"));
        shown.unwrap_or_else(|error| panic!("{error}"));
        terminal
    }

    fn session_id(&self, run: &Finished) -> Option<String> {
        let events = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.into_iter().find_map(|event| event["sessionID"].as_str().map(ToOwned::to_owned))
    }
}

/// A running `opencode serve`. Ended on drop.
#[derive(Debug)]
pub struct Server {
    running: Running,
    address: String,
    /// What each call says of us.
    authorization: &'static str,
}

impl Server {
    /// Starts one and waits until it listens.
    #[track_caller]
    pub fn start(opencode: &OpenCode<'_>) -> Server {
        let running = opencode.sandbox.start(&mut opencode.serve());
        let address = wait::poll(START_LIMIT, || {
            let said = running.stdout();
            let rest = said.split_once("listening on http://")?.1;
            rest.split_once('\n').map(|(address, _)| address.trim().to_owned())
        });
        let address =
            address.unwrap_or_else(|| panic!("no server: {}{}", running.stdout(), running.stderr()));
        Server { running, address, authorization: if opencode.locked { AUTHORIZATION } else { "" } }
    }

    /// The process.
    pub fn running(&mut self) -> &mut Running {
        &mut self.running
    }

    /// One call. Returns the answer's body, null if it has none.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(CALL_LIMIT)).expect("a time limit");
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.address,
            self.authorization,
            body.len()
        )
        .expect("the server takes a request");
        let answer = whole_answer(&mut stream);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        // Chunked or not: the document is between the first bracket and the last.
        let from = body.find(['{', '[']).unwrap_or(body.len());
        let to = body.rfind(['}', ']']).map_or(from, |at| at + 1);
        serde_json::from_str(&body[from..to]).unwrap_or_default()
    }

    /// A new session.
    #[track_caller]
    pub fn session(&self) -> String {
        let made = self.call("POST", "/session", &json!({"title": "scripted"}));
        made["id"].as_str().expect("a session has an id").to_owned()
    }

    /// A prompt; waits for the end of its turn.
    #[track_caller]
    pub fn prompt(&self, session: &str, text: &str) -> Value {
        let body = json!({"parts": [{"type": "text", "text": text}]});
        self.call("POST", &format!("/session/{session}/message"), &body)
    }
}

/// Reads an answer up to its length, if it has one: the server does not close every connection.
#[track_caller]
fn whole_answer(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    while !is_whole(&answer) {
        match stream.read(&mut piece).expect("the server answers") {
            0 => break,
            length => answer.extend_from_slice(&piece[..length]),
        }
    }
    String::from_utf8(answer).expect("an answer is text")
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + 4 + length)
}
