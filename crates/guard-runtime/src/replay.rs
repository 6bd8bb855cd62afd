//! What today's rules would have said about past calls.
//!
//! The calls are judged on the machine as it is now; its files, links and repositories may have
//! changed since. Each repository is asked once.

use crate::journal::{Journal, RecordKind, digest, seconds};
use crate::policy::Mode;
use crate::world::Machine;
use crate::{Guard, runs_in};
use baton_agents::call::change_texts;
use baton_agents::history::Past;
use baton_agents::{Agent, ToolCall};
use baton_core::Error;
use baton_core::event::EventKind;
use baton_core::guard::{Decision, HookSwitch, OwnLine, Verdict};
use baton_core::tool::ToolUse;
use baton_guard::{Repository, RuleSet, World};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// How many calls wait for their results. Agents run far fewer at once.
const MAX_OPEN_CALLS: usize = 4096;

/// Judges past calls, one conversation after another.
pub struct Replay<'a> {
    guard: &'a Guard,
    rules: HashMap<PathBuf, Option<RuleSet>>,
    repositories: RefCell<HashMap<String, Repository>>,
    calls: HashMap<String, ToolUse>,
    own: RefCell<HashMap<PathBuf, Vec<PathBuf>>>,
    /// The calls that the journal knows as judged.
    judged: HashSet<u64>,
    oldest: Option<u32>,
}

impl<'a> Replay<'a> {
    /// Uses the rules of each call's folder.
    pub fn new(guard: &'a Guard) -> Self {
        let (mut judged, mut oldest) = (HashSet::new(), None);
        Journal::new(&guard.places.home).newest(None, |record| {
            if matches!(record.kind, RecordKind::Judged | RecordKind::Refused) {
                judged.insert(record.call);
                oldest = Some(record.at);
            }
            None::<()>
        });
        Self {
            judged,
            oldest,
            guard,
            rules: HashMap::new(),
            repositories: RefCell::default(),
            calls: HashMap::new(),
            own: RefCell::default(),
        }
    }

    /// Whether a call has run without being judged, although the journal covers that time.
    pub fn ran_unjudged(&self, agent: &dyn Agent, past: &Past) -> bool {
        let has_ids = !agent.facts().calls.call.is_empty();
        let (Some(id), Some(at), Some(oldest)) = (&past.call.id, past.at, self.oldest) else { return false };
        past.call.kind == EventKind::AfterTool
            && has_ids
            && seconds(at) > oldest
            && !self.judged.contains(&digest(&[id]))
    }

    /// What the guard would have decided; `None` if it is off there. A result is judged with the
    /// call that it belongs to.
    pub fn judge(&mut self, agent: &dyn Agent, past: &mut Past) -> Result<Option<Verdict>, Error> {
        let call = &mut past.call;
        match (&call.id, call.kind) {
            (Some(id), EventKind::BeforeTool) => {
                if self.calls.len() >= MAX_OPEN_CALLS {
                    self.calls.clear();
                }
                self.calls.insert(id.clone(), call.tool.clone());
            }
            (Some(id), _) => {
                if let Some(tool) = self.calls.remove(id) {
                    call.tool = tool;
                }
            }
            (None, _) => {}
        }
        let cwd = self.guard.cwd_of(call);
        let Some(rules) = self.rules_in(&cwd)? else { return Ok(None) };
        let own = |project: &Path| {
            let mut known = self.own.borrow_mut();
            known.entry(project.to_owned()).or_insert_with(|| self.guard.own_paths(project)).clone()
        };
        let machine = self.guard.machine(&cwd, &runs_in(call, &cwd), &own);
        let machine = Remembering { machine, repositories: &self.repositories };
        Ok(Some(verdict(agent, call, &rules, &machine)))
    }

    /// The rules of a folder. A file with a mistake is an error; a file that no longer exists is
    /// not.
    fn rules_in(&mut self, cwd: &Path) -> Result<Option<RuleSet>, Error> {
        if let Some(known) = self.rules.get(cwd) {
            return Ok(known.clone());
        }
        let policy = self.guard.policy(cwd)?;
        let rules = (policy.settings.mode.value == Mode::On).then_some(policy.rules);
        self.rules.insert(cwd.to_owned(), rules.clone());
        Ok(rules)
    }
}

fn verdict(agent: &dyn Agent, call: &mut ToolCall, rules: &RuleSet, world: &dyn World) -> Verdict {
    if call.kind == EventKind::BeforeTool {
        let request = baton_guard::Request::before(agent.name(), &call.tool);
        return baton_guard::judge(&request, rules, world).verdict;
    }
    let mut strongest = Verdict::allow();
    let Some(mut output) = call.output.take() else { return strongest };
    change_texts(&mut output, &mut |text| {
        let request = baton_guard::Request::after(agent.name(), &call.tool, text);
        let verdict = baton_guard::judge(&request, rules, world).verdict;
        if verdict.decision.strength() > strongest.decision.strength() {
            strongest = Verdict { decision: plain(verdict.decision), ..verdict };
        }
        None
    });
    strongest
}

/// The decision without the redacted text.
fn plain(decision: Decision) -> Decision {
    match decision {
        Decision::Redact(_) => Decision::Redact(String::new()),
        other => other,
    }
}

/// The machine, with git's answers kept.
struct Remembering<'a> {
    machine: Machine<'a>,
    repositories: &'a RefCell<HashMap<String, Repository>>,
}

impl World for Remembering<'_> {
    fn cwd(&self) -> String {
        self.machine.cwd()
    }

    fn project(&self) -> String {
        self.machine.project()
    }

    fn home(&self) -> String {
        self.machine.home()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.machine.variable(name)
    }

    fn real_path(&self, path: &str) -> Option<String> {
        self.machine.real_path(path)
    }

    fn read_file(&self, path: &str, most: usize) -> Option<String> {
        self.machine.read_file(path, most)
    }

    fn exists(&self, path: &str) -> Option<bool> {
        self.machine.exists(path)
    }

    fn repository(&self, folder: &str) -> Repository {
        let mut known = self.repositories.borrow_mut();
        known.entry(folder.to_owned()).or_insert_with(|| self.machine.repository(folder)).clone()
    }

    fn loses_commits(&self, folder: &str, reference: &str, kept: Option<&str>) -> Option<bool> {
        self.machine.loses_commits(folder, reference, kept)
    }

    fn own_paths(&self) -> Vec<String> {
        self.machine.own_paths()
    }

    fn own_program(&self) -> Option<String> {
        self.machine.own_program()
    }

    fn is_own_program(&self, path: &str) -> bool {
        self.machine.is_own_program(path)
    }

    fn own_line(&self, words: &[&str]) -> OwnLine {
        self.machine.own_line(words)
    }

    fn is_same_file(&self, path: &str, others: &[String]) -> bool {
        self.machine.is_same_file(path, others)
    }

    fn switches(&self) -> Vec<HookSwitch> {
        self.machine.switches()
    }
}
