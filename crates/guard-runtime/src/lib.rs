//! The guard at work: it takes a tool call from a hook or a plugin, judges it on this machine, and
//! answers in the agent's words.
//!
//! The rules are in crate `guard`, the machine is in `world`, the agents' words are in crate
//! `agents`. This crate decides one thing itself: if a call could not be judged, the person is
//! asked, or the call is refused if the person has set that. It never simply runs.
//!
//! An answer passes through five types. A rule returns a `Finding`; with the rule's name it is a
//! [`Verdict`]; a [`Judgement`] has the strongest verdict and what led to it; a [`Ruling`] is what
//! the agent is told; the agent's adapter makes text of it.
//!
//! The guard itself opens no store. [`Places::aside`] may: it is called after a tool has run, for
//! hints that have nothing to do with rules.

pub mod approvals;
mod journal;
pub mod log;
mod memory;
pub mod policy;
pub mod replay;
mod stop;
mod world;

use baton_agents::call::change_texts;
use baton_agents::install::{Install, Scope};
use baton_agents::{ALL, Agent, Ruling, ToolCall};
use baton_core::event::EventKind;
use baton_core::guard::{Decision, OwnLine, Verdict};
use baton_core::tool::{ToolKind, ToolUse};
use baton_core::{Code, Error};
use baton_guard::config::Merged;
use baton_guard::rules::read_only;
use baton_guard::{Active, Judgement, Params, RuleSet};

use journal::RecordKind;
use policy::{Mode, OnFailure, Owner, RuleFile, Settings};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world::Machine;

/// The file with a project's settings and rules.
pub const PROJECT_FILE: &str = ".baton.toml";
/// The program's name on the search path.
pub(crate) const PROGRAM_NAME: &str = "baton";
/// The reason for a call that could not be judged.
const FAILURE_REASON: &str = "baton's guard could not judge this call.";
/// Replaces an output that could not be judged, if the person wants that.
const WITHHELD_OUTPUT: &str = "[baton's guard could not judge this output]";

/// Folders, files and functions that the guard gets from the program.
pub struct Places {
    /// baton's home, which holds the log.
    pub home: PathBuf,
    /// The user's configuration.
    pub config: Option<PathBuf>,
    /// A configuration that the environment names. A repository can set an agent's environment, so
    /// this file may only tighten, like a project's.
    pub named_config: Option<PathBuf>,
    pub user_home: PathBuf,
    /// The folder of a call whose payload does not name one.
    pub cwd: PathBuf,
    /// Reads the environment.
    pub env: fn(&str) -> Option<OsString>,
    /// The time, for the log.
    pub now: fn() -> baton_core::time::Moment,
    /// How long the host of a repository may take to answer at the end of a turn.
    pub patience: Duration,
    /// A hint about a call that has run, for when the guard has nothing to say. It gets the home,
    /// the agent and the call.
    pub aside: fn(&Path, &dyn Agent, &ToolCall) -> Option<String>,
    /// Reads a command line of baton, without its name, with baton's own parser. Called only if a
    /// call runs baton.
    pub own_line: fn(&[&str]) -> OwnLine,
}

/// A call, and what the agent is told about it.
pub struct RuledCall {
    /// The call; its output is already redacted if the ruling is about that.
    pub call: ToolCall,
    pub ruling: Ruling,
}

/// The guard, with the settings that it read when it was opened.
pub struct Guard {
    places: Places,
    user: Result<Layer, Error>,
}

/// What one file and the files before it set.
#[derive(Clone, Debug, Default)]
struct Layer {
    settings: Settings,
    rules: Vec<RuleFile>,
}

impl Layer {
    fn with(mut self, file: &Path, owner: Owner) -> Result<Self, Error> {
        if let Some(text) = policy::text(file)? {
            let rules = self.settings.read(file, &text, owner)?;
            self.rules.push(RuleFile { path: file.to_owned(), text: rules, owner });
        }
        Ok(self)
    }
}

/// The environment variable that is set in jobs that only read.
pub const READ_ONLY_VARIABLE: &str = "BATON_READ_ONLY";

/// The settings and rules for one folder.
pub struct Policy {
    /// The settings that are not about a single rule.
    pub settings: Settings,
    pub rules: RuleSet,
    /// What files that may only tighten tried to loosen, one line each.
    pub ignored: Vec<String>,
}

impl Guard {
    /// Reads the user's file.
    pub fn open(places: Places) -> Self {
        let files = [(&places.config, Owner::User), (&places.named_config, Owner::Project)];
        let user = files.into_iter().try_fold(Layer::default(), |layer, (file, owner)| match file {
            Some(file) => layer.with(file, owner),
            None => Ok(layer),
        });
        Self { places, user }
    }

