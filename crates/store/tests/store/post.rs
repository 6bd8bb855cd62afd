//! A small post office for the tests: sessions, messages and claims in few words.

use baton_core::body::Body;
use baton_core::event::Source;
use baton_core::frame::{Framed, Letter};
use baton_core::id::{MessageId, MessageRow, Nonce, OfferId, ParticipantId, SessionRow};
use baton_core::limits::Limits;
use baton_core::mail::Anchor;
use baton_core::process::Process;
use baton_core::session::State;
use baton_core::time::{Moment, Span};
use baton_core::wake::Attention;
use baton_store::{Claim, HookStep, NewMail, Sighting, Store, Verb};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes for a new id.
pub fn fresh() -> [u8; 8] {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    COUNTER.fetch_add(1, Ordering::Relaxed).to_le_bytes()
}

pub const NOW: Moment = Moment(1_800_000_000_000);

/// A session of a participant of its own.
pub fn session(store: &mut Store, id: &str) -> (ParticipantId, SessionRow) {
    let seen = store
        .sight_session(&Sighting {
            agent: "claude",
            native: id,
            project: "/project",
            cwd: "/project",
            transcript: None,
            process: None,
            source: Some(Source::Startup),
            state: State::Idle,
            now: NOW,
        })
        .unwrap();
    (seen.participant, seen.session)
}

/// Limits that never get in the way.
pub fn generous() -> Limits {
    Limits { pair_messages: 1_000_000, mailbox: 1_000_000, ..Limits::default() }
}

/// Sends; gives the id and the row.
pub fn send(
    store: &mut Store,
    sender: ParticipantId,
    recipients: &[ParticipantId],
    text: &str,
) -> (MessageId, MessageRow) {
    let body = Body::from_text(text.to_owned()).unwrap();
    let mail = NewMail {
        id: MessageId::from_random(fresh()),
        sender,
        session: None,
        by_person: false,
        verb: Verb::Send,
        recipients: recipients.iter().map(|id| store.participant(*id).unwrap().unwrap()).collect(),
        body: &body,
        thread: None,
        reply_to: None,
        key: None,
        waiter: None,
        ttl: Span::days(7),
        attention: Attention::Ordinary,
        now: NOW,
    };
    let accepted = store.accept_mail(mail, &generous()).unwrap();
    (accepted.id, accepted.row)
}

/// What a claim took.
pub struct Taken {
    pub offer: OfferId,
    pub letters: Vec<Letter>,
}

/// Claims up to `most` messages.
pub fn claim(
    store: &mut Store,
    (participant, session): (ParticipantId, SessionRow),
    most: usize,
) -> Option<Taken> {
    let claim = Claim {
        nonce: Nonce::from_random(fresh()),
        anchor: Anchor::Prompt,
        turn: None,
        position: 0,
        read_from: 0,
        claimer: Process { pid: 1, start: 1 },
        at_stop: false,
        only_urgent: false,
    };
    let step = HookStep {
        session,
        participant,
        settle: Vec::new(),
        state: None,
        transcript: None,
        turn: None,
        confirms: None,
        claim: Some(claim),
        now: NOW,
    };
    let limits = Limits { messages_per_event: most, ..generous() };
    let letters = RefCell::new(Vec::new());
    let claimed = store
        .hook_step(&step, &limits, &|_| false, &|offered, _, _| {
            *letters.borrow_mut() = offered.to_vec();
            Framed { taken: offered.len(), ..Framed::default() }
        })
        .unwrap();
    claimed.map(|claimed| Taken { offer: claimed.offer, letters: letters.into_inner() })
}
