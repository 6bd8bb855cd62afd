//! The rules: each with its id, its parameters, what it looks for, what the model is told, and examples that are run as tests.

mod branches;
mod cloud;
pub mod custom;
mod delete;
mod disk;
mod download;
mod env;
mod git;
mod outside;
mod packages;
mod pipeline;
mod processes;
pub mod read_only;
mod rights;
mod secret_files;
mod selfprotection;
mod sql;
pub mod stop;

use crate::judge::{Facts, Moment};
use crate::shell::{Command, Value};
use baton_core::guard::Decision;

/// What a rule has to say about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is to happen.
    pub decision: Decision,
    /// One line for the model: what, why, what to do instead.
    pub reason: String,
}

impl Finding {
    /// It must not happen.
    pub fn deny(reason: impl Into<String>) -> Option<Self> {
        Some(Self { decision: Decision::Deny, reason: reason.into() })
    }

    /// The person decides.
    pub fn ask(reason: impl Into<String>) -> Option<Self> {
        Some(Self { decision: Decision::Ask, reason: reason.into() })
    }

    /// The model is told.
    pub fn note(reason: impl Into<String>) -> Option<Self> {
        Some(Self { decision: Decision::Note, reason: reason.into() })
    }
}

/// A call that shows what a rule means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Example {
    /// A command in a shell.
    Shell(&'static str),
    /// A file that a tool reads.
    Read(&'static str),
    /// A file that a tool writes, and its content.
    Write(&'static str, &'static str),
    /// What a tool gave back.
    Output(&'static str),
}

/// A rule.
pub struct Rule {
    /// Its id.
    pub id: &'static str,
    /// Whether it is on unless somebody says otherwise.
    pub on: bool,
    /// When it looks.
    pub event: Moment,
    /// Whether it may forbid commands, so that a command which nobody understands is its business too.
    pub forbids_commands: bool,
    /// The parameters that it takes, besides `hint`.
    pub parameters: &'static [&'static str],
    /// What it is for, in one line.
    pub about: &'static str,
    /// What it has to say.
    pub check: fn(&Facts<'_>, &Params) -> Option<Finding>,
    /// Calls that it holds back, notes or redacts.
    pub bad: &'static [Example],
    /// Calls that look alike and are none of its business.
    pub good: &'static [Example],
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rule").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The parameters of a rule; what is not given is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Whole simple commands that are allowed: `*` is one word, a last `**` any rest.
    pub allow_patterns: Vec<String>,
    /// Paths that are allowed, with what is below them.
    pub allow_paths: Vec<String>,
    /// Branches that are protected; `None` for main and master.
    pub protected_branches: Option<Vec<String>>,
    /// More patterns: regular expressions with labels for secrets, parts of paths for writes.
    pub additional_patterns: Vec<Pattern>,
    /// Package managers that are meant to be used.
    pub allowed: Vec<String>,
    /// Package managers that are not.
    pub blocked: Vec<String>,
    /// A size, in KiB.
    pub threshold_kb: Option<u64>,
    /// How many repeats are too many.
    pub times: Option<u32>,
    /// The remote that counts.
    pub remote: Option<String>,
    /// The branch that work goes to.
    pub base_branch: Option<String>,
    /// A text that is put behind the reason.
    pub hint: Option<String>,
}

/// A pattern that a person gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// What is looked for.
    pub text: String,
    /// What it is called.
    pub label: String,
}

/// A rule that is on, with its parameters.
#[derive(Clone, Debug)]
pub struct Active {
    /// The rule.
    pub rule: &'static Rule,
    /// Its parameters.
    pub params: Params,
}

/// What happens with a command that is not understood.
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

/// The rules that a call is judged by.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// Our rules that are on.
    pub rules: Vec<Active>,
    /// The person's own.
    pub custom: Vec<custom::Custom>,
    /// What happens with what is not understood.
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

    /// The rules that look at this moment.
    pub fn active(&self, event: Moment) -> impl Iterator<Item = &Active> {
        self.rules.iter().filter(move |active| active.rule.event == event)
    }

    /// Whether any rule may forbid a command.
    pub fn forbids_commands(&self) -> bool {
        self.rules.iter().any(|active| active.rule.forbids_commands)
            || self.custom.iter().any(custom::Custom::forbids_commands)
    }
}

/// Every rule.
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

/// For rules that are judged elsewhere.
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

/// The arguments that are no options, with the values of these options left out.
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

/// A text cut to what fits into a reason.
pub(crate) fn short(text: &str) -> String {
    let mut out: String =
        text.chars().take(80).map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
    if text.chars().nth(80).is_some() {
        out.push('…');
    }
    out
}
