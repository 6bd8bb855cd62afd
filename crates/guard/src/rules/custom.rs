//! Rules that a person writes: matchers over commands, arguments, paths, effects, tools, agents.
//!
//! Every matcher of a rule must match, by one of its values. `command` and `argument` must match
//! the same command, `path` and `effect` the same file.

use super::matches_pattern;
use crate::files::Touch;
use crate::judge::{Facts, GuardEvent};
use crate::path;
use crate::shell::Command;
use crate::shell::value::pattern_matches;
use baton_core::guard::{Decision, Verdict};

/// What a custom rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Allows what built-in rules would only ask about. What they deny stays denied.
    Allow,
    Deny,
    /// The person is asked.
    Ask,
    Note,
}

/// A rule from a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    pub id: String,
    pub action: Action,
    pub event: GuardEvent,
    /// The reason for the model.
    pub reason: String,
    /// Commands, word by word: `*` is one word, a last `**` is any rest. A single word is any use
    /// of that program.
    pub commands: Vec<String>,
    /// Patterns. One argument must match one of them.
    pub arguments: Vec<String>,
    /// Paths or patterns, relative to the project's folder. A folder includes everything below it.
    pub paths: Vec<String>,
    /// `read`, `list`, `write`, `delete`, `execute`.
    pub effects: Vec<String>,
    /// Kinds of tools (`shell`, `read` …) or the agents' own names for them.
    pub tools: Vec<String>,
    pub agents: Vec<String>,
}

impl Custom {
    /// Whether it matches on something of a call.
    pub(crate) fn names_call(&self) -> bool {
        self.names_commands() || self.names_touches() || !self.tools.is_empty()
    }

    /// Whether it may forbid commands.
    pub fn forbids_commands(&self) -> bool {
        matches!(self.action, Action::Deny | Action::Ask)
            && self.event == GuardEvent::Before
            && (!self.commands.is_empty() || !self.arguments.is_empty())
    }

    /// Its verdict. An allow has none here, see [`Custom::allows`].
    pub fn check(&self, facts: &Facts<'_>) -> Option<Verdict> {
        if self.action == Action::Allow || facts.request.event != self.event || !self.fits_call(facts) {
            return None;
        }
        let commands =
            !self.names_commands() || facts.commands_anywhere().any(|command| self.fits_command(command));
        let touches =
            !self.names_touches() || facts.touches.iter().any(|touch| self.fits_touch(touch, facts));
        if !commands || !touches {
            return None;
        }
        let decision = match self.action {
            // The call has run, so a deny hides its output.
            Action::Deny if self.event == GuardEvent::After => Decision::Redact(format!("[{}]", self.reason)),
            Action::Deny => Decision::Deny,
            Action::Ask => Decision::Ask,
            Action::Note | Action::Allow => Decision::Note,
        };
        Some(Verdict::new(decision, self.id.clone(), self.reason.clone()))
    }

    /// Its verdict at the end of an agent's turn.
    pub(crate) fn at_stop(&self, agent: &str) -> Option<Verdict> {
        let is_its = self.agents.is_empty() || self.agents.iter().any(|name| name == agent);
        (self.event == GuardEvent::Stop && self.action == Action::Deny && is_its)
            .then(|| Verdict::new(Decision::Deny, self.id.clone(), self.reason.clone()))
    }

    /// Whether it allows the whole call: every command, and every file if it names files.
    pub fn allows(&self, facts: &Facts<'_>) -> bool {
        if self.action != Action::Allow || facts.request.event != self.event || !self.fits_call(facts) {
            return false;
        }
        let understood = facts
            .analysis
            .as_ref()
            .is_none_or(|analysis| analysis.unknown.is_empty() && analysis.ran.is_empty());
        let mut commands = facts.commands_anywhere().filter(|command| !command.name.is_empty()).peekable();
        let all_commands = !self.names_commands()
            || (commands.peek().is_some() && commands.all(|command| self.fits_command(command)));
        let all_touches = !self.names_touches()
            || (!facts.touches.is_empty() && facts.touches.iter().all(|touch| self.fits_touch(touch, facts)));
        understood && all_commands && all_touches
    }

    fn names_commands(&self) -> bool {
        !self.commands.is_empty() || !self.arguments.is_empty()
    }

    fn names_touches(&self) -> bool {
        !self.paths.is_empty() || !self.effects.is_empty()
    }

    fn fits_call(&self, facts: &Facts<'_>) -> bool {
        let agent = self.agents.is_empty() || self.agents.iter().any(|agent| agent == facts.request.agent);
        let tool = self.tools.is_empty()
            || facts.request.tool.is_some_and(|tool| {
                self.tools
                    .iter()
                    .any(|name| name == tool.kind.as_str() || pattern_matches(name, &tool.native))
            });
        agent && tool
    }

    fn fits_command(&self, command: &Command) -> bool {
        let name = self.commands.is_empty()
            || self.commands.iter().any(|pattern| match pattern.split_whitespace().count() {
                1 => *pattern == command.name || *pattern == "*",
                _ => matches_pattern(&command.words, &command.name, pattern),
            });
        let argument = self.arguments.is_empty()
            || command.args().iter().any(|arg| {
                self.arguments.iter().any(|pattern| {
                    pattern_matches(pattern, &arg.text) || (!arg.is_known() && arg.may_be(pattern))
                })
            });
        name && argument
    }

    fn fits_touch(&self, touch: &Touch, facts: &Facts<'_>) -> bool {
        let effect =
            self.effects.is_empty() || self.effects.iter().any(|effect| effect == touch.deed.as_str());
        let path = self.paths.is_empty()
            || [touch.path.as_deref(), touch.real.as_deref()]
                .into_iter()
                .flatten()
                .any(|path| self.paths.iter().any(|pattern| fits_path(pattern, path, facts)));
        effect && path
    }
}

fn fits_path(pattern: &str, path: &str, facts: &Facts<'_>) -> bool {
    let expanded = super::delete::expand_home(pattern, &facts.home);
    let whole = path::join(&facts.project, &expanded);
    if !pattern.contains(['*', '?', '[']) {
        return path::is_below(path, &whole);
    }
    // A pattern without a slash matches names.
    if !pattern.contains('/') {
        return pattern_matches(pattern, path::file_name(path));
    }
    pattern_matches(&whole, path)
}
