//! `mail`: one message in full, or the history with the state of every delivery.

use super::CommandContext;
use crate::print::{Out, Text, Tone, done, table, text};
use baton_core::error::Exit;
use baton_core::foreign::Foreign;
use baton_core::frame;
use baton_core::mail::Delivery;
use baton_core::{Code, Error};
use baton_machine::clock;
use baton_mail::identity::{Identity, Kind};
use baton_mail::reference::{self, Reference};
use baton_mail::{inbox, reconcile};
use baton_store::{DeliveryRow, MailFilter, MailRow, Store};
use clap::Args;
use serde_json::{Value, json};
use std::collections::HashMap;

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

/// How many replies are shown below a message.
const MAX_REPLIES: usize = 100;

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
            let mut replies = store.replies(found.row, MAX_REPLIES)?;
            replies.retain(|reply| may_see(&me, reply));
            let mut document = describe(&store, &found, &me)?;
            let described: Vec<Value> =
                replies.iter().map(|reply| describe(&store, reply, &me)).collect::<Result<_, _>>()?;
            document["replies"] = Value::Array(described);
            out.data(&document, || {
                let replies = replies.iter().map(|reply| text!["\n↳ ", in_full(*out, reply, &me)]);
                text![in_full(*out, &found, &me), Text::join(replies, "")]
            })?;
            // Other mail may be damaged; this message can be read.
            out.afterwards(kept_up);
            return done();
        }
        kept_up?;
        let with = self.with.as_deref().map(str::to_ascii_lowercase);
        let filter = MailFilter {
            of,
            project: (of.is_none() && !self.all).then_some(&*me.project),
            with: with.as_deref(),
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
    let (sent, now) = (clock::local(mail.sent_at), clock::local(clock::now()));
    let head = format!("{}  {} ({})  {}", mail.id, mail.from, mail.kind, sent.short(&now));
    let (to, state) = deliveries(mail);
    let answered = match answered(mail) {
        "" => String::new(),
        asked => format!("  ask: {asked}"),
    };
    text![
        out.tone(Tone::Bold, &head),
        "\n",
        out.tone(Tone::Dim, &format!("to {to}  {state}{answered}")),
        "\n\n",
        Foreign::new(shown_body(mail, me)).lines(),
        "\n"
    ]
}

/// The recipients, and the state that they share. If they differ, each state is beside its name.
fn deliveries(mail: &MailRow) -> (String, String) {
    let each = |shown: &dyn Fn(&DeliveryRow) -> String| -> String {
        mail.deliveries.iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    let names = each(&|delivery| delivery.to.clone());
    match mail.deliveries.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other.state == first.state) => {
            (names, first.state.as_str().to_owned())
        }
        _ => (names, each(&|delivery| format!("{} {}", delivery.to, delivery.state.as_str()))),
    }
}

/// Whether an ask has its answer; empty for other mail.
fn answered(mail: &MailRow) -> &'static str {
    let has_ended = || mail.deliveries.iter().all(|to| to.state.is_end() && to.state != Delivery::Seen);
    match (mail.ask, &mail.closed_by) {
        (false, _) => "",
        (true, Some(_)) => "answered",
        (true, None) if has_ended() => "ended",
        (true, None) => "open",
    }
}

/// The messages as conversations: each one below the first of its thread, which has kept its place
/// in time.
fn by_thread(rows: &[MailRow]) -> Vec<(&MailRow, usize)> {
    let thread = |mail: &MailRow| mail.thread.clone().unwrap_or_else(|| mail.id.to_string());
    let mut threads: Vec<(String, Vec<&MailRow>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for mail in rows {
        let at = *known.entry(thread(mail)).or_insert_with(|| {
            threads.push((thread(mail), Vec::new()));
            threads.len() - 1
        });
        threads[at].1.push(mail);
    }
    threads
        .into_iter()
        .flat_map(|(_, mails)| mails.into_iter().enumerate().map(|(place, mail)| (mail, place)))
        .collect()
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
    let now = clock::local(clock::now());
    let cells: Vec<Vec<String>> = by_thread(rows)
        .into_iter()
        .map(|(mail, place)| {
            let (to, state) = deliveries(mail);
            let below = if place > 0 { "↳ " } else { "" };
            vec![
                format!("{below}{}", mail.id),
                clock::local(mail.sent_at).short(&now),
                mail.from.clone(),
                to,
                state,
                answered(mail).to_owned(),
                frame::shown(&mail.body, 60),
            ]
        })
        .collect();
    table(
        &["MESSAGE", "SENT", "FROM", "TO", "STATE", "ASK", "BODY"],
        &cells,
        &[Some(Tone::Bold), Some(Tone::Dim)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::id::{MessageId, MessageRow};
    use baton_core::time::Moment;

    fn mail(number: u8, thread: Option<&MailRow>) -> MailRow {
        MailRow {
            row: MessageRow(i64::from(number)),
            id: MessageId::from_random([number; 8]),
            sender: None,
            from: String::new(),
            kind: String::new(),
            project: String::new(),
            body: String::new(),
            thread: thread.map(|first| first.id.to_string()),
            reply_to: None,
            ask: false,
            closed_by: None,
            sent_at: Moment(0),
            expires_at: Moment(0),
            deliveries: Vec::new(),
        }
    }

    #[test]
    fn a_conversation_stays_together() {
        let (first, other) = (mail(1, None), mail(2, None));
        let (reply, late) = (mail(3, Some(&first)), mail(4, Some(&mail(9, None))));
        let again = mail(5, Some(&first));
        let rows = [first, other, reply, late, again];
        let shown: Vec<(i64, usize)> =
            by_thread(&rows).into_iter().map(|(mail, place)| (mail.row.0, place)).collect();
        assert_eq!(shown, [(1, 0), (3, 1), (5, 2), (2, 0), (4, 0)]);
    }
}
