//! A scripted model on loopback that speaks Anthropic Messages, OpenAI Responses, Chat Completions
//! and generateContent.
//!
//! Agents talk to it as to their provider. Each request is logged whole before the script decides
//! the answer, so a test can ask what the model was shown, when and how often. Plain threads, one
//! per connection; nothing is kept alive between requests.
//!
//! Requests that are not the conversation (titles, compaction) get a fixed answer and never reach
//! the script, but are in the log with their [`Kind`].

mod anthropic;
mod completions;
mod gemini;
mod http;
mod request;
mod responses;
mod script;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use request::{Api, Kind, Request, Role, Said, Source};
pub use script::{Part, Script, Step};

use crate::agents::Agent;
use http::{Call, Reply};

/// How often a hanging answer looks whether its client or the model has gone.
const HANG_INTERVAL: Duration = Duration::from_millis(50);

/// A running model server. Stops on drop.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    script: Script,
    log: Mutex<Log>,
    grown: Condvar,
    stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct Log {
    requests: Vec<Arc<Request>>,
    unknown: Vec<String>,
    panics: Vec<String>,
}

/// Where and how often a text was shown to the model.
///
/// History is sent again with each request, so "how often" is a question about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sightings {
    /// The [`Request::index`] of the first request that holds the text.
    pub first: Option<usize>,
    /// The number of requests that hold it.
    pub requests: usize,
    /// The most occurrences in any one request. 1 means: shown once.
    pub most: usize,
}

