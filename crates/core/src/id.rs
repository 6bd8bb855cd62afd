//! Identifiers: what they look like, and how they are made from random bytes.
//!
//! A public id is one letter for its kind, then twelve characters of an alphabet without
//! look-alikes (60 bits). It is short enough for a model to copy and long enough to stay unique
//! across several machines. An id that came from outside is data: it is compared, never
//! interpreted.

use crate::{Code, Error};
use std::fmt;

/// How many random bytes one id needs.
pub const ID_BYTES: usize = 8;
const ID_CHARS: usize = 12;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

fn encode(prefix: char, random: [u8; ID_BYTES]) -> String {
    let mut bits = u64::from_le_bytes(random);
    let mut out = String::with_capacity(1 + ID_CHARS);
    out.push(prefix);
    for _ in 0..ID_CHARS {
        out.push(char::from(ALPHABET[(bits & 31) as usize]));
        bits >>= 5;
    }
    out
}

fn well_formed(prefix: char, text: &str) -> bool {
    text.len() == 1 + ID_CHARS
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

            /// Parses an id from a person, an agent or the store; `None` if it can't be one.
            pub fn parse(text: &str) -> Option<Self> {
                well_formed($prefix, text).then(|| Self(text.to_owned()))
            }

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
    /// Names one message, however many recipients it has.
    MessageId,
    'm'
);
public_id!(
    /// Names an ask. It is the ask's message id with another first letter, so both always mean the
    /// same ask.
    RequestId,
    'r'
);
public_id!(
    /// Names one job.
    JobId,
    'j'
);
public_id!(
    /// Names one question that an agent asks the person.
    ApprovalId,
    'a'
);
public_id!(
    /// Proves an offer: a hook prints it behind the mail, and baton later looks for it in the
    /// agent's records.
    Nonce,
    'n'
);

impl MessageId {
    /// How many characters it has.
    pub const LENGTH: usize = 1 + ID_CHARS;

    /// The request that this message opens, if it is an ask.
    pub fn request(&self) -> RequestId {
        RequestId(format!("r{}", &self.0[1..]))
    }

    /// Parses a message id that a person or an agent typed.
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

/// The row of one session in the store (not the agent's own session id, which is text).
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
