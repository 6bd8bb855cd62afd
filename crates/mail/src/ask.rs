//! Waiting for the answer to an ask.

use crate::bell::Bell;
use crate::identity::Identity;
use crate::inbox::{self, Place};
use crate::process;
use baton_core::frame::Letter;
use baton_core::id::{MessageId, MessageRow, Nonce};
use baton_core::mail::Delivery;
use baton_core::{Code, Error};
use baton_store::{AskState, Store, Waiter};
use std::path::Path;
use std::time::Instant;

/// How a wait ended.
#[derive(Debug)]
pub enum Waited {
    /// With the answer, and for an agent the nonce that must be printed with it.
    Answer(Box<Letter>, MessageRow, Option<Nonce>),
    /// The answer came as ordinary mail meanwhile.
    Elsewhere(MessageId, Delivery),
    /// The ask itself reached an end without being seen.
    Ended(Delivery),
    /// Time ran out; the ask stays open and its answer will come as mail.
    TimedOut,
}

/// What to tell whoever waits for the answer to an ask that ended without being seen.
pub fn ended(ask: &MessageId, state: Delivery) -> Error {
    let request = ask.request();
    let (code, message) = match state {
        Delivery::Expired => (Code::AskExpired, format!("the ask {request} expired: nobody took it in time")),
        state => (Code::AskUndelivered, format!("the ask {request} ended as {}", state.as_str())),
    };
    Error::new(code, message)
        .hint(format!("ask again, or ask somebody else; `baton mail {ask}` shows what became of it"))
}

/// Looks once for the answer, and takes it if it is there.
pub fn poll(
    store: &mut Store,
    identity: &Identity,
    ask: &MessageId,
    place: Option<&Place>,
) -> Result<Option<Waited>, Error> {
    let me = identity.participant.id;
    let claim = place.map(|place| inbox::claim_at(store, place)).transpose()?;
    let waiter = match (place, &claim) {
        (Some(place), Some(claim)) => Waiter::Session(place.session, claim),
        _ => Waiter::Outsider,
    };
    Ok(match store.take_answer(me, ask, &waiter, crate::now())? {
        AskState::Waiting => None,
        AskState::Answered(letter, row) => Some(Waited::Answer(letter, row, claim.map(|claim| claim.nonce))),
        AskState::AnsweredElsewhere(id, state) => Some(Waited::Elsewhere(id, state)),
        AskState::Ended(state) => Some(Waited::Ended(state)),
    })
}

/// Waits for the answer until the deadline, woken by the bell. When it gives up, the answer becomes ordinary mail.
pub fn wait(
    store: &mut Store,
    home: &Path,
    identity: &Identity,
    ask: &MessageId,
    place: Option<&Place>,
    deadline: Instant,
) -> Result<Waited, Error> {
    let mut bell = Bell::listen(home, identity.participant.id)?;
    loop {
        if let Some(waited) = poll(store, identity, ask, place)? {
            return Ok(waited);
        }
        if !bell.wait(deadline) {
            give_up(store, identity, ask)?;
            return Ok(Waited::TimedOut);
        }
    }
}

/// Says that this process waits for an ask's answer from now on.
pub fn wait_again(store: &mut Store, identity: &Identity, ask: &MessageId) -> Result<(), Error> {
    store.set_waiter(identity.participant.id, ask, Some(process::this()))
}

/// Says that nobody waits any more: the answer will come as ordinary mail.
pub fn give_up(store: &mut Store, identity: &Identity, ask: &MessageId) -> Result<(), Error> {
    store.set_waiter(identity.participant.id, ask, None)
}
