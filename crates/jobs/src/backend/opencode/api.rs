//! Calls to OpenCode's server, on loopback.
//!
//! The server answers an unknown route with its web page and status 200, so an answer counts only
//! if it is JSON. Sessions, events and questions belong to a folder, which goes with each call.

use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind};
use std::time::Duration;
use ureq::Agent;
use ureq::http::Response;

/// The user name that goes with the password.
pub(super) const USER_NAME: &str = "opencode";
/// The largest answer: the last messages of a session, with the output of their tools.
const ANSWER_BYTES: u64 = 256 << 20;
/// The stream sends a heartbeat every ten seconds. After three missing ones it counts as silent.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No process listens there.
    Refused,
    /// The connection broke, or it took too long.
    Broken(String),
    /// The server refused: its status, and its text.
    Status(u16, String),
    /// The server has no such call.
    NoSuchCall,
}

impl Failure {
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Refused => "no process listens on the port of OpenCode's server".to_owned(),
            Self::Broken(reason) => format!("OpenCode's server can't be heard: {reason}"),
            Self::Status(status, words) => format!("OpenCode's server answered {status}: {words}"),
            Self::NoSuchCall => "OpenCode's server does not know that call".to_owned(),
        }
    }
}

/// A server, and the folder of the calls.
#[derive(Clone, Debug)]
pub(super) struct Api {
    base: String,
    directory: String,
    calls: Agent,
    stream: Agent,
}

impl Api {
    pub(super) fn new(port: u16, password: &str, directory: &str) -> Self {
        // The user's proxy is not for loopback, and a kept connection may lead to the old server.
        let config = || {
            Agent::config_builder()
                .proxy(None)
                .http_status_as_error(false)
                .max_redirects(0)
                .max_idle_connections(0)
        };
        let stream = config()
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_recv_response(Some(SILENCE_LIMIT))
            .timeout_per_read(Some(SILENCE_LIMIT));
        Self {
            base: format!("http://{USER_NAME}:{password}@127.0.0.1:{port}"),
            directory: encoded(directory),
            calls: config().build().new_agent(),
            stream: stream.build().new_agent(),
        }
    }

    pub(super) fn get(&self, path: &str, limit: Duration) -> Result<Value, Failure> {
        let call = self.calls.get(format!("{}{path}", self.base));
        let call = call.header("x-opencode-directory", &self.directory);
        answer(call.config().timeout_global(Some(limit)).build().call())
    }

    pub(super) fn post(&self, path: &str, body: &Value, limit: Duration) -> Result<Value, Failure> {
        let call = self.calls.post(format!("{}{path}", self.base));
        let call = call.header("x-opencode-directory", &self.directory).content_type("application/json");
        answer(call.config().timeout_global(Some(limit)).build().send(body.to_string()))
    }

    pub(super) fn patch(&self, path: &str, body: &Value, limit: Duration) -> Result<Value, Failure> {
        let call = self.calls.patch(format!("{}{path}", self.base));
        let call = call.header("x-opencode-directory", &self.directory).content_type("application/json");
        answer(call.config().timeout_global(Some(limit)).build().send(body.to_string()))
    }

    /// The version of the server, if it accepts the password.
    pub(super) fn version(&self, limit: Duration) -> Result<String, Failure> {
        let health = self.get("/global/health", limit)?;
        let version = health["version"].as_str().filter(|_| health["healthy"] == true);
        version.map(ToOwned::to_owned).ok_or(Failure::NoSuchCall)
    }

    /// Reads the events of the folder until they end. `event` gets each of them, and returns
    /// whether it wants more.
    pub(super) fn events(&self, mut event: impl FnMut(&Value) -> Next) -> Result<(), Failure> {
        let call = self.stream.get(format!("{}/event", self.base));
        let response = call.header("x-opencode-directory", &self.directory).call().map_err(failed)?;
        if response.status() != 200 {
            return Err(Failure::Status(response.status().as_u16(), String::new()));
        }
        let reader = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut reader = BufReader::with_capacity(64 << 10, reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line);
            if read.map_err(|error| Failure::Broken(error.to_string()))? == 0 {
                return Err(Failure::Broken("its events ended".to_owned()));
            }
            let Some(data) = line.strip_prefix(b"data:") else { continue };
            if let Ok(said) = serde_json::from_slice(data)
                && event(&said) == Next::Stop
            {
                return Ok(());
            }
        }
    }
}

/// Whether a reader of events wants another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    More,
    Stop,
}

fn answer(response: Result<Response<ureq::Body>, ureq::Error>) -> Result<Value, Failure> {
    let mut response = response.map_err(failed)?;
    let status = response.status().as_u16();
    let is_json = response.body().mime_type() == Some("application/json");
    let text = response.body_mut().with_config().limit(ANSWER_BYTES).lossy_utf8(true).read_to_string();
    let text = text.map_err(failed)?;
    match status {
        204 => Ok(Value::Null),
        200..=299 if is_json => serde_json::from_str(&text).map_err(|_| Failure::NoSuchCall),
        200..=299 => Err(Failure::NoSuchCall),
        _ => Err(Failure::Status(status, words_of(&text))),
    }
}

/// The text of an error document, or its beginning.
fn words_of(text: &str) -> String {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let words = document["data"]["message"].as_str().or_else(|| document["message"].as_str());
    words.map_or_else(|| text.chars().take(300).collect(), ToOwned::to_owned)
}

fn failed(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::ConnectionFailed => Failure::Refused,
        ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => Failure::Refused,
        error => Failure::Broken(error.to_string()),
    }
}

/// A folder as a header can carry it.
fn encoded(path: &str) -> String {
    let mut encoded = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_any_name_fits_into_a_header() {
        assert_eq!(encoded("/a b/ä%\n"), "/a%20b/%C3%A4%25%0A");
    }

    #[test]
    fn a_closed_port_is_told_from_a_broken_line() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let api = Api::new(port, "x", "/");
        assert_eq!(api.version(Duration::from_secs(5)), Err(Failure::Refused));
        assert_eq!(api.events(|_| Next::More), Err(Failure::Refused));
    }

    #[test]
    fn a_web_page_is_no_answer() {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\n{}")
                .unwrap();
            String::from_utf8_lossy(&piece[..count]).into_owned()
        });
        let api = Api::new(port, "secret", "/a b");
        assert_eq!(api.get("/nope", Duration::from_secs(5)), Err(Failure::NoSuchCall));
        let request = server.join().unwrap().to_lowercase();
        assert!(request.contains("authorization: basic b3blbmnvzgu6c2vjcmv0"), "{request}");
        assert!(request.contains("x-opencode-directory: /a%20b"), "{request}");
    }
}