    /// The same guard if it is not known which file is the user's. It judges nothing, as with a
    /// mistake in that file.
    #[must_use]
    pub fn without_user_file(self, error: Error) -> Self {
        Self { user: Err(error), ..self }
    }

    /// The settings of the user's own files, without a project's.
    pub fn settings(&self) -> Result<&Settings, Error> {
        self.user.as_ref().map(|layer| &layer.settings).map_err(Clone::clone)
    }

    /// The settings and rules for one folder.
    pub fn policy(&self, cwd: &Path) -> Result<Policy, Error> {
        let mut layer = self.user.clone()?;
        if let Some(file) = project_file(cwd) {
            layer = layer.with(&file, Owner::Project)?;
        }
        let Layer { settings, rules } = layer;
        let Merged { mut rules, ignored } = policy::rules(&rules)?;
        // The environment may tighten. A job that only reads sets this variable.
        if (self.places.env)(READ_ONLY_VARIABLE).is_some()
            && let Some(rule) = baton_guard::rules::by_id(read_only::RULE_ID)
        {
            rules.rules.push(Active { rule, params: Params::default() });
        }
        Ok(Policy { settings, rules, ignored })
    }

    /// The answer for a call that can't be judged, in the agent's words. `None` after a tool, and
    /// if the guard is off.
    pub fn unjudged(&self, agent: &dyn Agent, native: &str, why: Option<&Error>) -> Option<String> {
        let settings = self.user.as_ref().map(|layer| layer.settings.clone()).unwrap_or_default();
        if settings.mode.value == Mode::Off || !agent.facts().calls.before.contains(&native) {
            return None;
        }
        let call = ToolCall {
            kind: EventKind::BeforeTool,
            native: native.to_owned(),
            session_id: None,
            cwd: None,
            id: None,
            tool: ToolUse::new(ToolKind::Unknown, ""),
            input: Value::Null,
            output: None,
        };
        Some(agent.render_ruling(
            &call,
            &held(
                settings.on_failure.value,
                why.map_or_else(
                    || FAILURE_REASON.to_owned(),
                    |why| format!("{FAILURE_REASON} {}.", why.message()),
                ),
            ),
        ))
    }

    /// Judges the call in a payload and returns the answer in the agent's words. `None` if there is
    /// nothing to say, or if an event that need not show a call shows none.
    pub fn answer(
        &self,
        agent: &dyn Agent,
        payload: &[u8],
        named: Option<&str>,
    ) -> Result<Option<String>, Error> {
        let ruled = self.ruling(agent, payload, named)?;
        let said = ruled.map(|ruled| agent.render_ruling(&ruled.call, &ruled.ruling));
        Ok(said.filter(|said| !said.is_empty()))
    }

    /// Judges the call in a payload, records it, and returns the ruling. [`Guard::answer`] puts it
    /// into the agent's words.
    pub fn ruling(
        &self,
        agent: &dyn Agent,
        payload: &[u8],
        named: Option<&str>,
    ) -> Result<Option<RuledCall>, Error> {
        let Some(mut call) = agent.call(payload, named)? else {
            let before = named.is_some_and(|named| agent.facts().calls.before.contains(&named));
            return if before {
                Err(Error::new(Code::Usage, "the payload shows no tool call"))
            } else {
                Ok(None)
            };
        };
        if agent.facts().calls.cwd_is_of_call {
            self.resolve_cwd(&mut call);
        }
        let cwd = self.cwd_of(&call);
        let ruling = match self.policy(&cwd) {
            Ok(policy) if policy.settings.mode.value == Mode::Off => return Ok(None),
            Ok(policy) => {
                if call.kind == EventKind::AfterTool {
                    self.record_run_and_log_unjudged(agent, &call);
                }
                let verdict = self.judge_with_memory(agent, &mut call, &policy.rules);
                let ruling = to_ruling(&call, &verdict);
                if ruling.is_some() {
                    self.write_down(agent, &call, &verdict.rule, verdict.decision.as_str());
                }
                ruling
            }
            Err(error) => self.failed(agent, &mut call, &error),
        };
        if call.kind == EventKind::BeforeTool {
            let kind = if matches!(ruling, Some(Ruling::Deny(_))) {
                RecordKind::Refused
            } else {
                RecordKind::Judged
            };
            self.memory(agent, call.session_id.as_deref()).record_judged(&call, kind);
        }
        let ruling = ruling.or_else(|| self.aside(agent, &call));
        Ok(ruling.map(|ruling| RuledCall { call, ruling }))
    }

