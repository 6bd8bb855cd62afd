//! Reading one's mail on purpose: by a command or an MCP call.
//!
//! What an agent takes this way is offered like any other mail, with the proof in its call's result; what the person or a script takes is
//! seen once it is printed.

use crate::identity::{Identity, Kind};
use crate::{evidence, process, random, reconcile};
use baton_core::frame::{self, Framed, Letter};
use baton_core::id::{MessageRow, Nonce, OfferId, ParticipantId, SessionRow};
use baton_core::limits::Limits;
use baton_core::mail::Anchor;
use baton_core::{Code, Error};
use baton_store::{Claim, HookStep, Store};
use std::cell::RefCell;
use std::path::Path;

/// Mail that was taken.
#[derive(Debug, Default)]
pub struct Taken {
    /// The messages, oldest first.
    pub letters: Vec<Letter>,
    /// How many more wait.
    pub more: usize,
    /// What must be printed with them, so that the taking can be proven; and the offer to give back if it can't be printed.
    pub offer: Option<(Nonce, OfferId)>,
    /// What to mark as read after printing.
    rows: Vec<MessageRow>,
}

/// How an agent's call will show up in its transcript.
#[derive(Clone, Debug)]
pub struct Place {
    /// The session.
    pub session: SessionRow,
    /// Where the result stands.
    pub anchor: Anchor,
}

/// The place of a command that an agent runs in its shell.
pub fn shell_place(identity: &Identity) -> Option<Place> {
    match &identity.kind {
        Kind::Session { session, call, .. } => Some(Place {
            session: *session,
            anchor: call.as_ref().map_or(Anchor::Shell, |call| Anchor::Call(call.clone())),
        }),
        _ => None,
    }
}

/// Refuses a subagent: the mail is its parent's.
pub fn refuse_subagent(identity: &Identity) -> Result<(), Error> {
    match identity.kind {
        Kind::Session { subagent: true, .. } => {
            Err(Error::new(Code::Subagent, "you are a subagent; the mail is your parent's")
                .hint("finish, and let your parent read it"))
        }
        _ => Ok(()),
    }
}

/// Shows what waits without taking it.
pub fn peek(store: &mut Store, identity: &Identity, most: usize) -> Result<Taken, Error> {
    reconcile::offers(store, Some(identity.participant.id))?;
    let (found, waiting) = store.peek(identity.participant.id, crate::now(), most, &process::is_alive)?;
    let more = waiting - found.len();
    Ok(Taken {
        letters: found.into_iter().map(|(_, letter)| letter).collect(),
        more,
        offer: None,
        rows: Vec::new(),
    })
}

/// Takes up to `most` messages that fit into `bytes`. With a place they are offered; without one they are read by [`mark_read`] once printed.
pub fn take(
    store: &mut Store,
    identity: &Identity,
    place: Option<&Place>,
    most: usize,
    bytes: usize,
    rules: &Limits,
) -> Result<Taken, Error> {
    refuse_subagent(identity)?;
    reconcile::offers(store, Some(identity.participant.id))?;
    match place {
        Some(place) => offer(store, identity, place, most, bytes, rules),
        None => {
            let (found, waiting) =
                store.peek(identity.participant.id, crate::now(), most, &process::is_alive)?;
            let more = waiting - found.len();
            let (rows, letters) = found.into_iter().unzip();
            Ok(Taken { letters, more, offer: None, rows })
        }
    }
}

/// Marks what was printed for the person or a script as seen.
pub fn mark_read(store: &mut Store, identity: &Identity, taken: &Taken) -> Result<(), Error> {
    if taken.rows.is_empty() {
        Ok(())
    } else {
        store.mark_read(identity.participant.id, &taken.rows, crate::now())
    }
}

fn offer(
    store: &mut Store,
    identity: &Identity,
    place: &Place,
    most: usize,
    bytes: usize,
    rules: &Limits,
) -> Result<Taken, Error> {
    let claim = claim_at(store, place)?;
    let step = HookStep {
        session: place.session,
        participant: identity.participant.id,
        settle: Vec::new(),
        state: None,
        transcript: None,
        turn: None,
        confirms: None,
        claim: Some(claim.clone()),
        now: crate::now(),
    };
    let rules = Limits { messages_per_event: most, ..*rules };
    let shown = RefCell::new((Vec::new(), 0));
    let claimed = store.hook_step(&step, &rules, &process::is_alive, &|letters, waiting, _| {
        let mut size = 0;
        let fitting = letters.iter().take_while(|letter| {
            size += frame::bytes(letter);
            size <= bytes
        });
        // The first one always goes, or a long one would block the rest for ever.
        let taken = fitting.count().max(1);
        *shown.borrow_mut() = (letters[..taken].to_vec(), waiting - taken);
        Framed { text: String::new(), taken }
    })?;
    let (letters, more) = shown.into_inner();
    Ok(match claimed {
        Some(claimed) => Taken { letters, more, offer: Some((claim.nonce, claimed.offer)), rows: Vec::new() },
        None => Taken::default(),
    })
}

/// What a program can address the sender of a letter by.
pub fn sender_address(store: &Store, letter: &Letter) -> Result<String, Error> {
    let sender = store.message(&letter.id)?.and_then(|found| found.sender);
    address_of(store, sender, &letter.from)
}

/// What a program can address a participant by: its session's id, or its name if it has no session.
pub fn address_of(store: &Store, participant: Option<ParticipantId>, name: &str) -> Result<String, Error> {
    let found = participant.map(|id| store.participant(id)).transpose()?.flatten();
    Ok(found.and_then(|found| found.native).map_or_else(|| name.to_owned(), |id| frame::defuse(&id)))
}

/// A claim whose proof will be the result of a call of this session.
pub(crate) fn claim_at(store: &Store, place: &Place) -> Result<Claim, Error> {
    let session = store
        .session(place.session)?
        .ok_or_else(|| Error::new(Code::NotASession, "that session is not known"))?;
    let length = evidence::length(session.transcript.as_deref().map(Path::new));
    let turn = store.hook_view(&session.agent, &session.native)?;
    let turn_from = turn.as_ref().map_or(length, |view| view.turn_from.min(length));
    Ok(Claim {
        nonce: Nonce::from_random(random()),
        anchor: place.anchor.clone(),
        turn: turn.and_then(|view| view.turn),
        position: length,
        read_from: evidence::start_of_look(turn_from, length),
        claimer: process::this(),
        at_stop: false,
        only_urgent: false,
    })
}
