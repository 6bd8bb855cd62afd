//! One line of the log, from the trail, a job or the guard.

use crate::print::{Out, Text, Tone, text};
use baton_core::frame::{defuse, shown};
use baton_core::id::ParticipantId;
use baton_core::mail::Delivery;
use baton_core::time::Moment;
use baton_core::wake::{Outcome, words};
use baton_store::{JobRow, Store, TrailRow};
use serde_json::{Value, json};
use std::collections::HashMap;

/// How much of a message or a task is on a line.
const HEAD_CHARS: usize = 60;

/// Who reads the log.
#[derive(Clone, Copy, Debug)]
pub enum Reader {
    /// It may read everything.
    Anyone,
    /// It may read the texts of its own mail and jobs.
    Only(ParticipantId),
}

impl Reader {
    fn may_read(self, row: &TrailRow) -> bool {
        match self {
            Self::Anyone => true,
            Self::Only(me) => row.sender == Some(me) || row.of == Some(me),
        }
    }

    pub fn may_see_job(self, job: &JobRow) -> bool {
        match self {
            Self::Anyone => true,
            Self::Only(me) => job.asker == me,
        }
    }
}

/// What entries have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Mail,
    Wake,
    Session,
    Question,
    Job,
    Guard,
    Other,
}

impl Group {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Wake => "wake",
            Self::Session => "session",
            Self::Question => "question",
            Self::Job => "job",
            Self::Guard => "guard",
            Self::Other => "other",
        }
    }
}

/// What was reported of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Start,
    End,
}

/// One thing that happened.
#[derive(Debug)]
pub struct Entry {
    pub at: Moment,
    pub kind: String,
    /// The participants that it is about.
    pub names: Vec<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    Trail(Box<TrailRow>),
    Job { id: String, asker: String, agent: String, words: String },
    Guard { who: String, tool: String, rule: String, decision: String },
}

impl Entry {
    pub fn of_trail(mut row: TrailRow, reader: Reader) -> Self {
        row.head = match reader {
            Reader::Anyone => row.head,
            // What an agent prints lands in its transcript: nothing in it may pose as a proof.
            Reader::Only(_) if reader.may_read(&row) => row.head.as_deref().map(defuse),
            Reader::Only(_) => None,
        };
        let names = [&row.participant, &row.from].into_iter().flatten().cloned().collect();
        Self { at: row.at, kind: row.kind.clone(), names, what: What::Trail(Box::new(row)) }
    }

    /// The start and the end of a job, as far as they were not reported before.
    pub fn of_job(job: &JobRow, known: &mut HashMap<String, Seen>) -> Vec<Self> {
        let id = job.id.to_string();
        let before = known.get(&id).copied();
        let entry = |kind: &str, at: Moment, words: String| Self {
            at,
            kind: kind.to_owned(),
            names: vec![job.asker_name.clone()],
            what: What::Job {
                id: id.clone(),
                asker: job.asker_name.clone(),
                agent: job.agent.clone(),
                words,
            },
        };
        let mut entries = Vec::new();
        if before.is_none() {
            entries.push(entry("job-start", job.created_at, quoted(&job.prompt)));
        }
        if let Some(ended) = job.ended_at.filter(|_| before != Some(Seen::End)) {
            let took = job.elapsed.map(|took| format!(" after {}", took.coarse())).unwrap_or_default();
            let why =
                job.fault.as_ref().map(|fault| format!(": {}", shown(fault.error.message(), HEAD_CHARS)));
            let words = format!("{}{took}{}", job.status.as_str(), why.unwrap_or_default());
            entries.push(entry("job-end", ended, words));
        }
        known.insert(id.clone(), if job.ended_at.is_some() { Seen::End } else { Seen::Start });
        entries
    }

    /// A line of the guard's log; `None` if it is damaged.
    pub fn of_guard(line: &Value, store: &Store) -> Option<Self> {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let session = line["session"].as_str();
        let named = session.and_then(|session| store.participant_of(line["agent"].as_str(), session).ok()?);
        let who = named.map_or_else(|| text("agent"), |(participant, _)| participant.name);
        Some(Self {
            at: Moment::parse(line["at"].as_str()?)?,
            kind: format!("guard-{}", text("decision")),
            names: vec![who.clone()],
            what: What::Guard { who, tool: text("tool"), rule: text("rule"), decision: text("decision") },
        })
    }

