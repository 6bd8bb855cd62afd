//! `completions` prints a shell's script; `complete` is what the script calls at each Tab.
//!
//! A failure prints nothing: a person who types is told by the command itself. No store is made.

use super::CommandContext;
use crate::cli::complete::{self, Candidate, Kind};
use crate::environment;
use crate::print::{Out, Text, done, text};
use crate::settings::edit;
use baton_agents::ALL;
use baton_core::error::Exit;
use baton_core::limits::Limits;
use baton_core::{Error, name};
use baton_jobs::Runtime;
use baton_jobs::worker::head;
use baton_machine::project;
use baton_store::{JobFilter, Jobs, Store};
use clap::{Args, Command, ValueEnum};
use serde_json::{Value, json};

/// The longest list of jobs.
const MAX_JOBS: usize = 50;
/// What is shown of a job's prompt.
const TASK_CHARS: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

// `baton completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

// `baton complete`
#[derive(Debug, Args)]
pub struct Complete {
    #[arg(value_enum)]
    shell: Shell,
    /// The words after `baton`, of which the last is unfinished
    #[arg(last = true)]
    words: Vec<String>,
}

impl Completions {
    pub fn run(self, out: &Out) -> Result<Exit, Error> {
        let script = match self.shell {
            Shell::Bash => include_str!("completions/baton.bash"),
            Shell::Zsh => include_str!("completions/baton.zsh"),
            Shell::Fish => include_str!("completions/baton.fish"),
        };
        out.data(&json!({"script": script}), || script)?;
        done()
    }
}

impl Complete {
    pub fn run(self, context: &CommandContext, whole: Command, out: &Out) -> Result<Exit, Error> {
        let current = self.words.last().cloned().unwrap_or_default();
        let place = complete::place(whole.clone(), &self.words);
        let mut candidates = place.candidates;
        if let Some(kind) = place.kind {
            candidates.extend(looked_up(context, kind, whole, &self.words).unwrap_or_default());
        }
        candidates.retain(|one| one.word.starts_with(&current) && one.word.chars().all(is_plain));
        let document =
            Value::from_iter(candidates.iter().map(|one| json!({"word": one.word, "about": one.about})));
        out.data(&document, || self.shell.lines(&candidates))?;
        done()
    }
}

/// Whether a character needs no quotes in any shell. What others have named may hold anything.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '@')
}

impl Shell {
    fn lines(self, candidates: &[Candidate]) -> Text {
        let line = |one: &Candidate| {
            // Of the program, or one line of what an agent was asked.
            let about = baton_core::frame::shown(one.about.lines().next().unwrap_or_default(), 80);
            match self {
                Self::Bash => text![&one.word, "\n"],
                Self::Zsh => text![one.word.replace(':', "\\:"), ":", &about, "\n"],
                Self::Fish => text![&one.word, "\t", &about, "\n"],
            }
        };
        Text::join(candidates.iter().map(line), "")
    }
}

fn looked_up(
    context: &CommandContext,
    kind: Kind,
    whole: Command,
    words: &[String],
) -> Result<Vec<Candidate>, Error> {
    let candidate = |word: &str, about: String| Candidate { word: word.to_owned(), about };
    Ok(match kind {
        Kind::Agent => ALL.iter().map(|agent| candidate(agent.name(), agent.title().to_owned())).collect(),
        Kind::Rule => {
            baton_guard::rules::all().map(|rule| candidate(rule.id, rule.about.to_owned())).collect()
        }
        Kind::Setting => edit::keys().map(|key| candidate(key, String::new())).collect(),
        Kind::Command => {
            let mut whole = whole;
            whole.build();
            let mut path = words.iter().skip(1).take(words.len().saturating_sub(2));
            let named = path.try_fold(&whole, |above, word| above.find_subcommand(word));
            named.map(complete::commands).unwrap_or_default()
        }
        Kind::Participant => participants(context)?,
        Kind::Job => jobs(context)?,
        Kind::Question => questions(context)?,
    })
}

fn participants(context: &CommandContext) -> Result<Vec<Candidate>, Error> {
    if !Store::path(&context.home).exists() {
        return Ok(Vec::new());
    }
    let store = context.store()?;
    let here = store.everybody(Some(&project::of(&context.cwd)))?;
    let shown = here.into_iter().filter(|one| one.agent != name::SCRIPT);
    Ok(shown
        .map(|one| Candidate { about: format!("{}, {}", one.agent, one.state.as_str()), word: one.name })
        .collect())
}

fn jobs(context: &CommandContext) -> Result<Vec<Candidate>, Error> {
    let Some(jobs) = Jobs::open_if_any(&context.home)? else { return Ok(Vec::new()) };
    let rows = jobs.list(JobFilter::Project(&project::of(&context.cwd)), MAX_JOBS)?;
    let candidate = |row: baton_store::JobRow| Candidate {
        about: format!("{} {}: {}", row.agent, row.status, head(&row.prompt, TASK_CHARS)),
        word: row.id.to_string(),
    };
    Ok(rows.into_iter().map(candidate).collect())
}

fn questions(context: &CommandContext) -> Result<Vec<Candidate>, Error> {
    let runtime = Runtime {
        home: context.home.clone(),
        program: environment::own_program()?,
        environment: Vec::new(),
        limits: Limits::default(),
        guard: crate::guard::open,
    };
    let waiting = baton_approvals::inbox::glance(&runtime)?;
    Ok(waiting.iter().map(|one| Candidate { word: one.id(), about: one.line().text }).collect())
}
