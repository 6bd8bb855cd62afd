//! As much HTTP/1.1 as the agents' clients need: one request per connection, then close.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// The longest header line, and the most of them.
const MAX_LINE: u64 = 64 * 1024;
const MAX_HEADERS: usize = 200;

/// The largest body. A conversation in a test is far below.
const MAX_BODY: u64 = 64 * 1024 * 1024;

/// A client that sends nothing for this long is gone.
const READ_LIMIT: Duration = Duration::from_secs(30);

/// A request as it came.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Call {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads one request; `None` when the client closed without sending any.
pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Call>> {
    stream.set_read_timeout(Some(READ_LIMIT))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader)?;
    let mut words = first.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut call =
        Call { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() };
    loop {
        let header = line(&mut reader)?;
        if header.is_empty() {
            break;
        }
        if call.headers.len() == MAX_HEADERS {
            return Err(ErrorKind::InvalidData.into());
        }
        if let Some((name, value)) = header.split_once(':') {
            call.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    if call.header("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue")) {
        let mut writer = stream;
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    call.body = match call.header("transfer-encoding") {
        Some(encoding) if encoding.eq_ignore_ascii_case("chunked") => chunked(&mut reader)?,
        _ => {
            let length = call.header("content-length").map_or(Ok(0), str::parse::<u64>);
            exactly(&mut reader, length.map_err(|_| ErrorKind::InvalidData)?)?
        }
    };
    Ok(Some(call))
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.by_ref().take(MAX_LINE).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn exactly(reader: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    if length > MAX_BODY {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut body = Vec::new();
    reader.by_ref().take(length).read_to_end(&mut body)?;
    if body.len() as u64 == length { Ok(body) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn chunked(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(reader)?;
        let size = size.split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16).map_err(|_| ErrorKind::InvalidData)?;
        body.extend(exactly(reader, size.min(MAX_BODY))?);
        line(reader)?;
        if size == 0 {
            return Ok(body);
        }
        if body.len() as u64 > MAX_BODY {
            return Err(ErrorKind::InvalidData.into());
        }
    }
}

/// The answer to one request.
#[derive(Debug)]
pub(super) struct Reply {
    stream: TcpStream,
    /// How many events are still written, if the connection is to be cut.
    events_left: Option<usize>,
}

impl Reply {
    pub(super) fn new(stream: TcpStream) -> Reply {
        Reply { stream, events_left: None }
    }

    /// Cuts the connection after this many events.
    pub(super) fn cut_after(&mut self, events: usize) {
        self.events_left = Some(events);
    }

    fn write_event(&mut self, text: &str) -> io::Result<()> {
        if let Some(left) = &mut self.events_left {
            *left = left.checked_sub(1).ok_or(ErrorKind::BrokenPipe)?;
        }
        self.stream.write_all(text.as_bytes())
    }

    /// A whole JSON answer.
    pub(super) fn json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        self.json_with(status, "", body)
    }

    /// The same with more headers, each with its line end.
    pub(super) fn json_with(&mut self, status: u16, headers: &str, body: &Value) -> io::Result<()> {
        let body = body.to_string();
        write!(
            self.stream,
            "HTTP/1.1 {status} Scripted\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
        self.stream.flush()
    }

    /// Opens an event stream, which ends when the connection closes.
    pub(super) fn start_events(&mut self) -> io::Result<()> {
        self.stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nconnection: close\r\n\r\n",
        )
    }

    /// One event; `data` gets the event's name as its `type`.
    pub(super) fn event(&mut self, name: &str, mut data: Value) -> io::Result<()> {
        data["type"] = name.into();
        self.write_event(&format!("event: {name}\ndata: {data}\n\n"))
    }

    /// One event without a name.
    pub(super) fn data(&mut self, data: &Value) -> io::Result<()> {
        self.write_event(&format!("data: {data}\n\n"))
    }

    /// The end of a stream, as OpenAI's completions mark it.
    pub(super) fn done(&mut self) -> io::Result<()> {
        self.write_event("data: [DONE]\n\n")
    }

    /// Waits for `time`, and returns whether the client kept the connection open.
    pub(super) fn client_is_there(&mut self, time: Duration) -> bool {
        if self.stream.set_read_timeout(Some(time)).is_err() {
            return false;
        }
        match self.stream.read(&mut [0; 1]) {
            Ok(read) => read > 0,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }
}
