//! `answer_approval`: a reviewer answers a question.

use crate::tools::{Call, Effect, non_empty};
use baton_approvals::inbox::Pending;
use baton_approvals::{inbox, reviewers};
use baton_core::approval::{Answer, Digest};
use baton_core::frame::shown;
use baton_core::{Code, Error};
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const NAME: &str = "answer_approval";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Input {
    /// The question's id, or the beginning of it.
    id: String,
    /// The digest from list_approvals: the answer counts only for exactly what you read. Only deny
    /// works without it.
    #[serde(default)]
    digest: Option<String>,
    /// allow (this one time), deny, or words for a question that wants a text.
    answer: String,
    /// With deny: the reason, for the agent to read. With words: the text.
    #[serde(default)]
    text: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Output {
    id: String,
    /// approved, denied or replied. The answer has taken effect.
    state: &'static str,
    /// The status of its job, if a job asked.
    job_status: Option<String>,
}

pub(crate) fn tool() -> Tool {
    crate::tools::tool::<Input, Output>(
        NAME,
        "Answer a question",
        Effect::Delegates,
        "Answer a question of another agent, if the person named you a reviewer for its project. You can't answer questions from yourself, your subagents or your jobs. Returns once the answer has taken effect.",
    )
}

pub(crate) async fn run(call: &Call<'_>, input: Input) -> Result<Output, Error> {
    let me = call.server.with_store(|store| call.identity(store))?;
    let text = non_empty(input.text.as_ref()).map(str::to_owned);
    let answer = match (input.answer.as_str(), text) {
        ("allow", None) => Answer::Allow,
        ("deny", why) => Answer::Deny(why.unwrap_or_else(|| "the reviewer said no".to_owned())),
        ("words", Some(words)) => Answer::Words(words),
        (other, _) => {
            return Err(Error::new(Code::Usage, format!("answer can't be {}", shown(other, 40)))
                .hint("use allow without text, deny with or without text, or words with text"));
        }
    };
    call.server
        .in_background(move |store, server| {
            let runtime = server.runtime();
            let pending = inbox::find(&runtime, &input.id)?;
            reviewers::check(&runtime, store, &me, &pending, &answer)?;
            inbox::check(&pending, &answer)?;
            let shown = shown_of(input.digest.as_deref(), &pending, &answer)?;
            let effect = inbox::answer(&runtime, &pending, &shown, &answer, &me.participant.name)?;
            Ok(Output { id: effect.id, state: effect.state.as_str(), job_status: effect.job })
        })
        .await
}

/// The digest of what the caller has read. Only a deny may leave it out.
fn shown_of(given: Option<&str>, pending: &Pending, answer: &Answer) -> Result<Digest, Error> {
    let asked = pending.digest();
    let given = given.map(str::trim).filter(|given| !given.is_empty());
    match (given, asked) {
        (Some(given), Some(asked)) if asked.as_str() == given => Ok(asked),
        (Some(_), _) => Err(Error::new(Code::QuestionChanged, "the question has changed since you read it")
            .hint("read it again with list_approvals")),
        (None, Some(asked)) if matches!(answer, Answer::Deny(_)) => Ok(asked),
        (None, _) => Err(Error::new(Code::NotShown, "an answer needs the digest of what you read")
            .hint("list_approvals gives it for each question that it shows in full; `baton approvals ID` in a shell shows the others")),
    }
}
