//! From a request to a decision: the facts are gathered once, every rule looks at them, the
//! strongest decision wins.

use crate::files::{self, Touch};
use crate::rules::{self, Finding, RuleSet, Unknown};
use crate::shell::{self, Analysis, Origin};
use crate::world::World;
use crate::{redact, secrets};
use baton_core::guard::{Decision, Verdict};
use baton_core::tool::{ToolKind, ToolUse};

/// When a request is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardEvent {
    /// A tool is about to run.
    Before,
    /// A tool has run, and its output is about to reach the model.
    After,
    /// A turn is about to end.
    Stop,
}

impl GuardEvent {
    /// The event in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Stop => "stop",
        }
    }
}

/// What the guard judges: a tool call, its output, or the end of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The agent's name, for rules about one agent.
    pub agent: &'a str,
    pub event: GuardEvent,
    /// The tool call; `None` at a stop.
    pub tool: Option<&'a ToolUse>,
    /// The tool's output, after it ran.
    pub output: Option<&'a str>,
    /// How often the same call was made just before, with no other in between.
    pub repeats: u32,
    /// How often this turn was already kept from ending; `None` if that was not counted.
    pub stops_blocked: Option<u32>,
    /// Whether the agent says that the turn continues only because a stop was blocked.
    pub stop_active: bool,
}

impl<'a> Request<'a> {
    /// A tool that is about to run.
    pub fn before(agent: &'a str, tool: &'a ToolUse) -> Self {
        Self {
            agent,
            event: GuardEvent::Before,
            tool: Some(tool),
            output: None,
            repeats: 0,
            stops_blocked: None,
            stop_active: false,
        }
    }

    /// A tool that has run.
    pub fn after(agent: &'a str, tool: &'a ToolUse, output: &'a str) -> Self {
        Self { event: GuardEvent::After, output: Some(output), ..Self::before(agent, tool) }
    }

    /// A turn that is about to end.
    pub fn stop(agent: &'a str) -> Self {
        Self {
            agent,
            event: GuardEvent::Stop,
            tool: None,
            output: None,
            repeats: 0,
            stops_blocked: None,
            stop_active: false,
        }
    }
}

/// The decision about a request, and what led to it.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// The strongest verdict.
    pub verdict: Verdict,
    /// The verdict of every rule that had something to say.
    pub found: Vec<Verdict>,
    /// What the command would do, to explain the decision.
    pub analysis: Option<Analysis>,
    /// The files that the call touches.
    pub touches: Vec<Touch>,
}

/// What rules decide by.
pub struct Facts<'a> {
    pub request: Request<'a>,
    pub world: &'a dyn World,
    /// The command, if the call has one.
    pub analysis: Option<Analysis>,
    /// The files that the call touches: by its command, its paths or its patch.
    pub touches: Vec<Touch>,
    /// The project's folder, links resolved.
    pub project: String,
    /// The person's home, links resolved.
    pub home: String,
}

impl Facts<'_> {
    /// The commands that run on this machine; none if the call has no command.
    pub fn commands(&self) -> impl Iterator<Item = &shell::Command> {
        self.analysis.iter().flat_map(|analysis| analysis.here())
    }

    /// The commands that run on this machine or another one, not in a container.
    pub fn commands_anywhere(&self) -> impl Iterator<Item = &shell::Command> {
        self.analysis.iter().flat_map(|analysis| analysis.outside_containers())
    }
}

/// Judges a request by a set of rules.
pub fn judge(request: &Request<'_>, rules: &RuleSet, world: &dyn World) -> Judgement {
    match request.event {
        GuardEvent::Before => before(request, rules, world),
        GuardEvent::After => after(request, rules, world),
        GuardEvent::Stop => stop(request, rules, world),
    }
}

fn before(request: &Request<'_>, rules: &RuleSet, world: &dyn World) -> Judgement {
    let facts = gather(request, world);
    let mut found = Vec::new();
    for active in rules.active(GuardEvent::Before) {
        if let Some(Finding { decision, reason }) = (active.rule.check)(&facts, &active.params) {
            found.push(Verdict::new(
                decision,
                active.rule.id,
                with_hint(reason, active.params.hint.as_deref()),
            ));
        }
    }
    found.extend(rules.custom.iter().filter_map(|custom| custom.check(&facts)));
    if let Some(verdict) = unknown(&facts, rules) {
        found.push(verdict);
    }
    if rules.custom.iter().any(|custom| custom.allows(&facts)) {
        found.retain(|verdict| {
            verdict.decision != Decision::Ask || rules.custom.iter().any(|custom| custom.id == verdict.rule)
        });
    }
    let verdict = strongest(&found);
    Judgement { verdict, found, analysis: facts.analysis, touches: facts.touches }
}

fn after(request: &Request<'_>, rules: &RuleSet, world: &dyn World) -> Judgement {
    let Some(output) = request.output.filter(|output| !output.is_empty()) else {
        return Judgement::default();
    };
    let mut found = Vec::new();
    // Few people have such rules. Without them, no facts are needed.
    if rules.custom.iter().any(|custom| custom.event == GuardEvent::After) {
        let facts = gather(request, world);
        found.extend(rules.custom.iter().filter_map(|custom| custom.check(&facts)));
    }
    if let Some(redacted) = redact::redact(output, rules) {
        found.push(Verdict::new(Decision::Redact(redacted.text), redacted.rule, redacted.reason));
    }
    Judgement { verdict: strongest(&found), found, ..Judgement::default() }
}

