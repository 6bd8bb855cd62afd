//! `ask_peer`: a message whose answer the caller waits for.
//!
//! While the store names this process as the waiter, it keeps the answer for it alone. So if the
//! wait ends without the answer, this tool clears the waiter, and the answer comes as ordinary
//! mail. That covers a timeout, a client that cancels the call or goes away, and any error.

use super::message::{self, Message};
use super::{Call, Effect, non_empty, report_progress, send};
use crate::bells::Rings;
use crate::server_state::ServerState;
use baton_core::body::Body;
use baton_core::id::MessageId;
use baton_core::time::Span;
use baton_core::wake::Attention;
use baton_core::{Code, Error, limits};
use baton_machine::process;
use baton_mail::ask::{self, WaitOutcome};
use baton_mail::identity::Identity;
use baton_mail::inbox::Place;
use baton_mail::post::{self, Draft, Everyone};
use baton_mail::reference::{self, Reference};
use baton_store::{Accepted, Store};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::time::{Instant, MissedTickBehavior};

pub(super) const NAME: &str = "ask_peer";

/// Shorter than the time that agents let a tool run.
const DEFAULT_TIMEOUT: Span = Span::seconds(45);
const MAX_TIMEOUT: Span = Span::minutes(10);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Input {
    /// Whom to ask: a name or session id from who, or agent:codex for the only running Codex
    /// session.
    #[serde(default)]
    to: Option<String>,
    /// The question, at most 64 KiB.
    #[serde(default)]
    body: Option<String>,
    /// How long to wait: 45s by default, at most 10m.
    #[serde(default)]
    timeout: Option<String>,
    /// Makes a retry safe: the same key with the same content is one question.
    #[serde(default)]
    key: Option<String>,
    /// Go on waiting for an earlier question: its request_id, without to and body.
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
    /// Why there is no answer yet: not_running, dialog, works_unseen, works, ended_without_reply,
    /// waits or person.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// How to treat the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// A mark that proves to baton that you got the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    offer: Option<String>,
}

pub(super) fn tool() -> Tool {
    super::tool::<Input, Output>(
        NAME,
        "Ask and wait",
        Effect::Adds,
        "Ask another agent session and wait for its answer. If none comes in time, the question stays open: the answer will reach you as a \
         message, or call again with resume.",
    )
}

pub(super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let timeout = non_empty(input.timeout.as_ref())
        .map(Span::parse)
        .transpose()?
        .unwrap_or(DEFAULT_TIMEOUT)
        .min(MAX_TIMEOUT);
    let (mut wait, accepted) = call.server.with_store(|store| begin(call, store, input))?;
    if let Some(accepted) = accepted {
        // In parallel with the wait: the answer may come before the wake is done.
        let server = Arc::clone(call.server);
        tokio::spawn(async move { send::wake(&server, &accepted).await });
    }
    let waited = wait.run(call, timeout).await;
    let output =
        waited.and_then(|waited| call.server.with_store(|store| answer(call, store, &wait, waited, timeout)));
    match output {
        Err(error) if !is_ask_over(&error) => Ok(wait_failed(&wait.ask, &error)),
        output => output,
    }
}

/// Whether the ask itself is over, and not only the wait for its answer.
fn is_ask_over(error: &Error) -> bool {
    matches!(error.code(), Code::AskExpired | Code::AskUndelivered | Code::RequestNotFound)
}

/// The question was accepted, but the wait for its answer failed.
fn wait_failed(ask: &MessageId, error: &Error) -> Output {
    let request = ask.request();
    Output {
        answered: false,
        request_id: request.to_string(),
        message_id: ask.to_string(),
        reply: None,
        reason: None,
        hint: Some(format!(
            "the question was accepted, but waiting for its answer failed ({}); don't ask again: the answer will reach you as a message, \
             or go on waiting: ask_peer with resume {request}",
            error.message()
        )),
        note: None,
        offer: None,
    }
}

struct Wait {
    server: Arc<ServerState>,
    identity: Identity,
    place: Option<Place>,
    ask: MessageId,
    /// Grows when something comes for the caller. `None` if the bell can't be heard.
    rings: Option<Rings>,
    /// The answer is taken, so the waiter need not be cleared.
    answered: bool,
}

