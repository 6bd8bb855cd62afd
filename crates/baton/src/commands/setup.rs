//! `setup`: hooks and MCP entry in the agents' own configuration, and out of it again.

use super::CommandContext;
use crate::print::{Out, Text, Tone, done, text};
use crate::{environment, guard, started};
use baton_agents::install::{GuardHooks, Install, InstallError, OwnCommand, Plan, Scope, StopGate};
use baton_agents::{ALL, Agent};
use baton_core::error::Exit;
use baton_core::{Code, Error};
use baton_guard_runtime::policy::{Mode, OnFailure};
use baton_machine::project;
use clap::Args;
use serde_json::{Value, json};

/// The rules that only the person can want: not everyone has a cloud or a database.
const OPTIONAL_RULES_NOTE: &str = "Rules for clouds and databases are off by default. `baton guard enable RULE` switches one on: block-aws-cli, block-az-cli, block-gcloud, block-helm, block-kubectl, block-terraform, warn-destructive-sql.";

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
}

impl Setup {
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
        for agent in &agents {
            plan(context, *agent, self.project, self.remove)?;
        }
        let offers = !self.remove && !self.dry_run && wanted_guard(context)? != GuardHooks::Off;
        let mut documents = Vec::new();
        for agent in agents {
            // Anew: some agents share a file, which the one before may have changed.
            let plan = plan(context, agent, self.project, self.remove)?;
            documents.push(self.carry_out(context, agent, plan, *out)?);
        }
        if offers {
            out.say(text![OPTIONAL_RULES_NOTE]);
        }
        out.data(&Value::Array(documents), Text::default)?;
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
        agent: &dyn Agent,
        plan: Plan,
        out: Out,
    ) -> Result<Value, Error> {
        let diff = plan.diff();
        let mut notes = plan.notes().to_vec();
        let program = environment::find_program(agent.program());
        let files: Vec<String> = plan
            .edits()
            .filter(|edit| edit.is_change())
            .map(|edit| edit.path.display().to_string())
            .collect();
        let changed = !files.is_empty();
        if self.dry_run {
            if !out.is_json() {
                out.data(&Value::Null, || diff.clone())?;
            }
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
        let what = match (changed, self.dry_run, self.remove) {
            (false, ..) => "nothing to change",
            (true, true, _) => "would change",
            (true, false, false) => "set up",
            (true, false, true) => "removed",
        };
        out.say(text![out.tone(Tone::Bold, agent.title()), ": ", what, " ", files.join(", ")]);
        for note in &notes {
            out.say(text!["note: ", note]);
        }
        Ok(
            json!({"agent": agent.name(), "changed": changed && !self.dry_run, "files": files, "diff": self.dry_run.then_some(diff), "notes": notes}),
        )
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
