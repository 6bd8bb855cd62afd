//! What an agent asks its user, and how baton answers.

use super::{Env, HookCodec};
use crate::asked::{AgentQuestion, ProcessProbe, QuestionReport, QuestionStatus, RecordedQuestion};
use crate::wake::Read;
use baton_core::approval::Answer;
use baton_core::event::Event;

/// Used by `baton approvals` and by everything that answers a permission dialog from elsewhere.
///
/// A minimal agent has an empty implementation: its questions are never listed, and its user
/// answers them in its own terminal.
pub trait Questions: HookCodec {
    /// The question that the agent asks its user with this event; `None` if it asks nothing, or
    /// nothing that baton can show.
    fn asked(&self, _payload: &[u8], _event: &Event) -> Option<AgentQuestion> {
        None
    }

    /// Whether the agent will certainly ask its user, judged by its process and session. Some
    /// agents run the hook for calls that they then allow on their own. baton leaves an uncertain
    /// question to the agent.
    fn will_prompt_user(
        &self,
        _asked: &AgentQuestion,
        _event: &Event,
        _args: &[String],
        _env: Env<'_>,
        _read: Read<'_>,
    ) -> bool {
        true
    }

    /// Whether another event follows when the agent's own dialog opens, if this event was not
    /// answered. Then baton reports the question with that event, not with this one.
    fn reports_dialog_separately(&self, _event: &Event) -> bool {
        false
    }

    /// An answer as the hook of this event prints it; `None` if the hook can't give this answer.
    fn render_answer(&self, _event: &Event, _asked: &AgentQuestion, _answer: &Answer) -> Option<String> {
        None
    }

    /// An answer for our plugin to give; `None` if it can't give this answer.
    fn reply(
        &self,
        _payload: &[u8],
        _event: &Event,
        _asked: &AgentQuestion,
        _answer: &Answer,
    ) -> Option<serde_json::Value> {
        None
    }

    /// What our plugin reports with this event about a question that it reported before.
    fn question_outcome(&self, _payload: &[u8], _event: &Event) -> Option<QuestionReport> {
        None
    }

    /// The status of a question, by the agent's own files and processes; `None` if they don't show
    /// it.
    fn question_status(
        &self,
        _asking: &RecordedQuestion<'_>,
        _probe: ProcessProbe<'_>,
    ) -> Option<QuestionStatus> {
        None
    }

    /// Whether no user sits in front of a process of this agent, by its arguments and by the
    /// environment of its hooks.
    fn is_headless(&self, _args: &[String], _env: Env<'_>) -> bool {
        false
    }
}
