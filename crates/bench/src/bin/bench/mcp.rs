//! The MCP servers of two sessions, and how long mail takes from one to the other.
//!
//! The driver plays both clients. The peer answers at once: it sees in the store that something
//! came, and reads it. (Calling `read_messages` in a loop would keep the store locked, and slow the
//! asker down.)

use crate::Outcome;
use crate::homes::{FEW_SESSIONS, Home, Peer};
use crate::rounds::median;
use crate::table::{Kind, Row};
use crate::world::Workshop;
use baton_core::id::ParticipantId;
use rusqlite::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// An answer that takes longer never comes.
const ANSWER_TIMEOUT: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };
/// A server is quick, so a few rounds are enough.
const ROUNDS: u32 = 100;

pub fn rows(workshop: &Workshop, rounds: u32) -> Vec<Row> {
    let cases = [
        "MCP: send_message, read_messages",
        "MCP: ask_peer, read_messages, reply_to_message, answer",
        "baton mcp",
    ];
    match measure(workshop, rounds.min(ROUNDS)) {
        Ok(measured) => {
            let [sent, asked, server] = cases.map(Row::new);
            let asks = measured.asks.as_secs_f64() * 1e3;
            vec![
                sent.wall(measured.sends, None),
                asked.wall(measured.asks, None).at_most("wall ≤ 10 ms", asks, 10.0, Kind::Time),
                server.peak(measured.peak).at_most(
                    "≤ 20 MB",
                    measured.peak as f64,
                    20.0 * f64::from(1 << 20),
                    Kind::Ratio,
                ),
            ]
        }
        Err(error) => cases.map(|case| Row::new(case).note(format!("not measured: {error}"))).into(),
    }
}

struct Measured {
    sends: Duration,
    asks: Duration,
    peak: u64,
}

fn measure(workshop: &Workshop, rounds: u32) -> Outcome<Measured> {
    let home = Home::with_sessions(workshop.root.join("mcp"), &workshop.project, FEW_SESSIONS)?;
    let (me, peer) = (&home.peers[3], &home.peers[4]);
    let mut mine = Server::start(workshop, &home, me)?;
    let mut theirs = Server::start(workshop, &home, peer)?;
    let eye = Eye { store: home.connect()?, of: peer.participant };
    let (mut sends, mut asks) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let body = format!("question {round} of the bench");
        let start = Instant::now();
        mine.call("send_message", json!({"to": peer.name, "body": body}))?;
        theirs.take(&body)?;
        sends.push(start.elapsed());
        home.rewind()?;
        let start = Instant::now();
        let waiting = mine.ask("ask_peer", json!({"to": peer.name, "body": body}))?;
        eye.wait()?;
        let question = theirs.take(&body)?;
        theirs.call("reply_to_message", json!({"message_id": question, "body": "yes"}))?;
        let answer = mine.answer(waiting)?;
        asks.push(start.elapsed());
        if answer["answered"] != json!(true) {
            return Err(format!("the ask ended with {answer}").into());
        }
        home.rewind()?;
    }
    Ok(Measured { sends: median(&sends), asks: median(&asks), peak: mine.peak()?.max(theirs.peak()?) })
}

/// Sees when mail waits for a participant.
struct Eye {
    store: Connection,
    of: ParticipantId,
}

impl Eye {
    fn wait(&self) -> Outcome<()> {
        let mut look = self
            .store
            .prepare("SELECT EXISTS (SELECT 1 FROM delivery WHERE recipient = ?1 AND state = 0)")?;
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if look.query_row([self.of.0], |row| row.get(0))? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Err("the question did not arrive".into())
    }
}

/// A running `baton mcp`, with its client's side.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    fn start(workshop: &Workshop, home: &Home, peer: &Peer) -> Outcome<Self> {
        let mut command = workshop.mcp(home, peer).command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take().ok_or("a server without output")?);
        let mut server = Self { child, input, output: BufReader::new(output), next: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}});
        let id = server.request("initialize", hello)?;
        server.response(id)?;
        server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    /// Reads the message with this body, and returns its id.
    fn take(&mut self, body: &str) -> Outcome<String> {
        let read = self.call("read_messages", json!({}))?;
        let found =
            read["messages"].as_array().into_iter().flatten().find(|message| message["body"] == *body);
        let id = found.and_then(|message| message["message_id"].as_str()).map(str::to_owned);
        id.ok_or_else(|| format!("the message did not arrive, but {read}").into())
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Outcome<Value> {
        let id = self.ask(tool, arguments)?;
        self.answer(id)
    }

    /// Calls a tool, without waiting for the answer.
    fn ask(&mut self, tool: &str, arguments: Value) -> Outcome<u64> {
        let call = format!("toolu_{:024x}", self.next);
        self.request(
            "tools/call",
            json!({"name": tool, "arguments": arguments, "_meta": {"claudecode/toolUseId": call}}),
        )
    }

    fn answer(&mut self, id: u64) -> Outcome<Value> {
        let mut result = self.response(id)?;
        if result["isError"] == json!(true) {
            return Err(format!("a tool failed: {}", result["content"]).into());
        }
        Ok(result["structuredContent"].take())
    }

    fn request(&mut self, method: &str, parameters: Value) -> Outcome<u64> {
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": parameters}))?;
        Ok(self.next)
    }

    fn write(&mut self, message: &Value) -> Outcome<()> {
        let input = self.input.as_mut().ok_or("a server without input")?;
        Ok(input.write_all(format!("{message}\n").as_bytes())?)
    }

    fn response(&mut self, id: u64) -> Outcome<Value> {
        loop {
            let mut line = String::new();
            if self.output.buffer().is_empty()
                && poll(&mut [PollFd::new(self.output.get_ref(), PollFlags::IN)], Some(&ANSWER_TIMEOUT))? == 0
            {
                return Err("the server does not answer".into());
            }
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server ended".into());
            }
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == json!(id) {
                let error = message["error"].take();
                return if error.is_null() {
                    Ok(message["result"].take())
                } else {
                    Err(error.to_string().into())
                };
            }
        }
    }

    fn peak(&self) -> Outcome<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .ok_or("the kernel does not say its size")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It exits when its input is closed.
        self.input.take();
        self.child.wait().ok();
    }
}
