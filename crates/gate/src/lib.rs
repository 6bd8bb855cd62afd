//! The gate: where a tool call meets the guard.
//!
//! What a hook or a plugin shows of a call is judged by the rules of that moment (crate `guard`), on this machine (`world`), written to the
//! guard's log ([`log`]), and said in the agent's words (crate `agents`). No store is opened and nothing is decided here, but for one thing: a
//! call that could not be judged is asked about, or refused where the person has set that. It never simply runs.

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
use baton_agents::{ALL, Agent, Call, Ruling};
use baton_core::event::EventKind;
use baton_core::guard::{Decision, Verdict};
use baton_core::tool::{ToolKind, ToolUse};
use baton_core::{Code, Error};
use baton_guard::config::Merged;
use baton_guard::rules::read_only;
use baton_guard::{Active, Judgement, Params, RuleSet};

use journal::Mark;
use policy::{Mode, OnFailure, Owner, Settings};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world::Machine;

/// The project's settings and rules.
pub const PROJECT_FILE: &str = ".baton.toml";
/// Why a call that could not be judged does not simply run.
const FAILED: &str = "baton's guard could not judge this call.";
/// What stands in the place of an output that could not be judged, where the person wants that.
const WITHHELD: &str = "[baton's guard could not judge this output]";

/// Where things are, and how the world is reached.
pub struct Places {
    /// baton's home, where the log is.
    pub home: PathBuf,
    /// The user's configuration.
    pub config: Option<PathBuf>,
    /// Another that the environment names. A repository can set an agent's environment, so this one may only tighten, like a project's.
    pub named_config: Option<PathBuf>,
    /// The person's home.
    pub user_home: PathBuf,
    /// Where a call is made whose payload does not say it.
    pub cwd: PathBuf,
    /// Reads the environment.
    pub env: fn(&str) -> Option<OsString>,
    /// The time, for the log.
    pub now: fn() -> baton_core::time::Moment,
    /// How long the host of a repository may take to answer, at the end of a turn.
    pub patience: Duration,
    /// What else there is to tell about a call that has run, if the guard says nothing: the home, the agent, the call.
    pub aside: fn(&Path, &dyn Agent, &Call) -> Option<String>,
}

/// The guard of this moment.
pub struct Gate {
    places: Places,
    user: Result<Layer, Error>,
}

/// What one file and those before it have set.
#[derive(Clone, Debug, Default)]
struct Layer {
    settings: Settings,
    /// The files with rules, and their text.
    rules: Vec<(PathBuf, String, Owner)>,
}

impl Layer {
    fn with(mut self, file: &Path, owner: Owner) -> Result<Self, Error> {
        if let Some(text) = policy::text(file)? {
            let rules = self.settings.read(file, &text, owner)?;
            self.rules.push((file.to_owned(), rules, owner));
        }
        Ok(self)
    }
}

/// Set where nothing may be changed: in jobs that only read.
pub const READ_ONLY: &str = "BATON_READ_ONLY";

/// What is in force in a folder.
pub struct Policy {
    /// The settings of the guard as a whole.
    pub settings: Settings,
    /// The rules.
    pub rules: RuleSet,
    /// What a file wanted that may only tighten, and does not get, one line each.
    pub ignored: Vec<String>,
}

impl Gate {
    /// Opens it: the user's file is read.
    pub fn open(places: Places) -> Self {
        let files = [(&places.config, Owner::User), (&places.named_config, Owner::Project)];
        let user = files.into_iter().try_fold(Layer::default(), |layer, (file, owner)| match file {
            Some(file) => layer.with(file, owner),
            None => Ok(layer),
        });
        Self { places, user }
    }

    /// The settings of the guard as a whole, wherever one works.
    pub fn settings(&self) -> Result<&Settings, Error> {
        self.user.as_ref().map(|layer| &layer.settings).map_err(Clone::clone)
    }

    /// What is in force in a folder.
    pub fn policy(&self, cwd: &Path) -> Result<Policy, Error> {
        let mut layer = self.user.clone()?;
        if let Some(file) = project_file(cwd) {
            layer = layer.with(&file, Owner::Project)?;
        }
        let Layer { settings, rules } = layer;
        let Merged { mut rules, ignored } = policy::rules(&rules)?;
        // The environment may tighten: a job that only reads carries it.
        if (self.places.env)(READ_ONLY).is_some()
            && let Some(rule) = baton_guard::rules::by_id(read_only::ID)
        {
            rules.rules.push(Active { rule, params: Params::default() });
        }
        Ok(Policy { settings, rules, ignored })
    }

