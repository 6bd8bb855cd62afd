//! `who`, `whoami`, `name`, `tag`.

use super::Session;
use crate::print::{Out, Tone, done, table};
use baton_core::error::Exit;
use baton_core::session::State;
use baton_core::{Code, Error};
use baton_mail::identity::Kind;
use baton_mail::{directory, post, project};
use baton_store::Participant;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::Path;

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

impl Who {
    /// Shows who is there.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let mut store = session.store()?;
        let project = project::of(&session.cwd);
        let scope = (!self.all).then_some(project.as_str());
        let everybody = directory::who(&mut store, scope, self.all)?;
        let document: Vec<Value> = everybody.iter().map(|one| describe(&session.home, one)).collect();
        out.data(&Value::Array(document), || self.shown(*out, &everybody))?;
        done()
    }

    fn shown(&self, out: Out, everybody: &[Participant]) -> String {
        if everybody.is_empty() {
            out.say("nobody is here yet; `baton setup` connects your agents");
            return String::new();
        }
        let now = baton_mail::now();
        let rows: Vec<Vec<String>> = everybody
            .iter()
            .map(|participant| {
                let mut row = vec![
                    participant.name.clone(),
                    participant.agent.clone(),
                    participant.state.as_str().to_owned(),
                    now.since(participant.state_since).coarse(),
                    participant.unread.to_string(),
                    participant.tags.iter().map(|tag| format!("#{tag}")).collect::<Vec<_>>().join(" "),
                ];
                if self.all {
                    row.push(project::short(&participant.project).to_owned());
                }
                row
            })
            .collect();
        let mut head = vec!["NAME", "AGENT", "STATE", "SINCE", "MAIL", "TAGS"];
        if self.all {
            head.push("PROJECT");
        }
        table(out, &head, &rows, &[Some(Tone::Bold)])
    }
}

/// A participant as JSON, in the shape of cli.md.
pub fn describe(home: &Path, participant: &Participant) -> Value {
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
        "wake": post::wake_outcome(home, true, participant),
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

impl Name {
    /// Renames the caller.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let mut store = session.store()?;
        let me = session.identity(&mut store)?;
        only_sessions(&me)?;
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
