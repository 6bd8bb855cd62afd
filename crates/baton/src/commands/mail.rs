//! `mail`: one message in full, or the history with the state of every delivery.

use super::CommandContext;
use crate::print::{Out, Text, Tone, done, table, text};
use baton_core::error::Exit;
use baton_core::foreign::Foreign;
use baton_core::frame;
use baton_core::{Code, Error};
use baton_mail::identity::{Identity, Kind};
use baton_mail::reference::{self, Reference};
use baton_mail::{inbox, reconcile};
use baton_store::{MailFilter, MailRow, Store};
use clap::Args;
use serde_json::{Value, json};

// `baton mail`
#[derive(Debug, Args)]
pub struct Mail {
    /// A message to show in full
    message: Option<String>,
    /// Only messages to or from this name
    #[arg(long, value_name = "NAME")]
    with: Option<String>,
    /// Only messages of this thread
    #[arg(long)]
    thread: Option<String>,
    /// Only messages with this text in the body
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Mail of every project, not only this one (a session sees its own mail either way)
    #[arg(long)]
    all: bool,
    /// Show up to this many messages, the newest
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

impl Mail {
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let rules = context.limits()?;
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let kept_up = reconcile::settle_offers(&mut store, None)
            .and_then(|_| store.upkeep(&rules, baton_machine::clock::now()).map(drop));
        // The person and scripts see everybody's; a session sees what it sent and got, wherever
        // that is. So does a stranger, who may be any agent.
        let of = matches!(me.kind, Kind::Session { .. } | Kind::Stranger(_)).then_some(me.participant.id);
        if let Some(text) = &self.message {
            let id = reference::find(&store, &me, text, Reference::Readable)?;
            let found = store.message(&id)?.filter(|mail| may_see(&me, mail)).ok_or_else(|| {
                Error::new(Code::MessageNotFound, format!("no message {id}")).hint("`baton mail` lists yours")
            })?;
            out.data(&describe(&store, &found, &me)?, || in_full(*out, &found, &me))?;
            // Other mail may be damaged; this message can be read.
            out.afterwards(kept_up);
            return done();
        }
        kept_up?;
        let filter = MailFilter {
            of,
            project: (of.is_none() && !self.all).then_some(&*me.project),
            with: self.with.as_deref(),
            thread: self.thread.as_deref(),
            search: self.search.as_deref(),
            most: usize::try_from(self.limit).unwrap_or(usize::MAX),
        };
        let rows = store.history(&filter)?;
        let document: Vec<Value> =
            rows.iter().map(|row| describe(&store, row, &me)).collect::<Result<_, _>>()?;
        out.data(&Value::Array(document), || listing(*out, &rows, filter.project.is_some()))?;
        store.tidy();
        done()
    }
}

fn may_see(me: &Identity, mail: &MailRow) -> bool {
    let mine = me.participant.id;
    match me.kind {
        Kind::Session { .. } => {
            mail.sender == Some(mine) || mail.deliveries.iter().any(|delivery| delivery.participant == mine)
        }
        Kind::Person | Kind::Script => true,
        // It may be any agent, and none may read what others wrote to each other.
        Kind::Stranger(_) => false,
    }
}

/// The body as the caller may print it.
pub fn shown_body(mail: &MailRow, me: &Identity) -> String {
    // What an agent prints lands in its transcript: nothing in it may pose as a proof of delivery.
    if me.session().is_some() { frame::defuse(&mail.body) } else { mail.body.clone() }
}

fn describe(store: &Store, mail: &MailRow, me: &Identity) -> Result<Value, Error> {
    let deliveries: Vec<Value> = mail
        .deliveries
        .iter()
        .map(|delivery| json!({"to": delivery.to, "state": delivery.state.as_str(), "at": delivery.at.to_rfc3339(), "returns": delivery.returns}))
        .collect();
    Ok(json!({
        "message_id": mail.id.as_str(),
        "from": inbox::address_of(store, mail.sender, &mail.from)?,
        "from_name": mail.from,
        "sender": mail.kind,
        "project": mail.project,
        "body": shown_body(mail, me),
        "request_id": mail.ask.then(|| mail.id.request().to_string()),
        "closed_by": mail.closed_by.as_ref().map(ToString::to_string),
        "reply_to": mail.reply_to.as_ref().map(ToString::to_string),
        "thread": mail.thread,
        "sent_at": mail.sent_at.to_rfc3339(),
        "expires_at": mail.expires_at.to_rfc3339(),
        "deliveries": deliveries,
    }))
}

/// One message with the state of its deliveries.
pub fn in_full(out: Out, mail: &MailRow, me: &Identity) -> Text {
    let states: Vec<_> = mail
        .deliveries
        .iter()
        .map(|delivery| format!("{} {}", delivery.to, delivery.state.as_str()))
        .collect();
    let head = format!("{}  {} ({})  {}", mail.id, mail.from, mail.kind, mail.sent_at.to_rfc3339());
    text![
        out.tone(Tone::Bold, &head),
        "\n",
        out.tone(Tone::Dim, &format!("to {}", states.join(", "))),
        "\n\n",
        Foreign::new(shown_body(mail, me)).lines(),
        "\n"
    ]
}

fn listing(out: Out, rows: &[MailRow], of_project: bool) -> Text {
    if rows.is_empty() {
        out.say(if of_project {
            "no mail in this project yet; --all shows every project's"
        } else {
            "no mail yet"
        });
        return Text::default();
    }
    let cells: Vec<Vec<String>> = rows
        .iter()
        .flat_map(|mail| {
            mail.deliveries.iter().map(|delivery| {
                vec![
                    mail.id.to_string(),
                    mail.sent_at.to_rfc3339(),
                    mail.from.clone(),
                    delivery.to.clone(),
                    delivery.state.as_str().to_owned(),
                    if mail.ask { "ask" } else { "" }.to_owned(),
                    frame::shown(&mail.body, 60),
                ]
            })
        })
        .collect();
    table(
        &["MESSAGE", "SENT", "FROM", "TO", "STATE", "", "BODY"],
        &cells,
        &[Some(Tone::Bold), Some(Tone::Dim)],
    )
}