    /// What is said about a call of this event when nothing else can be, in the agent's words; `None` after a tool, and where calls are not judged.
    pub fn unjudged(&self, agent: &dyn Agent, native: &str) -> Option<String> {
        let settings = self.user.as_ref().map(|layer| layer.settings.clone()).unwrap_or_default();
        if settings.mode.value == Mode::Off || !agent.facts().calls.before.contains(&native) {
            return None;
        }
        let call = Call {
            kind: EventKind::BeforeTool,
            native: native.to_owned(),
            session_id: None,
            cwd: None,
            id: None,
            tool: ToolUse::new(ToolKind::Unknown, ""),
            input: Value::Null,
            output: None,
        };
        Some(agent.render_ruling(&call, &held(settings.on_failure.value, FAILED.to_owned())))
    }

    /// What is said about the call that a payload shows, in the agent's words; `None` where nothing is, or where it shows no call and need not.
    pub fn answer(
        &self,
        agent: &dyn Agent,
        payload: &[u8],
        named: Option<&str>,
    ) -> Result<Option<String>, Error> {
        let ruled = self.ruling(agent, payload, named)?;
        let said = ruled.map(|(call, ruling)| agent.render_ruling(&call, &ruling));
        Ok(said.filter(|said| !said.is_empty()))
    }

    /// The same, with the call, not yet in the agent's words.
    pub fn ruling(
        &self,
        agent: &dyn Agent,
        payload: &[u8],
        named: Option<&str>,
    ) -> Result<Option<(Call, Ruling)>, Error> {
        let Some(mut call) = agent.call(payload, named)? else {
            let before = named.is_some_and(|named| agent.facts().calls.before.contains(&named));
            return if before {
                Err(Error::new(Code::Usage, "the payload shows no tool call"))
            } else {
                Ok(None)
            };
        };
        if agent.facts().calls.cwd_is_of_call {
            self.put_in_its_place(&mut call);
        }
        let cwd = self.cwd_of(&call);
        let ruling = match self.policy(&cwd) {
            Ok(policy) if policy.settings.mode.value == Mode::Off => return Ok(None),
            Ok(policy) => {
                if call.kind == EventKind::AfterTool {
                    self.look_for_unjudged(agent, &call);
                }
                let verdict = self.judge_to_say(agent, &mut call, &policy.rules);
                let ruling = ruling(&call, &verdict);
                if ruling.is_some() {
                    self.write_down(agent, &call, &verdict.rule, verdict.decision.as_str());
                }
                ruling
            }
            Err(error) => self.failed(agent, &mut call, &error),
        };
        if call.kind == EventKind::BeforeTool {
            let mark = if matches!(ruling, Some(Ruling::Deny(_))) { Mark::Refused } else { Mark::Judged };
            self.memory(agent, call.session_id.as_deref()).judged(&call, mark);
        }
        let ruling = ruling.or_else(|| self.aside(agent, &call));
        Ok(ruling.map(|ruling| (call, ruling)))
    }

