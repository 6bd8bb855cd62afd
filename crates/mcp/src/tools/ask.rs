//! `ask_peer`: a message whose answer the caller waits for.
//!
//! While this process is noted as the one that waits, the answer is kept for it and for nobody else. So however the wait ends, other than with
//! the answer, that note is taken back, and the answer comes as ordinary mail: after a time-out, when the client cancels the call, when
//! it goes away, and when anything fails.

use super::message::{self, Message, NOTE};
use super::{Call, Effect, given, report, send};
use crate::bells::Rings;
use crate::desk::Desk;
use baton_core::body::Body;
use baton_core::id::{MessageId, RequestId};
use baton_core::time::Span;
use baton_core::wake::Attention;
use baton_core::{Code, Error, frame, limits};
use baton_mail::ask::{self, Waited};
use baton_mail::identity::Identity;
use baton_mail::inbox::Place;
use baton_mail::post::{self, Draft};
use baton_mail::process;
use baton_store::{Accepted, Store};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::time::{Instant, MissedTickBehavior};

pub(super) const NAME: &str = "ask_peer";

/// Shorter than what the agents let a tool run.
const DEFAULT: Span = Span::seconds(45);
const LONGEST: Span = Span::minutes(10);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Input {
    /// Whom to ask: one name or session id from who, or agent:codex for the only running one.
    #[serde(default)]
    to: Option<String>,
    /// The question, at most 64 KiB.
    #[serde(default)]
    body: Option<String>,
    /// How long to wait: 45s unless told, at most 10m.
    #[serde(default)]
    timeout: Option<String>,
    /// Makes a retry safe: the same key with the same content is one question.
    #[serde(default)]
    key: Option<String>,
    /// Go on waiting for an earlier question, by its request_id; without to and body.
    #[serde(default)]
    resume: Option<String>,
}

/// The order of the fields matters: an answer that was cut off has no mark.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Output {
    answered: bool,
    /// For resume.
    request_id: String,
    /// Your question.
    message_id: String,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<Message>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// How to take the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// A mark for baton, which proves that you got the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    offer: Option<String>,
}

pub(super) fn tool() -> Tool {
    super::tool::<Input, Output>(
        NAME,
        "Ask and wait",
        Effect::Adds,
        "Ask another agent session and wait for its answer. If none comes in time the question stays open: the answer will reach you as a \
         message, or call again with resume.",
    )
}

pub(super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let timeout = given(input.timeout.as_ref()).map(Span::parse).transpose()?.unwrap_or(DEFAULT).min(LONGEST);
    let (mut wait, accepted) = call.desk.mail(|store| begin(call, store, input))?;
    if let Some(accepted) = accepted {
        // Beside the wait: the answer may be there before the wake is done.
        let desk = Arc::clone(call.desk);
        tokio::spawn(async move { send::wake(&desk, &accepted).await });
    }
    let waited = wait.run(call, timeout).await?;
    call.desk.mail(|store| answer(store, &wait, waited, timeout))
}

/// A wait that is under way.
struct Wait {
    desk: Arc<Desk>,
    identity: Identity,
    place: Option<Place>,
    ask: MessageId,
    /// Grows when something comes for us; `None` where that can't be heard.
    rings: Option<Rings>,
    /// The answer is ours: nothing is to be given up.
    answered: bool,
}

/// Asks, or goes back to an earlier question. Nothing may fail once there is a [`Wait`]: giving it up needs the store that is in use here.
fn begin(call: &Call<'_>, store: &mut Store, input: Input) -> Result<(Wait, Option<Accepted>), Error> {
    let identity = call.own_identity(store)?;
    let options = &call.desk.options;
    // Before the question goes out, so that no ring is missed.
    let rings = call.desk.bells.listen(&options.home, identity.participant.id);
    let rings =
        rings.inspect_err(|error| call.desk.log(&format!("mcp: waiting without a bell: {error}"))).ok();
    let (ask, accepted) = match (given(input.resume.as_ref()), input.to, input.body) {
        (Some(resume), None, None) => (request(resume)?, None),
        (None, Some(to), Some(body)) => {
            let body = Body::from_text(body)?;
            let draft = Draft {
                to: &to,
                body: &body,
                reply_to: None,
                thread: None,
                key: given(input.key.as_ref()),
                ttl: None,
                attention: Attention::Ordinary,
            };
            let accepted =
                post::ask(store, &options.home, &identity, &draft, process::this(), &(options.limits)())?;
            (accepted.id.clone(), Some(accepted))
        }
        _ => {
            return Err(Error::new(Code::Usage, "ask_peer takes either to and body, or resume alone")
                .hint("see the tool's input schema"));
        }
    };
    if accepted.as_ref().is_none_or(|accepted| accepted.again) {
        ask::wait_again(store, &identity, &ask)?;
    }
    let wait = Wait {
        desk: Arc::clone(call.desk),
        place: call.place(&identity),
        identity,
        ask,
        rings,
        answered: false,
    };
    Ok((wait, accepted))
}

