//! `claim_session`: the model names its session, if the server can't find it in another way.

use super::{Call, Effect};
use crate::binding;
use baton_core::Error;
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const NAME: &str = "claim_session";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Input {
    /// Your own session id.
    session_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Output {
    session_id: String,
    /// Your name from now on.
    name: String,
}

pub(super) fn tool() -> Tool {
    super::tool::<Input, Output>(
        NAME,
        "Claim a session",
        Effect::Sets,
        "Only after the error unbound-session: say which session is yours. Refused if it may be another agent's.",
    )
}

pub(super) fn run(call: &Call<'_>, input: &Input) -> Result<Output, Error> {
    call.server.with_store(|store| {
        let session_id = input.session_id.trim();
        let participant = binding::claim(call.server, store, &call.caller, session_id)?;
        Ok(Output { session_id: session_id.to_owned(), name: participant.name })
    })
}
