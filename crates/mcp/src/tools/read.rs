//! `read_messages`: the model takes its mail on purpose.
//!
//! The messages are an offer, and the result of this call in the transcript is its proof. If the
//! client never got the answer, the same messages are offered again. While an earlier offer waits
//! for its proof, nothing can be taken. So the call waits a moment for an agent that writes its
//! transcript late.

use super::message::{self, Message};
use super::{Call, Effect};
use baton_core::id::Nonce;
use baton_core::{Code, Error, limits};
use baton_mail::inbox;
use baton_store::Store;
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

pub(super) const NAME: &str = "read_messages";

/// Messages in one answer, by default.
const DEFAULT_LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 100;
/// How often an offer that waits for its proof is checked again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Input {
    /// The highest number of messages: 20 by default, up to 100.
    #[serde(default)]
    limit: Option<u32>,
    /// Only show them: they stay unread and come again.
    #[serde(default)]
    peek: Option<bool>,
}

/// The order of the fields matters: an answer that was cut off has no mark.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Output {
    /// Oldest first.
    messages: Vec<Message>,
    /// How many more wait.
    more: usize,
    /// How to treat these messages.
    note: String,
    /// A mark that proves to baton that you got them. Null if nothing was taken.
    offer: Option<String>,
}

pub(super) fn tool() -> Tool {
    super::tool::<Input, Output>(
        NAME,
        "Read your messages",
        Effect::Adds,
        "Take the messages that wait for you, now. They also come by themselves between your steps, so there is no need to poll.",
    )
}

pub(super) async fn run(call: &Call<'_>, input: &Input) -> Result<Output, Error> {
    let most = input.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
    if input.peek.unwrap_or(false) {
        return call.server.with_store(|store| peek(call, store, most));
    }
    let deadline = Instant::now() + limits::SETTLE_WAIT.to_std();
    loop {
        if call.context.ct.is_cancelled() {
            // The answer would not arrive, and the session would not get its messages until that is
            // proven.
            return Err(Error::new(Code::TimedOut, "the call was cancelled"));
        }
        let output = call.server.with_store(|store| take(call, store, most))?;
        let held_up = output.messages.is_empty() && output.more > 0;
        if !held_up || Instant::now() >= deadline {
            return Ok(output);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn peek(call: &Call<'_>, store: &mut Store, most: usize) -> Result<Output, Error> {
    let identity = call.identity(store)?;
    let seen = inbox::peek(store, &identity, most)?;
    let mut messages = message::messages(store, &seen.letters)?;
    messages.truncate(message::fitting(&messages));
    let more = seen.more + seen.letters.len() - messages.len();
    Ok(answer(messages, more, "They stay unread.", None))
}

fn take(call: &Call<'_>, store: &mut Store, most: usize) -> Result<Output, Error> {
    let options = &call.server.options;
    let identity = call.identity(store)?;
    let waiting = inbox::peek(store, &identity, most)?;
    let fitting = message::fitting(&message::messages(store, &waiting.letters)?);
    if fitting == 0 {
        return Ok(answer(Vec::new(), 0, "No messages.", None));
    }
    let taken = inbox::take(
        store,
        &identity,
        call.place(&identity).as_ref(),
        fitting,
        usize::MAX,
        &(options.limits)(),
    )?;
    if taken.letters.is_empty() {
        let more = waiting.more + waiting.letters.len();
        return Ok(answer(
            Vec::new(),
            more,
            "An earlier delivery to you is not confirmed yet; these come with your next step.",
            None,
        ));
    }
    // In most cases these are the messages that were measured. If others came before them
    // meanwhile, all share the room.
    let messages = message::messages(store, &taken.letters)?;
    Ok(answer(messages, taken.more, "", taken.offer.map(|offer| offer.nonce)))
}

fn answer(messages: Vec<Message>, more: usize, remark: &str, nonce: Option<Nonce>) -> Output {
    let note = match (messages.is_empty(), remark) {
        (true, remark) => remark.to_owned(),
        (false, "") => message::note(&messages),
        (false, remark) => format!("{} {remark}", message::note(&messages)),
    };
    Output { messages, more, note, offer: nonce.as_ref().map(message::proof) }
}
