//! The questions that a job waits with, and the answers on their way to it.

use crate::Runtime;
use crate::backend::Turn;
use baton_agents::asked;
use baton_core::Code;
use baton_core::approval::{Answer, AskedBy, Digest, Line, Question};
use baton_core::id::JobId;
use baton_machine::project;
use baton_store::{JobRow, Jobs, Role, Store};
use serde_json::{Value, json};

/// The backend has taken the answer.
pub const DELIVERED: &str = "delivered";
/// The question was gone before its answer came.
pub const GONE: &str = "gone";
/// The job now asks something other than what was shown.
pub const CHANGED: &str = "changed";

/// An open question, under a key that no other question of its job ever has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// A number that counts up in the job, given when the question was first seen. A question with
    /// other content has another key, whatever its backend calls it.
    pub key: String,
    pub question: Question,
}

impl Open {
    /// Gives each question its key. The same question as before keeps it. `last` is the number
    /// that was given last, for the whole life of the job's one worker.
    pub fn keyed(questions: &[Question], before: &[Self], last: &mut u32) -> Vec<Self> {
        let known = |question: &Question| {
            let same =
                |open: &&Self| open.question.id == question.id && open.question.subject == question.subject;
            before.iter().find(same)
        };
        let mut new = || {
            *last += 1;
            last.to_string()
        };
        let mut open = |question: &Question| match known(question) {
            Some(known) => {
                let why = known.question.why.clone();
                Self { key: known.key.clone(), question: Question { why, ..question.clone() } }
            }
            None => Self { key: new(), question: question.clone() },
        };
        questions.iter().map(&mut open).collect()
    }

    /// The id by which a question of a job is answered.
    pub fn id(job: &JobId, key: &str) -> String {
        format!("{job}.{key}")
    }
}

/// Identifies what a job asks.
pub fn digest(job: &JobRow, question: &Question) -> Digest {
    question.subject.digest(AskedBy { agent: &job.agent, asker: job.id.as_str(), folder: &job.cwd })
}

/// What every list shows of a question of a job, and whether that is everything.
pub fn line(job: &JobRow, question: &Question) -> Line {
    let folder = job.worktree.as_deref().unwrap_or(&job.cwd);
    question.line(project::elsewhere(&job.project, folder))
}

/// Questions as the record keeps them; empty for none.
pub fn to_json(questions: &[Open]) -> String {
    if questions.is_empty() {
        return String::new();
    }
    let one = |open: &Open| {
        let mut document = asked::to_json(&open.question);
        document["key"] = json!(open.key);
        document["why"] = json!(open.question.why);
        document
    };
    Value::from_iter(questions.iter().map(one)).to_string()
}

/// Reads [`to_json`].
pub fn parse(text: &str) -> Vec<Open> {
    let Ok(Value::Array(found)) = serde_json::from_str(text) else { return Vec::new() };
    let one = |value: &Value| {
        let why = value["why"].as_str().map(str::to_owned);
        let question = Question { why, ..asked::from_json(value)? };
        let key = value["key"].as_str().unwrap_or(&question.id).to_owned();
        Some(Open { key, question })
    };
    found.iter().filter_map(one).collect()
}

/// Hands the waiting answers to the backend, each once, and each only for the question that was
/// shown.
pub fn deliver(jobs: &mut Jobs, job: &JobRow, turn: &dyn Turn, open: &[Question]) {
    for row in jobs.answers(&job.id).unwrap_or_default() {
        let known = open.iter().find(|question| question.id == row.question);
        let outcome = match (known, Answer::read(&row.answer, &row.words)) {
            (Some(question), Some(answer)) if row.digest == Some(digest(job, question)) => {
                match turn.answer(question, &answer) {
                    Ok(()) => DELIVERED.to_owned(),
                    Err(error) if error.code() == Code::QuestionChanged => CHANGED.to_owned(),
                    Err(error) => format!("refused: {}", error.message()),
                }
            }
            (Some(_), Some(_)) => CHANGED.to_owned(),
            _ => GONE.to_owned(),
        };
        // If it stayed open, it would be handed over a second time. The backend knows the question
        // by its id and takes one answer.
        jobs.settle_answer(row.id, &outcome).ok();
    }
}

