//! The permissions and questions of a turn, from the job's session and from those below it, and the
//! answers to them.

use super::{CALL_LIMIT, Its, LOOK_LIMIT, Whose};
use crate::backend::opencode::api::Failure;
use crate::backend::opencode::rules;
use crate::backend::{is_same, no_rule};
use baton_agents::opencode::asked;
use baton_core::approval::{Answer, Question, QuestionKind, Subject};
use baton_core::job::{Allow, Observation, Tool, ToolState};
use baton_core::{Code, Error};
use serde_json::{Value, json};

/// A question, and what its answer needs.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    kind: QuestionKind,
    /// How many answers it wants.
    answers: usize,
    /// The tool call that waits for it, which OpenCode reports as running.
    call: Option<String>,
    /// What is similar to it, if it is a permission.
    like: Likeness,
    subject: Subject,
}

/// What an answer to one permission may cover.
#[derive(Clone, Debug, Default)]
pub(super) struct Likeness {
    permission: String,
    /// What is asked for now.
    patterns: Vec<String>,
    /// OpenCode's patterns for what is similar to it.
    wildcards: Vec<String>,
}

impl Asked {
    fn read(asked: &Value, question: &Question) -> Self {
        let texts = |name: &str| {
            let texts = asked[name].as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(ToOwned::to_owned).collect()
        };
        let permission = asked["permission"].as_str().unwrap_or_default().to_owned();
        let like = Likeness { permission, patterns: texts("patterns"), wildcards: texts("always") };
        let call = asked["tool"]["callID"].as_str().map(ToOwned::to_owned);
        let answers = asked["questions"].as_array().map_or(1, Vec::len);
        Self { kind: question.kind(), answers, call, like, subject: question.subject.clone() }
    }

    pub(super) fn holds(&self, tool: &Tool) -> bool {
        self.call.as_ref() == Some(&tool.call)
    }
}

impl Likeness {
    /// Whether this covers everything that the other one asks for.
    fn covers(&self, other: &Self) -> bool {
        let covered =
            |pattern: &String| self.wildcards.iter().any(|wildcard| rules::covers(wildcard, pattern));
        self.permission == other.permission
            && !other.patterns.is_empty()
            && other.patterns.iter().all(covered)
    }
}

impl Its {
    pub(super) fn take_permission(&self, about: &Value) {
        if self.whose(about) == Whose::Other {
            return;
        }
        let Some(question) = permission(about) else { return };
        let asked = Asked::read(about, &question);
        // A subagent's session has its own rules. What the job may do without asking applies to it
        // too. What is denied is not asked.
        let is_allowed =
            self.allow == Allow::All || self.state().always.iter().any(|like| like.covers(&asked.like));
        if is_allowed && self.reply(&question.id, &json!({"reply": "once"})).is_ok() {
            return;
        }
        self.ask(question, asked);
    }

    pub(super) fn take_question(&self, about: &Value) {
        if self.whose(about) == Whose::Other {
            return;
        }
        if let Some(question) = asked::question(about) {
            let asked = Asked::read(about, &question);
            self.ask(question, asked);
        }
    }

    fn ask(&self, question: Question, asked: Asked) {
        let mut state = self.state();
        let held = state.running.values().find(|tool| asked.holds(tool)).cloned();
        let known = state.asked.insert(question.id.clone(), asked);
        drop(state);
        if let Some(tool) = held {
            self.tell(Observation::Tool(Tool { state: ToolState::Pending, ..tool }));
        }
        if known.is_none() {
            self.tell(Observation::Asked(question));
        }
    }

    pub(super) fn take_settled(&self, about: &Value) {
        let id = about["requestID"].as_str().or_else(|| about["permissionID"].as_str());
        if let Some(id) = id.filter(|id| self.state().asked.remove(*id).is_some()) {
            self.tell(Observation::Settled(id.to_owned()));
        }
    }

    /// Answers a permission, by the call that the server knows.
    fn reply(&self, question: &str, reply: &Value) -> Result<(), Failure> {
        let answer = match self.api.post(&format!("/permission/{question}/reply"), reply, CALL_LIMIT) {
            Err(Failure::NoSuchCall) => {
                // The older call takes no words.
                let body = json!({"response": reply["reply"]});
                self.api.post(&self.path(&format!("permissions/{question}")), &body, CALL_LIMIT)
            }
            answer => answer,
        };
        answer.map(drop)
    }

