//! `inbox`: reading what waits.

use super::CommandContext;
use crate::environment;
use crate::print::{self, Out, Text, Tone, done, text};
use baton_core::error::Exit;
use baton_core::frame::{self, Answers, Budget, Letter, Recipient, Unit};
use baton_core::id::Nonce;
use baton_core::mail::proof;
use baton_core::rights::Caller;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_machine::bell::Bell;
use baton_mail::caller;
use baton_mail::hook_event;
use baton_mail::identity::Identity;
use baton_mail::inbox::{self, Taken};
use baton_store::Store;
use clap::Args;
use serde_json::{Value, json};
use std::time::Instant;

// `baton inbox`
#[derive(Debug, Args)]
pub struct Inbox {
    /// Show mail without taking it
    #[arg(long)]
    peek: bool,
    /// Wait for mail if there is none
    #[arg(long, value_name = "DURATION")]
    wait: Option<String>,
    /// Read up to this many messages
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// Letters that one reading in an agent's shell brings at most. Agents cut longer output in the
/// middle or at its end, and with it perhaps the proof: Codex shows 12,000 bytes of a tool's
/// result, Claude Code 30,000 characters.
const MAX_SHELL_BYTES: usize = 8_000;
/// The same with the frame around the letters.
const MAX_SHELL_CHARS: usize = 10_000;

impl Inbox {
    /// Whether it stays until something comes.
    pub fn waits(&self) -> bool {
        self.wait.is_some()
    }

    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let deadline =
            self.wait.as_deref().map(Span::parse).transpose()?.map(|wait| Instant::now() + wait.to_std());
        let rules = context.limits()?;
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let place = inbox::shell_place(&me);
        let bytes = if place.is_some() { MAX_SHELL_BYTES } else { usize::MAX };
        let most = usize::from(self.limit);
        let mut bell = deadline.map(|_| Bell::listen(&context.home, me.participant.id)).transpose()?;
        let taken = loop {
            let taken = if self.peek {
                inbox::peek(&mut store, &me, most)?
            } else {
                inbox::take(&mut store, &me, place.as_ref(), most, bytes, &rules)?
            };
            let waiting = taken.letters.is_empty()
                && deadline.zip(bell.as_mut()).is_some_and(|(deadline, bell)| bell.wait(deadline));
            if !waiting {
                break taken;
            }
        };
        if taken.letters.is_empty() && deadline.is_some() {
            return Err(Error::new(Code::TimedOut, "no mail came")
                .hint("mail also arrives by itself, with your agent's next step"));
        }
        let printed = self.print(&store, &me, &taken, *out);
        match (&printed, &taken.offer) {
            (Err(_), Some(offer)) => out.afterwards(hook_event::give_back(&mut store, offer.id)),
            (Err(_), None) => {}
            (Ok(()), _) => out.afterwards(inbox::mark_read(&mut store, &me, &taken)),
        }
        out.afterwards(store.upkeep(&rules, baton_machine::clock::now()).map(drop));
        store.tidy();
        printed?;
        done()
    }

    fn print(&self, store: &Store, me: &Identity, taken: &Taken, out: Out) -> Result<(), Error> {
        let mut list: Vec<Value> =
            taken.letters.iter().map(|letter| describe(store, letter, me)).collect::<Result<_, _>>()?;
        if let (Some(offer), Some(last)) = (&taken.offer, list.last_mut()) {
            // The proof of an agent's reading, as the last thing printed.
            last["offer"] = json!(proof::mark(&offer.nonce));
        }
        let document = Value::Array(list);
        out.mail(&document, || {
            if taken.letters.is_empty() {
                out.say("no mail");
                return Text::default();
            }
            match &taken.offer {
                Some(offer) => framed(me, &taken.letters, taken.more, &offer.nonce).into(),
                None => for_people(out, &taken.letters, taken.more),
            }
        })
    }
}

/// Tells a person at a terminal how much mail waits. Reads nothing for any other caller.
pub fn mention_unread(context: &CommandContext, out: &Out) {
    if out.is_json() || !print::stderr_is_terminal() || context.is_acting() {
        return;
    }
    // It is only a reminder: whatever fails here, the command is done.
    let Some(mut store) = context.store_to_look_into() else { return };
    let Ok(Some(unread @ 1..)) = store.unread_of_person() else { return };
    let is_person = |me: Identity| caller::of(&me.kind, &environment::get) == Caller::Person;
    if context.identity(&mut store).is_ok_and(is_person) {
        let (messages, wait) = if unread == 1 { ("message", "waits") } else { ("messages", "wait") };
        out.say(format!("{unread} {messages} {wait} for you: baton inbox"));
    }
}

/// Letters in the frame that an agent gets from its hooks too.
pub fn framed<L: std::borrow::Borrow<Letter>>(
    me: &Identity,
    letters: &[L],
    more: usize,
    nonce: &Nonce,
) -> String {
    let letters: Vec<Letter> = letters.iter().map(|letter| letter.borrow().clone()).collect();
    let budget = Budget { messages: letters.len(), size: MAX_SHELL_CHARS, unit: Unit::Bytes };
    let agent = baton_agents::by_name(&me.participant.agent);
    let answers = agent.map_or(Answers::default(), |agent| agent.quirks().answers);
    let to = Recipient { name: &me.participant.name, answers };
    frame::render(to, &letters, letters.len() + more, nonce, budget).text
}

/// One message as JSON. An agent gets the body without anything that could pose as a proof of
/// delivery.
pub fn describe(store: &Store, letter: &Letter, me: &Identity) -> Result<Value, Error> {
    let mut body = if me.session().is_some() { frame::defuse(&letter.body) } else { letter.body.clone() };
    let mut cut = Value::Null;
    if me.session().is_some()
        && let Some(end) = frame::json_end(&body, MAX_SHELL_BYTES)
    {
        body.truncate(end);
        cut = json!(format!(
            "cut here, {} bytes in all; in full: `baton mail {}`",
            letter.body.len(),
            letter.id
        ));
    }
    Ok(json!({
        "message_id": letter.id.as_str(),
        "from": inbox::sender_address(store, letter)?,
        "from_name": letter.from,
        "sender": letter.kind,
        "from_your_user": letter.by_person,
        "body": body,
        "cut": cut,
        "request_id": letter.ask.then(|| letter.id.request().to_string()),
        "reply_to": letter.reply_to.as_ref().map(ToString::to_string),
        "thread": letter.thread,
        "sent_at": letter.sent_at.to_rfc3339(),
        "possible_repeat": letter.perhaps_repeated,
    }))
}

fn for_people(out: Out, letters: &[Letter], more: usize) -> Text {
    let mut text = Text::default();
    for letter in letters {
        let asks = if letter.ask { "  waits for your answer" } else { "" };
        let head = format!(
            "{}  {} ({})  {}{asks}",
            letter.id,
            letter.from,
            letter.kind,
            letter.sent_at.to_rfc3339()
        );
        let body = Text::from(frame::defuse(&letter.body));
        text.push(text![out.tone(Tone::Bold, &head), "\n", body, "\n\n"]);
    }
    if more > 0 {
        out.say(format!("{more} more; run `baton inbox` again to read them"));
    }
    text
}
