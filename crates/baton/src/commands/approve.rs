//! `approvals`, `approve` and `deny`: what agents wait for, and the person's answer.

use super::asking::NO_REASON;
use super::job::host;
use super::{CommandContext, watch};
use crate::print::{Out, Text, Tone, done, stderr_is_terminal, table, text};
use baton_approvals::inbox::{self, Effect, Pending};
use baton_approvals::{notify, reviewers};
use baton_core::approval::{Answer, Digest, State, in_one_line};
use baton_core::error::Exit;
use baton_core::{Code, Error};
use baton_jobs::Runtime;
use baton_mail::identity::Identity;
use baton_store::Store;
use clap::Args;
use serde_json::{Value, json};
use std::io::IsTerminal as _;

// `baton approvals`
#[derive(Debug, Args)]
pub struct Approvals {
    /// Show all of this one question: the whole command, every file, the whole change
    #[arg(conflicts_with = "watch")]
    id: Option<String>,
    /// Keep watching; while this runs, agents wait here for your answer instead of showing their
    /// dialog
    #[arg(long)]
    watch: bool,
}

// `baton approve`
#[derive(Debug, Args)]
pub struct Approve {
    /// The question's id; if you give only its beginning, or its job, you confirm what is shown
    id: String,
    /// Also allow similar requests from now on (shows the exact rule and asks for confirmation)
    #[arg(long)]
    always: bool,
    /// With --always and --digest: don't ask for confirmation
    #[arg(long, requires = "always", requires = "digest")]
    yes: bool,
    /// The digest of what you have seen, from `baton approvals ID`; the answer counts only for that
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// The text that the question waits for
    #[arg(long, value_name = "TEXT", conflicts_with = "always")]
    answer: Option<String>,
}

// `baton deny`
#[derive(Debug, Args)]
pub struct Deny {
    /// The question, or the job that waits for one
    id: String,
    /// The reason that the agent gets
    #[arg(long, default_value = NO_REASON, value_name = "TEXT")]
    reason: String,
}

impl Approvals {
    /// Whether it stays until something comes.
    pub fn waits(&self) -> bool {
        self.watch
    }

    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let host = host(context)?;
        if self.watch {
            return watch::watch(context, &host, out);
        }
        if let Some(id) = &self.id {
            let one = inbox::find(&host, id)?;
            out.data(&inbox::describe(&one), || in_full(out, &one, Extent::WithDigest))?;
            return done();
        }
        let waiting = inbox::pending(&host)?;
        out.data(&Value::from_iter(waiting.iter().map(inbox::describe)), || {
            if waiting.is_empty() {
                return Text::from("nothing waits for an answer");
            }
            let now = baton_machine::clock::now();
            let rows: Vec<Vec<String>> = waiting
                .iter()
                .map(|one| {
                    vec![
                        one.id(),
                        one.who().to_owned(),
                        one.agent().to_owned(),
                        one.state().as_str().to_owned(),
                        now.since(one.since()).coarse(),
                        one.line().text,
                    ]
                })
                .collect();
            let head = ["ID", "WHO", "AGENT", "STATE", "SINCE", "WHAT"];
            let mut text = table(&head, &rows, &[Some(Tone::Bold)]);
            if waiting.iter().any(|one| !one.line().is_whole) {
                text.push(out.tone(Tone::Dim, "`baton approvals ID` shows all of what does not fit here"));
            }
            text
        })?;
        done()
    }
}

/// What is shown of a question beside what it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// With the digest, by which an answer can name what was shown.
    WithDigest,
    /// What a person reads who answers with a key.
    ForPerson,
}

/// Everything about one question, for people: nothing of it is cut.
pub fn in_full(out: &Out, one: &Pending, extent: Extent) -> Text {
    let mut text = text![
        out.tone(Tone::Bold, &one.id()),
        format_args!("  {} ({}) in ", one.who(), one.agent()),
        Text::from(in_one_line(one.cwd())),
        ":"
    ];
    let mut line = |line: &str| text.push(text!["\n", Text::indented(line, "    ")]);
    if one.state() != State::Waiting {
        line(&format!("state: {}", one.state()));
    }
    if let Some(why) = one.why() {
        line(&format!("why: {}", in_one_line(why)));
    }
    one.question().subject.in_full().iter().for_each(|part| line(part));
    if let Some(digest) = one.digest().filter(|_| extent == Extent::WithDigest) {
        line(&format!("digest: {digest}"));
    }
    text
}

impl Approve {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let answer = match (self.answer, self.always) {
            (Some(words), _) => Answer::Words(words),
            (None, true) => Answer::AllowAlways,
            (None, false) => Answer::Allow,
        };
        let seen = match self.digest.as_deref().map(|digest| (Digest::parse(digest), self.yes)) {
            None => Seen::Unknown,
            Some((Some(digest), yes)) => Seen::This { digest, yes },
            Some((None, _)) => {
                return Err(Error::new(Code::Usage, "a digest has 32 characters of 0-9 and a-f")
                    .hint("`baton approvals ID` prints it"));
            }
        };
        give(context, out, &self.id, &answer, &seen)
    }
}

