//! `status`, which `baton` alone means too: who is here, what waits for the caller, what to do
//! next.
//!
//! It only looks. Without a store it makes none, and says how to begin. A mistake in the
//! configuration is shown and stops nothing.

use super::CommandContext;
use super::setup;
use crate::environment;
use crate::print::{Out, Text, Tone, done, table, text};
use baton_agents::install::connected;
use baton_agents::{ALL, Agent};
use baton_approvals::inbox::{self, Pending};
use baton_core::error::Exit;
use baton_core::{Error, name};
use baton_jobs::worker::head;
use baton_jobs::{Runtime, describe, reconcile};
use baton_machine::project;
use baton_mail::directory;
use baton_store::{JobFilter, JobRow, Jobs, Participant, Store};
use serde_json::{Value, json};

/// The longest list of jobs that is searched for those that run.
const MAX_JOBS_READ: usize = 200;
/// What is shown of a job's prompt.
const TASK_CHARS: usize = 48;

/// What there is to see.
struct Look {
    project: String,
    /// The caller's name, if it has one.
    me: Option<String>,
    sessions: Vec<Participant>,
    /// Messages that wait for the caller.
    unread: u32,
    questions: Vec<Pending>,
    jobs: Vec<JobRow>,
    /// The installed agents, and whether baton is set up in each.
    agents: Vec<(&'static dyn Agent, bool)>,
    /// A mistake in the configuration.
    mistake: Option<Error>,
}

/// A line to type, and what it does.
struct Next {
    line: String,
    what: &'static str,
}

/// Shows it.
pub fn run(context: &CommandContext, out: &Out) -> Result<Exit, Error> {
    let (runtime, mistake) = runtime(context)?;
    let look = look(context, &runtime, mistake)?;
    let next = look.next();
    out.data(&look.document(&runtime, &next), || look.shown(*out, &next))?;
    if let Some(mistake) = &look.mistake {
        out.warn(mistake);
    }
    done()
}

/// Where jobs run, with the default limits if the configuration has a mistake.
fn runtime(context: &CommandContext) -> Result<(Runtime, Option<Error>), Error> {
    let (limits, mistake) = match context.limits() {
        Ok(limits) => (limits, None),
        Err(error) => (Default::default(), Some(error)),
    };
    let program = environment::own_program()?;
    let runtime = Runtime {
        home: context.home.clone(),
        program,
        environment: environment::all(),
        limits,
        guard: crate::guard::open,
    };
    Ok((runtime, mistake))
}

fn look(context: &CommandContext, runtime: &Runtime, mistake: Option<Error>) -> Result<Look, Error> {
    let project = project::of(&context.cwd);
    let mut look = Look {
        project,
        me: None,
        sessions: Vec::new(),
        unread: 0,
        questions: Vec::new(),
        jobs: Vec::new(),
        agents: Vec::new(),
        mistake,
    };
    if Store::path(&context.home).exists() {
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        look.unread = store.participant(me.participant.id)?.map_or(0, |counted| counted.unread);
        look.me = Some(me.participant.name);
        look.sessions = directory::who(&mut store, Some(&look.project), false)?;
        look.sessions.retain(|one| one.agent != name::USER);
        look.questions = inbox::pending(runtime)?;
    }
    if let Some(mut jobs) = Jobs::open_if_any(&context.home)? {
        let rows = jobs.list(JobFilter::Project(&look.project), MAX_JOBS_READ)?;
        look.jobs = reconcile::all(runtime, &mut jobs, rows);
        look.jobs.retain(|row| !row.status.is_end());
    }
    if look.sessions.is_empty() {
        let installed = ALL.iter().filter(|agent| environment::find_program(agent.program()).is_some());
        look.agents = installed.map(|agent| (*agent, is_set_up(context, *agent))).collect();
    }
    Ok(look)
}

fn is_set_up(context: &CommandContext, agent: &dyn Agent) -> bool {
    // With a mistake in the configuration there is no plan. Setup's record says enough then.
    let is_recorded = || connected(&context.home).iter().any(|known| known.name() == agent.name());
    context.home.join("setup").is_dir()
        && setup::plan(context, agent, false, false).map_or_else(|_| is_recorded(), |plan| plan.is_empty())
}

impl Look {
    fn next(&self) -> Vec<Next> {
        let line = |line: &str, what| Next { line: line.to_owned(), what };
        let mut next = Vec::new();
        if self.mistake.is_some() {
            next.push(line("baton config --edit", "mend the mistake in your settings"));
        }
        if !self.questions.is_empty() {
            next.push(line(
                "baton approvals",
                "see the questions, then `baton approve ID` or `baton deny ID`",
            ));
        }
        if self.unread > 0 {
            next.push(line("baton inbox", "read your mail"));
        }
        if !self.jobs.is_empty() {
            next.push(line("baton job status", "see what the jobs do"));
        }
        if let Some(session) = self.sessions.first() {
            next.push(line(&format!("baton send {} 'TEXT'", session.name), "write to a session"));
            return next;
        }
        let connected: Vec<_> = self.agents.iter().filter(|(_, is_set_up)| *is_set_up).collect();
        match (connected.first(), self.agents.is_empty()) {
            (Some((agent, _)), _) => {
                next.push(line(agent.program(), "start it here; its session gets a name"))
            }
            (None, false) => {
                next.push(line(
                    "baton setup",
                    "connect the agents on your PATH; --dry-run shows what changes",
                ));
                next.push(line("baton demo", "see it work, in a temporary home"));
            }
            (None, true) => {
                next.push(line("baton demo", "see it work; no agent is on your PATH yet"));
                next.push(line("baton setup claude", "connect an agent before you install it"));
            }
        }
        next
    }

