//! Writes a line to a socket on which a session listens.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A healthy listener takes a line at once.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes the line, if that process is really the one that listens there.
pub fn write(path: &Path, line: &[u8], listener: Option<i32>) -> Result<(), String> {
    let mut stream =
        UnixStream::connect(path).map_err(|error| format!("its inbox does not answer: {error}"))?;
    if let Some(listener) = listener
        && peer(&stream).is_some_and(|peer| peer != listener)
    {
        return Err("another process listens at its inbox".to_owned());
    }
    stream
        .set_write_timeout(Some(WRITE_TIMEOUT))
        .and_then(|()| stream.write_all(line))
        .map_err(|error| format!("its inbox did not take the line: {error}"))
}

#[cfg(target_os = "linux")]
fn peer(stream: &UnixStream) -> Option<i32> {
    rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.pid.as_raw_nonzero().get())
}

#[cfg(not(target_os = "linux"))]
fn peer(_stream: &UnixStream) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_line_goes_to_its_process_and_to_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inbox.sock");
        assert!(write(&path, b"x\n", None).unwrap_err().contains("does not answer"));
        let listener = UnixListener::bind(&path).unwrap();
        let me = std::process::id().cast_signed();
        write(&path, b"hello\n", Some(me)).unwrap();
        let mut line = String::new();
        BufReader::new(listener.accept().unwrap().0).read_line(&mut line).unwrap();
        assert_eq!(line, "hello\n");
        #[cfg(target_os = "linux")]
        assert!(write(&path, b"x\n", Some(me + 1)).unwrap_err().contains("another process"));
    }
}
