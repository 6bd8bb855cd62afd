//! What the model answers: steps, written by hand or decided by a function of the request.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::request::{Kind, Request};

/// One answer of the model.
#[derive(Debug, Clone)]
pub enum Step {
    /// A response with these parts, streamed in order.
    Reply(Vec<Part>),
    /// An HTTP error. Agents repeat a request after 429 and 5xx, and give up after other 4xx.
    Error {
        /// The HTTP status.
        status: u16,
        /// The error's message.
        message: String,
    },
    /// HTTP 429 with the number of seconds after which to try again.
    Limited {
        /// The seconds of its `retry-after`.
        seconds: u64,
        /// The error's message.
        message: String,
    },
    /// HTTP 200, and the error in the stream.
    Inside(String),
    /// The connection is cut after this many events of the step.
    Cut(usize, Box<Step>),
    /// The stream stops after this many events of the step, or after its end, until the agent goes
    /// away.
    Still(usize, Box<Step>),
    /// A good status, and an error where the answer should be.
    ErrorInside(String),
    /// No answer, until the agent goes away.
    Hang,
    /// The step, after a time.
    After(Duration, Box<Step>),
}

/// A part of a response.
#[derive(Debug, Clone)]
pub enum Part {
    /// The model says something.
    Text(String),
    /// A call of one of the agent's own tools, by the name the agent gave it.
    Tool {
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
    /// A call of an MCP tool, named as the agent at hand wants it.
    Mcp {
        /// The server's name in the agent's configuration.
        server: String,
        /// The tool's name on the server.
        tool: String,
        /// Its input.
        input: Value,
    },
    /// A shell command, with the shell tool of the agent at hand.
    Shell(String),
    /// The response says that the conversation has this many tokens (Chat Completions only).
    Tokens(u64),
    /// A file is read, with the tool that the agent at hand has for it.
    Read(String),
    /// A file is written, with the tool that the agent at hand has for it.
    Write {
        /// The file.
        path: String,
        /// The new content: one line.
        content: String,
    },
    /// The stream stops. Agents start a complete tool call before the response has ended.
    Pause(Duration),
}

impl Part {
    /// See [`Part::Text`].
    pub fn text(text: impl Into<String>) -> Part {
        Part::Text(text.into())
    }

    /// See [`Part::Tool`].
    pub fn tool(name: impl Into<String>, input: Value) -> Part {
        Part::Tool { name: name.into(), input }
    }

    /// See [`Part::Mcp`].
    pub fn mcp(server: impl Into<String>, tool: impl Into<String>, input: Value) -> Part {
        Part::Mcp { server: server.into(), tool: tool.into(), input }
    }

    /// See [`Part::Shell`].
    pub fn shell(command: impl Into<String>) -> Part {
        Part::Shell(command.into())
    }
}

impl Step {
    /// Ends the turn with a text.
    pub fn say(text: impl Into<String>) -> Step {
        Step::Reply(vec![Part::text(text)])
    }

    /// Calls one of the agent's own tools.
    pub fn tool(name: impl Into<String>, input: Value) -> Step {
        Step::Reply(vec![Part::tool(name, input)])
    }

    /// Calls an MCP tool.
    pub fn mcp(server: impl Into<String>, tool: impl Into<String>, input: Value) -> Step {
        Step::Reply(vec![Part::mcp(server, tool, input)])
    }

    /// Runs a shell command.
    pub fn shell(command: impl Into<String>) -> Step {
        Step::Reply(vec![Part::shell(command)])
    }

    /// Reads a file.
    pub fn read(path: impl Into<String>) -> Step {
        Step::Reply(vec![Part::Read(path.into())])
    }

    /// Writes a file.
    pub fn write(path: impl Into<String>, content: impl Into<String>) -> Step {
        Step::Reply(vec![Part::Write { path: path.into(), content: content.into() }])
    }

    /// Several parts in one response: parallel tool calls.
    pub fn parts(parts: impl IntoIterator<Item = Part>) -> Step {
        Step::Reply(parts.into_iter().collect())
    }

    /// Fails with an HTTP status.
    pub fn error(status: u16, message: &str) -> Step {
        Step::Error { status, message: message.to_owned() }
    }

    /// Refuses to answer for this many seconds.
    pub fn limited(seconds: u64, message: &str) -> Step {
        Step::Limited { seconds, message: message.to_owned() }
    }

    /// Begins well, and fails in the stream.
    pub fn inside(message: &str) -> Step {
        Step::Inside(message.to_owned())
    }

    /// The same, cut after this many events.
    pub fn cut(self, events: usize) -> Step {
        Step::Cut(events, Box::new(self))
    }

    /// The same, but the stream stops after this many events.
    pub fn still(self, events: usize) -> Step {
        Step::Still(events, Box::new(self))
    }

    /// The same, later.
    pub fn after(self, delay: Duration) -> Step {
        Step::After(delay, Box::new(self))
    }
}

type Decide = Arc<dyn Fn(&Request) -> Step + Send + Sync>;

/// Decides the model's answers.
pub struct Script {
    main: Decide,
    subagent: Decide,
    compaction: Decide,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl Script {
    /// A function that decides by the content of the request. It sees main and subagent requests.
    pub fn by(decide: impl Fn(&Request) -> Step + Send + Sync + 'static) -> Script {
        Script::all(Arc::new(decide))
    }

    /// Each conversation (main or subagent, per session) goes through these steps, one per request.
    /// When they are used up, the model says `script ended`.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Script {
        Script::all(in_turn(steps.into_iter().collect()))
    }

    fn all(decide: Decide) -> Script {
        let summary: Decide = Arc::new(|_| Step::say("<summary>A scripted summary.</summary>"));
        Script { main: Arc::clone(&decide), subagent: decide, compaction: summary }
    }

    /// Other answers for subagents.
    pub fn subagents(mut self, decide: impl Fn(&Request) -> Step + Send + Sync + 'static) -> Script {
        self.subagent = Arc::new(decide);
        self
    }

    /// Other answers where the history is to be summarized.
    pub fn compactions(mut self, decide: impl Fn(&Request) -> Step + Send + Sync + 'static) -> Script {
        self.compaction = Arc::new(decide);
        self
    }

    pub(super) fn step(&self, request: &Request) -> Step {
        match request.kind {
            Kind::Main => (self.main)(request),
            Kind::Subagent => (self.subagent)(request),
            // Reads well both as text and for a client that wants a JSON title.
            Kind::Side => Step::say(json!({"title": "Scripted test"}).to_string()),
            Kind::Compaction => (self.compaction)(request),
        }
    }
}

fn in_turn(steps: Vec<Step>) -> Decide {
    let position: Mutex<HashMap<String, usize>> = Mutex::default();
    Arc::new(move |request| {
        let mut position = position.lock().unwrap_or_else(PoisonError::into_inner);
        let next = position.entry(request.conversation.clone()).or_default();
        let step = steps.get(*next).cloned().unwrap_or_else(|| Step::say("script ended"));
        *next += 1;
        step
    })
}