    /// Judges a call with what the guard remembers of the session. If the agent takes notes only
    /// after a call, a note waits until then.
    fn judge_with_memory(&self, agent: &dyn Agent, call: &mut ToolCall, rules: &RuleSet) -> Verdict {
        let notes_after = agent.facts().calls.notes_after;
        let repeats = self.memory(agent, call.session_id.as_deref()).record_and_count_repeats(call, rules);
        if call.kind == EventKind::BeforeTool {
            let verdict = self.judge_before(agent, call, rules, repeats).verdict;
            let later = notes_after && verdict.decision == Decision::Note;
            return if later { Verdict::allow() } else { verdict };
        }
        let verdict = self.judge(agent, call, rules).verdict;
        if notes_after && verdict.decision == Decision::Allow {
            let before = self.judge_before(agent, call, rules, repeats).verdict;
            if before.decision == Decision::Note {
                return before;
            }
        }
        verdict
    }

    /// Records that a call has run, and logs it if the guard never judged it.
    fn record_run_and_log_unjudged(&self, agent: &dyn Agent, call: &ToolCall) {
        if !self.memory(agent, call.session_id.as_deref()).record_run_and_check_judged(call) {
            self.write_down(agent, call, "", log::UNJUDGED);
        }
    }

    /// A hint that is not from a rule, after a tool.
    fn aside(&self, agent: &dyn Agent, call: &ToolCall) -> Option<Ruling> {
        if call.kind != EventKind::AfterTool {
            return None;
        }
        (self.places.aside)(&self.places.home, agent, call).map(Ruling::Note)
    }

    /// Some payloads name only the call's folder. Then the agent's folder is the hook's own, unless
    /// that is `/` or the home.
    fn resolve_cwd(&self, call: &mut ToolCall) {
        let here = &self.places.cwd;
        if here.parent().is_some() && *here != self.places.user_home {
            call.tool.folder = call.cwd.take().map(|cwd| cwd.to_string_lossy().into_owned());
            call.cwd = Some(here.clone());
        }
    }

    /// The folder of a call whose payload does not name one.
    pub fn cwd(&self) -> &Path {
        &self.places.cwd
    }

    /// The folder that the agent of a call works in.
    pub fn cwd_of(&self, call: &ToolCall) -> PathBuf {
        call.cwd.clone().unwrap_or_else(|| self.places.cwd.clone())
    }

    /// Judges a call. Secrets in its output are replaced in place.
    pub fn judge(&self, agent: &dyn Agent, call: &mut ToolCall, rules: &RuleSet) -> Judgement {
        if call.kind == EventKind::BeforeTool {
            return self.judge_before(agent, call, rules, 0);
        }
        let own = |project: &Path| self.own_paths(project);
        let works_in = self.cwd_of(call);
        let machine = self.machine(&works_in, &runs_in(call, &works_in), &own);
        let name = agent.name();
        let mut strongest = Judgement::default();
        let mut output = call.output.take();
        if let Some(output) = &mut output {
            change_texts(output, &mut |text| {
                let request = baton_guard::Request::after(name, &call.tool, text);
                let judgement = baton_guard::judge(&request, rules, &machine);
                let decision = &judgement.verdict.decision;
                let new = match decision {
                    Decision::Redact(new) => Some(new.clone()),
                    _ => None,
                };
                if decision.strength() > strongest.verdict.decision.strength() {
                    strongest = judgement;
                }
                new
            });
        }
        call.output = output;
        strongest
    }

    /// Judges a call before it runs.
    fn judge_before(&self, agent: &dyn Agent, call: &ToolCall, rules: &RuleSet, repeats: u32) -> Judgement {
        let own = |project: &Path| self.own_paths(project);
        let works_in = self.cwd_of(call);
        let machine = self.machine(&works_in, &runs_in(call, &works_in), &own);
        let request =
            baton_guard::Request { repeats, ..baton_guard::Request::before(agent.name(), &call.tool) };
        baton_guard::judge(&request, rules, &machine)
    }

