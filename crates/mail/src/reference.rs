//! Finds the message that a person or an agent names, by its id or the beginning of it.

use crate::identity::{Identity, Kind};
use baton_core::frame::shown;
use baton_core::id::MessageId;
use baton_core::{Code, Error};
use baton_store::{MailRow, Part, Store};

/// Shortest beginning of an id: its letter and one character.
const SHORTEST: usize = 2;
/// How many messages an ambiguous beginning lists.
const MAX_LISTED: usize = 6;

/// What the named message is to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// It may be shown to the caller.
    Readable,
    /// The caller sent or got it.
    Own,
    /// It came to the caller, who answers it.
    ToAnswer,
    /// It is a question of the caller.
    Asked,
}

impl Reference {
    fn part(self, me: &Identity) -> Part {
        let mine = me.participant.id;
        match (self, &me.kind) {
            (Self::Readable, Kind::Person | Kind::Script) => Part::Any,
            (Self::Readable | Self::Own, _) => Part::Either(mine),
            (Self::ToAnswer, _) => Part::Received(mine),
            (Self::Asked, _) => Part::Asked(mine),
        }
    }

    fn missing(self, text: &str) -> Error {
        let shown = shown(text, 40);
        match self {
            Self::Asked => Error::new(Code::RequestNotFound, format!("you have no ask {shown}"))
                .hint("a request id looks like r7k2qx9abcd3e; `baton mail` lists your messages"),
            _ => Error::new(Code::MessageNotFound, format!("no message {shown}"))
                .hint("a message id looks like m7k2qx9abcd3e; `baton mail` lists them"),
        }
    }
}

/// The id of a message. A whole id is only parsed: the caller looks whether there is such a
/// message. Of the beginning of an id, only messages that concern the caller count.
pub fn find(store: &Store, me: &Identity, text: &str, what: Reference) -> Result<MessageId, Error> {
    let typed = text.trim();
    if let Ok(id) = MessageId::from_input(typed) {
        return Ok(id);
    }
    // A request has the id of its message, but for the first letter.
    let rest = typed.strip_prefix(['m', 'r']).filter(|rest| {
        typed.len() >= SHORTEST
            && typed.len() < MessageId::LENGTH
            && rest.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    let Some(rest) = rest else { return Err(what.missing(typed)) };
    let beginning = format!("m{}", rest.to_ascii_lowercase());
    // A stranger may be any agent: it learns nothing about ids.
    if matches!(me.kind, Kind::Stranger(_)) {
        return Err(what.missing(typed));
    }
    let found = store.messages_beginning(&beginning, what.part(me), MAX_LISTED)?;
    match &found[..] {
        [] => Err(what.missing(typed)),
        [one] => Ok(one.id.clone()),
        several => {
            let listed: Vec<String> = several.iter().map(described).collect();
            Err(Error::new(
                Code::AmbiguousMessage,
                format!("several messages begin with {typed}: {}", listed.join(", ")),
            )
            .hint("write more of the id"))
        }
    }
}

fn described(mail: &MailRow) -> String {
    format!("{} from {}", mail.id, mail.from)
}
