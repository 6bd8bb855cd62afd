//! `who`, `whoami`, `name`, `tag`.

use super::CommandContext;
use crate::print::{Out, Text, Tone, done, table, text};
use crate::{environment, guard};
use baton_core::error::Exit;
use baton_core::id::ParticipantId;
use baton_core::rights;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake::Outcome;
use baton_core::{Code, Error};
use baton_machine::project;
use baton_mail::identity::Kind;
use baton_mail::wake::{self, Forecast, WakeRequest};
use baton_mail::{caller, directory};
use baton_store::{Participant, WakeRow};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

// `baton who`
#[derive(Debug, Args)]
pub struct Who {
    /// Sessions of every project, and those that have ended
    #[arg(long)]
    all: bool,
}

// `baton name`
#[derive(Debug, Args)]
pub struct Name {
    /// The new name
    new: String,
}

// `baton tag`
#[derive(Debug, Args)]
pub struct Tag {
    #[command(subcommand)]
    action: TagAction,
}

#[derive(Debug, Subcommand)]
enum TagAction {
    /// Add a tag
    Add {
        /// The tag, without #
        tag: String,
    },
    /// Remove a tag
    Rm {
        /// The tag, without #
        tag: String,
    },
}

/// A participant, what a wake would come to, and what the last one did.
type Row = (Participant, Forecast, Option<WakeRow>);

impl Who {
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let mut store = context.store()?;
        let project = project::of(&context.cwd);
        let scope = (!self.all).then_some(project.as_str());
        let everybody = directory::who(&mut store, scope, self.all)?;
        let rules = context.limits()?;
        let request =
            WakeRequest { home: &context.home, rules: &rules, wanted: true, by_hand: false, follower: None };
        let mut rows = Vec::new();
        for participant in everybody {
            let forecast = wake::forecast(&store, &participant, &request)?;
            let last = store.last_wake(participant.id)?;
            rows.push((participant, forecast, last));
        }
        let document =
            rows.iter().map(|(who, forecast, last)| describe(who, forecast, last.as_ref())).collect();
        // To find out who calls takes longer than all the rest.
        let me = match context.is_acting() {
            true => Some(context.identity(&mut store)?.participant.id),
            false => None,
        };
        out.data(&Value::Array(document), || self.shown(*out, &rows, me))?;
        done()
    }

    fn shown(&self, out: Out, everybody: &[Row], me: Option<ParticipantId>) -> Text {
        if everybody.is_empty() {
            out.say("no session is here yet; `baton setup` connects your agents");
            return Text::default();
        }
        let now = baton_machine::clock::now();
        let rows: Vec<Vec<String>> = everybody
            .iter()
            .map(|(participant, forecast, last)| {
                let mut row = vec![
                    match me {
                        Some(me) if me == participant.id => format!("{} (you)", participant.name),
                        _ => participant.name.clone(),
                    },
                    participant.agent.clone(),
                    participant.state.as_str().to_owned(),
                    now.since(participant.state_since).coarse(),
                    participant.unread.to_string(),
                    woken(forecast, last.as_ref(), now),
                    participant.tags.iter().map(|tag| format!("#{tag}")).collect::<Vec<_>>().join(" "),
                ];
                if self.all {
                    row.push(project::short(&participant.project).to_owned());
                }
                row
            })
            .collect();
        let mut head = vec!["NAME", "AGENT", "STATE", "SINCE", "MAIL", "WAKE", "TAGS"];
        if self.all {
            head.push("PROJECT");
        }
        table(&head, &rows, &[Some(Tone::Bold)])
    }
}

/// How the session can be woken, or why not, and what the last wake came to.
fn woken(forecast: &Forecast, last: Option<&WakeRow>, now: Moment) -> String {
    let now_or_why = match forecast.routes.first().filter(|_| forecast.outcome.is_under_way()) {
        Some(route) => route.as_str(),
        None => forecast.outcome.as_str(),
    };
    match last {
        Some(last) => {
            let became = last.outcome.map_or("under way", Outcome::as_str);
            format!("{now_or_why} ({became} {} ago)", now.since(last.at).coarse())
        }
        None => now_or_why.to_owned(),
    }
}