fn request(text: &str) -> Result<MessageId, Error> {
    let text = text.trim();
    RequestId::parse(text).map(|request| request.message()).or_else(|| MessageId::parse(text)).ok_or_else(
        || {
            Error::new(Code::RequestNotFound, format!("no request {}", frame::shown(text, 40)))
                .hint("ask_peer gave you a request_id when it timed out; `baton mail` lists your messages")
        },
    )
}

impl Wait {
    async fn run(&mut self, call: &Call<'_>, timeout: Span) -> Result<Waited, Error> {
        let begun = Instant::now();
        let deadline = begun + timeout.to_std();
        let sweep = limits::SWEEP.to_std();
        let mut ticks = tokio::time::interval_at(begun + sweep, sweep);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if call.is_abandoned() {
                return Ok(Waited::TimedOut);
            }
            if let Some(waited) = self.look()? {
                return Ok(waited);
            }
            if Instant::now() >= deadline {
                return Ok(Waited::TimedOut);
            }
            tokio::select! {
                biased;
                () = call.abandoned() => return Ok(Waited::TimedOut),
                () = rung(&mut self.rings) => {}
                () = tokio::time::sleep_until(deadline) => {}
                _ = ticks.tick() => report(call, begun.elapsed().as_secs_f64(), timeout, "waiting for the answer"),
            }
        }
    }

    /// Takes the answer if it is there.
    fn look(&mut self) -> Result<Option<Waited>, Error> {
        let found = self.desk.mail(|store| ask::poll(store, &self.identity, &self.ask, self.place.as_ref()));
        match found {
            // Somebody writes for very long; the answer does not run away.
            Err(error) if error.code() == Code::StoreLocked => Ok(None),
            found => {
                self.answered = matches!(found, Ok(Some(Waited::Answer(..))));
                found
            }
        }
    }
}

/// Resolves with the next ring; never, where none can be heard.
async fn rung(rings: &mut Option<Rings>) {
    if let Some(heard) = rings
        && heard.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

impl Drop for Wait {
    fn drop(&mut self) {
        if !self.answered
            && let Err(error) = self.desk.mail(|store| ask::give_up(store, &self.identity, &self.ask))
        {
            self.desk.log(&format!("mcp: the wait for {} can't be given up: {error}", self.ask.request()));
        }
    }
}

fn answer(store: &Store, wait: &Wait, waited: Waited, timeout: Span) -> Result<Output, Error> {
    let ask = &wait.ask;
    let request = ask.request();
    let mut output = Output {
        answered: false,
        request_id: request.to_string(),
        message_id: ask.to_string(),
        reply: None,
        hint: None,
        note: None,
        offer: None,
    };
    match waited {
        Waited::Answer(letter, _, nonce) => {
            output.answered = true;
            output.reply = message::messages(store, &[*letter])?.pop();
            output.note = Some(NOTE);
            output.offer = nonce.as_ref().map(message::proof);
        }
        Waited::Elsewhere(id, state) => {
            output.answered = true;
            output.hint = Some(format!(
                "the answer {id} came to you as a message ({}); `baton mail {id}` prints it",
                state.as_str()
            ));
        }
        Waited::Ended(state) => return Err(baton_mail::ask::ended(ask, state)),
        Waited::TimedOut => {
            output.hint = Some(format!(
                "no answer within {}; it will reach you as a message, or go on waiting: ask_peer with resume {request}",
                timeout.coarse()
            ));
        }
    }
    Ok(output)
}
