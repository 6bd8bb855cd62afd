//! `who`, `whoami`, `name`, `tag`.

use super::CommandContext;
use crate::print::{Out, Text, Tone, done, table, text};
use crate::{environment, guard};
use baton_agents::activity::Activity;
use baton_core::error::Exit;
use baton_core::frame::{defuse, shown};
use baton_core::id::ParticipantId;
use baton_core::rights;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake::{Outcome, words};
use baton_core::{Code, Error, name};
use baton_machine::project;
use baton_mail::identity::Kind;
use baton_mail::wake::{self, Forecast, WakeRequest};
use baton_mail::{caller, directory, fate};
use baton_store::{Participant, Store, WakeRow};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::Path;

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

/// A participant, and what is known about it.
struct Row {
    who: Participant,
    forecast: Forecast,
    /// How it can be woken, in words.
    wake: String,
    last: Option<WakeRow>,
    branch: Option<String>,
    activity: Activity,
}

impl Row {
    fn find(store: &Store, who: Participant, request: &WakeRequest<'_>) -> Result<Self, Error> {
        let forecast = wake::forecast(store, &who, request)?;
        let cwd = who.cwd.as_deref().filter(|_| who.state != State::Gone);
        Ok(Self {
            wake: fate::of_wake(store, &who, &forecast)?,
            last: store.last_wake(who.id)?,
            branch: cwd.and_then(|cwd| project::branch(Path::new(cwd))),
            activity: directory::activity(&who),
            who,
            forecast,
        })
    }
}

impl Who {
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let mut store = context.store()?;
        let project = project::of(&context.cwd);
        let scope = (!self.all).then_some(project.as_str());
        let everybody = directory::who(&mut store, scope, self.all)?;
        let rules = context.limits()?;
        let request =
            WakeRequest { home: &context.home, rules: &rules, wanted: true, by_hand: false, follower: None };
        let rows: Vec<Row> =
            everybody.into_iter().map(|who| Row::find(&store, who, &request)).collect::<Result<_, _>>()?;
        // To find out who calls takes longer than all the rest.
        let me = match context.is_acting() {
            true => Some(context.identity(&mut store)?.participant.id),
            false => None,
        };
        let document = rows.iter().map(describe).collect();
        out.data(&Value::Array(document), || self.shown(*out, context, &rows, me))?;
        done()
    }

    fn shown(
        &self,
        out: Out,
        context: &CommandContext,
        everybody: &[Row],
        me: Option<ParticipantId>,
    ) -> Text {
        // Commands of the person mention the person's own mail.
        let sessions: Vec<&Row> = everybody.iter().filter(|row| row.who.agent != name::USER).collect();
        if sessions.is_empty() {
            out.say(nobody_here(context));
            return Text::default();
        }
        let now = baton_machine::clock::now();
        let mut columns = vec![
            column("NAME", &sessions, |row| match me {
                Some(me) if me == row.who.id => format!("{} (you)", row.who.name),
                _ => row.who.name.clone(),
            }),
            column("AGENT", &sessions, |row| row.who.agent.clone()),
            column("STATE", &sessions, |row| row.who.state.as_str().to_owned()),
            column("SINCE", &sessions, |row| now.since(row.who.state_since).coarse()),
            column("MAIL", &sessions, |row| row.who.unread.to_string()),
            column("WAKE", &sessions, |row| wake_in_words(row, now)),
            column("FOLDER", &sessions, |row| {
                row.who.cwd.as_deref().map(|cwd| project::place(&row.who.project, cwd)).unwrap_or_default()
            }),
            column("BRANCH", &sessions, |row| row.branch.clone().unwrap_or_default()),
            column("MODEL", &sessions, |row| row.activity.model.clone().unwrap_or_default()),
            column("CONTEXT", &sessions, |row| context_use(&row.activity)),
            column("TAGS", &sessions, |row| {
                row.who.tags.iter().map(|tag| format!("#{tag}")).collect::<Vec<_>>().join(" ")
            }),
            column("PROJECT", &sessions, |row| match self.all {
                true => project::short(&row.who.project).to_owned(),
                false => String::new(),
            }),
            column("TASK", &sessions, |row| {
                row.activity.task.as_deref().map(|task| shown(task, TASK_CHARS)).unwrap_or_default()
            }),
        ];
        // What is known of no session takes no room.
        columns.retain(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()));
        let head: Vec<&'static str> = columns.iter().map(|(head, _)| *head).collect();
        let rows: Vec<Vec<String>> = (0..sessions.len())
            .map(|row| columns.iter().map(|(_, cells)| cells[row].clone()).collect())
            .collect();
        table(&head, &rows, &[Some(Tone::Bold)])
    }
}