/// A participant as JSON.
fn describe(participant: &Participant, forecast: &Forecast, last: Option<&WakeRow>) -> Value {
    json!({
        "name": participant.name,
        "session_id": participant.native,
        "agent": participant.agent,
        "cwd": participant.cwd,
        "project": participant.project,
        "state": participant.state.as_str(),
        "state_since": participant.state_since.to_rfc3339(),
        "unread": participant.unread,
        "pid": participant.process.map(|process| process.pid).filter(|_| participant.state != State::Gone),
        "machine": Value::Null,
        "wake": forecast.outcome.as_str(),
        "wake_routes": forecast.routes.iter().map(|route| route.as_str()).collect::<Vec<_>>(),
        "last_wake": last.map(|last| json!({
            "at": last.at.to_rfc3339(),
            "route": last.route.as_str(),
            "outcome": last.outcome.map(Outcome::as_str),
            "detail": last.detail,
        })),
        "tags": participant.tags,
    })
}

/// Shows who calls.
pub fn whoami(context: &CommandContext, out: &Out) -> Result<Exit, Error> {
    let mut store = context.store()?;
    let mut me = context.identity(&mut store)?;
    if let Some(counted) = store.participant(me.participant.id)? {
        me.participant = counted;
    }
    let kind = match me.kind {
        Kind::Session { .. } => "session",
        Kind::Person => "person",
        Kind::Script => "script",
        Kind::Stranger(_) => "stranger",
    };
    let document = json!({
        "name": me.participant.name,
        "kind": kind,
        "agent": me.participant.agent,
        "session_id": me.participant.native,
        "project": me.project,
        "unread": me.participant.unread,
        "tags": me.participant.tags,
    });
    out.data(&document, || {
        text![
            out.tone(Tone::Bold, &me.participant.name),
            format_args!(" ({kind}, {}) in ", me.participant.agent),
            me.project.to_string()
        ]
    })?;
    done()
}

fn only_sessions(me: &baton_mail::identity::Identity) -> Result<(), Error> {
    if me.participant.is_outsider() {
        return Err(Error::new(
            Code::NotASession,
            format!("{} keeps its name and carries no tags", me.participant.name),
        )
        .hint("run this in an agent's shell, or as a person with --as NAME"));
    }
    Ok(())
}

/// Whether a name is a reviewer's: an agent must not become one by taking it.
fn is_a_reviewers(context: &CommandContext, name: &str) -> bool {
    let policy = guard::open(&context.home).approvals().unwrap_or_default();
    policy.reviewers.iter().any(|(_, names)| names.iter().any(|known| known == name))
}

impl Name {
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        only_sessions(&me)?;
        if is_a_reviewers(context, &self.new) {
            rights::may(caller::of(&me.kind, &environment::get), &rights::REVIEWERS_NAME)?;
        }
        store.rename(me.participant.id, &self.new, baton_machine::clock::now())?;
        out.data(&json!({"name": self.new}), || text!["you are ", out.tone(Tone::Bold, &self.new), " now"])?;
        done()
    }
}

impl Tag {
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        only_sessions(&me)?;
        match &self.action {
            TagAction::Add { tag } => store.add_tag(me.participant.id, tag)?,
            TagAction::Rm { tag } => {
                if !store.remove_tag(me.participant.id, tag)? {
                    return Err(Error::new(
                        Code::BadName,
                        format!("you don't carry #{}", baton_core::frame::shown(tag, 40)),
                    )
                    .hint("`baton whoami --json` lists your tags"));
                }
            }
        }
        let tags = store.participant(me.participant.id)?.map(|found| found.tags).unwrap_or_default();
        out.data(&json!({"tags": tags}), || {
            tags.iter().map(|tag| format!("#{tag}")).collect::<Vec<_>>().join(" ")
        })?;
        done()
    }
}
