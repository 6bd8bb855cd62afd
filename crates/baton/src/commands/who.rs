//! `who`, `whoami`, `name`, `tag`.

use super::Session;
use crate::gate;
use crate::print::{Out, Tone, done, table};
use baton_core::error::Exit;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake::Outcome;
use baton_core::{Code, Error};
use baton_mail::identity::Kind;
use baton_mail::wake::{self, Outlook, Wish};
use baton_mail::{directory, project};
use baton_store::{Participant, WakeRow};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

// `baton who`
#[derive(Debug, Args)]
pub struct Who {
    /// Every project, and those that are gone
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
    /// Put it on
    Add {
        /// The tag, without #
        tag: String,
    },
    /// Take it off
    Rm {
        /// The tag, without #
        tag: String,
    },
}

/// A participant, what a wake would come to, and what the last one did.
type Row = (Participant, Outlook, Option<WakeRow>);

impl Who {
    /// Shows who is there.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let mut store = session.store()?;
        let project = project::of(&session.cwd);
        let scope = (!self.all).then_some(project.as_str());
        let everybody = directory::who(&mut store, scope, self.all)?;
        let rules = session.limits()?;
        let wish = Wish { home: &session.home, rules: &rules, wanted: true, by_hand: false };
        let mut rows = Vec::new();
        for participant in everybody {
            let outlook = wake::outlook(&store, &participant, &wish)?;
            let last = store.last_wake(participant.id)?;
            rows.push((participant, outlook, last));
        }
        let document =
            rows.iter().map(|(who, outlook, last)| describe(who, outlook, last.as_ref())).collect();
        out.data(&Value::Array(document), || self.shown(*out, &rows))?;
        done()
    }

    fn shown(&self, out: Out, everybody: &[Row]) -> String {
        if everybody.is_empty() {
            out.say("nobody is here yet; `baton setup` connects your agents");
            return String::new();
        }
        let now = baton_mail::now();
        let rows: Vec<Vec<String>> = everybody
            .iter()
            .map(|(participant, outlook, last)| {
                let mut row = vec![
                    participant.name.clone(),
                    participant.agent.clone(),
                    participant.state.as_str().to_owned(),
                    now.since(participant.state_since).coarse(),
                    participant.unread.to_string(),
                    woken(outlook, last.as_ref(), now),
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
        table(out, &head, &rows, &[Some(Tone::Bold)])
    }
}

/// How the session can be woken, or why not, and what the last wake came to.
fn woken(outlook: &Outlook, last: Option<&WakeRow>, now: Moment) -> String {
    let now_or_why = match outlook.routes.first().filter(|_| outlook.outcome.is_under_way()) {
        Some(route) => route.as_str(),
        None => outlook.outcome.as_str(),
    };
    match last {
        Some(last) => {
            let became = last.outcome.map_or("under way", Outcome::as_str);
            format!("{now_or_why} ({became} {} ago)", now.since(last.at).coarse())
        }
        None => now_or_why.to_owned(),
    }
}

/// A participant as JSON, in the shape of cli.md.
fn describe(participant: &Participant, outlook: &Outlook, last: Option<&WakeRow>) -> Value {
    json!({
        "name": participant.name,
        "session_id": participant.native,
        "agent": participant.agent,
        "cwd": participant.cwd,
        "project": participant.project,
        "state": participant.state.as_str(),
        "state_since": participant.state_since.to_rfc3339(),
        "unread": participant.unread,
        "pid": participant.process.map(|(pid, _)| pid).filter(|_| participant.state != State::Gone),
        "machine": Value::Null,
        "wake": outlook.outcome.as_str(),
        "wake_routes": outlook.routes.iter().map(|route| route.as_str()).collect::<Vec<_>>(),
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
pub fn whoami(session: &Session, out: &Out) -> Result<Exit, Error> {
    let mut store = session.store()?;
    let mut me = session.identity(&mut store)?;
    if let Some(counted) = store.participant(me.participant.id)? {
        me.participant = counted;
    }
    let kind = match me.kind {
        Kind::Session { .. } => "session",
        Kind::Person => "person",
        Kind::Script => "script",
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
        format!(
            "{} ({kind}, {}) in {}",
            out.tone(Tone::Bold, &me.participant.name),
            me.participant.agent,
            me.project
        )
    })?;
    done()
}

fn only_sessions(me: &baton_mail::identity::Identity) -> Result<(), Error> {
    if me.participant.project.is_empty() {
        return Err(Error::new(
            Code::NotASession,
            format!("{} keeps its name and carries no tags", me.participant.name),
        )
        .hint("run this in an agent's shell, or as a person with --as NAME"));
    }
    Ok(())
}

/// An agent must not become a reviewer by taking its name.
fn not_a_reviewers(session: &Session, name: &str) -> Result<(), Error> {
    let policy = gate::open(&session.home).approvals().unwrap_or_default();
    if policy.reviewers.iter().any(|(_, names)| names.iter().any(|known| known == name)) {
        return Err(Error::new(
            Code::NotAPerson,
            "that is the name of a reviewer, which only the person gives",
        )
        .hint("choose another name"));
    }
    Ok(())
}

impl Name {
    /// Renames the caller.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let mut store = session.store()?;
        let me = session.identity(&mut store)?;
        only_sessions(&me)?;
        if matches!(me.kind, Kind::Session { .. }) {
            not_a_reviewers(session, &self.new)?;
        }
        store.rename(me.participant.id, &self.new, baton_mail::now())?;
        out.data(&json!({"name": self.new}), || format!("you are {} now", out.tone(Tone::Bold, &self.new)))?;
        done()
    }
}

impl Tag {
    /// Tags the caller.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let mut store = session.store()?;
        let me = session.identity(&mut store)?;
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