/// Records in the trail that a rule has answered a question. Best effort: the answer is in the
/// record.
pub fn record_rule_answer(runtime: &Runtime, row: &JobRow, Open { key, question }: &Open, by: &str) {
    if let Ok(mut store) = Store::open(&runtime.home, Role::Command) {
        let detail = format!("{} allow by {by}: {}", Open::id(&row.id, key), line(row, question).text);
        store.note(baton_machine::clock::now(), "approval-answered", Some(row.asker), &detail).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::Error;
    use baton_core::approval::{Part, Subject};
    use baton_core::id::ParticipantId;
    use baton_core::job::Snapshot;
    use baton_core::process::Process;
    use baton_core::time::Moment;
    use baton_store::{NewAnswer, NewJob};
    use std::sync::Mutex;

    #[test]
    fn questions_read_back() {
        let subject =
            Subject::input(None, vec![Part::question("which \"one\"?", &[])], vec!["a".into(), "b".into()]);
        let mut open = Open::keyed(&[Question::new("per_1", subject)], &[], &mut 0);
        assert_eq!(parse(&to_json(&open)), open);
        open[0].question.why = Some("it counts".into());
        assert_eq!(parse(&to_json(&open)), open);
        assert_eq!(to_json(&[]), "");
        assert_eq!(parse(""), []);
    }

    #[test]
    fn s3_another_question_under_the_same_id_has_another_key() {
        let asks = |command: &str| vec![Question::new("0", Subject::command("bash", command))];
        let last = &mut 0;
        let first = Open::keyed(&asks("ls"), &[], last);
        assert_eq!(Open::keyed(&asks("ls"), &first, last), first);
        let why = |open: &[Open]| open[0].question.why.clone();
        let mut judged = first.clone();
        judged[0].question.why = Some("it counts".into());
        assert_eq!(
            why(&Open::keyed(&asks("ls"), &judged, last)),
            why(&judged),
            "the guard's reason stays with it"
        );
        assert_eq!(why(&Open::keyed(&asks("rm"), &judged, last)), None);
        assert_ne!(Open::keyed(&asks("curl x | sh"), &first, last)[0].key, first[0].key);
        // Nor does the first question get its key back, after another one was open.
        assert_ne!(Open::keyed(&asks("ls"), &[], last)[0].key, first[0].key);
    }

    /// A backend that records what it gets.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Turn for Told {
        fn look(&self) -> Option<Result<Snapshot, String>> {
            None
        }

        fn answer(&self, question: &Question, _: &Answer) -> Result<(), Error> {
            self.0.lock().unwrap().push(question.subject.text());
            Ok(())
        }

        fn abort(&self) -> Result<(), String> {
            Ok(())
        }

        fn root(&self) -> Option<Process> {
            None
        }

        fn close(&self) {}
    }

    #[test]
    fn s3_a_job_that_swaps_its_question_gets_nothing() {
        let home = tempfile::tempdir().unwrap();
        let mut jobs = Jobs::open(home.path()).unwrap();
        let id = JobId::from_random([1; 8]);
        let job = NewJob {
            id: id.clone(),
            project: "/p",
            agent: "claude",
            prompt: "x",
            request: "{}",
            cwd: "/p",
            resumes: None,
            asker: ParticipantId(1),
            asker_name: "a",
            key: None,
            told: false,
            now: Moment(1),
        };
        jobs.accept(&job).unwrap();
        let row = jobs.get(&id).unwrap().unwrap();
        let asks = |command: &str| Question::new("0", Subject::command("bash", command));
        let turn = Told::default();
        let shown = digest(&row, &asks("ls"));
        let allow =
            |shown, now| NewAnswer { question: "0", shown, answer: "allow", words: "", by: "user", now };
        let answer = jobs.answer(&id, &allow(&shown, Moment(2))).unwrap();
        deliver(&mut jobs, &row, &turn, &[asks("curl x | sh")]);
        assert_eq!(jobs.outcome_of(answer).unwrap().as_deref(), Some(CHANGED));
        assert!(turn.0.lock().unwrap().is_empty(), "a yes went to what was not shown");
        // The new question can still be answered.
        let shown = digest(&row, &asks("curl x | sh"));
        let answer = jobs.answer(&id, &allow(&shown, Moment(3))).unwrap();
        deliver(&mut jobs, &row, &turn, &[asks("curl x | sh")]);
        assert_eq!(jobs.outcome_of(answer).unwrap().as_deref(), Some(DELIVERED));
    }
}
