//! `send_message`: mail that nobody waits for.

use super::{Call, Effect, given};
use crate::desk::Desk;
use baton_core::Error;
use baton_core::body::Body;
use baton_core::frame::defuse;
use baton_core::time::Span;
use baton_core::wake::{Attention, Outcome};
use baton_mail::post::{self, Draft};
use baton_store::Accepted;
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const NAME: &str = "send_message";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Input {
    /// A name or session id from who; agent:codex for the only running one; #tag for each that has it; project:name; user for the person.
    to: String,
    /// The text, at most 64 KiB. For more, send the path of a file.
    body: String,
    /// The id of a message that this refers to. To answer one, use reply_to_message.
    #[serde(default)]
    reply_to: Option<String>,
    /// A label that keeps messages of one matter together.
    #[serde(default)]
    thread: Option<String>,
    /// Makes a retry safe: the same key with the same content is one message.
    #[serde(default)]
    key: Option<String>,
    /// How long it may wait to be taken, such as 4h or 7d.
    #[serde(default)]
    ttl: Option<String>,
}

/// What was accepted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Output {
    message_id: String,
    to: Vec<To>,
    /// What became of waking the recipient; a list in the order of `to` where that differs between several.
    wake: Wake,
    /// It had been accepted before, under the same key.
    again: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(untagged)]
enum Wake {
    All(&'static str),
    Each(Vec<&'static str>),
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct To {
    session_id: Option<String>,
    name: String,
    wake: &'static str,
}

pub(super) fn tool() -> Tool {
    super::tool::<Input, Output>(
        NAME,
        "Send a message",
        Effect::Adds,
        "Send a message to another agent session, or to user. Does not wait: it is durable once accepted and reaches the recipient between its steps.",
    )
}

pub(super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let body = Body::from_text(input.body)?;
    let ttl = given(input.ttl.as_ref()).map(Span::parse).transpose()?;
    let draft = Draft {
        to: &input.to,
        body: &body,
        reply_to: given(input.reply_to.as_ref()),
        thread: given(input.thread.as_ref()),
        key: given(input.key.as_ref()),
        ttl,
        attention: Attention::Ordinary,
    };
    let options = &call.desk.options;
    let accepted = call.desk.mail(|store| {
        let identity = call.identity(store)?;
        post::send(store, &options.home, &identity, &draft, &(options.limits)())
    })?;
    Ok(output(call, accepted).await)
}

/// What the sender is told about an accepted message.
pub(super) async fn output(call: &Call<'_>, accepted: Accepted) -> Output {
    let outcomes = wake(call.desk, &accepted).await;
    let to = accepted
        .to
        .into_iter()
        .zip(&outcomes)
        .map(|(recipient, wake)| To {
            session_id: recipient.native.as_deref().map(defuse),
            name: recipient.name,
            wake: wake.as_str(),
        })
        .collect();
    let each = || Wake::Each(outcomes.iter().map(|outcome| outcome.as_str()).collect());
    let wake = post::common_outcome(&outcomes).map_or_else(each, |one| Wake::All(one.as_str()));
    Output { message_id: accepted.id.to_string(), to, wake, again: accepted.again }
}

/// Wakes the recipients of what was accepted. That may take a moment, in which other calls go on.
pub(super) async fn wake(desk: &Arc<Desk>, accepted: &Accepted) -> Vec<Outcome> {
    let (all, count) = (accepted.clone(), accepted.to.len());
    let woken = desk.aside(move |store, desk| {
        let rules = (desk.options.limits)();
        Ok(post::wake(store, &desk.options.home, &all, true, &rules))
    });
    // What goes wrong at it is no failure of the send.
    woken.await.unwrap_or_else(|error| {
        desk.log(&format!("mcp: a wake failed: {error}"));
        vec![Outcome::NoRoute; count]
    })
}
