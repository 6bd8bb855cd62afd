//! What doctor says about each agent: its program, what is set up where, whether that is in use,
//! and what the agent itself leaves open.

use super::check::{Block, Check, CheckLevel};
use super::programs::{self, VERSION_TIMEOUT, Version};
use crate::commands::{CommandContext, setup};
use crate::{environment, plugin};
use baton_agents::install::{Plan, Trust};
use baton_agents::{ALL, Agent};
use baton_core::Error;
use baton_core::time::Moment;
use baton_machine::project;
use baton_store::Heard;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// What is set up of baton in one of an agent's scopes.
enum SetupStatus {
    /// Nothing.
    Absent,
    /// All of it, by this baton.
    Current(Plan),
    /// Some of it, or all of it by another baton.
    Partly(Plan),
    /// A file can't be edited, or is not baton's.
    Refused(Error),
}

/// One block for each agent. `more` are further checks about it.
pub fn blocks(
    context: &CommandContext,
    heard: &[Heard],
    more: impl Fn(&dyn Agent) -> Vec<Check>,
) -> Vec<Block> {
    let programs: Vec<_> =
        ALL.iter().map(|agent| (*agent, environment::find_program(agent.program()))).collect();
    let versions = programs::versions(&programs);
    let found = programs.iter().map(|(_, program)| program.as_deref()).zip(&versions);
    let blocks = ALL.iter().zip(found).map(|(agent, (program, version))| {
        let heard = heard.iter().find(|heard| heard.agent == agent.name());
        let mut checks = match program.zip(version.as_ref()) {
            Some((program, version)) => installed(context, *agent, program, version, heard),
            None => left_over(context, *agent),
        };
        checks.extend(more(*agent));
        let absent = program.is_none() && checks.is_empty();
        if program.is_none() {
            checks.insert(0, not_installed(*agent, absent));
        }
        if program.is_some() {
            checks.extend(agent.facts().holes.iter().map(|hole| Check::new("hole", CheckLevel::Note, *hole)));
        }
        Block { title: agent.title(), agent: Some(*agent), checks, absent }
    });
    blocks.collect()
}

fn installed(
    context: &CommandContext,
    agent: &dyn Agent,
    path: &Path,
    version: &Version,
    heard: Option<&Heard>,
) -> Vec<Check> {
    let mut checks = vec![program(agent, path, version)];
    let user = for_user(context, agent);
    let project = match (&user, is_a_project(context)) {
        // It would only be said twice.
        (SetupStatus::Refused(_), _) | (_, false) => SetupStatus::Absent,
        _ => for_project(context, agent),
    };
    let only_project = !matches!(project, SetupStatus::Absent | SetupStatus::Refused(_));
    checks.push(match &user {
        SetupStatus::Absent if only_project => {
            Check::new("setup", CheckLevel::Note, "not for all projects, only for this one")
        }
        SetupStatus::Absent if plugin::is_installed(agent) => {
            Check::new("setup", CheckLevel::Pass, "by the plugin, which the agent itself has installed")
        }
        SetupStatus::Absent => {
            Check::new("setup", CheckLevel::Warn, "not set up").hint(format!("baton setup {}", agent.name()))
        }
        SetupStatus::Refused(error) => Check::error("setup", CheckLevel::Fail, error),
        SetupStatus::Current(_) => {
            Check::new("setup", CheckLevel::Pass, "everything is in place and up to date")
        }
        SetupStatus::Partly(plan) => partly("setup", plan, format!("baton setup {}", agent.name())),
    });
    checks.extend(in_use(agent, &user, heard));
    match &project {
        SetupStatus::Absent => {}
        SetupStatus::Refused(error) => checks.push(Check::error("project", CheckLevel::Warn, error)),
        SetupStatus::Current(_) => {
            checks.push(Check::new("project", CheckLevel::Pass, "set up in this project, and up to date"));
        }
        SetupStatus::Partly(plan) => {
            checks.push(partly("project", plan, format!("baton setup {} --project", agent.name())));
        }
    }
    checks.extend(in_use(agent, &project, heard));
    let set_up = [&user, &project].iter().any(|standing| matches!(standing, SetupStatus::Current(_)));
    checks.extend(seen(agent, heard, set_up));
    checks
}

fn program(agent: &dyn Agent, path: &Path, version: &Version) -> Check {
    let path = path.display();
    let look = format!("see what `{} --version` says", agent.program());
    match (version, agent.verified()) {
        (Version::Is(version), Some(verified)) if version == verified => {
            Check::new("program", CheckLevel::Pass, format!("{path}, version {version}, as verified"))
        }
        (Version::Is(version), Some(verified)) => Check::new(
            "program",
            CheckLevel::Note,
            format!("{path}, version {version}; verified with {verified}"),
        ),
        (Version::Is(version), None) => {
            Check::new("program", CheckLevel::Note, format!("{path}, version {version}; verified with none"))
        }
        (Version::Nonsense(said), _) => {
            Check::new("program", CheckLevel::Warn, format!("{path} prints no version, but {said}"))
                .hint(look)
        }
        (Version::Failed(why), _) => {
            Check::new("program", CheckLevel::Warn, format!("{path}, asked for its version, {why}"))
                .hint(look)
        }
        (Version::Late, _) => {
            let late =
                format!("{path} did not say its version within {}: slow, or stuck", VERSION_TIMEOUT.coarse());
            Check::new("program", CheckLevel::Warn, late).hint(look)
        }
    }
}

