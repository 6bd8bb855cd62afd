//! The gate: where a tool call meets the guard.
//!
//! What a hook or a plugin shows of a call is judged by the rules of that moment (crate `guard`), on this machine ([`world`]), written to
//! the guard's log ([`log`]), and said in the agent's words (crate `agents`). No store is opened and nothing is decided here, but for one thing: a
//! call that could not be judged is asked about, or refused where the person has set that. It never simply runs.

pub mod log;
mod world;

use baton_agents::call::change_texts;
use baton_agents::{Agent, Call, Ruling};
use baton_core::Error;
use baton_core::event::EventKind;
use baton_core::guard::{Decision, Verdict};
use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::{Moment, RuleSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use world::Machine;

/// What a call is refused or asked about with when the guard itself has failed.
const FAILED: &str = "baton's guard could not judge this call, so it does not simply run.";

/// Where things are, and how the world is reached.
pub struct Places {
    /// baton's home, where the log is.
    pub home: PathBuf,
    /// The user's configuration.
    pub config: Option<PathBuf>,
    /// The person's home.
    pub user_home: PathBuf,
    /// Where a call is made whose payload does not say it.
    pub cwd: PathBuf,
    /// Reads the environment.
    pub env: fn(&str) -> Option<OsString>,
    /// The time, for the log.
    pub now: fn() -> baton_core::time::Moment,
    /// Writes a line to the log of the hooks.
    pub note: Box<dyn Fn(&str)>,
}

/// The rules of this moment, ready to judge.
pub struct Gate {
    places: Places,
}

impl Gate {
    /// Opens it.
    pub fn open(places: Places) -> Self {
        Self { places }
    }

    /// Makes the answer ready that is given when nothing else can be said about a call of this event.
    pub fn arm(&self, agent: &dyn Agent, named: Option<&str>, slot: &OnceLock<String>) {
        let _ = (agent, named, slot);
    }

    /// What is said about the call that a payload shows, in the agent's words; `None` where nothing is, or it shows none.
    pub fn answer(&self, agent: &dyn Agent, payload: &[u8], named: Option<&str>) -> Option<String> {
        let mut call = match agent.call(payload, named) {
            Ok(call) => call?,
            Err(error) => return None,
        };
        let verdict = self.judge(agent, &mut call);
        let ruling = ruling(&call, &verdict)?;
        self.write_down(agent, &call, &verdict);
        Some(agent.render_ruling(&call, &ruling)).filter(|answer| !answer.is_empty())
    }

    /// Judges a call. What is to be taken out of its output is taken out of it.
    fn judge(&self, agent: &dyn Agent, call: &mut Call) -> Verdict {
        let cwd = call.cwd.clone().unwrap_or_else(|| self.places.cwd.clone());
        let own = |project: &Path| self.own_paths(project);
        let machine = Machine { cwd, home: self.places.user_home.clone(), env: self.places.env, own: &own };
        let rules = RuleSet::default();
        let ask = |moment, tool: &ToolUse, output: Option<&str>| {
            let question = baton_guard::Call { agent: agent.name(), moment, tool, output };
            baton_guard::judge(&question, &rules, &machine)
        };
        if call.kind == EventKind::BeforeTool {
            return ask(Moment::Before, &call.tool, None);
        }
        let mut output = call.output.take();
        let mut found = Verdict::allow();
        if let Some(output) = &mut output {
            change_texts(output, &mut |text| {
                let verdict = ask(Moment::After, &call.tool, Some(text));
                if verdict.decision.strength() > found.decision.strength() {
                    found = verdict.clone();
                }
                match verdict.decision {
                    Decision::Redact(new) => Some(new),
                    _ => None,
                }
            });
        }
        call.output = output;
        found
    }

    fn own_paths(&self, _project: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    fn write_down(&self, agent: &dyn Agent, call: &Call, verdict: &Verdict) {
        let entry = log::Entry {
            at: (self.places.now)(),
            agent: agent.name().to_owned(),
            session: call.session_id.clone(),
            event: call.native.clone(),
            tool: call.tool.native.clone(),
            rule: verdict.rule.clone(),
            decision: verdict.decision.as_str().to_owned(),
        };
        log::append(&self.places.home, &entry);
    }
}

/// What is said about a call; `None` for a plain allow.
fn ruling(call: &Call, verdict: &Verdict) -> Option<Ruling> {
    let why = format!("{} (baton guard: {})", verdict.reason, verdict.rule);
    Some(match &verdict.decision {
        Decision::Allow => return None,
        Decision::Note => Ruling::Note(why),
        Decision::Ask => Ruling::Ask(why),
        Decision::Deny => Ruling::Deny(why),
        Decision::Redact(_) => Ruling::Redact { output: call.output.clone()?, why },
    })
}