/// Asks, or goes on with an earlier question. Nothing may fail after the [`Wait`] exists: its drop
/// needs the store that is in use here.
fn begin(call: &Call<'_>, store: &mut Store, input: Input) -> Result<(Wait, Option<Accepted>), Error> {
    let identity = call.identity(store)?;
    let options = &call.server.options;
    // Before the question goes out, so that no ring is missed.
    let rings = call.server.bells.listen(&options.home, identity.participant.id);
    let rings =
        rings.inspect_err(|error| call.server.log(&format!("mcp: waiting without a bell: {error}"))).ok();
    let (ask, accepted) = match (non_empty(input.resume.as_ref()), input.to, input.body) {
        (Some(resume), None, None) => (reference::find(store, &identity, resume, Reference::Asked)?, None),
        (None, Some(to), Some(body)) => {
            let body = Body::from_text(body)?;
            let draft = Draft {
                to: &[&to],
                everyone: Everyone::NotSaid,
                body: &body,
                reply_to: None,
                thread: None,
                key: non_empty(input.key.as_ref()),
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
        ask::record_waiter(store, &identity, &ask)?;
    }
    let wait = Wait {
        server: Arc::clone(call.server),
        place: call.place(&identity),
        identity,
        ask,
        rings,
        answered: false,
    };
    Ok((wait, accepted))
}

impl Wait {
    async fn run(&mut self, call: &Call<'_>, timeout: Span) -> Result<WaitOutcome, Error> {
        let begun = Instant::now();
        let deadline = begun + timeout.to_std();
        let sweep = limits::SWEEP_INTERVAL.to_std();
        let mut ticks = tokio::time::interval_at(begun + sweep, sweep);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if call.is_abandoned() {
                return Ok(WaitOutcome::TimedOut);
            }
            if let Some(waited) = self.poll()? {
                return Ok(waited);
            }
            if Instant::now() >= deadline {
                return Ok(WaitOutcome::TimedOut);
            }
            tokio::select! {
                biased;
                () = call.abandoned() => return Ok(WaitOutcome::TimedOut),
                () = next_ring(&mut self.rings) => {}
                () = tokio::time::sleep_until(deadline) => {}
                _ = ticks.tick() => {
                    let words = self.so_far();
                    report_progress(call, begun.elapsed().as_secs_f64(), timeout, &words);
                }
            }
        }
    }

    /// What the other does, for the person who watches the call.
    fn so_far(&self) -> String {
        let options = &self.server.options;
        let why = self
            .server
            .with_store(|store| ask::why_no_answer(store, &options.home, &self.ask, &(options.limits)()));
        match why {
            Ok(Some(why)) => format!("waiting for the answer: {} {}", why.from, why.words),
            _ => "waiting for the answer".to_owned(),
        }
    }

    /// Takes the answer if it is there.
    fn poll(&mut self) -> Result<Option<WaitOutcome>, Error> {
        let found =
            self.server.with_store(|store| ask::poll(store, &self.identity, &self.ask, self.place.as_ref()));
        match found {
            // Another process is writing for a long time. The answer stays there.
            Err(error) if error.code() == Code::StoreLocked => Ok(None),
            found => {
                self.answered = matches!(found, Ok(Some(WaitOutcome::Answer { .. })));
                found
            }
        }
    }
}

/// Resolves with the next ring. Never resolves if no ring can be heard.
async fn next_ring(rings: &mut Option<Rings>) {
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
            && let Err(error) =
                self.server.with_store(|store| ask::clear_waiter(store, &self.identity, &self.ask))
        {
            self.server.log(&format!("mcp: the wait for {} can't be given up: {error}", self.ask.request()));
        }
    }
}

fn answer(
    call: &Call<'_>,
    store: &mut Store,
    wait: &Wait,
    waited: WaitOutcome,
    timeout: Span,
) -> Result<Output, Error> {
    let ask = &wait.ask;
    let request = ask.request();
    let mut output = Output {
        answered: false,
        request_id: request.to_string(),
        message_id: ask.to_string(),
        reply: None,
        reason: None,
        hint: None,
        note: None,
        offer: None,
    };
    match waited {
        WaitOutcome::Answer { letter, nonce, .. } => {
            output.answered = true;
            let mut messages = message::messages(store, &[*letter])?;
            output.note = Some(message::note(&messages));
            output.reply = messages.pop();
            output.offer = nonce.as_ref().map(message::proof);
        }
        WaitOutcome::Elsewhere { id, state } => {
            output.answered = true;
            output.hint = Some(format!(
                "the answer {id} came to you as a message ({}); `baton mail {id}` prints it",
                state.as_str()
            ));
        }
        WaitOutcome::Ended(state) => return Err(baton_mail::ask::ended_error(ask, state)),
        WaitOutcome::TimedOut => {
            let options = &call.server.options;
            // The wait has ended; why it did is only a help.
            let why = ask::why_no_answer(store, &options.home, ask, &(options.limits)()).ok().flatten();
            let words = why.as_ref().map(|why| format!(": {} {}", why.from, why.words));
            output.reason = why.map(|why| why.silence.as_str());
            output.hint = Some(format!(
                "no answer within {}{}; it will reach you as a message, or go on waiting: ask_peer with resume {request}",
                timeout.coarse(),
                words.unwrap_or_default()
            ));
        }
    }
    Ok(output)
}