/// What is set up for an agent that is not there.
fn left_over(context: &CommandContext, agent: &dyn Agent) -> Vec<Check> {
    match for_user(context, agent) {
        // What is malformed there is not ours to care about.
        SetupStatus::Absent | SetupStatus::Refused(_) => Vec::new(),
        SetupStatus::Current(_) | SetupStatus::Partly(_) => {
            let hint = format!("baton setup {} --remove takes it out", agent.name());
            vec![Check::new("setup", CheckLevel::Note, "set up all the same").hint(hint)]
        }
    }
}

fn not_installed(agent: &dyn Agent, absent: bool) -> Check {
    let detail = if absent {
        "not installed".to_owned()
    } else {
        format!("not installed: no {} on the PATH", agent.program())
    };
    Check::new("program", CheckLevel::Note, detail)
}

fn for_user(context: &CommandContext, agent: &dyn Agent) -> SetupStatus {
    let there = match setup::plan(context, agent, false, true) {
        Ok(removal) => !removal.is_empty(),
        Err(error) => return SetupStatus::Refused(error),
    };
    // Also where nothing is there: what keeps setup from its work is worth knowing.
    setup_status(there, setup::plan(context, agent, false, false))
}

fn for_project(context: &CommandContext, agent: &dyn Agent) -> SetupStatus {
    match setup::plan(context, agent, true, true) {
        // Most projects have none, and need none.
        Ok(removal) if removal.is_empty() => SetupStatus::Absent,
        Ok(_) => setup_status(true, setup::plan(context, agent, true, false)),
        Err(error) => SetupStatus::Refused(error),
    }
}

fn setup_status(there: bool, plan: Result<Plan, Error>) -> SetupStatus {
    match plan {
        Ok(plan) if plan.is_empty() => SetupStatus::Current(plan),
        Ok(plan) if there => SetupStatus::Partly(plan),
        Ok(_) => SetupStatus::Absent,
        Err(error) => SetupStatus::Refused(error),
    }
}

/// Whether a project's files are others than the person's own.
fn is_a_project(context: &CommandContext) -> bool {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    environment::user_home()
        .is_ok_and(|home| resolved(&home) != resolved(Path::new(&project::of(&context.cwd))))
}

fn partly(name: &'static str, plan: &Plan, hint: String) -> Check {
    let missing: Vec<String> =
        plan.edits().map(|edit| format!("{} in {}", edit.what, edit.path.display())).collect();
    let detail = format!("incomplete, or by another version of baton; to do: {}", missing.join("; "));
    Check::new(name, CheckLevel::Warn, detail).hint(hint)
}

/// Whether the agent uses what is set up.
fn in_use(agent: &dyn Agent, standing: &SetupStatus, heard: Option<&Heard>) -> Vec<Check> {
    let (plan, complete) = match standing {
        SetupStatus::Current(plan) => (plan, true),
        SetupStatus::Partly(plan) => (plan, false),
        SetupStatus::Absent | SetupStatus::Refused(_) => return Vec::new(),
    };
    let trust = match plan.trust() {
        Trust::Given if complete => Some(Check::new("trust", CheckLevel::Pass, "given")),
        Trust::Given | Trust::NotAsked => None,
        Trust::Missing { what, hint } => Some(Check::new("trust", CheckLevel::Warn, what).hint(hint)),
        Trust::Hidden(what) => Some(Check::new("trust", CheckLevel::Note, what)),
    };
    let loaded = plan.loaded().filter(|_| complete).map(|file| loads(agent, file, heard));
    trust.into_iter().chain(loaded).collect()
}

/// Whether the agent has loaded our file: prompts come through it, and only through it.
fn loads(agent: &dyn Agent, file: &Path, heard: Option<&Heard>) -> Check {
    let written = file.metadata().and_then(|file| file.modified()).ok();
    let written = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let written = Moment(written.and_then(|at| i64::try_from(at.as_millis()).ok()).unwrap_or(i64::MAX));
    if heard.and_then(|heard| heard.prompt).is_some_and(|prompt| prompt >= written) {
        return Check::new("loaded", CheckLevel::Pass, format!("a prompt came through {}", file.display()));
    }
    let detail = format!("not seen yet: no prompt has come through {} since it was written", file.display());
    Check::new("loaded", CheckLevel::Note, detail)
        .hint(format!("start {} again and give it a prompt", agent.title()))
}

/// When the agent's sessions were last heard of.
fn seen(agent: &dyn Agent, heard: Option<&Heard>, set_up: bool) -> Option<Check> {
    let now = baton_machine::clock::now();
    let ago = |at: Moment| format!("{} ago", now.since(at).coarse());
    match heard {
        Some(Heard { last, prompt: Some(prompt), .. }) => {
            let detail = format!("last heard of {}, last prompt {}", ago(*last), ago(*prompt));
            Some(Check::new("seen", CheckLevel::Pass, detail))
        }
        Some(Heard { last, prompt: None, .. }) => {
            let detail = format!("last heard of {}, but no prompt yet", ago(*last));
            Some(Check::new("seen", CheckLevel::Note, detail))
        }
        None if set_up => Some(
            Check::new("seen", CheckLevel::Note, "no session yet")
                .hint(format!("start {} and give it a prompt", agent.title())),
        ),
        None => None,
    }
}