    pub(super) fn answer(&self, shown: &Question, answer: &Answer) -> Result<(), Error> {
        let question = shown.id.as_str();
        let known = self.state().asked.get(question).cloned();
        let Asked { kind, answers: count, like, subject, .. } = known.ok_or_else(|| not_asked(question))?;
        is_same(&subject, shown)?;
        if *answer == Answer::AllowAlways && kind == QuestionKind::Permission && subject.always().is_none() {
            return Err(no_rule());
        }
        let result = match (kind, answer) {
            (QuestionKind::Permission, Answer::Allow) => self.reply(question, &json!({"reply": "once"})),
            (QuestionKind::Permission, Answer::AllowAlways) => {
                self.state().always.push(like);
                self.reply(question, &json!({"reply": "once"}))
            }
            (QuestionKind::Permission, Answer::Deny(words)) => {
                // Without words OpenCode would stop the turn in the middle.
                let words = if words.trim().is_empty() { "Not allowed. Go on without it." } else { words };
                self.reply(question, &json!({"reply": "reject", "message": words}))
            }
            (QuestionKind::Input, Answer::Words(words)) => self.reply_words(question, words, count),
            (QuestionKind::Input, Answer::Deny(words)) => {
                let words = if words.trim().is_empty() { "No answer. Decide by yourself." } else { words };
                self.reply_words(question, words, count)
            }
            (QuestionKind::Permission, Answer::Words(_)) => {
                return Err(Error::new(Code::UnsupportedOption, "a permission is answered by yes or no"));
            }
            (QuestionKind::Input, Answer::Allow | Answer::AllowAlways) => {
                return Err(Error::new(Code::UnsupportedOption, "a question is answered by words"));
            }
        };
        match result {
            Ok(()) => Ok(()),
            Err(Failure::Status(404, _)) => Err(not_asked(question)),
            Err(failure) => Err(Error::new(Code::BackendError, failure.in_words())),
        }
    }

    /// One line for each question, if there are as many; otherwise all of it for each.
    fn reply_words(&self, question: &str, words: &str, count: usize) -> Result<(), Failure> {
        let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
        let answer = |at: usize| if count > 1 && lines.len() == count { lines[at] } else { words };
        let answers: Vec<Value> = (0..count).map(|at| json!([answer(at)])).collect();
        let body = json!({"answers": answers});
        self.api.post(&format!("/question/{question}/reply"), &body, CALL_LIMIT).map(drop)
    }

    pub(super) fn pending(
        &self,
        path: &str,
        read: impl Fn(&Value) -> Option<Question>,
    ) -> Result<Vec<Question>, Failure> {
        let list = self.api.get(path, LOOK_LIMIT)?;
        let mut questions = Vec::new();
        for asked in list.as_array().into_iter().flatten() {
            let Some(session) = asked["sessionID"].as_str() else { continue };
            if !self.is_in_family(session)? {
                continue;
            }
            if let Some(question) = read(asked) {
                let asked = Asked::read(asked, &question);
                self.state().asked.insert(question.id.clone(), asked);
                questions.push(question);
            }
        }
        Ok(questions)
    }

    /// Whether a session is the job's or one below it, even if its start was not heard.
    fn is_in_family(&self, session: &str) -> Result<bool, Failure> {
        let mut above = Vec::new();
        let mut next = session.to_owned();
        let found = loop {
            if self.state().family.contains(&next) {
                break true;
            }
            let info = self.api.get(&format!("/session/{next}"), LOOK_LIMIT)?;
            above.push(next);
            match info["parentID"].as_str() {
                Some(parent) if above.len() < 8 => next = parent.to_owned(),
                _ => break false,
            }
        };
        if found {
            self.state().family.extend(above);
        }
        Ok(found)
    }
}

/// A permission as a job asks for it: "always" is for this job alone.
pub(super) fn permission(about: &Value) -> Option<Question> {
    let mut question = asked::permission(about)?;
    let rule = asked::rule(about).map(|rule| format!("{rule}; for the rest of this job"));
    question.subject = question.subject.with_always(rule);
    Some(question)
}

fn not_asked(question: &str) -> Error {
    Error::new(Code::BackendError, format!("OpenCode does not wait for an answer to {question}"))
        .hint("it was answered already, or its turn has ended")
}
