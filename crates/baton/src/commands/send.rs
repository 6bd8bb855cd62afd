//! `send` and `reply`.

use super::{CommandContext, body};
use crate::environment;
use crate::print::{Out, Text, Tone, done, text};
use baton_core::error::Exit;
use baton_core::time::Span;
use baton_core::wake::{Attention, Outcome};
use baton_core::{Code, Error};
use baton_mail::fate;
use baton_mail::post::{self, Draft, Everyone};
use baton_store::{Accepted, Store};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

// `baton send`
#[derive(Debug, Args)]
#[command(override_usage = "baton send [OPTIONS] TO [BODY|-]\n       baton send [OPTIONS] TO... -- BODY")]
pub struct Send {
    /// Names, session ids, agent:codex, #tag, PROJECT:NAME, or '*' for every session here; then the
    /// text
    #[arg(value_name = "TO")]
    words: Vec<String>,
    /// The text for several recipients; - reads stdin
    #[arg(last = true, value_name = "BODY")]
    text: Vec<String>,
    /// Say that * is meant: it interrupts every session of the project (the person need not)
    #[arg(long)]
    to_all: bool,
    /// The message that this one is about
    #[arg(long, value_name = "MSG")]
    reply_to: Option<String>,
    /// The thread of the message
    #[arg(long)]
    thread: Option<String>,
    /// A key that makes a retry safe
    #[arg(long)]
    key: Option<String>,
    /// How long the message may wait, such as 7d
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,
    /// Whether to wake an idle recipient
    #[arg(long, value_enum, default_value = "auto")]
    wake: Wake,
    /// Deliver it even to a session in do-not-disturb (only the person may)
    #[arg(long)]
    urgent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wake {
    Auto,
    Off,
}

// `baton reply`
#[derive(Debug, Args)]
pub struct Reply {
    /// The message to answer
    message: String,
    /// The text; - or nothing reads stdin
    body: Option<String>,
    /// A key that makes a retry safe
    #[arg(long)]
    key: Option<String>,
}

impl Send {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let (to, text) = recipients_and_text(self.words, self.text)?;
        let body = body(text)?;
        let to: Vec<&str> = to.iter().map(String::as_str).collect();
        let ttl = self.ttl.as_deref().map(Span::parse).transpose()?;
        let rules = context.limits()?;
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let draft = Draft {
            to: &to,
            everyone: if self.to_all { Everyone::Meant } else { Everyone::NotSaid },
            body: &body,
            reply_to: self.reply_to.as_deref(),
            thread: self.thread.as_deref(),
            key: self.key.as_deref(),
            ttl,
            attention: match (self.urgent, self.wake) {
                (true, _) => Attention::Urgent,
                (false, Wake::Off) => Attention::Quiet,
                (false, Wake::Auto) => Attention::Ordinary,
            },
        };
        let accepted = post::send(&mut store, &context.home, &me, &draft, &rules)?;
        let woken = post::wake_recipients(
            &mut store,
            &context.home,
            &accepted,
            self.wake == Wake::Auto,
            &rules,
            environment::own_program().ok().as_deref(),
        );
        report(&mut store, &accepted, &woken, out)
    }
}

impl Reply {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let body = body(self.body)?;
        let rules = context.limits()?;
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let accepted =
            post::reply(&mut store, &context.home, &me, &self.message, &body, self.key.as_deref(), &rules)?;
        let woken = post::wake_recipients(
            &mut store,
            &context.home,
            &accepted,
            true,
            &rules,
            environment::own_program().ok().as_deref(),
        );
        report(&mut store, &accepted, &woken, out)
    }
}

/// Tells the recipients from the text: behind `--` there is only text, and without it the second
/// word is the text.
fn recipients_and_text(
    words: Vec<String>,
    behind: Vec<String>,
) -> Result<(Vec<String>, Option<String>), Error> {
    // `send -- NAME TEXT` has everything behind it.
    let (mut words, behind) = if words.is_empty() { (behind, words) } else { (words, behind) };
    let text = match (words.len(), behind.is_empty()) {
        (0, _) => {
            return Err(Error::new(Code::Usage, "no recipient is named")
                .hint("baton send NAME \"text\"; `baton who` lists the names"));
        }
        (_, false) => Some(behind.join(" ")),
        (1, true) => None,
        (2, true) => words.pop(),
        (_, true) => {
            return Err(Error::new(Code::Usage, "it is not clear where the text begins").hint(
                "put the text in quotes: baton send NAME \"text\"; to several: baton send NAME NAME -- \"text\"",
            ));
        }
    };
    Ok((words, text))
}

fn report(store: &mut Store, accepted: &Accepted, woken: &[Outcome], out: &Out) -> Result<Exit, Error> {
    let document = if out.is_json() { describe(accepted, woken) } else { Value::Null };
    let shown = out.data(&document, || {
        let again = if accepted.again { " (accepted before, under this key)" } else { "" };
        let names = Text::join(accepted.to.iter().map(|to| out.tone(Tone::Bold, &to.name)), ", ");
        text![format_args!("{} to ", accepted.id), names, fates(store, accepted, woken, *out), again]
    });
    // Accepted is accepted, whether or not anybody reads the answer.
    store.tidy();
    shown?;
    done()
}

/// What happens to the message at each recipient: behind the names if it is the same for all, else
/// on lines of their own.
fn fates(store: &Store, accepted: &Accepted, woken: &[Outcome], out: Out) -> Text {
    // The words only explain: the message is accepted, even if they can't be found.
    let fates: Vec<String> = accepted
        .to
        .iter()
        .zip(woken)
        .map(|(to, outcome)| fate::of_message(store, to, *outcome).unwrap_or_default())
        .collect();
    match fates.split_first() {
        None => Text::default(),
        Some((first, rest)) if rest.iter().all(|other| other == first) => text![" · ", first],
        Some(_) => {
            let lines = accepted.to.iter().zip(fates);
            let lines = lines.map(|(to, fate)| text!["\n  ", out.tone(Tone::Bold, &to.name), " · ", fate]);
            Text::join(lines, "")
        }
    }
}

/// What was accepted, as JSON.
fn describe(accepted: &Accepted, outcomes: &[Outcome]) -> Value {
    let to: Vec<_> = accepted.to.iter().map(|to| json!({"session_id": to.native, "name": to.name})).collect();
    let each = || outcomes.iter().map(|outcome| outcome.as_str()).collect::<Vec<_>>();
    let wake = post::common_outcome(outcomes).map_or_else(|| json!(each()), |one| json!(one.as_str()));
    json!({"message_id": accepted.id.as_str(), "to": to, "wake": wake})
}
