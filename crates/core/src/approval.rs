//! What an agent waits for, and the answer to it.
//!
//! A question has one holder: the only process that can hand an answer to the agent. Everybody else writes into the row, and each step is one
//! legal move of this table, made in one transaction. So the first answer is the only one, it is handed over at most once, and what was released to
//! the agent's own dialog can't be answered here any more.
//!
//! | state | answer | take | release | refused | seen to have run | seen to be refused | over | asker gone |
//! |---|---|---|---|---|---|---|---|---|
//! | waiting | answered | | terminal | | elsewhere | elsewhere | elsewhere | gone |
//! | terminal | | | | | elsewhere | elsewhere | elsewhere | gone |
//! | answered | | handed | terminal | | elsewhere | elsewhere | elsewhere | gone |
//! | handed, a yes | | | | waiting | approved | elsewhere | approved | gone |
//! | handed, words | | | | waiting | replied | elsewhere | replied | gone |
//! | handed, a no | | | | waiting | elsewhere | denied | denied | gone |
//!
//! An answer that nobody has taken is withdrawn by the release: its holder has ended, so nobody will. What ended has ended.

use crate::tool::ToolUse;
use std::fmt;

/// Something that an agent waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The holder's id of it, by which it is answered; empty where the agent has none.
    pub id: String,
    /// A permission for a tool, or a question to a person.
    pub kind: QuestionKind,
    /// The tool that it is about, by the agent's name for it.
    pub tool: Option<String>,
    /// What is asked, in one line: `bash: rm -rf target`.
    pub what: String,
    /// All of it, where a line does not hold it: the whole command, the change to a file.
    pub detail: Option<String>,
    /// The files that it is about, as far as the agent says.
    pub paths: Vec<String>,
    /// What "always" would allow, in words; `None` where it can't be said.
    pub always: Option<String>,
    /// The answers to choose from, where it is a question with some.
    pub choices: Vec<String>,
    /// The call that it is about, all of it, where its holder knows that; not kept.
    pub tool_use: Option<Box<ToolUse>>,
    /// Why a rule of ours wants it asked, where not the agent itself asks; not kept with it.
    pub why: Option<String>,
}

impl Question {
    /// A permission, in one line.
    pub fn permission(id: impl Into<String>, what: impl Into<String>) -> Self {
        Self { id: id.into(), what: what.into(), ..Self::default() }
    }

    /// A question to a person, with the answers to choose from.
    pub fn input(id: impl Into<String>, what: impl Into<String>, choices: Vec<String>) -> Self {
        Self { id: id.into(), kind: QuestionKind::Input, what: what.into(), choices, ..Self::default() }
    }

    /// The same with the call that it is about.
    pub fn about(self, tool_use: Option<ToolUse>) -> Self {
        Self { tool_use: tool_use.map(Box::new), ..self }
    }

    /// Whether an answer is of the kind that it waits for.
    pub fn takes(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Allow | Answer::AllowAlways => self.kind == QuestionKind::Permission,
            Answer::Words(_) => self.kind == QuestionKind::Input,
            Answer::Deny(_) => true,
        }
    }
}

/// What kind of answer is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    /// Yes or no to a tool call.
    #[default]
    Permission,
    /// Words.
    Input,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This one time.
    Allow,
    /// And whatever is like it from now on, as [`Question::always`] says.
    AllowAlways,
    /// No; the words go to the model.
    Deny(String),
    /// Words, for a question.
    Words(String),
}

impl Answer {
    /// As kept until its holder takes it: a word, and what goes along.
    pub fn in_words(&self) -> (&'static str, &str) {
        match self {
            Self::Allow => ("allow", ""),
            Self::AllowAlways => ("always", ""),
            Self::Deny(words) => ("deny", words),
            Self::Words(words) => ("words", words),
        }
    }

    /// Reads what [`in_words`](Self::in_words) wrote.
    pub fn read(word: &str, words: &str) -> Option<Self> {
        match word {
            "allow" => Some(Self::Allow),
            "always" => Some(Self::AllowAlways),
            "deny" => Some(Self::Deny(words.to_owned())),
            "words" => Some(Self::Words(words.to_owned())),
            _ => None,
        }
    }
}

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// One of our processes holds it and hands an answer over.
    Waiting,
    /// Only the agent's own dialog takes an answer.
    Terminal,
    /// It has an answer, which its holder has not taken yet.
    Answered,
    /// The holder has taken the answer, and hands it to the agent.
    Handed,
    /// The answer was yes, and it took effect.
    Approved,
    /// The answer was no, and it took effect.
    Denied,
    /// The answer was words, and the agent has them.
    Replied,
    /// It was answered, or dropped, somewhere else.
    Elsewhere,
    /// Whoever asked is gone.
    Gone,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Terminal,
        Self::Answered,
        Self::Handed,
        Self::Approved,
        Self::Denied,
        Self::Replied,
        Self::Elsewhere,
        Self::Gone,
    ];

    /// As stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Terminal => "only-in-terminal",
            Self::Answered => "answered",
            Self::Handed => "handed",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Replied => "replied",
            Self::Elsewhere => "elsewhere",
            Self::Gone => "gone",
        }
    }

    /// Reads what [`as_str`](Self::as_str) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether nothing comes after it.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Approved | Self::Denied | Self::Replied | Self::Elsewhere | Self::Gone)
    }

    /// The state after a step, with the answer that was given so far; `None` where the step is none.
    pub fn after(self, step: Step, given: Option<&Answer>) -> Option<Self> {
        use State::{Answered, Approved, Denied, Elsewhere, Gone, Handed, Replied, Terminal, Waiting};
        if self.is_end() {
            return None;
        }
        let effect = match given {
            Some(Answer::Allow | Answer::AllowAlways) => Approved,
            Some(Answer::Words(_)) => Replied,
            Some(Answer::Deny(_)) => Denied,
            None => Elsewhere,
        };
        match (self, step) {
            (_, Step::Gone) => Some(Gone),
            (Waiting, Step::Answer) => Some(Answered),
            (Answered, Step::Take) => Some(Handed),
            (Waiting | Answered, Step::Release) => Some(Terminal),
            (Handed, Step::Refused) => Some(Waiting),
            (Handed, Step::Over) => Some(effect),
            (Handed, Step::Ran) => Some(if effect == Denied { Elsewhere } else { effect }),
            (Handed, Step::RefusedThere) => Some(if effect == Denied { Denied } else { Elsewhere }),
            (Waiting | Terminal | Answered, Step::Over | Step::Ran | Step::RefusedThere) => Some(Elsewhere),
            _ => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What may happen to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Somebody who may answers it.
    Answer,
    /// Its holder takes the answer, to hand it over.
    Take,
    /// Its holder lets go of it: the agent's own dialog is all that is left.
    Release,
    /// The agent refused the answer for certain, and still asks.
    Refused,
    /// The tool is seen to run, or to have run.
    Ran,
    /// The tool is seen to have been refused.
    RefusedThere,
    /// The question is seen to be gone, however that came.
    Over,
    /// Whoever asked is gone.
    Gone,
}

impl Step {
    /// Every step.
    pub const ALL: [Self; 8] = [
        Self::Answer,
        Self::Take,
        Self::Release,
        Self::Refused,
        Self::Ran,
        Self::RefusedThere,
        Self::Over,
        Self::Gone,
    ];
}

#[cfg(test)]
mod tests;
