//! The person at the inbox: sees what agents ask, and answers.

use crate::sandbox::{LIMIT, StorySandbox, rounds};
use baton_testkit::process::{Finished, Running};
use baton_testkit::wait;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Between two looks for something that should be there at once.
const LOOK: Duration = Duration::from_millis(2);

/// The person, with an inbox.
pub struct InboxUser<'a> {
    stage: &'a StorySandbox,
}

/// What an answer came to.
#[derive(Debug)]
pub struct Answered {
    pub code: Option<i32>,
    pub document: Value,
}

impl Answered {
    #[track_caller]
    pub fn took_effect(&self) {
        assert_eq!(self.code, Some(0), "{}", self.document);
    }

    #[track_caller]
    pub fn was_refused(&self, code: &str) {
        assert_eq!(self.document["error"]["code"], code, "{}", self.document);
    }
}

impl<'a> InboxUser<'a> {
    /// `None`, and says so, where no terminal makes a person because the tests themselves run below
    /// an agent.
    pub fn new(stage: &'a StorySandbox) -> Option<Self> {
        let user = Self { stage };
        let is_person = user.person(&["whoami"]).document["kind"] == "person";
        if !is_person {
            eprintln!("skipped: the tests run below an agent, so nobody here is the person");
        }
        is_person.then_some(user)
    }

    /// Starts baton as the person at a terminal does.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let words: Vec<String> =
            arguments.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let line = format!("baton {} --json", words.join(" "));
        let mut command = self.stage.sandbox.command("script");
        self.stage.sandbox.start(command.args(["--quiet", "--return", "--command", &line, "/dev/null"]))
    }

    /// Runs it to its end.
    pub fn person(&self, arguments: &[&str]) -> Answered {
        answered(self.start(arguments).finish(LIMIT))
    }

    /// What waits now.
    pub fn inbox(&self) -> Vec<Value> {
        self.stage.json(&["approvals"]).as_array().cloned().unwrap_or_default()
    }

    /// The question about this, once it waits in that state.
    #[track_caller]
    pub fn question(&self, what: &str, state: &str) -> Value {
        self.question_that(what, state, |row| row["what"] == what)
    }

    /// The question whose line begins like this and leaves something out, once it waits in that
    /// state.
    #[track_caller]
    pub fn long_question(&self, begin: &str, state: &str) -> Value {
        self.question_that(begin, state, |row| {
            let what = row["what"].as_str().unwrap_or_default();
            row["what_is_whole"] == false && what.starts_with(&format!("{begin} … ("))
        })
    }

    #[track_caller]
    fn question_that(&self, what: &str, state: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        let found =
            wait::poll(LIMIT, || self.inbox().into_iter().find(|row| is_meant(row) && row["state"] == state));
        found.unwrap_or_else(|| panic!("{what} is not {state}: {:?}{}", self.inbox(), self.stage.trouble()))
    }

    /// Waits until nothing is asked any more.
    #[track_caller]
    pub fn is_empty(&self) {
        assert!(wait::until(LIMIT, || self.inbox().is_empty()), "{:?}{}", self.inbox(), self.stage.trouble());
    }

    /// Says yes to a question. If its line leaves something out, a plain yes is refused, and the
    /// one with its digest counts.
    pub fn approve(&self, row: &Value) -> Answered {
        if row["what_is_whole"] == true {
            return self.person(&["approve", id(row)]);
        }
        self.person(&["approve", id(row), "--digest", digest(row)])
    }

    /// Approves, and takes the time until a file is there, which the tool makes.
    #[track_caller]
    pub fn approve_until(&self, id: &str, file: &str) -> Duration {
        let file = self.stage.sandbox.project().join(file);
        assert!(!file.exists(), "{} is there already", file.display());
        let began = Instant::now();
        let row = self.inbox().into_iter().find(|row| row["id"] == id).unwrap_or_default();
        let shown = if row["what_is_whole"] == false { &["--digest", digest(&row)][..] } else { &[] };
        let approving = self.start(&[&["approve", id], shown].concat());
        while !file.exists() && began.elapsed() < LIMIT {
            std::thread::sleep(LOOK);
        }
        let took = began.elapsed();
        answered(approving.finish(LIMIT)).took_effect();
        assert!(file.exists(), "{} is not there{}", file.display(), self.stage.trouble());
        took
    }

    /// Says yes to `touch made-1`, no to `touch made-2`, and so on for all rounds: each takes
    /// effect, the reason of a no reaches the model, and neither is answered again. `question`
    /// gives what waits about a file.
    #[track_caller]
    pub fn answers_in_turns(&self, who: &str, question: impl Fn(&str) -> Value) {
        let mut took = Vec::new();
        for number in 1..=2 * rounds() {
            let file = format!("made-{number}");
            let row = question(&file);
            assert_eq!((&row["agent"], &row["kind"]), (&who.into(), &"permission".into()), "{row}");
            if number % 2 == 1 {
                took.push(self.approve_until(id(&row), &file));
            } else {
                let why = format!("not {file}, it's late");
                self.person(&["deny", id(&row), "--reason", &why]).took_effect();
                self.stage.request(|request| request.shows(&why));
                let made = self.stage.sandbox.project().join(&file).exists();
                assert!(!made, "denied, and made all the same");
            }
            self.person(&["approve", id(&row)]).was_refused("already-answered");
        }
        let median = print_times(&format!("{who}: from approve to the tool running"), took);
        assert!(rounds() < 20 || median < PROMPT, "{median:?}");
    }
}

/// The id of a question.
pub fn id(row: &Value) -> &str {
    row["id"].as_str().expect("a question has an id")
}

/// What an answer names where the line leaves something out.
pub fn digest(row: &Value) -> &str {
    row["digest"].as_str().expect("a question that can be answered has a digest")
}

/// A terminal shows both streams: the document is the line that is one.
fn answered(done: Finished) -> Answered {
    let document = done.stdout.lines().find_map(|line| serde_json::from_str(line.trim()).ok());
    Answered { code: done.status.code(), document: document.unwrap_or(Value::String(done.stdout)) }
}

/// Prints how long something took, in the line that `scripts/prove` shows.
fn print_times(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let (median, late) = (times[times.len() / 2], times[times.len() * 95 / 100]);
    println!("{what}: median {} ms, p95 {} ms of {}", median.as_millis(), late.as_millis(), times.len());
    median
}

/// What is asked for: from an answer to the running tool.
const PROMPT: Duration = Duration::from_millis(300);
