//! The process that stands in for an agent: this program under the agent's name, as `baton demo
//! --stand-in`.
//!
//! baton recognises an agent's hooks and commands by the process above them, so each scripted agent
//! has a process. It runs what the demo orders, below itself, and listens at the socket through
//! which Claude Code is woken. Orders and replies are JSON, one document a line. It ends when the
//! demo closes its standard input.

use super::broken;
use crate::print::{Colour, Out, done};
use baton_core::Error;
use baton_core::error::Exit;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// The longest that a wake may take from the sender to the socket.
const WAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Carries out orders until there are no more.
pub fn run() -> Result<Exit, Error> {
    let out = Out::new(true, Colour::Never);
    let mut stand_in = StandIn::default();
    for order in std::io::stdin().lines() {
        let order = order.map_err(|error| broken("read an order", error))?;
        let order: Value = serde_json::from_str(&order).map_err(|error| broken("read an order", error))?;
        let reply = stand_in.carry_out(&order).unwrap_or_else(|error| json!({"error": error.message()}));
        out.data(&reply, String::new)?;
    }
    done()
}

#[derive(Default)]
struct StandIn {
    /// A hook that can't print, because the pipe of its output is full; the reading end keeps the
    /// pipe open.
    stuck: Option<(Child, OwnedFd)>,
    wakes: Option<Receiver<String>>,
}

impl StandIn {
    fn carry_out(&mut self, order: &Value) -> Result<Value, Error> {
        match order["do"].as_str() {
            Some("run") => run_command(order),
            Some("stick") => self.stick(order),
            Some("kill") => self.kill(),
            Some("listen") => self.listen(order["socket"].as_str().unwrap_or_default()),
            Some("next-wake") => Ok(
                json!({"line": self.wakes.as_ref().and_then(|wakes| wakes.recv_timeout(WAKE_TIMEOUT).ok())}),
            ),
            _ => Err(broken("understand an order", order)),
        }
    }

    /// Starts a hook whose output is a full pipe: it does all of its work, and waits where it
    /// prints.
    fn stick(&mut self, order: &Value) -> Result<Value, Error> {
        let (reading, writing) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| broken("make a pipe", error))?;
        fill(&writing).map_err(|error| broken("fill a pipe", error))?;
        let mut hook = command(order)
            .stdin(Stdio::piped())
            .stdout(writing)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| broken("start a hook", error))?;
        feed(&mut hook, order);
        self.stuck = Some((hook, reading));
        Ok(json!({}))
    }

    fn kill(&mut self) -> Result<Value, Error> {
        let Some((mut hook, _reading)) = self.stuck.take() else { return Ok(json!({"signal": null})) };
        hook.kill().map_err(|error| broken("kill a hook", error))?;
        let status = hook.wait().map_err(|error| broken("wait for a killed hook", error))?;
        Ok(json!({"signal": status.signal()}))
    }

    /// Listens as Claude Code does at its inbox.
    fn listen(&mut self, socket: &str) -> Result<Value, Error> {
        let listener = UnixListener::bind(socket).map_err(|error| broken("listen for wakes", error))?;
        let (sender, wakes) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut line = String::new();
                let is_read = stream.is_ok_and(|mut stream| stream.read_to_string(&mut line).is_ok());
                if !is_read || sender.send(line).is_err() {
                    return;
                }
            }
        });
        self.wakes = Some(wakes);
        Ok(json!({}))
    }
}

fn run_command(order: &Value) -> Result<Value, Error> {
    let mut child = command(order)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| broken("start baton", error))?;
    feed(&mut child, order);
    let output = child.wait_with_output().map_err(|error| broken("wait for baton", error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(json!({"stdout": text(&output.stdout), "stderr": text(&output.stderr), "exit": output.status.code()}))
}

/// The command of an order: this program with its arguments, in the environment of the agent and
/// some variables more.
fn command(order: &Value) -> Command {
    let mut command = Command::new(order["program"].as_str().unwrap_or_default());
    let words = order["arguments"].as_array().into_iter().flatten();
    command.args(words.filter_map(Value::as_str));
    let variables = order["variables"].as_object().into_iter().flatten();
    command.envs(variables.filter_map(|(name, value)| Some((name, value.as_str()?))));
    command
}

fn feed(child: &mut Child, order: &Value) {
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input may be gone already.
        input.write_all(order["input"].as_str().unwrap_or_default().as_bytes()).ok();
    }
}

/// Writes into a pipe until nothing more fits. The next writer has to wait.
fn fill(pipe: &OwnedFd) -> rustix::io::Result<()> {
    fcntl_setfl(pipe, OFlags::NONBLOCK)?;
    for piece in [&[b' '; 4096][..], b" "] {
        loop {
            match rustix::io::write(pipe, piece) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
    }
    fcntl_setfl(pipe, OFlags::empty())
}
