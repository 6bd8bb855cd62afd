//! `approvals`, `approve` and `deny`: what agents wait for, and the person's answer.

use super::Session;
use super::job::host;
use crate::print::{Out, Tone, done, table};
use baton_approvals::inbox::{self, Pending};
use baton_approvals::watch::Watcher;
use baton_approvals::{notify, reviewers};
use baton_core::approval::Answer;
use baton_core::error::Exit;
use baton_core::frame::shown;
use baton_core::{Code, Error, limits};
use baton_jobs::Host;
use baton_jobs::worker::head;
use clap::Args;
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

// `baton approvals`
#[derive(Debug, Args)]
pub struct Approvals {
    /// Go on, and hold what is asked for an answer as long as this runs
    #[arg(long)]
    watch: bool,
}

// `baton approve`
#[derive(Debug, Args)]
pub struct Approve {
    /// The question, or the job that waits for one
    id: String,
    /// And whatever is like it from now on; shows what that is, and asks
    #[arg(long)]
    always: bool,
    /// With --always: don't ask
    #[arg(long, requires = "always")]
    yes: bool,
    /// The words that it waits for
    #[arg(long, value_name = "TEXT", conflicts_with = "always")]
    answer: Option<String>,
}

// `baton deny`
#[derive(Debug, Args)]
pub struct Deny {
    /// The question, or the job that waits for one
    id: String,
    /// What the agent is told
    #[arg(long, default_value = "the person said no", value_name = "TEXT")]
    reason: String,
}

impl Approvals {
    /// Lists what waits.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let host = host(session)?;
        if self.watch {
            return watch(&host, out);
        }
        let waiting = inbox::pending(&host)?;
        out.data(&Value::from_iter(waiting.iter().map(inbox::describe)), || {
            if waiting.is_empty() {
                return "nothing waits for an answer".to_owned();
            }
            let now = baton_mail::now();
            let rows: Vec<Vec<String>> = waiting
                .iter()
                .map(|one| {
                    vec![
                        one.id(),
                        one.who().to_owned(),
                        one.agent().to_owned(),
                        one.state().as_str().to_owned(),
                        now.since(one.since()).coarse(),
                        shown(&head(&one.question().what, 80), 100),
                    ]
                })
                .collect();
            let head = ["ID", "WHO", "AGENT", "STATE", "SINCE", "WHAT"];
            table(*out, &head, &rows, &[Some(Tone::Bold)])
        })?;
        done()
    }
}

/// Shows each question when it comes and when it is over. A document a line for programs.
fn watch(host: &Host, out: &Out) -> Result<Exit, Error> {
    let mut bell = baton_approvals::listen(&host.home)?;
    let _watcher = Watcher::begin(&host.home)
        .map_err(|error| Error::new(Code::StoreUnavailable, format!("can't watch: {error}")))?;
    let mut known: Vec<Pending> = Vec::new();
    let mut rung: Option<Instant> = None;
    loop {
        let waiting = inbox::pending(host)?;
        let is_new = |one: &Pending| !known.iter().any(|old| old.id() == one.id());
        if waiting.iter().any(is_new) && rung.is_none_or(|rung| rung.elapsed() >= BELL) && rings(host) {
            rung = Some(Instant::now());
            eprint!("\x07");
        }
        for one in &waiting {
            let before = known.iter().find(|old| old.id() == one.id());
            if before.is_none_or(|before| before.state() != one.state()) {
                let mut document = inbox::describe(one);
                document["event"] = json!(if before.is_none() { "asked" } else { "changed" });
                out.data(&document, || in_full(out, one))?;
            }
        }
        for gone in known.iter().filter(|old| !waiting.iter().any(|one| one.id() == old.id())) {
            let end = inbox::end_of(host, gone)?;
            out.data(&json!({"event": "over", "id": gone.id(), "state": end}), || {
                format!("{}  {}", out.tone(Tone::Bold, &gone.id()), end.as_deref().unwrap_or("over"))
            })?;
        }
        known = waiting;
        bell.wait(Instant::now() + limits::SWEEP.to_std());
    }
}

