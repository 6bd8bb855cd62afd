//! Splits a pipe into lines. The pipe is read only when it has data.

use baton_core::limits;
use std::io::{self, Read};

#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// No line ends before this position.
    searched: usize,
    /// How much of a line that is too long was skipped so far.
    skipped: usize,
}

impl Lines {
    /// Reads what is available. False at the end.
    pub fn read(&mut self, from: &mut impl Read) -> io::Result<bool> {
        let mut piece = [0; 64 << 10];
        let count = match from.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            other => other?,
        };
        self.bytes.extend_from_slice(&piece[..count]);
        Ok(count > 0)
    }

    /// The next whole line, or the length of one that was too long.
    pub fn next(&mut self) -> Option<Result<Vec<u8>, usize>> {
        let Some(end) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            if self.searched > limits::PAYLOAD_BYTES {
                self.skipped += self.searched;
                self.bytes.clear();
                self.searched = 0;
            }
            return None;
        };
        let mut line: Vec<u8> = self.bytes.drain(..=self.searched + end).collect();
        self.searched = 0;
        line.pop();
        Some(match std::mem::take(&mut self.skipped) {
            0 => Ok(line),
            skipped => Err(skipped + line.len()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_from_any_pieces() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for piece in ["on", "e\ntw", "o\n\nth", "ree"] {
            assert!(lines.read(&mut piece.as_bytes()).unwrap());
            while let Some(line) = lines.next() {
                seen.push(String::from_utf8(line.unwrap()).unwrap());
            }
        }
        assert_eq!(seen, ["one", "two", ""]);
        assert!(!lines.read(&mut io::empty()).unwrap(), "the end");
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_not() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; 64 << 10];
        let mut length = 0;
        while length <= limits::PAYLOAD_BYTES {
            lines.read(&mut &piece[..]).unwrap();
            assert_eq!(lines.next(), None);
            length += piece.len();
        }
        lines.read(&mut &b"end\nnext\n"[..]).unwrap();
        assert_eq!(lines.next(), Some(Err(length + 3)));
        assert_eq!(lines.next(), Some(Ok(b"next".to_vec())));
    }
}
