//! `read_messages`: taking one's mail on purpose.
//!
//! What is taken is offered, and the result of this very call in the transcript is its proof: a client that never got the answer is offered
//! the same again. While an earlier offer waits for its proof nothing can be taken, so the call has a moment's patience with an agent that
//! writes its transcript late.

use super::message::{self, Message, NOTE};
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

/// Messages in one answer, unless told.
const DEFAULT: u32 = 20;
const MOST: u32 = 100;
/// How often an offer that waits for its proof is looked at again.
const LOOK_EACH: Duration = Duration::from_millis(50);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Input {
    /// At most so many: 20 unless told, up to 100.
    #[serde(default)]
    limit: Option<u32>,
    /// Only look: they stay unread and come again.
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
    /// How to take these messages.
    note: String,
    /// A mark for baton, which proves that you got them; null if nothing was taken.
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
    let most = input.limit.unwrap_or(DEFAULT).clamp(1, MOST) as usize;
    if input.peek.unwrap_or(false) {
        return call.desk.mail(|store| peek(call, store, most));
    }
    let deadline = Instant::now() + limits::SETTLE_WAIT.to_std();
    loop {
        if call.context.ct.is_cancelled() {
            // The answer would go nowhere, and what it held would be lost to the session until that is proven.
            return Err(Error::new(Code::TimedOut, "the call was cancelled"));
        }
        let output = call.desk.mail(|store| take(call, store, most))?;
        let held_up = output.messages.is_empty() && output.more > 0;
        if !held_up || Instant::now() >= deadline {
            return Ok(output);
        }
        tokio::time::sleep(LOOK_EACH).await;
    }
}

fn peek(call: &Call<'_>, store: &mut Store, most: usize) -> Result<Output, Error> {
    let identity = call.own_identity(store)?;
    let seen = inbox::peek(store, &identity, most)?;
    let mut messages = message::messages(store, &seen.letters)?;
    messages.truncate(message::fitting(&messages));
    let more = seen.more + seen.letters.len() - messages.len();
    Ok(answer(messages, more, "They stay unread.", None))
}

fn take(call: &Call<'_>, store: &mut Store, most: usize) -> Result<Output, Error> {
    let options = &call.desk.options;
    let identity = call.own_identity(store)?;
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
    // Usually those that were measured; if others came to stand before them meanwhile, their bodies share the room.
    let messages = message::messages(store, &taken.letters)?;
    Ok(answer(messages, taken.more, "", taken.offer.map(|(nonce, _)| nonce)))
}

fn answer(messages: Vec<Message>, more: usize, remark: &str, nonce: Option<Nonce>) -> Output {
    let note = match (messages.is_empty(), remark) {
        (true, remark) => remark.to_owned(),
        (false, "") => NOTE.to_owned(),
        (false, remark) => format!("{NOTE} {remark}"),
    };
    Output { messages, more, note, offer: nonce.as_ref().map(message::proof) }
}
