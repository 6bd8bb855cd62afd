//! Identifiers: what they look like, and how they are made from random bytes.
//!
//! A public id is one letter that says what it names, then twelve characters of an alphabet that has no look-alikes
//! (60 bits), short enough for a model to copy and long enough to stay unique when several machines are joined.
//! An id that came from outside is data: it is compared, never interpreted.

use crate::{Code, Error};
use std::fmt;

/// Random bytes that one id needs.
pub const ID_BYTES: usize = 8;
const BODY_LEN: usize = 12;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

fn encode(prefix: char, random: [u8; ID_BYTES]) -> String {
    let mut bits = u64::from_le_bytes(random);
    let mut out = String::with_capacity(1 + BODY_LEN);
    out.push(prefix);
    for _ in 0..BODY_LEN {
        out.push(char::from(ALPHABET[(bits & 31) as usize]));
        bits >>= 5;
    }
    out
}

fn well_formed(prefix: char, text: &str) -> bool {
    text.len() == 1 + BODY_LEN
        && text.starts_with(prefix)
        && text.bytes().skip(1).all(|byte| ALPHABET.contains(&byte))
}

macro_rules! public_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Makes an id from random bytes.
            pub fn from_random(random: [u8; ID_BYTES]) -> Self {
                Self(encode($prefix, random))
            }

            /// Takes an id as a person, an agent or the store gave it; `None` if it can't be one.
            pub fn parse(text: &str) -> Option<Self> {
                well_formed($prefix, text).then(|| Self(text.to_owned()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

public_id!(
    /// Names one message, whatever the number of its recipients.
    MessageId,
    'm'
);
public_id!(
    /// Names an ask. It is the ask's message id with another first letter, so neither can point at a stranger.
    RequestId,
    'r'
);
public_id!(
    /// Names one job.
    JobId,
    'j'
);
public_id!(
    /// Names one question that an agent waits with.
    ApprovalId,
    'a'
);
public_id!(
    /// Proves an offer: printed at the end of what a hook prints, looked for where the agent keeps what it took.
    Nonce,
    'n'
);

impl MessageId {
    /// The request that this message opens, if it is an ask.
    pub fn request(&self) -> RequestId {
        RequestId(format!("r{}", &self.0[1..]))
    }

    /// Takes what a person or an agent typed as a message id.
    pub fn from_input(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        Self::parse(text).or_else(|| RequestId::parse(text).map(|request| request.message())).ok_or_else(
            || {
                Error::new(Code::MessageNotFound, format!("no message {}", crate::frame::shown(text, 40)))
                    .hint("a message id looks like m7k2qx9abcd3e; `baton mail` lists them")
            },
        )
    }
}

impl RequestId {
    /// The message that opened this request.
    pub fn message(&self) -> MessageId {
        MessageId(format!("m{}", &self.0[1..]))
    }
}

/// The row of a mailbox owner in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParticipantId(pub i64);

/// The row of one model context in the store (not the agent's own session id, which is text).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionRow(pub i64);

/// The row of an offer in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OfferId(pub i64);

/// The row of a message in the store; its order is the order of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageRow(pub i64);

/// The row of a wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WakeId(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_keep_their_kind() {
        let id = MessageId::from_random([0xff; 8]);
        assert_eq!(MessageId::parse(id.as_str()), Some(id.clone()));
        assert_eq!(RequestId::parse(id.as_str()), None);
        assert_eq!(id.request().message(), id);
        assert_eq!(MessageId::from_input(&format!(" {} ", id.request())).unwrap(), id);
    }

    #[test]
    fn hostile_ids_are_refused_and_echoed_harmlessly() {
        for text in
            ["", "m", "../../etc/passwd", "m7k2qx9abcd3\u{202e}", "M7K2QX9ABCD3E", &"m".repeat(10_000)]
        {
            let error = MessageId::from_input(text).unwrap_err();
            assert_eq!(error.code(), Code::MessageNotFound);
            assert!(error.to_string().len() < 200);
            assert!(!error.to_string().contains('\u{202e}'));
        }
    }
}