impl Model {
    /// Starts a server on a free port.
    pub fn start(script: Script) -> Model {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            script,
            log: Mutex::default(),
            grown: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let acceptor = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if acceptor.stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&acceptor);
                // A client that went away is its own business.
                thread::spawn(move || shared.serve(stream).ok());
            }
        });
        Model { address, shared }
    }

    /// The base URL for agents, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL for one agent: requests to it get tool calls with that agent's tool names.
    pub fn url_for(&self, agent: Agent) -> String {
        format!("{}/as/{}", self.url(), agent.name())
    }

    /// All requests until now, in the order in which they arrived.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.shared.log().requests.clone()
    }

    /// The requests of one kind.
    pub fn requests_of(&self, kind: Kind) -> Vec<Arc<Request>> {
        self.requests().into_iter().filter(|request| request.kind == kind).collect()
    }

    /// Calls that the server has no answer for, as `METHOD path`.
    pub fn unknown_calls(&self) -> Vec<String> {
        self.shared.log().unknown.clone()
    }

    /// Where the main conversations were shown `text`.
    pub fn sightings(&self, text: &str) -> Sightings {
        self.sightings_where(text, |request| request.kind == Kind::Main)
    }

    /// Where the chosen requests were shown `text`.
    pub fn sightings_where(&self, text: &str, chosen: impl Fn(&Request) -> bool) -> Sightings {
        let mut sightings = Sightings { first: None, requests: 0, most: 0 };
        for request in self.requests().iter().filter(|request| chosen(request)) {
            let count = request.count(text);
            if count > 0 {
                sightings.first.get_or_insert(request.index);
                sightings.requests += 1;
                sightings.most = sightings.most.max(count);
            }
        }
        sightings
    }

    /// Waits until a request satisfies `wanted`, for at most `limit`.
    pub fn wait_for(&self, limit: Duration, wanted: impl Fn(&Request) -> bool) -> Option<Arc<Request>> {
        let end = Instant::now() + limit;
        let mut log = self.shared.log();
        let mut looked_at = 0;
        loop {
            if let Some(found) = log.requests[looked_at..].iter().find(|request| wanted(request)) {
                return Some(Arc::clone(found));
            }
            looked_at = log.requests.len();
            let left = end.checked_duration_since(Instant::now())?;
            log = self.shared.grown.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor; if that fails, it is not there any more.
        TcpStream::connect(self.address).ok();
        let panics = std::mem::take(&mut self.shared.log().panics);
        if !thread::panicking() {
            assert!(panics.is_empty(), "the model's script panicked: {}", panics.join("; "));
        }
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let Some(call) = http::read(&stream)? else { return Ok(()) };
        let mut reply = Reply::new(stream);
        let path = call.path.split('?').next().unwrap_or_default();
        match (call.method.as_str(), path) {
            ("POST", path) if path.ends_with("/messages/count_tokens") => {
                reply.json(200, &json!({"input_tokens": 100}))
            }
            ("POST", path) if path.ends_with("/messages") => self.converse(Api::Anthropic, call, reply),
            ("POST", path) if path.ends_with("/responses") => self.converse(Api::Responses, call, reply),
            ("POST", path) if path.ends_with("/chat/completions") => {
                self.converse(Api::Completions, call, reply)
            }
            ("POST", path) if path.ends_with("enerateContent") => self.converse(Api::Gemini, call, reply),
            ("POST", path) if path.ends_with(":countTokens") => reply.json(200, &json!({"totalTokens": 100})),
            (method, path) => {
                self.log().unknown.push(format!("{method} {path}"));
                reply.json(404, &json!({"error": {"type": "not_found_error", "message": "not scripted"}}))
            }
        }
    }

    fn converse(&self, api: Api, call: Call, mut reply: Reply) -> io::Result<()> {
        let Ok(mut body) = serde_json::from_slice::<Value>(&call.body) else {
            return reply.json(400, &json!({"error": {"message": "the body is not JSON"}}));
        };
        let agent = match call.path.strip_prefix("/as/").and_then(|rest| rest.split('/').next()) {
            Some(name) => Agent::by_name(name),
            None => Some(match api {
                Api::Anthropic => Agent::Claude,
                Api::Responses | Api::Completions => Agent::Codex,
                Api::Gemini => Agent::Gemini,
            }),
        };
        if api == Api::Gemini && call.path.contains(":stream") {
            // Others name it in the body.
            body["stream"] = true.into();
        }
        let Some(agent) = agent else {
            return reply.json(404, &json!({"error": {"message": "no such agent"}}));
        };
        let request = {
            let mut log = self.log();
            let request = Arc::new(Request::new(log.requests.len(), agent, api, call.headers, body));
            log.requests.push(Arc::clone(&request));
            self.grown.notify_all();
            request
        };
        let step = panic::catch_unwind(AssertUnwindSafe(|| self.script.step(&request)));
        let step = step.unwrap_or_else(|panic| {
            let message = panic_text(&*panic);
            self.log().panics.push(message.clone());
            Step::error(400, &message)
        });
        self.answer(&request, step, &mut reply)
    }

    fn answer(&self, request: &Request, step: Step, reply: &mut Reply) -> io::Result<()> {
        match step {
            Step::Reply(parts) => match request.api {
                Api::Anthropic => anthropic::answer(reply, &request.body, &parts, next_id),
                Api::Responses => responses::answer(reply, &parts, next_id),
                Api::Completions => completions::answer(reply, request.agent, &request.body, &parts, next_id),
                Api::Gemini => gemini::answer(reply, request.agent, &request.body, &parts),
            },
            Step::Error { status, message } => {
                let error = json!({"type": "error", "error": {"type": "api_error", "message": message}});
                reply.json(status, &error)
            }
            Step::Limited { seconds, message } => {
                let error =
                    json!({"type": "error", "error": {"type": "rate_limit_error", "message": message}});
                reply.json_with(429, &format!("retry-after: {seconds}\r\n"), &error)
            }
            Step::Inside(message) => {
                let error = json!({"type": "server_error", "code": "server_error", "message": message});
                reply.start_events()?;
                match request.api {
                    Api::Responses => reply.event("response.failed", json!({"response": {"error": error}})),
                    Api::Completions | Api::Gemini => reply.data(&json!({"error": error})),
                    Api::Anthropic => reply.event("error", json!({"error": error})),
                }
            }
            Step::Cut(events, step) => {
                reply.cut_after(events);
                self.answer(request, *step, reply)
            }
            Step::Still(events, step) => {
                reply.cut_after(events);
                // Cut or whole: it only matters that nothing follows.
                self.answer(request, *step, reply).ok();
                self.answer(request, Step::Hang, reply)
            }
            Step::ErrorInside(message) => {
                reply.json(200, &json!({"type": "error", "error": {"type": "api_error", "message": message}}))
            }
            Step::After(delay, step) => {
                let end = Instant::now() + delay;
                while Instant::now() < end && !self.stopped.load(Ordering::SeqCst) {
                    thread::sleep(HANG_INTERVAL.min(end.saturating_duration_since(Instant::now())));
                }
                self.answer(request, *step, reply)
            }
            Step::Hang => {
                // The pause is in the question: a read with a time limit.
                let mut hanging = true;
                while hanging {
                    hanging = !self.stopped.load(Ordering::SeqCst) && reply.client_is_there(HANG_INTERVAL);
                }
                Ok(())
            }
        }
    }
}

/// A number for a message or call. Never repeated, as a session may be resumed with another model.
fn next_id() -> usize {
    static IDS: AtomicUsize = AtomicUsize::new(1);
    IDS.fetch_add(1, Ordering::Relaxed)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "panic".to_owned())
}

#[cfg(test)]
mod tests;
