//! `read_messages`: taking one's mail on purpose.
//!
//! What is taken is offered, and the result of this very call in the transcript is its proof: a client that never got the answer is offered
//! the same again. While an earlier offer waits for its proof nothing can be taken, so the call has a moment's patience with an agent that
//! writes its transcript late.

use super::message::{self, BODIES, Message, NOTE};
use super::{Call, Effect};
use baton_core::frame::Letter;
use baton_core::{Code, Error, limits};
use baton_mail::inbox::{self, Taken};
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
    let mut seen = inbox::peek(store, &identity, most)?;
    let fitting = fitting(&seen.letters);
    seen.more += seen.letters.len() - fitting;
    seen.letters.truncate(fitting);
    answer(store, &seen, "They stay unread.")
}

fn take(call: &Call<'_>, store: &mut Store, most: usize) -> Result<Output, Error> {
    let identity = call.own_identity(store)?;
    let rules = (call.desk.options.limits)();
    let mut taken = inbox::take(store, &identity, call.place(&identity).as_ref(), most, BODIES, &rules)?;
    if !taken.letters.is_empty() {
        return answer(store, &taken, "");
    }
    taken.more = inbox::peek(store, &identity, 0)?.more;
    let why = if taken.more > 0 { "An earlier delivery to you is not confirmed yet; these come with your next step." } else { "No messages." };
    answer(store, &taken, why)
}

/// How many of the letters fit into one answer; the first one always goes, cut if it must be.
fn fitting(letters: &[Letter]) -> usize {
    let mut size = 0;
    let whole = letters.iter().take_while(|letter| {
        size += letter.body.len();
        size <= BODIES
    });
    whole.count().max(1).min(letters.len())
}

fn answer(store: &Store, taken: &Taken, remark: &str) -> Result<Output, Error> {
    let note = match (taken.letters.is_empty(), remark) {
        (true, remark) => remark.to_owned(),
        (false, "") => NOTE.to_owned(),
        (false, remark) => format!("{NOTE} {remark}"),
    };
    Ok(Output {
        messages: message::messages(store, &taken.letters)?,
        more: taken.more,
        note,
        offer: taken.offer.as_ref().map(|(nonce, _)| message::proof(nonce)),
    })
}
