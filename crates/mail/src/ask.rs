//! Waiting for the answer to an ask.

use crate::identity::Identity;
use crate::inbox::{self, Place};
use crate::wake::{self, WakeRequest};
use crate::{fate, reconcile};
use baton_core::frame::Letter;
use baton_core::id::{MessageId, MessageRow, Nonce};
use baton_core::limits::Limits;
use baton_core::mail::Delivery;
use baton_core::silence::{self, Silence};
use baton_core::{Code, Error};
use baton_machine::bell::Bell;
use baton_machine::process;
use baton_store::{AskState, Store, Waiter};
use std::path::Path;
use std::time::{Duration, Instant};

/// How a wait ended.
#[derive(Debug)]
pub enum WaitOutcome {
    /// With the answer. For an agent, the nonce must be printed with it.
    Answer { letter: Box<Letter>, row: MessageRow, nonce: Option<Nonce> },
    /// The answer has already come as ordinary mail.
    Elsewhere { id: MessageId, state: Delivery },
    /// The ask itself reached an end without being seen.
    Ended(Delivery),
    /// Without an answer in time. The ask stays open, and its answer comes as mail.
    TimedOut,
}

/// The error for a caller that waits for the answer to an ask which ended unseen.
pub fn ended_error(ask: &MessageId, state: Delivery) -> Error {
    let request = ask.request();
    let (code, message) = match state {
        Delivery::Expired => {
            (Code::AskExpired, format!("the ask {request} expired: the recipient did not take it in time"))
        }
        state => (Code::AskUndelivered, format!("the ask {request} ended as {}", state.as_str())),
    };
    Error::new(code, message)
        .hint(format!("ask again, or ask another participant; `baton mail {ask}` shows what became of it"))
}

/// Takes the answer if it is there. Does not wait.
pub fn poll(
    store: &mut Store,
    identity: &Identity,
    ask: &MessageId,
    place: Option<&Place>,
) -> Result<Option<WaitOutcome>, Error> {
    let me = identity.participant.id;
    let claim = place.map(|place| inbox::claim_at(store, place)).transpose()?;
    let waiter = match (place, &claim) {
        (Some(place), Some(claim)) => Waiter::Session(place.session, claim),
        _ => Waiter::Outsider,
    };
    Ok(match store.take_answer(me, ask, &waiter, baton_machine::clock::now())? {
        AskState::Waiting => None,
        AskState::Answered(letter, row) => {
            Some(WaitOutcome::Answer { letter, row, nonce: claim.map(|claim| claim.nonce) })
        }
        AskState::AnsweredElsewhere(id, state) => Some(WaitOutcome::Elsewhere { id, state }),
        AskState::Ended(state) => Some(WaitOutcome::Ended(state)),
    })
}

/// Why an ask has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer {
    /// The name of the one who was asked.
    pub from: String,
    pub silence: Silence,
    /// The reason in words that follow the name.
    pub words: String,
}

/// Looks why an ask has no answer yet. `None` if it can't be known.
pub fn why_no_answer(
    store: &mut Store,
    home: &Path,
    ask: &MessageId,
    rules: &Limits,
) -> Result<Option<NoAnswer>, Error> {
    let asked = |store: &Store| -> Result<_, Error> {
        let found = store.message(ask)?;
        Ok(found.and_then(|mut found| found.deliveries.pop()))
    };
    let Some(question) = asked(store)? else { return Ok(None) };
    reconcile::settle_offers(store, Some(question.participant))?;
    let Some(question) = asked(store)? else { return Ok(None) };
    let Some(mut peer) = store.participant(question.participant)? else { return Ok(None) };
    reconcile::correct_state(store, &mut peer)?;
    let silence = silence::why((!peer.is_outsider()).then_some(peer.state), question.state);
    let mut why = None;
    if silence == Silence::Waits {
        let request = WakeRequest { home, rules, wanted: true, by_hand: false, follower: None };
        let forecast = wake::forecast(store, &peer, &request)?;
        why = fate::why_waiting(store, &peer, forecast.outcome)?;
    }
    Ok(Some(NoAnswer { from: peer.name, silence, words: silence.in_words(why.as_deref()) }))
}

/// Waits for the answer until the deadline; the bell wakes it. After the deadline, the answer comes
/// as ordinary mail. `look` runs at each ring and each sweep while there is no answer.
pub fn wait(
    store: &mut Store,
    home: &Path,
    identity: &Identity,
    ask: &MessageId,
    place: Option<&Place>,
    deadline: Instant,
    look: &mut dyn FnMut(&mut Store),
) -> Result<WaitOutcome, Error> {
    // The ask is sent, so without a bell this polls the store instead of failing.
    let mut bell = Bell::listen(home, identity.participant.id).ok();
    loop {
        match poll(store, identity, ask, place) {
            Ok(Some(waited)) => return Ok(waited),
            Ok(None) => {}
            // Another process is writing for a long time. The answer stays there.
            Err(error) if error.code() == Code::StoreLocked => {}
            Err(error) => return Err(error),
        }
        look(store);
        let is_in_time = match &mut bell {
            Some(bell) => bell.wait(deadline),
            None => sleep_until_poll(deadline),
        };
        if !is_in_time {
            // If this can't be recorded, the end of this process has the same effect.
            clear_waiter(store, identity, ask).ok();
            return Ok(WaitOutcome::TimedOut);
        }
    }
}

/// How often the store is polled where no bell can be heard.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Sleeps until the next poll. False after the deadline.
fn sleep_until_poll(deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    std::thread::sleep(left.min(POLL_INTERVAL));
    !left.is_zero()
}

/// Records that this process waits for an ask's answer from now on. An error if others wait for the
/// caller meanwhile, and the wait would close a ring.
pub fn record_waiter(store: &mut Store, identity: &Identity, ask: &MessageId) -> Result<(), Error> {
    store.set_waiter(identity.participant.id, ask, process::this(), &process::is_alive)
}

/// Records that no process waits any more, so the answer comes as ordinary mail.
pub fn clear_waiter(store: &mut Store, identity: &Identity, ask: &MessageId) -> Result<(), Error> {
    store.clear_waiter(identity.participant.id, ask)
}
