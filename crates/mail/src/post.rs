//! Sends mail: from a caller's request to an accepted message and a ring of each recipient's bell.

use crate::directory;
use crate::identity::{Identity, Kind};
use crate::reference::{self, Reference};
use crate::wake::{self, WakeRequest};
use baton_core::address::EVERYONE;
use baton_core::body::Body;
use baton_core::id::{MessageId, MessageRow};
use baton_core::limits::Limits;
use baton_core::process::Process;
use baton_core::time::Span;
use baton_core::wake::{Attention, Outcome};
use baton_core::{Code, Error};
use baton_machine::{bell, process, random};
use baton_store::{Accepted, NewMail, Participant, RetryKey, Store, Verb, check_label};
use sha2::{Digest as _, Sha256};
use std::path::Path;

/// A message that a caller wants to send.
#[derive(Debug)]
pub struct Draft<'a> {
    /// The addresses, as written.
    pub to: &'a [&'a str],
    /// Whether the sender means everyone, if it wrote that.
    pub everyone: Everyone,
    pub body: &'a Body,
    /// A message that this refers to.
    pub reply_to: Option<&'a str>,
    pub thread: Option<&'a str>,
    /// The key for retries.
    pub key: Option<&'a str>,
    /// How long it may wait.
    pub ttl: Option<Span>,
    /// How urgent it is.
    pub attention: Attention,
}

/// Whether the sender of a message to everyone said that it means everyone. The person need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Everyone {
    Meant,
    NotSaid,
}

/// Wakes each recipient of an accepted message, if it should be woken. The outcomes have the order
/// of the recipients. `follower` is the program that follows mail which can't wake now. An error
/// here does not fail the send.
pub fn wake_recipients(
    store: &mut Store,
    home: &Path,
    accepted: &Accepted,
    wanted: bool,
    rules: &Limits,
    follower: Option<&Path>,
) -> Vec<Outcome> {
    let request = WakeRequest { home, rules, wanted, by_hand: false, follower };
    let mut to = accepted.to.clone();
    to.iter_mut()
        .map(|recipient| {
            let woken = wake::wake(store, recipient, &request);
            woken.map_or(Outcome::NoRoute, |woken| woken.outcome)
        })
        .collect()
}

/// The outcome that all of them share. `None` if they differ.
pub fn common_outcome(outcomes: &[Outcome]) -> Option<Outcome> {
    let (first, rest) = outcomes.split_first()?;
    rest.iter().all(|other| other == first).then_some(*first)
}

pub fn send(
    store: &mut Store,
    home: &Path,
    from: &Identity,
    draft: &Draft<'_>,
    rules: &Limits,
) -> Result<Accepted, Error> {
    deliver(store, home, from, draft, Verb::Send, None, rules)
}

/// Sends an ask. `waiter` is the process that waits for its answer.
pub fn ask(
    store: &mut Store,
    home: &Path,
    from: &Identity,
    draft: &Draft<'_>,
    waiter: Process,
    rules: &Limits,
) -> Result<Accepted, Error> {
    deliver(store, home, from, draft, Verb::Ask, Some(waiter), rules)
}

/// Answers a message. The message determines the recipient and the thread.
pub fn reply(
    store: &mut Store,
    home: &Path,
    from: &Identity,
    message: &str,
    body: &Body,
    key: Option<&str>,
    rules: &Limits,
) -> Result<Accepted, Error> {
    let id = reference::find(store, from, message, Reference::ToAnswer)?;
    let key = retry_key(key, &["reply", id.as_str(), body.as_str()])?;
    if let Some(before) = accepted_before(store, from, Verb::Reply, key)? {
        return Ok(before);
    }
    let parent = store.answerable(from.participant.id, &id)?;
    let target = parent.sender.map(|sender| store.participant(sender)).transpose()?.flatten();
    let target =
        target.ok_or_else(|| Error::new(Code::Internal, "an answerable message without a sender"))?;
    let thread = parent.thread.clone().unwrap_or_else(|| parent.id.to_string());
    let mail = NewMail {
        id: MessageId::from_random(random::id()),
        sender: from.participant.id,
        session: from.session(),
        by_person: from.is_person(),
        verb: Verb::Reply,
        recipients: vec![target],
        body,
        thread: Some(&thread),
        reply_to: Some(parent.row),
        key,
        waiter: None,
        ttl: rules.ttl,
        attention: Attention::Ordinary,
        now: baton_machine::clock::now(),
    };
    let accepted = accept(store, from, mail, rules)?;
    ring(home, &accepted);
    Ok(accepted)
}