    /// Judges a call at a hook, with what is remembered. A note that the agent takes only after the call is kept for then.
    fn judge_to_say(&self, agent: &dyn Agent, call: &mut Call, rules: &RuleSet) -> Verdict {
        let notes_after = agent.facts().calls.notes_after;
        let repeats = self.memory(agent, call.session_id.as_deref()).repeats(call, rules);
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

    /// Writes down a call that has run although nobody judged it.
    fn look_for_unjudged(&self, agent: &dyn Agent, call: &Call) {
        if !self.memory(agent, call.session_id.as_deref()).was_judged(call) {
            self.write_down(agent, call, "", log::UNJUDGED);
        }
    }

    /// What is told beside the guard, after a tool.
    fn aside(&self, agent: &dyn Agent, call: &Call) -> Option<Ruling> {
        if call.kind != EventKind::AfterTool {
            return None;
        }
        (self.places.aside)(&self.places.home, agent, call).map(Ruling::Note)
    }

    /// A call whose payload only says where it runs: the agent works where its hook does, unless that is no place to work in.
    fn put_in_its_place(&self, call: &mut Call) {
        let here = &self.places.cwd;
        if here.parent().is_some() && *here != self.places.user_home {
            call.tool.folder = call.cwd.take().map(|cwd| cwd.to_string_lossy().into_owned());
            call.cwd = Some(here.clone());
        }
    }

    /// Where a call is made whose payload does not say it.
    pub fn cwd(&self) -> &Path {
        &self.places.cwd
    }

    /// Where the agent works that makes a call.
    pub fn cwd_of(&self, call: &Call) -> PathBuf {
        call.cwd.clone().unwrap_or_else(|| self.places.cwd.clone())
    }

    /// Judges a call. What is to be taken out of its output is taken out of it.
    pub fn judge(&self, agent: &dyn Agent, call: &mut Call, rules: &RuleSet) -> Judgement {
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
                let question = baton_guard::Call::after(name, &call.tool, text);
                let judgement = baton_guard::judge(&question, rules, &machine);
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

    /// Judges a call as it stands before it runs.
    fn judge_before(&self, agent: &dyn Agent, call: &Call, rules: &RuleSet, repeats: u32) -> Judgement {
        let own = |project: &Path| self.own_paths(project);
        let works_in = self.cwd_of(call);
        let machine = self.machine(&works_in, &runs_in(call, &works_in), &own);
        let question = baton_guard::Call { repeats, ..baton_guard::Call::before(agent.name(), &call.tool) };
        baton_guard::judge(&question, rules, &machine)
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
            home: self.places.user_home.clone(),
            env: self.places.env,
            own,
            links: world::Links::default(),
            patience: self.places.patience,
        }
    }

    /// What is said about a call for which there are no rules, because their files can't be used.
    fn failed(&self, agent: &dyn Agent, call: &mut Call, error: &Error) -> Option<Ruling> {
        // The settings that could be read; a file that can't be read loosens nothing.
        let set = self.user.as_ref().map(|layer| layer.settings.on_failure.value).unwrap_or_default();
        let why = format!("{FAILED} {}.", error.message());
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
                change_texts(output, &mut |_| Some(WITHHELD.to_owned()));
                Some(Ruling::Redact { output: output.clone(), why })
            }
        }
    }

    /// A call in short for a person, without the secrets in it.
    pub fn shown(&self, call: &Call, most: usize) -> String {
        let tool = &call.tool;
        let what = [&tool.command, &tool.typed, &tool.url].into_iter().flatten().next().cloned();
        let what = what.or_else(|| tool.path().map(str::to_owned)).unwrap_or_default();
        let what =
            baton_guard::redact::redact(&what, &RuleSet::standard()).map_or(what, |redacted| redacted.text);
        baton_core::frame::shown(format!("{} {what}", tool.native).trim(), most)
    }

    /// What an agent must not touch: our own files, and those of the agents that hold our entries.
    fn own_paths(&self, project: &Path) -> Vec<PathBuf> {
        let mut paths = vec![self.places.home.clone(), project.join(PROJECT_FILE)];
        paths.extend(self.places.config.iter().chain(&self.places.named_config).cloned());
        let nobody = Path::new("/");
        for agent in ALL {
            for scope in [Scope::User, Scope::Project(project.to_owned())] {
                let in_project = scope != Scope::User;
                let Ok(install) = Install::new(nobody, &self.places.home, scope) else { continue };
                let env = |name: &str| (self.places.env)(name);
                let Ok(target) = agent.target(install, &self.places.user_home, &env) else { continue };
                // A project's files are other people's too, unless they have our entries in them.
                paths.extend(target.files().into_iter().filter(|file| !in_project || world::names_us(file)));
            }
        }
        paths
    }

    fn write_down(&self, agent: &dyn Agent, call: &Call, rule: &str, decision: &str) {
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

/// The file of the project that a folder belongs to.
fn project_file(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().map(|dir| dir.join(PROJECT_FILE)).find(|file| file.is_file())
}

fn held(set: OnFailure, why: String) -> Ruling {
    match set {
        OnFailure::Ask => Ruling::Ask(why),
        OnFailure::Deny => Ruling::Deny(why),
    }
}

/// Where a call runs, of an agent that works somewhere.
fn runs_in(call: &Call, works_in: &Path) -> PathBuf {
    call.tool.folder.as_ref().map_or_else(|| works_in.to_owned(), |folder| works_in.join(folder))
}

/// What the model is told.
fn why(verdict: &Verdict) -> String {
    format!("{} (baton guard: {})", verdict.reason, verdict.rule)
}

/// What is said about a call; `None` for a plain allow.
fn ruling(call: &Call, verdict: &Verdict) -> Option<Ruling> {
    let why = why(verdict);
    Some(match &verdict.decision {
        Decision::Allow => return None,
        Decision::Note => Ruling::Note(why),
        Decision::Ask => Ruling::Ask(why),
        Decision::Deny => Ruling::Deny(why),
        Decision::Redact(_) => Ruling::Redact { output: call.output.clone()?, why },
    })
}
