//! `setup`: hooks and MCP entry in the agents' own configuration, and out of it again.

mod own_tools;
mod purge;
mod words;

use super::CommandContext;
use crate::print::{Out, Text, done, text};
use crate::{environment, guard, started};
use baton_agents::install::{FileEdit, GuardHooks, Install, InstallError, OwnCommand, Plan, Scope, StopGate};
use baton_agents::{ALL, Agent};
use baton_core::error::Exit;
use baton_core::{Code, Error};
use baton_guard_runtime::policy::{Mode, OnFailure};
use baton_machine::project;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

// `baton setup`
#[derive(Debug, Args)]
pub struct Setup {
    /// The agents (default: all that are installed)
    agents: Vec<String>,
    /// Write to this project's files instead of the user's
    #[arg(long)]
    project: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove everything that setup wrote
    #[arg(long)]
    remove: bool,
    /// With --remove: delete baton's state and your configuration too (asks first)
    #[arg(long, requires = "remove", conflicts_with_all = ["agents", "project"])]
    purge: bool,
    /// With --purge: don't ask
    #[arg(long, requires = "purge")]
    yes: bool,
    /// Let agents use baton's own tools without asking you each time
    #[arg(long, conflicts_with = "remove")]
    allow_own_tools: bool,
}

/// One agent, and what would change in its files.
struct Planned {
    agent: &'static dyn Agent,
    plan: Plan,
}

/// What was done, or would be, to one agent.
struct Outcome {
    agent: &'static dyn Agent,
    changes: Vec<Change>,
    diff: String,
    notes: Vec<String>,
}

/// A file that changes, and how.
struct Change {
    path: PathBuf,
    what: String,
    is_deleted: bool,
}

impl Setup {
    /// Whether it deletes baton's state.
    pub fn purges(&self) -> bool {
        self.purge
    }

    /// Plans for every agent first, so that a file that can't be edited stops all of it before
    /// anything is written.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let agents = self.chosen()?;
        let is_damaged = environment::recorded_config_file(&context.home).is_err();
        if is_damaged && !self.remove && !self.dry_run {
            // The configuration says what to set up, and it is the file of the person who runs
            // this.
            record(context)?;
        }
        let planned: Vec<Planned> = agents
            .into_iter()
            .map(|agent| Ok(Planned { agent, plan: plan(context, agent, self.project, self.remove)? }))
            .collect::<Result<_, Error>>()?;
        if self.purge {
            purge::check(context)?;
        }
        words::before(*out, &planned, self.dry_run, self.remove);
        if self.purge && !self.dry_run && !purge::agrees(context, *out, self.yes)? {
            return Err(
                Error::new(Code::Declined, "nothing was removed").hint("say y to go on, or add --yes")
            );
        }
        let mut outcomes = Vec::new();
        for Planned { agent, .. } in planned {
            // Anew: some agents share a file, which the one before may have changed.
            let plan = plan(context, agent, self.project, self.remove)?;
            outcomes.push(self.carry_out(context, agent, plan)?);
        }
        let document = Value::from_iter(outcomes.iter().map(|outcome| outcome.document(self.dry_run)));
        out.data(&document, || match self.dry_run {
            true => words::diff(&outcomes),
            false => Text::default(),
        })?;
        for outcome in &outcomes {
            outcome.notes.iter().for_each(|note| out.say(text!["note: ", outcome.agent.title(), ": ", note]));
        }
        match (self.dry_run, self.remove) {
            (true, _) => {}
            (false, true) if self.purge => purge::carry_out(context, *out)?,
            (false, true) => words::after_removal(context, *out, &outcomes),
            (false, false) if outcomes.iter().all(|outcome| outcome.changes.is_empty()) => {
                own_tools::only_if_wanted(*out, context, self.allow_own_tools)?;
            }
            (false, false) => {
                let agents: Vec<&dyn Agent> = outcomes.iter().map(|outcome| outcome.agent).collect();
                words::after(context, *out, &agents);
                own_tools::offer(context, *out, self.allow_own_tools)?;
            }
        }
        done()
    }

    fn chosen(&self) -> Result<Vec<&'static dyn Agent>, Error> {
        if !self.agents.is_empty() {
            return self.agents.iter().map(|name| baton_agents::by_name(name)).collect();
        }
        let found: Vec<_> = ALL
            .iter()
            .copied()
            .filter(|agent| self.remove || environment::find_program(agent.program()).is_some())
            .collect();
        if found.is_empty() {
            let names: Vec<_> = ALL.iter().map(|agent| agent.name()).collect();
            return Err(Error::new(Code::AgentMissing, "no agent is installed on this machine's PATH")
                .hint(format!("to set one up anyway, name it: {}", names.join(", "))));
        }
        Ok(found)
    }

    fn carry_out(
        &self,
        context: &CommandContext,
        agent: &'static dyn Agent,
        plan: Plan,
    ) -> Result<Outcome, Error> {
        let diff = plan.diff();
        let mut notes = plan.notes().to_vec();
        let program = environment::find_program(agent.program());
        let changes = changes(&plan);
        if self.dry_run {
            let by =
                plan.edits().filter_map(|edit| Some((edit, edit.by.as_ref().filter(|by| by.is_needed())?)));
            notes.extend(by.filter(|_| program.is_some()).map(|(edit, command)| {
                let words = command.shown(agent.program());
                format!("`{words}` would change {}, and may change its format", edit.path.display())
            }));
        } else {
            let run = |command: &OwnCommand| match &program {
                Some(program) => started::run_own(program, command),
                None => Err(format!("there is no {} on the PATH", agent.program())),
            };
            notes.extend(plan.apply_with(Some(&run)).map_err(|error| refused(agent, &error))?.notes);
            if !self.remove {
                record(context)?;
            }
        }
        Ok(Outcome { agent, changes, diff, notes })
    }
}

