//! One `codex app-server` for the job: requests and replies as lines of JSON over its standard
//! streams.
//!
//! It is never the user's daemon. It speaks JSON-RPC without the version field, and it also sends
//! requests. What it sends by itself goes to one listener, in order.

use crate::backend::Task;
use crate::backend::child::{Child, Ended};
use crate::backend::replies::Replies;
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A notification, or a request if it has an id.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Value,
}

/// Why a request got no result.
#[derive(Debug)]
pub(super) enum Refusal {
    Gone,
    Late,
    /// It refused.
    No(String),
}

impl Refusal {
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Gone => "`codex app-server` ended".to_owned(),
            Self::Late => "`codex app-server` did not answer in time".to_owned(),
            Self::No(words) => words.clone(),
        }
    }
}

/// The running program.
#[derive(Debug, Default)]
pub(super) struct Server {
    child: OnceLock<Arc<Child>>,
    replies: Replies,
}

impl Server {
    /// Starts it, without sending anything yet.
    pub(super) fn start(
        task: &Task,
        mut heard: impl FnMut(Heard) + Send + 'static,
        ended: impl FnOnce(Ended) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let server = Arc::new(Self::default());
        let (lines, end) = (Arc::clone(&server), Arc::clone(&server));
        let mut command = Child::command(task);
        command.args(["app-server", "--listen", "stdio://"]);
        let child = Child::start(
            &mut command,
            &task.folder.join("backend.log"),
            move |line| {
                if let Some(said) = lines.hear(line) {
                    heard(said);
                }
            },
            move |how| {
                // First its end is reported, then the callers that wait for replies hear of it.
                ended(how);
                end.replies.close();
            },
        )?;
        server.child.set(child).ok();
        Ok(server)
    }

    pub(super) fn child(&self) -> Option<&Child> {
        self.child.get().map(AsRef::as_ref)
    }

    /// Introduces the client, which must be the first message.
    pub(super) fn greet(&self, limit: Duration) -> Result<(), Refusal> {
        let client = json!({"name": "baton", "title": "baton", "version": env!("CARGO_PKG_VERSION")});
        // Ending its background terminals counts as experimental there.
        let hello = json!({"clientInfo": client, "capabilities": {"experimentalApi": true}});
        self.call("initialize", &hello, limit)?;
        self.write(&json!({"method": "initialized"})).map_err(|_| Refusal::Gone)
    }

    /// Sends a request, and waits for the result.
    pub(super) fn call(&self, method: &str, params: &Value, limit: Duration) -> Result<Value, Refusal> {
        let (number, reply) = self.replies.register();
        let sent = self.write(&json!({"id": number, "method": method, "params": params}));
        let reply = match sent {
            Ok(()) => reply.recv_timeout(limit),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        self.replies.forget(number);
        match reply {
            Ok(mut reply) => match reply.get_mut("result") {
                Some(result) => Ok(result.take()),
                None => Err(Refusal::No(reply["error"]["message"].as_str().unwrap_or("refused").to_owned())),
            },
            Err(RecvTimeoutError::Timeout) => Err(Refusal::Late),
            Err(RecvTimeoutError::Disconnected) => Err(Refusal::Gone),
        }
    }

    /// Answers a request.
    pub(super) fn reply(&self, id: &Value, result: &Value) -> io::Result<()> {
        self.write(&json!({"id": id, "result": result}))
    }

    /// Refuses a request.
    pub(super) fn refuse(&self, id: &Value) -> io::Result<()> {
        self.write(&json!({"id": id, "error": {"code": -32601, "message": "baton has no answer to this"}}))
    }

    fn write(&self, message: &Value) -> io::Result<()> {
        let child = self.child().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        child.write_line(&message.to_string())
    }

    /// Sorts a line: a reply goes to the caller that waits for it, the rest is returned.
    fn hear(&self, line: &str) -> Option<Heard> {
        let mut message: Value = serde_json::from_str(line).ok()?;
        let id = message.get_mut("id").map(Value::take);
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        match (message["method"].as_str(), &id) {
            (Some(method), _) => Some(Heard { method: method.to_owned(), id, params }),
            (None, Some(number)) => {
                self.replies.give(number.as_u64()?, message);
                None
            }
            (None, None) => None,
        }
    }
}