impl Deny {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        give(context, out, &self.id, &Answer::Deny(self.reason), &Seen::Unknown)
    }
}

/// What the caller says to have seen of the question.
enum Seen {
    /// The caller does not say.
    Unknown,
    /// The subject with this digest; with `yes` it also agrees to the rule in it.
    This { digest: Digest, yes: bool },
}

/// The person answers, and whom the person has named: never an agent what is its own, never a
/// script.
fn give(context: &CommandContext, out: &Out, id: &str, answer: &Answer, seen: &Seen) -> Result<Exit, Error> {
    let mut store = context.store()?;
    let me = context.identity(&mut store)?;
    let host = host(context)?;
    let pending = inbox::find(&host, id)?;
    check(&host, &store, &me, &pending, answer)?;
    let digest = pending
        .digest()
        .ok_or_else(|| Error::new(Code::UnknownApproval, "this question can't be answered here"))?;
    show(out, id, &pending, (&digest, answer), seen)?;
    let effect = answer_shown(&host, &store, &me, &pending, &digest, answer)?;
    let word = effect.state.as_str();
    let document = json!({
        "id": effect.id, "answer": word, "effective": true, "job_status": effect.job, "digest": digest.to_string(),
    });
    out.data(&document, || format!("{word}: {}", pending.line().text))?;
    done()
}

/// An error unless this caller may give that answer, and the question takes it.
fn check(
    host: &Runtime,
    store: &Store,
    me: &Identity,
    pending: &Pending,
    answer: &Answer,
) -> Result<(), Error> {
    reviewers::check(host, store, me, pending, answer)?;
    inbox::check(pending, answer)
}

/// Gives an answer to what was shown: every answer of a command goes through here.
pub fn answer_shown(
    host: &Runtime,
    store: &Store,
    me: &Identity,
    pending: &Pending,
    shown: &Digest,
    answer: &Answer,
) -> Result<Effect, Error> {
    check(host, store, me, pending, answer)?;
    inbox::answer(host, pending, shown, answer, &me.participant.name)
}

/// Shows what is granted, and asks where it is not certain that the caller has seen this very
/// question whole. A no needs none of that.
fn show(
    out: &Out,
    typed: &str,
    pending: &Pending,
    (digest, answer): (&Digest, &Answer),
    seen: &Seen,
) -> Result<(), Error> {
    if matches!(answer, Answer::Deny(_)) {
        return Ok(());
    }
    let subject = &pending.question().subject;
    let always = *answer == Answer::AllowAlways;
    let is_certain = match seen {
        Seen::This { digest: other, .. } if other != digest => {
            return Err(Error::new(Code::QuestionChanged, "it now asks something else than what was shown")
                .hint(format!("`baton approvals {}` shows what it asks now", pending.id())));
        }
        Seen::This { yes, .. } => !always || *yes,
        // A whole id names one question for good, and each list that has it shows the head beside
        // it.
        Seen::Unknown => !always && typed.trim() == pending.id() && pending.line().is_whole,
    };
    if is_certain {
        out.say(in_full(out, pending, Extent::WithDigest));
        return Ok(());
    }
    out.insist(in_full(out, pending, Extent::WithDigest));
    if always {
        let rule = in_one_line(subject.always().unwrap_or_default());
        out.insist(format!("this allows from now on: {rule}"));
    }
    match agreed(out) {
        Some(true) => Ok(()),
        Some(false) => Err(Error::new(Code::Declined, "nothing was answered").hint("say y to go on")),
        None => Err(Error::new(Code::NotShown, "not all of this question was shown to you").hint(format!(
            "read `baton approvals {0}`, then `baton approve {0} --digest …` with what it prints",
            pending.id()
        ))),
    }
}

/// Asks the person once more; `None` where there is no terminal to ask in.
fn agreed(out: &Out) -> Option<bool> {
    if !std::io::stdin().is_terminal() || !stderr_is_terminal() {
        return None;
    }
    out.prompt("go on? [y/N] ");
    let mut line = String::new();
    Some(std::io::stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "Y" | "yes"))
}

// `baton tell-waiting`
#[derive(Debug, Args)]
pub struct TellWaiting {
    /// The question, or the job that waits for one
    id: String,
}

impl TellWaiting {
    /// Tells people of it, if it still waits.
    pub fn run(self, context: &CommandContext) -> Result<Exit, Error> {
        // So that it outlives its starter. Fails only for a process that already leads a group.
        rustix::process::setsid().ok();
        std::thread::spawn(|| {
            std::thread::sleep(notify::NOTIFIER_LIFETIME);
            std::process::exit(0);
        });
        notify::send(&host(context)?, &self.id)?;
        done()
    }
}