    /// The machine, seen from a folder.
    fn machine<'a>(
        &'a self,
        works_in: &Path,
        cwd: &Path,
        own: &'a dyn Fn(&Path) -> Vec<PathBuf>,
    ) -> Machine<'a> {
        Machine {
            works_in: works_in.to_owned(),
            cwd: cwd.to_owned(),
            hook_runs_in: self.places.cwd.clone(),
            home: self.places.user_home.clone(),
            env: self.places.env,
            own,
            links: world::Links::default(),
            listings: world::Listings::default(),
            repositories: world::Repositories::default(),
            patience: self.places.patience,
            own_line: self.places.own_line,
            git_deadline: std::cell::OnceCell::new(),
        }
    }

    /// The ruling for a call whose rules can't be read.
    fn failed(&self, agent: &dyn Agent, call: &mut ToolCall, error: &Error) -> Option<Ruling> {
        // These are the settings that could be read. A file that can't be read loosens nothing.
        let set = self.user.as_ref().map(|layer| layer.settings.on_failure.value).unwrap_or_default();
        let why = format!("{FAILURE_REASON} {}.", error.message());
        match (call.kind, set) {
            (EventKind::BeforeTool, set) => {
                self.write_down(agent, call, "", set.as_str());
                Some(held(set, why))
            }
            (_, OnFailure::Ask) => {
                self.write_down(agent, call, "", "allow");
                None
            }
            (_, OnFailure::Deny) => {
                self.write_down(agent, call, "", "redact");
                let output = call.output.as_mut()?;
                change_texts(output, &mut |_| Some(WITHHELD_OUTPUT.to_owned()));
                Some(Ruling::Redact { output: output.clone(), why })
            }
        }
    }

    /// A call in one short line for a person, without its secrets.
    pub fn shown(&self, call: &ToolCall, most: usize) -> String {
        let tool = &call.tool;
        let what = [&tool.command, &tool.typed, &tool.url].into_iter().flatten().next().cloned();
        let what = what.or_else(|| tool.path().map(str::to_owned)).unwrap_or_default();
        let what =
            baton_guard::redact::redact(&what, &RuleSet::standard()).map_or(what, |redacted| redacted.text);
        baton_core::frame::shown(format!("{} {what}", tool.native).trim(), most)
    }

    /// The files that an agent must not touch: baton's own, and agents' files that hold its
    /// entries.
    fn own_paths(&self, project: &Path) -> Vec<PathBuf> {
        let mut paths = vec![self.places.home.clone(), project.join(PROJECT_FILE)];
        paths.extend(self.places.config.iter().chain(&self.places.named_config).cloned());
        let search = (self.places.env)("PATH").unwrap_or_default();
        let programs = std::env::split_paths(&search).map(|folder| folder.join(PROGRAM_NAME));
        paths.extend(programs.filter(|program| program.is_absolute() && program.exists()));
        let nobody = Path::new("/");
        for agent in ALL {
            for scope in [Scope::User, Scope::Project(project.to_owned())] {
                let in_project = scope != Scope::User;
                let Ok(install) = Install::new(nobody, &self.places.home, scope) else { continue };
                let env = |name: &str| (self.places.env)(name);
                let Ok(target) = agent.target(install, &self.places.user_home, &env) else { continue };
                // A project's agent files belong to its people, unless they hold entries of baton.
                paths.extend(target.files().into_iter().filter(|file| !in_project || world::names_us(file)));
            }
        }
        paths
    }

    fn write_down(&self, agent: &dyn Agent, call: &ToolCall, rule: &str, decision: &str) {
        let entry = log::Entry {
            at: (self.places.now)(),
            agent: agent.name().to_owned(),
            session: call.session_id.clone(),
            event: call.native.clone(),
            tool: call.tool.native.clone(),
            rule: rule.to_owned(),
            decision: decision.to_owned(),
        };
        log::append(&self.places.home, &entry);
    }
}

/// The `.baton.toml` above a folder. Something else under that name counts too, and is then
/// reported as a mistake.
pub fn project_file(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().map(|dir| dir.join(PROJECT_FILE)).find(|file| file.symlink_metadata().is_ok())
}

fn held(set: OnFailure, why: String) -> Ruling {
    match set {
        OnFailure::Ask => Ruling::Ask(why),
        OnFailure::Deny => Ruling::Deny(why),
    }
}

/// The folder that a call runs in, given the folder that the agent works in.
fn runs_in(call: &ToolCall, works_in: &Path) -> PathBuf {
    call.tool.folder.as_ref().map_or_else(|| works_in.to_owned(), |folder| works_in.join(folder))
}

/// The reason for the model, with the rule's name.
fn why(verdict: &Verdict) -> String {
    format!("{} (baton guard: {})", verdict.reason, verdict.rule)
}

/// Built-in rules that no refusal offers to switch off: they protect baton itself, or come with a
/// job that only reads.
const NOT_OFFERED: [&str; 2] = ["protect-baton", baton_guard::rules::read_only::RULE_ID];

/// The reason of a refusal. The model passes on how its person can switch the rule off; it can't do
/// that itself.
fn why_refused(verdict: &Verdict) -> String {
    let (reason, rule) = (&verdict.reason, &verdict.rule);
    if baton_guard::rules::by_id(rule).is_none() || NOT_OFFERED.contains(&rule.as_str()) {
        return why(verdict);
    }
    format!("{reason} (baton guard: {rule}; only the person can switch it off: `baton guard disable {rule}`)")
}

/// The ruling that a verdict leads to; `None` for a plain allow.
fn to_ruling(call: &ToolCall, verdict: &Verdict) -> Option<Ruling> {
    let why = why(verdict);
    Some(match &verdict.decision {
        Decision::Allow => return None,
        Decision::Note => Ruling::Note(why),
        Decision::Ask => Ruling::Ask(why),
        Decision::Deny => Ruling::Deny(why_refused(verdict)),
        Decision::Redact(_) => Ruling::Redact { output: call.output.clone()?, why },
    })
}