fn deliver(
    store: &mut Store,
    home: &Path,
    from: &Identity,
    draft: &Draft<'_>,
    verb: Verb,
    waiter: Option<Process>,
    rules: &Limits,
) -> Result<Accepted, Error> {
    let mut parts = vec![verb.as_str()];
    parts.extend(draft.to);
    parts.extend([draft.body.as_str(), draft.reply_to.unwrap_or_default(), draft.thread.unwrap_or_default()]);
    let key = retry_key(draft.key, &parts)?;
    if let Some(thread) = draft.thread {
        check_label("thread", thread)?;
    }
    if let Some(before) = accepted_before(store, from, verb, key)? {
        return Ok(before);
    }
    let parent = draft.reply_to.map(|text| find_referenced(store, from, text)).transpose()?;
    let recipients = directory::resolve_all(store, &from.project, from.participant.id, draft.to)?;
    if verb == Verb::Ask && recipients.len() > 1 {
        let names: Vec<_> = recipients.iter().map(|recipient| recipient.name.as_str()).collect();
        return Err(Error::new(Code::AmbiguousTarget, "an ask goes to one participant")
            .hint(format!("name one of: {}", names.join(", "))));
    }
    refuse_unmeant_broadcast(from, draft, &recipients)?;
    let mail = NewMail {
        id: MessageId::from_random(random::id()),
        sender: from.participant.id,
        session: from.session(),
        by_person: from.is_person(),
        verb,
        recipients,
        body: draft.body,
        thread: draft.thread,
        reply_to: parent,
        key,
        waiter,
        ttl: draft.ttl.unwrap_or(rules.ttl),
        attention: draft.attention,
        now: baton_machine::clock::now(),
    };
    let accepted = accept(store, from, mail, rules)?;
    ring(home, &accepted);
    Ok(accepted)
}

/// A model may write `*` without a thought of how many it reaches.
fn refuse_unmeant_broadcast(from: &Identity, draft: &Draft<'_>, found: &[Participant]) -> Result<(), Error> {
    let one = found.len() == 1;
    if one || from.kind == Kind::Person || draft.everyone == Everyone::Meant || !draft.to.contains(&EVERYONE)
    {
        return Ok(());
    }
    let names: Vec<_> = found.iter().map(|one| one.name.as_str()).take(10).collect();
    let more = if found.len() > names.len() { ", …" } else { "" };
    Err(Error::new(
        Code::ConsentNeeded,
        format!("that would interrupt {} sessions: {}{more}", found.len(), names.join(", ")),
    )
    .hint("name those who need it; if it is for everyone, say so: `--to-all`, or to_all in the MCP tool"))
}

/// Accepts a message. If the store refuses it to end a loop, the recipients get a note too: one of
/// them may wait for an answer, and should know why none comes.
fn accept(store: &mut Store, from: &Identity, mail: NewMail<'_>, rules: &Limits) -> Result<Accepted, Error> {
    let to: Vec<_> = mail.recipients.iter().map(|recipient| recipient.id).collect();
    let now = mail.now;
    let accepted = match mail.verb {
        Verb::Ask => store.accept_ask(mail, rules, &process::is_alive),
        Verb::Send | Verb::Reply => store.accept_mail(mail, rules),
    };
    accepted.inspect_err(|error| {
        if error.code() == Code::BudgetExhausted {
            // The refusal is valid even if the notes can't be written.
            store.send_cut_notes(&from.participant.name, &to, error.message(), rules.pair_window, now).ok();
        }
    })
}

fn ring(home: &Path, accepted: &Accepted) {
    for recipient in &accepted.to {
        bell::ring(home, recipient.id);
    }
}

fn accepted_before(
    store: &Store,
    from: &Identity,
    verb: Verb,
    key: Option<RetryKey<'_>>,
) -> Result<Option<Accepted>, Error> {
    match key {
        Some(key) => store.accepted_before(from.participant.id, verb, key),
        None => Ok(None),
    }
}

/// Finds a message that the sender can see: one that it sent or got.
fn find_referenced(store: &Store, from: &Identity, text: &str) -> Result<MessageRow, Error> {
    let id = reference::find(store, from, text, Reference::Own)?;
    let me = from.participant.id;
    match store.message(&id)? {
        Some(found)
            if found.sender == Some(me)
                || found.deliveries.iter().any(|delivery| delivery.participant == me) =>
        {
            Ok(found.row)
        }
        _ => {
            Err(Error::new(Code::MessageNotFound, format!("no message {id}"))
                .hint("`baton mail` lists yours"))
        }
    }
}

/// The key, with a digest of the whole request.
fn retry_key<'a>(key: Option<&'a str>, parts: &[&str]) -> Result<Option<RetryKey<'a>>, Error> {
    let Some(key) = key else { return Ok(None) };
    check_label("key", key)?;
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    Ok(Some(RetryKey { text: key, digest: hash.finalize().into() }))
}