/// How much of a task is in the list.
const TASK_CHARS: usize = 40;

type Column = (&'static str, Vec<String>);

fn column(head: &'static str, rows: &[&Row], cell: impl Fn(&Row) -> String) -> Column {
    (head, rows.iter().map(|row| cell(row)).collect())
}

/// What to do where no session is: after setup the agents have to be started.
fn nobody_here(context: &CommandContext) -> String {
    let agents = baton_agents::install::connected(&context.home);
    if agents.is_empty() {
        return "no session is here yet; `baton setup` connects your agents".to_owned();
    }
    let programs: Vec<_> = agents.iter().map(|agent| format!("`{}`", agent.program())).collect();
    format!(
        "no session is here yet; start {} in this project. A session that runs already appears with its next prompt",
        programs.join(" or ")
    )
}

/// How the session can be woken, or why not; and that the last wake failed.
fn wake_in_words(row: &Row, now: Moment) -> String {
    let failed = row.last.as_ref().filter(|last| {
        matches!(last.outcome, Some(outcome) if !outcome.is_under_way() && outcome != Outcome::Confirmed)
    });
    match failed {
        Some(last) => {
            let (became, ago) = (words::became(last.outcome), now.since(last.at).coarse());
            format!("{} (the last wake {became} {ago} ago)", row.wake)
        }
        None => row.wake.clone(),
    }
}

/// `110k`, or `110k of 258k` if the model's limit is known.
fn context_use(activity: &Activity) -> String {
    let short = |tokens: u64| match tokens {
        0..1000 => tokens.to_string(),
        _ => format!("{}k", tokens / 1000),
    };
    match (activity.context_used, activity.context_window) {
        (Some(used), Some(window)) => format!("{} of {}", short(used), short(window)),
        (Some(used), None) => short(used),
        (None, _) => String::new(),
    }
}

/// A participant as JSON.
fn describe(row: &Row) -> Value {
    let Row { who, forecast, wake, last, branch, activity } = row;
    json!({
        "name": who.name,
        "session_id": who.native,
        "agent": who.agent,
        "cwd": who.cwd,
        "branch": branch,
        "project": who.project,
        "state": who.state.as_str(),
        "state_since": who.state_since.to_rfc3339(),
        "unread": who.unread,
        "pid": who.process.map(|process| process.pid).filter(|_| who.state != State::Gone),
        "machine": Value::Null,
        "wake": forecast.outcome.as_str(),
        "wake_meaning": wake,
        "wake_routes": forecast.routes.iter().map(|route| route.as_str()).collect::<Vec<_>>(),
        "last_wake": last.as_ref().map(|last| json!({
            "at": last.at.to_rfc3339(),
            "route": last.route.as_str(),
            "outcome": last.outcome.map(Outcome::as_str),
            "detail": last.detail,
        })),
        "tags": who.tags,
        // What an agent prints lands in its transcript, and must not pose as a proof there.
        "task": activity.task.as_deref().map(defuse),
        "model": activity.model.as_deref().map(defuse),
        "context_used": activity.context_used,
        "context_window": activity.context_window,
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
