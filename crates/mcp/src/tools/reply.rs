//! `reply_to_message`: answers a message.

use super::send::{self, Output};
use super::{Call, Effect, non_empty};
use baton_core::Error;
use baton_core::body::Body;
use baton_mail::post;
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

pub(super) const NAME: &str = "reply_to_message";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Input {
    /// The id of the message that you answer, or of its request. A beginning that fits one of your
    /// messages is enough.
    message_id: String,
    /// The text, at most 64 KiB. For more, send the path of a file.
    body: String,
    /// Makes a retry safe: the same key with the same content is one message.
    #[serde(default)]
    key: Option<String>,
}

pub(super) fn tool() -> Tool {
    super::tool::<Input, Output>(
        NAME,
        "Reply to a message",
        Effect::Adds,
        "Answer a message that you got. The answer goes to its sender. If the sender asked and waits, your first reply is the answer.",
    )
}

pub(super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let body = Body::from_text(input.body)?;
    let options = &call.server.options;
    let accepted = call.server.with_store(|store| {
        let identity = call.identity(store)?;
        let key = non_empty(input.key.as_ref());
        post::reply(store, &options.home, &identity, &input.message_id, &body, key, &(options.limits)())
    })?;
    Ok(send::output(call, accepted).await)
}
