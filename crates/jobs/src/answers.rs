//! What a job waits for, and the answers on their way to it.

use crate::backend::Turn;
use baton_agents::asked;
use baton_core::approval::{Answer, Question};
use baton_core::id::JobId;
use baton_store::Jobs;
use serde_json::Value;

/// What became of an answer that was handed to the backend.
pub const DELIVERED: &str = "delivered";
/// The question was gone before its answer came.
pub const GONE: &str = "gone";

/// Questions as kept with the record; empty for none.
pub fn to_json(questions: &[Question]) -> String {
    if questions.is_empty() {
        return String::new();
    }
    Value::from_iter(questions.iter().map(asked::to_json)).to_string()
}

/// Reads [`to_json`].
pub fn parse(text: &str) -> Vec<Question> {
    let Ok(Value::Array(found)) = serde_json::from_str(text) else { return Vec::new() };
    found.iter().filter_map(asked::from_json).collect()
}

/// Hands the answers that wait to the backend, each once.
pub fn deliver(jobs: &mut Jobs, id: &JobId, turn: &dyn Turn, open: &[Question]) {
    for row in jobs.answers(id).unwrap_or_default() {
        let known = open.iter().any(|question| question.id == row.question);
        let outcome = match Answer::read(&row.answer, &row.words).filter(|_| known) {
            None => GONE.to_owned(),
            Some(answer) => match turn.answer(&row.question, &answer) {
                Ok(()) => DELIVERED.to_owned(),
                Err(error) => format!("refused: {}", error.message()),
            },
        };
        // Left open, it would be handed over a second time; the backend knows the question by its id and takes one answer.
        jobs.settle_answer(row.id, &outcome).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_read_back() {
        let question = Question::input("per_1", "which \"one\"?", vec!["a".into(), "b".into()]);
        assert_eq!(parse(&to_json(std::slice::from_ref(&question))), [question]);
        assert_eq!(to_json(&[]), "");
        assert_eq!(parse(""), []);
    }
}
