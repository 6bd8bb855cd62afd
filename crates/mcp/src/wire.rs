//! Reads and writes messages of the protocol as lines on stdin and stdout.
//!
//! It differs from the library's own transport in three ways. That one ignores a line that is not
//! well-formed Unicode, and the client would wait without end; this one repairs and marks the line,
//! so that the call gets an answer. At the end of stdin, this one ends all waits at once; the
//! library would let calls run on for seconds. And this one drops notifications before the first
//! request, which the library treats as a broken client.

use baton_core::limits;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions as _, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, watch};

/// A buffer that grew for a long line shrinks to this.
const MAX_KEPT_BUFFER_BYTES: usize = 64 << 10;

/// Marks a request whose text was not Unicode and now has replacement characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mended;

pub(crate) struct Wire<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    gone: watch::Sender<bool>,
    /// The part of the present line that was read.
    line: Vec<u8>,
    /// The present line is too long and is skipped.
    skipping: bool,
    /// The first request has come.
    begun: bool,
}

impl<R, W> Wire<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// A transport over two streams. `gone` becomes true when the input ends.
    pub(crate) fn new(input: R, output: W, gone: watch::Sender<bool>) -> Self {
        Self {
            input: BufReader::new(input),
            output: Arc::new(Mutex::new(output)),
            gone,
            line: Vec::new(),
            skipping: false,
            begun: false,
        }
    }

    /// Reads until a whole line is in `self.line`. False at the end of the stream. It may be
    /// dropped and called again at any time: it keeps all that it consumes.
    async fn read_line(&mut self) -> bool {
        loop {
            let Ok(available) = self.input.fill_buf().await else { return false };
            if available.is_empty() {
                return false;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let count = newline.map_or(available.len(), |at| at + 1);
            if !self.skipping {
                self.line.extend_from_slice(&available[..count]);
            }
            self.input.consume(count);
            if self.line.len() > limits::PAYLOAD_BYTES {
                self.skipping = true;
                self.line = Vec::new();
            }
            if newline.is_some() && !std::mem::take(&mut self.skipping) {
                return true;
            }
        }
    }

    /// Parses the present line as a message, and clears the line.
    fn take_message(&mut self) -> Result<Option<ClientJsonRpcMessage>, RequestId> {
        let parsed = parse(self.line.trim_ascii());
        self.line.clear();
        self.line.shrink_to(MAX_KEPT_BUFFER_BYTES);
        parsed
    }
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(&output, &message).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        while self.read_line().await {
            match self.take_message() {
                Ok(Some(JsonRpcMessage::Request(request))) => {
                    self.begun |= !matches!(
                        request.request,
                        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)
                    );
                    return Some(JsonRpcMessage::Request(request));
                }
                Ok(Some(message)) if self.begun => return Some(message),
                Ok(_) => {}
                Err(id) => {
                    let refusal = ServerJsonRpcMessage::error(
                        ErrorData::invalid_request("not a request of the protocol", None),
                        Some(id),
                    );
                    if write(&self.output, &refusal).await.is_err() {
                        break;
                    }
                }
            }
        }
        self.gone.send_replace(true);
        None
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.output.lock().await.flush().await
    }
}

/// Whether the other end of stdin is closed, by the kernel. That shows even before the transport
/// has read what is left.
pub(crate) fn is_hung_up() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok()
        && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

async fn write<W: AsyncWrite + Unpin>(
    output: &Mutex<W>,
    message: &ServerJsonRpcMessage,
) -> Result<(), io::Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

/// The message in a line. `None` if it is not a message and needs no answer. The error is the id to
/// answer with a refusal.
fn parse(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, RequestId> {
    if line.is_empty() {
        return Ok(None);
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Ok(Some(message));
    }
    let text = mend(line);
    match serde_json::from_str::<ClientJsonRpcMessage>(&text) {
        Ok(JsonRpcMessage::Request(mut request)) => {
            request.request.extensions_mut().insert(Mended);
            Ok(Some(JsonRpcMessage::Request(request)))
        }
        Ok(message) => Ok(Some(message)),
        Err(_) => request_id(&text).map_or(Ok(None), Err),
    }
}

/// The id of a malformed request.
fn request_id(text: &str) -> Option<RequestId> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    value.get("method")?;
    serde_json::from_value(value.get_mut("id")?.take()).ok()
}

/// JSON text with a replacement character for each byte that is not UTF-8 and each half of a
/// surrogate pair.
fn mend(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (surrogate(rest), rest.get(6..).and_then(surrogate)) {
            (Some(Half::High), Some(Half::Low)) => 12,
            (Some(_), _) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            // The backslash and the next character, which may be another backslash.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

enum Half {
    High,
    Low,
}

/// The half of a surrogate pair that the text starts with as an escape, if it does.
fn surrogate(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced_and_pairs_and_escapes_are_kept() {
        for (given, wanted) in [
            (r#""a\ud83d\ude00b""#, r#""a\ud83d\ude00b""#),
            (r#""a\ud83db""#, r#""a\ufffdb""#),
            (r#""a\ude00\ud83d""#, r#""a\ufffd\ufffd""#),
            (r#""a\ud83d\ud83d\ude00""#, r#""a\ufffd\ud83d\ude00""#),
            (r#""\\ud83d\n\"""#, r#""\\ud83d\n\"""#),
            (r#""\u00e9é\"#, r#""\u00e9é\"#),
        ] {
            assert_eq!(mend(given.as_bytes()), wanted);
        }
        assert_eq!(mend(b"\"a\xff\""), "\"a\u{fffd}\"");
    }

    #[test]
    fn a_line_that_is_no_message_is_answered_only_if_it_asks() {
        assert!(matches!(parse(b"not json"), Ok(None)));
        assert!(matches!(parse(b"{\"jsonrpc\":\"2.0\",\"method\":7,\"id\":1}"), Err(RequestId::Number(1))));
        assert!(matches!(parse(b"{\"jsonrpc\":\"2.0\",\"method\":7}"), Ok(None)));
    }

    #[tokio::test]
    async fn lines_come_whole_and_the_end_is_reported() {
        let (gone, mut client) = watch::channel(false);
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n\n";
        let stray = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
        let input = format!("{stray}{}\n{ping}{{\"half\":", "x".repeat(limits::PAYLOAD_BYTES + 1));
        let mut wire = Wire::new(input.as_bytes(), tokio::io::sink(), gone);
        assert!(
            matches!(wire.receive().await, Some(JsonRpcMessage::Request(_))),
            "what came before is skipped"
        );
        assert!(!*client.borrow_and_update());
        assert!(wire.receive().await.is_none());
        assert!(*client.borrow_and_update());
    }
}