    pub fn group(&self) -> Group {
        match &self.what {
            What::Job { .. } => Group::Job,
            What::Guard { .. } => Group::Guard,
            What::Trail(row) => match row.kind.as_str() {
                "wake" | "dnd" => Group::Wake,
                "renamed" => Group::Session,
                kind if kind.starts_with("session") => Group::Session,
                kind if kind.starts_with("approval") => Group::Question,
                _ if row.message.is_some() => Group::Mail,
                _ => Group::Other,
            },
        }
    }

    /// A later state of a message, for a reader who saw it sent.
    pub fn is_new_of_mail(&self) -> bool {
        self.kind == "seen"
    }

    pub fn document(&self) -> Value {
        match &self.what {
            What::Trail(row) => json!({
                "id": row.id, "at": row.at.to_rfc3339(), "kind": row.kind, "participant": row.participant,
                "message_id": row.message, "detail": row.detail, "from": row.from, "head": row.head,
            }),
            What::Job { id, asker, agent, words } => json!({
                "id": Value::Null, "at": self.at.to_rfc3339(), "kind": self.kind, "participant": asker,
                "message_id": Value::Null, "detail": words, "job_id": id, "agent": agent,
            }),
            What::Guard { who, tool, rule, .. } => json!({
                "id": Value::Null, "at": self.at.to_rfc3339(), "kind": self.kind, "participant": who,
                "message_id": Value::Null, "detail": rule, "tool": tool,
            }),
        }
    }

    /// The line for people, without its time.
    pub fn line(&self, out: Out) -> Text {
        match &self.what {
            What::Trail(row) => trail_line(row, self.group(), out),
            What::Job { id, asker, agent, words } => {
                let verb = if self.kind == "job-start" { "asks" } else { "job of" };
                text![
                    kind(out, Group::Job),
                    out.tone(Tone::Bold, asker),
                    format_args!(" {verb} "),
                    out.tone(Tone::Bold, agent),
                    format_args!("  {id}  "),
                    words
                ]
            }
            What::Guard { who, tool, rule, decision } => {
                let tone = if decision == "deny" { Tone::Bad } else { Tone::Warn };
                text![
                    kind(out, Group::Guard),
                    out.tone(Tone::Bold, who),
                    format_args!("  {tool}  "),
                    out.tone(tone, decision),
                    format_args!("  {rule}")
                ]
            }
        }
    }
}

fn kind(out: Out, group: Group) -> Text {
    out.tone(Tone::Dim, &format!("{:8}  ", group.as_str()))
}

fn trail_line(row: &TrailRow, group: Group, out: Out) -> Text {
    let name = row.participant.as_deref().unwrap_or("baton");
    let detail = row.detail.as_deref().map(|detail| shown(detail, 100)).unwrap_or_default();
    match group {
        Group::Mail => {
            let from = row.from.as_deref().unwrap_or("baton");
            let head = match (&row.head, &row.message) {
                (Some(head), _) => quoted(head),
                (None, Some(message)) => message.clone(),
                (None, None) => String::new(),
            };
            text![
                kind(out, group),
                out.tone(Tone::Bold, from),
                " → ",
                out.tone(Tone::Bold, name),
                format_args!("  {head}  "),
                mail_state(row, out)
            ]
        }
        Group::Wake => {
            let words = match Outcome::parse(&detail) {
                Some(outcome @ (Outcome::Confirmed | Outcome::Unconfirmed)) => {
                    format!("wake {}", words::became(Some(outcome)))
                }
                Some(outcome) => format!("wake: {}", outcome.meaning()),
                None => format!("{} {detail}", row.kind),
            };
            text![kind(out, group), out.tone(Tone::Bold, name), "  ", words]
        }
        _ => text![kind(out, group), out.tone(Tone::Bold, name), format_args!("  {}  ", row.kind), detail],
    }
}

/// What became of the message: what this line says, or for its first line what is so now.
fn mail_state(row: &TrailRow, out: Out) -> Text {
    let now = match row.kind.as_str() {
        "sent" | "noted" => row.state.map(Delivery::as_str).unwrap_or("gone"),
        kind => kind,
    };
    match now {
        "seen" => out.tone(Tone::Good, "✓ seen"),
        "queued" => out.tone(Tone::Dim, "waits"),
        "offered" => out.tone(Tone::Dim, "handed over"),
        other => out.tone(Tone::Warn, other),
    }
}

fn quoted(text: &str) -> String {
    format!("“{}”", shown(text.trim(), HEAD_CHARS))
}
