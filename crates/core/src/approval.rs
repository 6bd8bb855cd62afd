//! Questions of agents, and the answers to them.
//!
//! A question has one holder: the only process that can hand an answer to the agent. All others
//! write into the row. Each step is one legal move of this table, made in one transaction. So the
//! first answer is the only one, it is handed over at most once, and a question that was released
//! to the agent's own dialog can't be answered here any more.
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
//! A release withdraws an answer that the holder has not taken: the holder has ended, so it never
//! will. An ended question stays ended.

pub mod keys;
pub mod subject;

pub use subject::{AskedBy, Digest, Extent, Line, Part, Subject, in_a_list, in_one_line};

use crate::tool::ToolUse;
use crate::{foreign, frame};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest name of a folder in a line.
const FOLDER_CHARS: usize = 200;
/// Longest reason of the guard in a line.
const WHY_CHARS: usize = 120;

/// Something that an agent waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The holder's id of it, by which it is answered; empty if the agent has none.
    pub id: String,
    pub subject: Subject,
    /// The whole call that it is about, if its holder knows it. It is not stored.
    pub tool_use: Option<Box<ToolUse>>,
    /// Why a guard rule wants the question, if the agent itself does not ask, or what the guard
    /// says about the call.
    pub why: Option<String>,
}

impl Question {
    /// A question under the holder's id of it.
    pub fn new(id: impl Into<String>, subject: Subject) -> Self {
        Self { id: id.into(), subject, tool_use: None, why: None }
    }

    /// The same with the call that it is about.
    pub fn about(self, tool_use: Option<ToolUse>) -> Self {
        Self { tool_use: tool_use.map(Box::new), ..self }
    }

    /// What every list shows of it, and whether that is everything. `elsewhere` is the folder where
    /// the call runs, if that is not the asker's project.
    pub fn line(&self, elsewhere: Option<&str>) -> Line {
        let short = |text: &str, most: usize| frame::shown(&foreign::exact(text), most);
        let folder = elsewhere.map(|folder| format!("runs in {}", short(folder, FOLDER_CHARS)));
        let why = self.why.as_deref().map(|why| format!("the guard says: {}", short(why, WHY_CHARS)));
        self.subject.line(&folder.into_iter().chain(why).collect::<Vec<_>>())
    }

    /// Yes or no, or words.
    pub fn kind(&self) -> QuestionKind {
        self.subject.kind()
    }

    /// Whether an answer has the kind that it waits for.
    pub fn takes(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Allow | Answer::AllowAlways => self.kind() == QuestionKind::Permission,
            Answer::Words(_) => self.kind() == QuestionKind::Input,
            Answer::Deny(_) => true,
        }
    }
}

/// What kind of answer is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum QuestionKind {
    /// Yes or no to a tool call.
    #[default]
    Permission,
    Input,
}

impl QuestionKind {
    /// The kind as it is hashed and stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Input => "input",
        }
    }
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this one time.
    Allow,
    /// Yes, and also what the rule of [`Subject::always`] allows from now on.
    AllowAlways,
    /// No; the words go to the model.
    Deny(String),
    /// Words, for a question.
    Words(String),
}

impl Answer {
    /// The answer as it is stored until its holder takes it: a word, and its text.
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

/// The state of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// A process of baton holds it and can hand an answer over.
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
    /// It was answered or dropped elsewhere.
    Elsewhere,
    /// The agent that asked is gone.
    Gone,
}

impl State {
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

    /// Whether the state is final.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Approved | Self::Denied | Self::Replied | Self::Elsewhere | Self::Gone)
    }

    /// The state after a step, given the answer so far; `None` if the step is not legal.
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
            (Waiting | Answered, Step::Abandon) => Some(Gone),
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
    /// A caller with that right answers it.
    Answer,
    /// Its holder takes the answer, to hand it over.
    Take,
    /// Its holder releases it: only the agent's own dialog is left.
    Release,
    /// Its holder ended, and nothing else is known to ask. An answer that was handed over before is
    /// on its way, whoever saw the holder end.
    Abandon,
    /// The agent certainly refused the answer, and still asks.
    Refused,
    /// The tool runs, or has run.
    Ran,
    /// The tool was refused.
    RefusedThere,
    /// The question is gone, for any reason.
    Over,
    /// The agent that asked is gone.
    Gone,
}

impl Step {
    pub const ALL: [Self; 9] = [
        Self::Answer,
        Self::Take,
        Self::Release,
        Self::Abandon,
        Self::Refused,
        Self::Ran,
        Self::RefusedThere,
        Self::Over,
        Self::Gone,
    ];
}

#[cfg(test)]
mod tests;
