//! What a job waits for, and the answers on their way to it.

use crate::backend::Turn;
use baton_core::id::JobId;
use baton_core::job::{Answer, Question, QuestionKind};
use baton_store::{AnswerRow, Jobs};
use serde_json::{Value, json};

/// What became of an answer that was handed to the backend.
pub const DELIVERED: &str = "delivered";
/// The question was gone before its answer came.
pub const GONE: &str = "gone";

/// Questions as kept with the record; empty for none.
pub fn to_json(questions: &[Question]) -> String {
    if questions.is_empty() {
        return String::new();
    }
    let one = |question: &Question| {
        let kind = match question.kind {
            QuestionKind::Permission => "permission",
            QuestionKind::Input => "input",
        };
        json!({"id": question.id, "kind": kind, "what": question.what, "choices": question.choices})
    };
    Value::from_iter(questions.iter().map(one)).to_string()
}

/// Reads [`to_json`].
pub fn parse(text: &str) -> Vec<Question> {
    let Ok(Value::Array(found)) = serde_json::from_str(text) else { return Vec::new() };
    let one = |value: &Value| {
        Some(Question {
            id: value["id"].as_str()?.to_owned(),
            kind: if value["kind"] == "input" { QuestionKind::Input } else { QuestionKind::Permission },
            what: value["what"].as_str()?.to_owned(),
            choices: value["choices"]
                .as_array()?
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        })
    };
    found.iter().filter_map(one).collect()
}

/// An answer as kept until its worker takes it: a word, and what goes along.
pub fn in_words(answer: &Answer) -> (&'static str, &str) {
    match answer {
        Answer::Allow => ("allow", ""),
        Answer::AllowAlways => ("always", ""),
        Answer::Deny(words) => ("deny", words),
        Answer::Words(words) => ("words", words),
    }
}

fn read(row: &AnswerRow) -> Option<Answer> {
    match row.answer.as_str() {
        "allow" => Some(Answer::Allow),
        "always" => Some(Answer::AllowAlways),
        "deny" => Some(Answer::Deny(row.words.clone())),
        "words" => Some(Answer::Words(row.words.clone())),
        _ => None,
    }
}

/// Hands the answers that wait to the backend, each once.
pub fn deliver(jobs: &mut Jobs, id: &JobId, turn: &dyn Turn, open: &[Question]) {
    for row in jobs.answers(id).unwrap_or_default() {
        let known = open.iter().any(|question| question.id == row.question);
        let outcome = match read(&row).filter(|_| known) {
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
        let question = Question {
            id: "per_1".into(),
            kind: QuestionKind::Input,
            what: "which \"one\"?".into(),
            choices: vec!["a".into(), "b".into()],
        };
        assert_eq!(parse(&to_json(std::slice::from_ref(&question))), [question]);
        assert_eq!(to_json(&[]), "");
        assert_eq!(parse(""), []);
    }
}
