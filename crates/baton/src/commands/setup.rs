//! `setup`: hooks and MCP entry in the agents' own configuration, and out of it again.

use super::Session;
use crate::print::{Out, Tone, done};
use crate::{environment, gate, started};
use baton_agents::install::{Guard, Install, InstallError, OwnCommand, Plan, Scope, StopGate};
use baton_agents::{ALL, Agent};
use baton_core::error::Exit;
use baton_core::{Code, Error};
use baton_gate::policy::{Mode, OnFailure};
use baton_mail::project;
use clap::Args;
use serde_json::{Value, json};

// `baton setup`
#[derive(Debug, Args)]
pub struct Setup {
    /// The agents; all that are installed here if none is named
    agents: Vec<String>,
    /// In this project's files instead of the user's
    #[arg(long)]
    project: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take everything out again
    #[arg(long)]
    remove: bool,
}

impl Setup {
    /// Plans for every agent first, so that a file that can't be edited stops all of it before anything is written.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let agents = self.chosen()?;
        for agent in &agents {
            plan(session, *agent, self.project, self.remove)?;
        }
        let mut documents = Vec::new();
        for agent in agents {
            // Anew: some agents share a file, which the one before may have changed.
            let plan = plan(session, agent, self.project, self.remove)?;
            documents.push(self.carry_out(agent, plan, *out)?);
        }
        out.data(&Value::Array(documents), String::new)?;
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
                .hint(format!("name one to set it up all the same: {}", names.join(", "))));
        }
        Ok(found)
    }

    fn carry_out(&self, agent: &dyn Agent, plan: Plan, out: Out) -> Result<Value, Error> {
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
                format!("`{words}` would change {}, and may format it anew", edit.path.display())
            }));
        } else {
            let run = |command: &OwnCommand| match &program {
                Some(program) => started::run_own(program, command),
                None => Err(format!("there is no {} on the PATH", agent.program())),
            };
            notes.extend(plan.apply_with(Some(&run)).map_err(|error| refused(agent, &error))?.notes);
        }
        let what = match (changed, self.dry_run, self.remove) {
            (false, ..) => "nothing to change",
            (true, true, _) => "would change",
            (true, false, false) => "set up",
            (true, false, true) => "removed",
        };
        out.say(&format!("{}: {what} {}", out.tone(Tone::Bold, agent.title()), files.join(", ")));
        for note in &notes {
            out.say(&format!("note: {note}"));
        }
        Ok(
            json!({"agent": agent.name(), "changed": changed && !self.dry_run, "files": files, "diff": self.dry_run.then_some(diff), "notes": notes}),
        )
    }
}

/// What setup would change for an agent; empty when everything is in place.
pub fn plan(session: &Session, agent: &dyn Agent, in_project: bool, remove: bool) -> Result<Plan, Error> {
    let scope = if in_project { Scope::Project(project::of(&session.cwd).into()) } else { Scope::User };
    let program = std::env::current_exe()
        .and_then(|program| program.canonicalize())
        .map_err(|error| Error::new(Code::Internal, format!("can't find my own program: {error}")))?;
    let wrong = |error: InstallError| refused(agent, &error);
    let install = Install::new(&program, &session.home, scope).map_err(wrong)?;
    // What is taken out is known by itself, whatever is set now.
    let install = if remove {
        install
    } else {
        install.with_guard(wanted_guard(session)?).with_stop_gate(wanted_gate(session)?)
    };
    let target = agent.target(install, &environment::user_home()?, &environment::get).map_err(wrong)?;
    if remove { Plan::remove(&*target) } else { Plan::install(&*target) }.map_err(wrong)
}

/// The guard as the person has set it.
fn wanted_guard(session: &Session) -> Result<Guard, Error> {
    let gate = gate::open(&session.home);
    let settings = gate.settings()?;
    Ok(match (settings.mode.value, settings.on_failure.value) {
        (Mode::Off, _) => Guard::Off,
        (Mode::On, OnFailure::Ask) => Guard::On,
        (Mode::On, OnFailure::Deny) => Guard::Closed,
    })
}

/// The stop gate as the person has set it.
fn wanted_gate(session: &Session) -> Result<StopGate, Error> {
    Ok(if session.limits()?.review_gate { StopGate::On } else { StopGate::Off })
}

fn refused(agent: &dyn Agent, error: &InstallError) -> Error {
    Error::new(Code::AgentConfig, format!("{}: failed to {error} ({})", agent.title(), error.code()))
        .hint(error.hint())
}