fn stop(request: &Request<'_>, rules: &RuleSet, world: &dyn World) -> Judgement {
    let mut found: Vec<Verdict> = rules::stop::check(request, rules, world);
    // Nothing shows whether the person's own rule is satisfied, so it blocks only once.
    if request.stops_blocked.map_or(!request.stop_active, |blocked| blocked == 0) {
        found.extend(rules.custom.iter().filter_map(|custom| custom.at_stop(request.agent)));
    }
    Judgement { verdict: strongest(&found), found, ..Judgement::default() }
}

fn with_hint(mut reason: String, hint: Option<&str>) -> String {
    if let Some(hint) = hint.map(str::trim).filter(|hint| !hint.is_empty()) {
        reason.push(' ');
        reason.push_str(hint);
    }
    reason
}

/// The strongest verdict; of equals the first. The person's own [`Decision::Allow`] changes nothing
/// here. Notes are joined.
fn strongest(found: &[Verdict]) -> Verdict {
    let Some(best) = found.iter().rev().max_by_key(|verdict| verdict.decision.strength()) else {
        return Verdict::allow();
    };
    if best.decision != Decision::Note {
        return best.clone();
    }
    let notes: Vec<&str> = found
        .iter()
        .filter(|verdict| verdict.decision == Decision::Note)
        .map(|verdict| verdict.reason.as_str())
        .collect();
    Verdict::new(Decision::Note, best.rule.clone(), notes.join("\n"))
}

fn gather<'a>(request: &Request<'a>, world: &'a dyn World) -> Facts<'a> {
    let mut analysis = request.tool.and_then(|tool| analyse(tool, world));
    let mut facts = Facts {
        request: *request,
        world,
        analysis: None,
        touches: Vec::new(),
        project: files::real(&world.project(), world),
        home: files::real(&world.home(), world),
    };
    if let Some(analysis) = &mut analysis {
        facts.touches = files::of_commands(analysis, world);
        if facts.touches.len() > files::MAX_TOUCHES {
            analysis.unknown.push("the command names too many files".to_owned());
        }
    }
    if let Some(tool) = request.tool {
        facts.touches.extend(files::of_tool(tool, world));
    }
    facts.analysis = analysis;
    facts
}

/// The command of a tool, if it has one.
fn analyse(tool: &ToolUse, world: &dyn World) -> Option<Analysis> {
    let text = match tool.kind {
        ToolKind::Shell | ToolKind::Mcp { .. } | ToolKind::Unknown => tool.command.as_deref()?,
        ToolKind::TypedInput => tool.typed.as_deref()?,
        _ => return None,
    };
    let native = tool.native.to_ascii_lowercase();
    Some(if native.contains("powershell") || native.contains("pwsh") {
        shell::windows::analyse_powershell(text, world)
    } else if native == "cmd" {
        shell::windows::analyse_cmd(text, world)
    } else {
        shell::analyse(text, world)
    })
}

/// The verdict on a command that was not understood, if an active rule could forbid commands.
fn unknown(facts: &Facts<'_>, rules: &RuleSet) -> Option<Verdict> {
    if !rules.forbids_commands() {
        return None;
    }
    let unread = facts.request.tool.and_then(|tool| tool.unread.as_ref());
    let why = unread.cloned().or_else(|| not_understood(facts.analysis.as_ref()?))?;
    let decision = match rules.unknown {
        Unknown::Ask => Decision::Ask,
        Unknown::Deny => Decision::Deny,
        // A call with unknown fields may do anything.
        Unknown::Allow if unread.is_some() => Decision::Ask,
        Unknown::Allow => return None,
    };
    let what_to_do = match unread {
        Some(_) => "Use only the fields that the tool has, or use another tool.",
        None => "Write it plainly, in smaller steps.",
    };
    let reason = format!("Not understood: {why}, so no rule can judge it. {what_to_do}");
    Some(Verdict::new(decision, "unknown", reason))
}

/// Why a command was not understood.
fn not_understood(analysis: &Analysis) -> Option<String> {
    let ran = analysis.ran.iter().filter(|ran| !ran.from_file).find_map(|ran| {
        Some(match &ran.origin {
            Origin::Download => format!("{} would run a download", ran.by),
            Origin::Decoded => format!("{} would run text that is first decoded or put together", ran.by),
            Origin::Variable(name) if secrets::is_secret_name(name) => {
                format!("{} would run a variable", ran.by)
            }
            Origin::Variable(name) => {
                format!("{} would run the value of ${name}, which is not set here", ran.by)
            }
            Origin::Output(name) if is_text_tool(name) => format!("{} would run what {name} prints", ran.by),
            Origin::Output(_) | Origin::File(_) | Origin::Input => return None,
        })
    });
    analysis.unknown.first().cloned().or(ran)
}

/// Tools that print whatever their arguments say.
fn is_text_tool(name: &str) -> bool {
    matches!(
        name,
        "sed"
            | "awk"
            | "gawk"
            | "perl"
            | "python"
            | "python3"
            | "node"
            | "ruby"
            | "cut"
            | "tr"
            | "rev"
            | "jq"
            | "yq"
            | "paste"
            | "fold"
            | "od"
            | "strings"
            | "envsubst"
            | "base64"
            | "grep"
            | "head"
            | "tail"
            | "sort"
            | "php"
            | "lua"
    )
}
