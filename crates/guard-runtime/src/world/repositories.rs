//! What git answered. One judgement asks each question once, however often a command raises it.

use baton_guard::Repository;
use std::cell::RefCell;
use std::collections::HashMap;

/// A folder, and the names in the question.
type Question = [Option<String>; 3];

/// The answers, by question.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    states: RefCell<HashMap<Question, Repository>>,
    losses: RefCell<HashMap<Question, Option<bool>>>,
}

impl Repositories {
    /// The state of a repository.
    pub(crate) fn state(&self, question: [Option<&str>; 3], ask: impl FnOnce() -> Repository) -> Repository {
        answered(&self.states, question, ask)
    }

    /// Whether commits would be lost.
    pub(crate) fn loses(
        &self,
        question: [Option<&str>; 3],
        ask: impl FnOnce() -> Option<bool>,
    ) -> Option<bool> {
        answered(&self.losses, question, ask)
    }
}

fn answered<A: Clone>(
    known: &RefCell<HashMap<Question, A>>,
    question: [Option<&str>; 3],
    ask: impl FnOnce() -> A,
) -> A {
    let question = question.map(|part| part.map(str::to_owned));
    let before = known.borrow().get(&question).cloned();
    before.unwrap_or_else(|| {
        let answer = ask();
        known.borrow_mut().insert(question, answer.clone());
        answer
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_question_is_asked_once() {
        let asked = Cell::new(0);
        let repositories = Repositories::default();
        let ask = || {
            asked.set(asked.get() + 1);
            Some(true)
        };
        for _ in 0..1000 {
            assert_eq!(repositories.loses([Some("/a"), Some("main"), None], ask), Some(true));
        }
        assert_eq!(asked.get(), 1);
        repositories.loses([Some("/a"), Some("other"), None], ask);
        repositories.loses([Some("/b"), Some("main"), None], ask);
        assert_eq!(asked.get(), 3);
    }
}
