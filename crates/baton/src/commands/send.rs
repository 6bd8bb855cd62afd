//! `send` and `reply`.

use super::{CommandContext, body};
use crate::environment;
use crate::print::{Out, Text, Tone, done, text};
use baton_core::Error;
use baton_core::error::Exit;
use baton_core::time::Span;
use baton_core::wake::{Attention, Outcome};
use baton_mail::post::{self, Draft};
use baton_store::{Accepted, Store};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

// `baton send`
#[derive(Debug, Args)]
pub struct Send {
    /// A name, a session id, agent:codex, #tag or project:name
    to: String,
    /// The text; - or nothing reads stdin
    body: Option<String>,
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
        let body = body(self.body)?;
        let ttl = self.ttl.as_deref().map(Span::parse).transpose()?;
        let rules = context.limits()?;
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let draft = Draft {
            to: &self.to,
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

fn report(store: &mut Store, accepted: &Accepted, woken: &[Outcome], out: &Out) -> Result<Exit, Error> {
    let document = if out.is_json() { describe(accepted, woken) } else { Value::Null };
    let shown = out.data(&document, || {
        let names = Text::join(accepted.to.iter().map(|to| out.tone(Tone::Bold, &to.name)), ", ");
        let again = if accepted.again { " (accepted before, under this key)" } else { "" };
        text![format_args!("{} to ", accepted.id), names, again]
    });
    // Accepted is accepted, whether or not anybody reads the answer.
    store.tidy();
    shown?;
    done()
}

/// What was accepted, as JSON.
fn describe(accepted: &Accepted, outcomes: &[Outcome]) -> Value {
    let to: Vec<_> = accepted.to.iter().map(|to| json!({"session_id": to.native, "name": to.name})).collect();
    let each = || outcomes.iter().map(|outcome| outcome.as_str()).collect::<Vec<_>>();
    let wake = post::common_outcome(outcomes).map_or_else(|| json!(each()), |one| json!(one.as_str()));
    json!({"message_id": accepted.id.as_str(), "to": to, "wake": wake})
}