/// The bell of the terminal rings this often at most.
const BELL: Duration = Duration::from_secs(5);

/// Whether somebody wants to hear the bell, and could.
fn rings(host: &Host) -> bool {
    std::io::stderr().is_terminal() && host.gate().approvals().is_ok_and(|policy| policy.notify.bell)
}

/// Everything about one question, for people.
fn in_full(out: &Out, one: &Pending) -> String {
    let question = one.question();
    let mut text = format!(
        "{}  {} ({}) in {}: {}",
        out.tone(Tone::Bold, &one.id()),
        one.who(),
        one.agent(),
        shown(one.cwd(), 200),
        shown(&question.what, 400)
    );
    let more = [
        ("state", (one.state() != baton_core::approval::State::Waiting).then(|| one.state().to_string())),
        ("why", one.why().map(str::to_owned)),
        ("files", (!question.paths.is_empty()).then(|| question.paths.join(", "))),
        ("choices", (!question.choices.is_empty()).then(|| question.choices.join(", "))),
        ("always", question.always.clone()),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            text.push_str(&format!("\n    {name}: {}", shown(&value, 400)));
        }
    }
    if let Some(detail) = question.detail.as_deref().filter(|detail| *detail != question.what) {
        for line in detail.lines().take(40) {
            text.push_str(&format!("\n    {}", out.tone(Tone::Dim, &shown(line, 200))));
        }
    }
    text
}

impl Approve {
    /// Says yes.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let answer = match (self.answer, self.always) {
            (Some(words), _) => Answer::Words(words),
            (None, true) => Answer::AllowAlways,
            (None, false) => Answer::Allow,
        };
        give(session, out, &self.id, &answer, self.yes)
    }
}

impl Deny {
    /// Says no.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        give(session, out, &self.id, &Answer::Deny(self.reason), true)
    }
}

/// The person answers, and whom the person has named: never an agent what is its own, never a script.
fn give(session: &Session, out: &Out, id: &str, answer: &Answer, sure: bool) -> Result<Exit, Error> {
    let mut store = session.store()?;
    let me = session.identity(&mut store)?;
    let host = host(session)?;
    reviewers::check_kind(&me)?;
    let pending = inbox::find(&host, id)?;
    reviewers::check(&host, &store, &me, &pending, answer)?;
    if *answer == Answer::AllowAlways {
        let always = pending.question().always.as_deref().unwrap_or("whatever is like it, in that session");
        out.say(&format!("always allows: {}", shown(always, 400)));
        if !sure && !agreed() {
            return Err(Error::new(Code::Usage, "nothing was answered")
                .hint("say y, give --yes, or leave --always out to allow it this once"));
        }
    }
    let effect = inbox::answer(&host, &pending, answer, &me.participant.name)?;
    let word = effect.state.as_str();
    let document = json!({"id": effect.id, "answer": word, "effective": true, "job_status": effect.job});
    out.data(&document, || format!("{word}: {}", shown(&head(&pending.question().what, 100), 120)))?;
    done()
}

/// Asks the person once more; nobody there is a no.
fn agreed() -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    eprint!("go on? [y/N] ");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "Y" | "yes")
}

// `baton tell-waiting`
#[derive(Debug, Args)]
pub struct TellWaiting {
    /// The question, or the job that waits for one
    id: String,
}

impl TellWaiting {
    /// Tells people of it, if it still waits.
    pub fn run(self, session: &Session) -> Result<Exit, Error> {
        // Whatever becomes of whoever has started us; refused only to who leads a group already.
        rustix::process::setsid().ok();
        std::thread::spawn(|| {
            std::thread::sleep(notify::LONGEST);
            std::process::exit(0);
        });
        notify::tell(&host(session)?, &self.id)?;
        done()
    }
}
