//! `answer_approval`: a reviewer says yes or no.

use super::super::{Call, Effect, given};
use baton_approvals::{inbox, reviewers};
use baton_core::approval::Answer;
use baton_core::frame::shown;
use baton_core::{Code, Error};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const NAME: &str = "answer_approval";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Input {
    /// The question's id, or the beginning of it.
    id: String,
    /// allow (this one time), deny, or words for a question that waits for some.
    answer: String,
    /// With deny: why, for the agent to read. With words: the words.
    #[serde(default)]
    text: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(in super::super) struct Output {
    id: String,
    /// approved, denied or replied: it has taken effect.
    state: &'static str,
    /// How its job stands, if it is a job's.
    job_status: Option<String>,
}

pub(in super::super) fn tool() -> Tool {
    super::super::tool::<Input, Output>(
        NAME,
        "Answer a question",
        Effect::Delegates,
        "Answer what another agent waits for, if the person named you a reviewer for its project; never what you, your subagents or your jobs ask. Returns once it has taken effect.",
    )
}

pub(in super::super) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let me = call.desk.mail(|store| call.identity(store))?;
    let text = given(input.text.as_ref()).map(str::to_owned);
    let answer = match (input.answer.as_str(), text) {
        ("allow", None) => Answer::Allow,
        ("deny", why) => Answer::Deny(why.unwrap_or_else(|| "the reviewer said no".to_owned())),
        ("words", Some(words)) => Answer::Words(words),
        (other, _) => {
            return Err(Error::new(Code::Usage, format!("answer can't be {}", shown(other, 40)))
                .hint("allow without text, deny with or without, words with it"));
        }
    };
    call.desk
        .aside(move |store, desk| {
            let host = desk.host();
            let pending = inbox::find(&host, &input.id)?;
            reviewers::check(&host, store, &me, &pending, &answer)?;
            let effect = inbox::answer(&host, &pending, &answer, &me.participant.name)?;
            Ok(Output { id: effect.id, state: effect.state.as_str(), job_status: effect.job })
        })
        .await
}
