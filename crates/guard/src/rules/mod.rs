//! The rules: each has an id, parameters, a check, a reason for the model, and examples that run as
//! tests.

mod branches;
mod cloud;
pub mod custom;
mod delete;
mod disk;
mod download;
mod env;
mod git;
mod output;
mod outside;
mod packages;
mod persistence;
mod pipeline;
mod processes;
pub mod read_only;
mod rights;
mod secret_files;
mod selfprotection;
mod sql;
pub mod stop;

use crate::judge::{Facts, GuardEvent};
use crate::shell::{Command, Value};
use baton_core::guard::Decision;

/// What one rule says about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub decision: Decision,
    /// One line for the model: what happened, why, and what to do instead.
    pub reason: String,
}

impl Finding {
    pub fn deny(reason: impl Into<String>) -> Option<Self> {
        Some(Self { decision: Decision::Deny, reason: reason.into() })
    }

    pub fn ask(reason: impl Into<String>) -> Option<Self> {
        Some(Self { decision: Decision::Ask, reason: reason.into() })
    }

    pub fn note(reason: impl Into<String>) -> Option<Self> {
        Some(Self { decision: Decision::Note, reason: reason.into() })
    }
}

/// An example of a call for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Example {
    /// A command in a shell.
    Shell(&'static str),
    /// A file that a tool reads.
    Read(&'static str),
    /// A file that a tool writes, and its content.
    Write(&'static str, &'static str),
    /// The output of a tool.
    Output(&'static str),
}

pub struct Rule {
    pub id: &'static str,
    /// Whether it is on by default.
    pub on: bool,
    /// When it is checked.
    pub event: GuardEvent,
    /// Whether it may forbid commands. If such a rule is on, commands that are not understood need
    /// a decision too.
    pub forbids_commands: bool,
    /// The parameters that it accepts besides `hint`.
    pub parameters: &'static [&'static str],
    /// Its purpose in one line.
    pub about: &'static str,
    /// The check itself.
    pub check: fn(&Facts<'_>, &Params) -> Option<Finding>,
    /// Calls that it blocks, notes or redacts.
    pub bad: &'static [Example],
    /// Similar calls that it leaves alone.
    pub good: &'static [Example],
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rule").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The parameters of a rule. Those that are not given are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Simple commands that are allowed: `*` is one word, a last `**` is any rest.
    pub allow_patterns: Vec<String>,
    /// Paths that are allowed, with what is below them.
    pub allow_paths: Vec<String>,
    /// Protected branches; `None` for main and master.
    pub protected_branches: Option<Vec<String>>,
    /// More patterns: regular expressions with labels for secrets, parts of paths for writes.
    pub additional_patterns: Vec<LabelledPattern>,
    /// Package managers that may be used.
    pub allowed: Vec<String>,
    /// Package managers that may not be used.
    pub blocked: Vec<String>,
    /// A size, in KiB.
    pub threshold_kb: Option<u64>,
    /// How many repeats cause a note.
    pub times: Option<u32>,
    /// The remote to compare with.
    pub remote: Option<String>,
    /// The branch to compare with.
    pub base_branch: Option<String>,
    /// A text that follows the reason.
    pub hint: Option<String>,
}

/// A pattern that a person gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledPattern {
    pub text: String,
    /// The name that replaces what it finds.
    pub label: String,
}

/// A rule that is on, with its parameters.
#[derive(Clone, Debug)]
pub struct Active {
    pub rule: &'static Rule,
    pub params: Params,
}

/// What happens to a command that is not understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// The person is asked.
    #[default]
    Ask,
    /// It is denied.
    Deny,
    /// It is allowed.
    Allow,
}

/// The rules for a request.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// The built-in rules that are on.
    pub rules: Vec<Active>,
    /// The rules from rule files.
    pub custom: Vec<custom::Custom>,
    /// What happens to a command that is not understood.
    pub unknown: Unknown,
}

impl RuleSet {
    /// Every rule that is on by default.
    pub fn standard() -> Self {
        let rules =
            all().filter(|rule| rule.on).map(|rule| Active { rule, params: Params::default() }).collect();
        Self { rules, ..Self::default() }
    }

    /// One rule only.
    pub fn only(id: &str, params: Params) -> Option<Self> {
        let rule = by_id(id)?;
        Some(Self { rules: vec![Active { rule, params }], ..Self::default() })
    }

    /// The active rules for this event.
    pub fn active(&self, event: GuardEvent) -> impl Iterator<Item = &Active> {
        self.rules.iter().filter(move |active| active.rule.event == event)
    }

    /// Whether any rule may forbid a command.
    pub fn forbids_commands(&self) -> bool {
        self.rules.iter().any(|active| active.rule.forbids_commands)
            || self.custom.iter().any(custom::Custom::forbids_commands)
    }
}

pub fn all() -> impl Iterator<Item = &'static Rule> {
    const FAMILIES: &[&[Rule]] = &[
        rights::RULES,
        delete::RULES,
        download::RULES,
        env::RULES,
        outside::RULES,
        read_only::RULES,
        secret_files::RULES,
        selfprotection::RULES,
        persistence::RULES,
        branches::RULES,
        git::RULES,
        cloud::RULES,
        pipeline::RULES,
        disk::RULES,
        sql::RULES,
        packages::RULES,
        processes::RULES,
        crate::redact::RULES,
        stop::RULES,
    ];
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The rule of this id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// The check of rules that are checked elsewhere.
pub(crate) fn no_check(_: &Facts<'_>, _: &Params) -> Option<Finding> {
    None
}

/// Whether one of the patterns allows a whole command.
pub(crate) fn is_allowed(command: &Command, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| matches_pattern(&command.words, &command.name, pattern))
}

fn matches_pattern(words: &[Value], name: &str, pattern: &str) -> bool {
    let mut wanted = pattern.split_whitespace().peekable();
    let mut first = true;
    let mut words = words.iter();
    while let Some(want) = wanted.next() {
        if want == "**" && wanted.peek().is_none() {
            return true;
        }
        let Some(word) = words.next() else { return false };
        let fits = want == "*" || word.literal() == Some(want) || (first && name == want);
        if !fits {
            return false;
        }
        first = false;
    }
    words.next().is_none()
}

/// The arguments that are neither options nor values of these options.
pub(crate) fn operands<'c>(args: &'c [Value], valued: &[&str]) -> Vec<&'c Value> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut ended = false;
    while let Some(arg) = args.get(at) {
        at += 1;
        let text = arg.text.as_str();
        if ended || !text.starts_with('-') || text == "-" {
            out.push(arg);
        } else if text == "--" {
            ended = true;
        } else if valued.contains(&text) {
            at += 1;
        }
    }
    out
}

/// A text, cut to fit into a reason.
pub(crate) fn short(text: &str) -> String {
    let mut out: String =
        text.chars().take(80).map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
    if text.chars().nth(80).is_some() {
        out.push('…');
    }
    out
}
