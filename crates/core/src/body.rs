//! The body of a message: 1 to 65,536 bytes of UTF-8 without NUL.

use crate::{Code, Error, limits};

/// The text of a message. It is checked once, where it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body(String);

impl Body {
    /// Checks bytes from an argument, a pipe or a tool call.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        if bytes.len() > limits::BODY_BYTES {
            return Err(too_large(bytes.len()));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Error::new(Code::BodyNotUtf8, format!("the body is not UTF-8: byte {at} is wrong"))
                .hint("send text; for other data, send the path of a file")
        })?;
        Self::from_text(text)
    }

    pub fn from_text(text: String) -> Result<Self, Error> {
        if text.len() > limits::BODY_BYTES {
            return Err(too_large(text.len()));
        }
        if let Some(at) = text.find('\0') {
            return Err(Error::new(Code::BodyHasNul, format!("the body has a NUL character at byte {at}"))
                .hint("send text; for other data, send the path of a file"));
        }
        if text.trim().is_empty() {
            return Err(Error::new(Code::EmptyBody, "the body is empty")
                .hint("say something: baton send NAME \"text\""));
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The error for a body that is too long; `seen` bytes were read.
pub fn too_large(seen: usize) -> Error {
    Error::new(Code::BodyTooLarge, format!("the body has {seen} bytes, {} are allowed", limits::BODY_BYTES))
        .hint("write it to a file and send the file's path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_of_65536_bytes_passes_and_one_more_is_refused() {
        assert!(Body::from_bytes(vec![b'x'; 65_536]).is_ok());
        assert_eq!(Body::from_bytes(vec![b'x'; 65_537]).unwrap_err().code(), Code::BodyTooLarge);
        assert_eq!(Body::from_text("é".repeat(32_769)).unwrap_err().code(), Code::BodyTooLarge);
    }

    #[test]
    fn bad_bodies_have_their_own_codes() {
        assert_eq!(Body::from_bytes(vec![b'a', 0xff]).unwrap_err().code(), Code::BodyNotUtf8);
        // A lone surrogate, as CESU-8 would write it.
        assert_eq!(Body::from_bytes(vec![0xed, 0xa0, 0x80]).unwrap_err().code(), Code::BodyNotUtf8);
        assert_eq!(Body::from_bytes(b"a\0b".to_vec()).unwrap_err().code(), Code::BodyHasNul);
        for empty in ["", " ", "\n\t "] {
            assert_eq!(Body::from_text(empty.into()).unwrap_err().code(), Code::EmptyBody);
        }
    }
}
