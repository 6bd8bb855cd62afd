//! `send_message`: sends mail, and does not wait for an answer.

use super::{Call, Effect, non_empty};
use crate::server_state::ServerState;
use baton_core::Error;
use baton_core::body::Body;
use baton_core::frame::defuse;
use baton_core::time::Span;
use baton_core::wake::{Attention, Outcome};
use baton_mail::post::{self, Draft, Everyone};
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
    /// A name or session id from who; agent:codex for the only running Codex session; #tag for
    /// every session with that tag; PROJECT:NAME; user for the person; * for every session here.
    to: String,
    /// Further recipients of the same message.
    #[serde(default)]
    also_to: Vec<String>,
    /// Say true if * is meant: it interrupts every session of the project.
    #[serde(default)]
    to_all: bool,
    /// The text, at most 64 KiB. For more, send the path of a file.
    body: String,
    /// The id of a message that this refers to. To answer one, use reply_to_message.
    #[serde(default)]
    reply_to: Option<String>,
    /// A label that groups messages of one topic.
    #[serde(default)]
    thread: Option<String>,
    /// Makes a retry safe: the same key with the same content is one message.
    #[serde(default)]
    key: Option<String>,
    /// How long it may wait for the recipient, such as 4h or 7d.
    #[serde(default)]
    ttl: Option<String>,
}

/// What was accepted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Output {
    message_id: String,
    to: Vec<To>,
    /// What became of waking the recipient. A list in the order of `to` if several recipients
    /// differ.
    wake: Wake,
    /// It was accepted before, with the same key.
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
        "Send a message to another agent session, or to user. Does not wait: the message is durable once accepted, and reaches the recipient between its steps.",
    )
}

pub(super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let body = Body::from_text(input.body)?;
    let ttl = non_empty(input.ttl.as_ref()).map(Span::parse).transpose()?;
    let to: Vec<&str> = std::iter::once(&input.to).chain(&input.also_to).map(String::as_str).collect();
    let draft = Draft {
        to: &to,
        everyone: if input.to_all { Everyone::Meant } else { Everyone::NotSaid },
        body: &body,
        reply_to: non_empty(input.reply_to.as_ref()),
        thread: non_empty(input.thread.as_ref()),
        key: non_empty(input.key.as_ref()),
        ttl,
        attention: Attention::Ordinary,
    };
    let options = &call.server.options;
    let accepted = call.server.with_store(|store| {
        let identity = call.identity(store)?;
        post::send(store, &options.home, &identity, &draft, &(options.limits)())
    })?;
    Ok(output(call, accepted).await)
}

/// Wakes the recipients of an accepted message, and describes the result for the sender.
pub(super) async fn output(call: &Call<'_>, accepted: Accepted) -> Output {
    let outcomes = wake(call.server, &accepted).await;
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

/// Wakes the recipients of an accepted message. That may take a moment, while other calls go on.
pub(super) async fn wake(server: &Arc<ServerState>, accepted: &Accepted) -> Vec<Outcome> {
    let (all, count) = (accepted.clone(), accepted.to.len());
    let woken = server.in_background(move |store, server| {
        let rules = (server.options.limits)();
        Ok(post::wake_recipients(
            store,
            &server.options.home,
            &all,
            true,
            &rules,
            Some(&server.options.program),
        ))
    });
    // A failed wake does not fail the send.
    woken.await.unwrap_or_else(|error| {
        server.log(&format!("mcp: a wake failed: {error}"));
        vec![Outcome::NoRoute; count]
    })
}