    fn document(&self, runtime: &Runtime, next: &[Next]) -> Value {
        let sessions = self.sessions.iter().map(|one| {
            json!({
                "name": one.name, "agent": one.agent, "session_id": one.native, "cwd": one.cwd,
                "state": one.state.as_str(), "state_since": one.state_since.to_rfc3339(), "unread": one.unread,
            })
        });
        json!({
            "project": self.project,
            "name": self.me,
            "unread": self.unread,
            "sessions": Value::from_iter(sessions),
            "approvals": Value::from_iter(self.questions.iter().map(inbox::describe)),
            "jobs": Value::from_iter(self.jobs.iter().map(|row| describe::job(runtime, row))),
            "next": Value::from_iter(next.iter().map(|next| json!({"command": next.line, "why": next.what}))),
            "mistake": self.mistake.as_ref().map(Error::message),
        })
    }

    fn shown(&self, out: Out, next: &[Next]) -> Text {
        let mut text = self.sessions_shown(out);
        text.push(self.waiting_shown(out));
        text.push(text![out.tone(Tone::Dim, "next"), "\n"]);
        let width = next.iter().map(|next| next.line.len()).max().unwrap_or(0);
        for Next { line, what } in next {
            let line = out.tone(Tone::Bold, &format!("{line:width$}"));
            text.push(text!["  ", line, "  ", *what, "\n"]);
        }
        text
    }

    fn sessions_shown(&self, out: Out) -> Text {
        let place = project::short(&self.project).to_owned();
        if self.sessions.is_empty() {
            return match self.agents.iter().any(|(_, is_set_up)| *is_set_up) {
                true => text!["no session is in ", place, " now\n\n"],
                false => text!["baton passes mail and work between the coding agents in your terminals\n\n"],
            };
        }
        let now = baton_machine::clock::now();
        let rows: Vec<Vec<String>> = self
            .sessions
            .iter()
            .map(|one| {
                vec![
                    one.name.clone(),
                    one.agent.clone(),
                    one.state.as_str().to_owned(),
                    now.since(one.state_since).coarse(),
                    one.unread.to_string(),
                ]
            })
            .collect();
        let head = ["NAME", "AGENT", "STATE", "SINCE", "MAIL"];
        text![out.tone(Tone::Dim, &place), "\n", table(&head, &rows, &[Some(Tone::Bold)]), "\n"]
    }

    /// What waits for the caller. Nothing is said of what is empty.
    fn waiting_shown(&self, out: Out) -> Text {
        let mut text = Text::default();
        for question in &self.questions {
            let id = out.tone(Tone::Bold, &question.id());
            text.push(text![
                "  ",
                id,
                format_args!("  {} asks: ", question.who()),
                question.line().text,
                "\n"
            ]);
        }
        for job in &self.jobs {
            let id = out.tone(Tone::Bold, job.id.as_str());
            let took = describe::elapsed(job).coarse();
            let task = head(&job.prompt, TASK_CHARS);
            text.push(text!["  ", id, format_args!("  {} {} {took}: ", job.agent, job.status), task, "\n"]);
        }
        match self.unread {
            0 => {}
            1 => text.push("  1 message waits for you\n"),
            many => text.push(text![format_args!("  {many} messages wait for you"), "\n"]),
        }
        if text.width() == 0 {
            return text;
        }
        text![out.tone(Tone::Dim, "waiting"), "\n", text, "\n"]
    }
}