/// What a plan changes.
fn changes(plan: &Plan) -> Vec<Change> {
    let edits = plan.edits().filter(|edit| edit.is_change());
    let change = |edit: &FileEdit| Change {
        path: edit.path.clone(),
        what: edit.what.clone(),
        is_deleted: edit.after.is_none(),
    };
    edits.map(change).collect()
}

impl Outcome {
    fn document(&self, is_dry: bool) -> Value {
        let has_changes = !self.changes.is_empty();
        let changes = self
            .changes
            .iter()
            .map(|change| json!({"file": change.path, "what": change.what, "is_deleted": change.is_deleted}));
        json!({
            "agent": self.agent.name(),
            "changed": has_changes && !is_dry,
            "would_change": has_changes && is_dry,
            "files": self.changes.iter().map(|change| change.path.display().to_string()).collect::<Vec<_>>(),
            "changes": Value::from_iter(changes),
            "diff": is_dry.then_some(&self.diff),
            "notes": self.notes,
        })
    }
}

/// Records the person's configuration file in the home.
fn record(context: &CommandContext) -> Result<(), Error> {
    environment::record_config_file(&context.home).map_err(|error| {
        Error::new(Code::StoreUnavailable, format!("the home can't be written: {error}"))
            .hint("is something else in the place of config-path there?")
    })
}

/// What setup would change for an agent; empty when everything is in place.
pub fn plan(
    context: &CommandContext,
    agent: &dyn Agent,
    in_project: bool,
    remove: bool,
) -> Result<Plan, Error> {
    let scope = if in_project { Scope::Project(project::of(&context.cwd).into()) } else { Scope::User };
    let program = environment::lasting_program()?;
    let wrong = |error: InstallError| refused(agent, &error);
    let install = Install::new(&program, &context.home, scope).map_err(wrong)?;
    // What is taken out is known by itself, whatever is set now.
    let install = if remove {
        install
    } else {
        install.with_guard(wanted_guard(context)?).with_stop_gate(wanted_gate(context)?)
    };
    let target = agent.target(install, &environment::user_home()?, &environment::get).map_err(wrong)?;
    if remove { Plan::remove(&*target) } else { Plan::install(&*target) }.map_err(wrong)
}

/// The guard as the person has set it.
fn wanted_guard(context: &CommandContext) -> Result<GuardHooks, Error> {
    let guard = guard::open(&context.home);
    let settings = guard.settings()?;
    Ok(match (settings.mode.value, settings.on_failure.value) {
        (Mode::Off, _) => GuardHooks::Off,
        (Mode::On, OnFailure::Ask) => GuardHooks::On,
        (Mode::On, OnFailure::Deny) => GuardHooks::Closed,
    })
}

/// The stop gate as the person has set it.
fn wanted_gate(context: &CommandContext) -> Result<StopGate, Error> {
    Ok(if context.limits()?.review_gate { StopGate::On } else { StopGate::Off })
}

fn refused(agent: &dyn Agent, error: &InstallError) -> Error {
    Error::new(Code::AgentConfig, format!("{}: failed to {error} ({})", agent.title(), error.code()))
        .hint(error.hint())
}
