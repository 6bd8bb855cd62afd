//! Reads a caller's mail on purpose: by a command or an MCP call.
//!
//! Mail that an agent takes this way is offered like any other, and the proof is in the result of
//! its call. Mail that the person or a script takes is seen once it is printed.

use crate::identity::{Doubt, Identity, Kind};
use crate::{evidence, reconcile};
use baton_core::frame::{self, Framed, Letter};
use baton_core::id::{MessageRow, Nonce, OfferId, ParticipantId, SessionRow};
use baton_core::limits::Limits;
use baton_core::mail::Anchor;
use baton_core::{Code, Error};
use baton_machine::{process, random};
use baton_store::{Claim, HookStep, Peeked, Store};
use std::cell::RefCell;
use std::path::Path;

/// Mail that was taken.
#[derive(Debug, Default)]
pub struct Taken {
    /// The messages, oldest first.
    pub letters: Vec<Letter>,
    /// How many more wait.
    pub more: usize,
    /// The offer, if an agent took them.
    pub offer: Option<TakenOffer>,
    /// The messages to mark as read after they are printed.
    rows: Vec<MessageRow>,
}

/// The offer of mail that an agent took.
#[derive(Clone, Debug)]
pub struct TakenOffer {
    /// Must be printed with the messages: it proves that the agent took them.
    pub nonce: Nonce,
    /// To give back if the messages can't be printed.
    pub id: OfferId,
}

/// Where the result of an agent's call will be in its transcript.
#[derive(Clone, Debug)]
pub struct Place {
    pub session: SessionRow,
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

/// Refuses a subagent, because the mail is its parent's, and a caller that names a session which
/// does not run it.
pub fn refuse_subagent(identity: &Identity) -> Result<(), Error> {
    match identity.kind {
        Kind::Session { subagent: true, .. } => {
            Err(Error::new(Code::Subagent, "you are a subagent; the mail is your parent's")
                .hint("finish, and let your parent read it"))
        }
        Kind::Stranger(doubt @ Doubt::OtherSession) => Err(doubt.refusal()),
        _ => Ok(()),
    }
}

/// Shows what waits, and takes nothing.
pub fn peek(store: &mut Store, identity: &Identity, most: usize) -> Result<Taken, Error> {
    reconcile::settle_offers(store, Some(identity.participant.id))?;
    let Peeked { letters: found, waiting } =
        store.peek(identity.participant.id, baton_machine::clock::now(), most, &process::is_alive)?;
    let more = waiting - found.len();
    Ok(Taken {
        letters: found.into_iter().map(|(_, letter)| letter).collect(),
        more,
        offer: None,
        rows: Vec::new(),
    })
}

/// Takes up to `most` messages that fit into `bytes`. With a place they are offered. Without one,
/// call [`mark_read`] once they are printed.
pub fn take(
    store: &mut Store,
    identity: &Identity,
    place: Option<&Place>,
    most: usize,
    bytes: usize,
    rules: &Limits,
) -> Result<Taken, Error> {
    refuse_subagent(identity)?;
    reconcile::settle_offers(store, Some(identity.participant.id))?;
    match place {
        Some(place) => offer(store, identity, place, most, bytes, rules),
        None => {
            let Peeked { letters: found, waiting } =
                store.peek(identity.participant.id, baton_machine::clock::now(), most, &process::is_alive)?;
            let more = waiting - found.len();
            let (rows, letters) = found.into_iter().unzip();
            Ok(Taken { letters, more, offer: None, rows })
        }
    }
}

/// Marks what the person or a script has been shown as seen.
pub fn mark_read(store: &mut Store, identity: &Identity, taken: &Taken) -> Result<(), Error> {
    if taken.rows.is_empty() {
        Ok(())
    } else {
        store.mark_read(identity.participant.id, &taken.rows, baton_machine::clock::now())
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
        now: baton_machine::clock::now(),
    };
    let rules = Limits { messages_per_event: most, ..*rules };
    let shown = RefCell::new((Vec::new(), 0));
    let claimed = store.hook_step(&step, &rules, &process::is_alive, &|letters, waiting, _| {
        let mut size = 0;
        let fitting = letters.iter().take_while(|letter| {
            size += frame::bytes(letter);
            size <= bytes
        });
        // The first message always goes. Otherwise a long one would block the rest.
        let taken = fitting.count().max(1);
        *shown.borrow_mut() = (letters[..taken].to_vec(), waiting - taken);
        Framed { taken, ..Framed::default() }
    })?;
    let (letters, more) = shown.into_inner();
    Ok(match claimed {
        Some(claimed) => Taken {
            letters,
            more,
            offer: Some(TakenOffer { nonce: claim.nonce, id: claimed.offer }),
            rows: Vec::new(),
        },
        None => Taken::default(),
    })
}

/// The address of a letter's sender, for a program.
pub fn sender_address(store: &Store, letter: &Letter) -> Result<String, Error> {
    let sender = store.message(&letter.id)?.and_then(|found| found.sender);
    address_of(store, sender, &letter.from)
}

/// The address of a participant, for a program: its session's id, or its name if it has no session.
pub fn address_of(store: &Store, participant: Option<ParticipantId>, name: &str) -> Result<String, Error> {
    let found = participant.map(|id| store.participant(id)).transpose()?.flatten();
    Ok(found.and_then(|found| found.native).map_or_else(|| name.to_owned(), |id| frame::defuse(&id)))
}

/// A claim whose proof will be the result of a call of this session.
pub(crate) fn claim_at(store: &Store, place: &Place) -> Result<Claim, Error> {
    let session = store
        .session(place.session)?
        .ok_or_else(|| Error::new(Code::NotASession, "that session is not known"))?;
    let length = evidence::transcript_length(session.transcript.as_deref().map(Path::new));
    let turn = store.hook_view(&session.agent, &session.native)?;
    let turn_from = turn.as_ref().map_or(length, |view| view.turn_from.min(length));
    Ok(Claim {
        nonce: Nonce::from_random(random::id()),
        anchor: place.anchor.clone(),
        turn: turn.and_then(|view| view.turn),
        position: length,
        read_from: baton_core::mail::start_of_search(turn_from, length),
        claimer: process::this(),
        at_stop: false,
        only_urgent: false,
    })
}
