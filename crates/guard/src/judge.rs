//! From a call to a decision: facts are gathered once, every rule looks at them, the strongest decision wins.

use crate::files::{self, Touch};
use crate::rules::{self, Finding, RuleSet, Unknown};
use crate::shell::{self, Analysis, Origin};
use crate::world::World;
use crate::{redact, secrets};
use baton_core::guard::{Decision, Verdict};
use baton_core::tool::{ToolKind, ToolUse};

/// When a call is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// A tool is about to run.
    Before,
    /// A tool has run, and its output is about to reach the model.
    After,
    /// A turn is about to end.
    Stop,
}

impl Moment {
    /// The moment in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Stop => "stop",
        }
    }
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The agent's name, for rules of one agent only.
    pub agent: &'a str,
    /// When it is judged.
    pub event: Moment,
    /// The tool call; `None` at a stop.
    pub tool: Option<&'a ToolUse>,
    /// What the tool gave back.
    pub output: Option<&'a str>,
    /// How often the same call was made just before, without another in between.
    pub repeats: u32,
    /// How often this turn's end was blocked already; `None` where nobody has counted.
    pub stops_blocked: Option<u32>,
    /// Whether the agent says that the turn goes on only because a stop was blocked.
    pub stop_active: bool,
}

impl<'a> Call<'a> {
    /// A tool that is about to run.
    pub fn before(agent: &'a str, tool: &'a ToolUse) -> Self {
        Self {
            agent,
            event: Moment::Before,
            tool: Some(tool),
            output: None,
            repeats: 0,
            stops_blocked: None,
            stop_active: false,
        }
    }

    /// A tool that has run.
    pub fn after(agent: &'a str, tool: &'a ToolUse, output: &'a str) -> Self {
        Self { event: Moment::After, output: Some(output), ..Self::before(agent, tool) }
    }

    /// A turn that is about to end.
    pub fn stop(agent: &'a str) -> Self {
        Self {
            agent,
            event: Moment::Stop,
            tool: None,
            output: None,
            repeats: 0,
            stops_blocked: None,
            stop_active: false,
        }
    }
}

/// A decision, and what led to it.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// What happens, with the rule and the reason.
    pub verdict: Verdict,
    /// Every rule that had something to say.
    pub found: Vec<Verdict>,
    /// What the command would do, for explanations.
    pub analysis: Option<Analysis>,
    /// The files that the call touches.
    pub touches: Vec<Touch>,
}

/// What rules look at.
pub struct Facts<'a> {
    /// The call.
    pub call: Call<'a>,
    /// The machine.
    pub world: &'a dyn World,
    /// The command, where the call has one.
    pub analysis: Option<Analysis>,
    /// The files that the call touches, by its command, its paths or its patch.
    pub touches: Vec<Touch>,
    /// The project's folder, links resolved.
    pub project: String,
    /// The person's home, links resolved.
    pub home: String,
}

impl Facts<'_> {
    /// The commands that run on this machine; none where the call has no command.
    pub fn commands(&self) -> impl Iterator<Item = &shell::Command> {
        self.analysis.iter().flat_map(|analysis| analysis.here())
    }

    /// The commands that run on this machine or another one, not in a container.
    pub fn commands_anywhere(&self) -> impl Iterator<Item = &shell::Command> {
        self.analysis.iter().flat_map(|analysis| analysis.outside_containers())
    }
}

/// Judges a call by a set of rules.
pub fn judge(call: &Call<'_>, rules: &RuleSet, world: &dyn World) -> Judgement {
    match call.event {
        Moment::Before => before(call, rules, world),
        Moment::After => after(call, rules, world),
        Moment::Stop => stop(call, rules, world),
    }
}

fn before(call: &Call<'_>, rules: &RuleSet, world: &dyn World) -> Judgement {
    let facts = gather(call, world);
    let mut found = Vec::new();
    for active in rules.active(Moment::Before) {
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

fn after(call: &Call<'_>, rules: &RuleSet, world: &dyn World) -> Judgement {
    let Some(output) = call.output.filter(|output| !output.is_empty()) else { return Judgement::default() };
    let mut found = Vec::new();
    // Few have such rules, and for the others nothing is gathered.
    if rules.custom.iter().any(|custom| custom.event == Moment::After) {
        let facts = gather(call, world);
        found.extend(rules.custom.iter().filter_map(|custom| custom.check(&facts)));
    }
    if let Some(redacted) = redact::redact(output, rules) {
        found.push(Verdict::new(Decision::Redact(redacted.text), redacted.rule, redacted.reason));
    }
    Judgement { verdict: strongest(&found), found, ..Judgement::default() }
}

fn stop(call: &Call<'_>, rules: &RuleSet, world: &dyn World) -> Judgement {
    let mut found: Vec<Verdict> = rules::stop::check(call, rules, world);
    // Nothing tells whether a rule of the person's own is satisfied, so it is said once.
    if call.stops_blocked.map_or(!call.stop_active, |blocked| blocked == 0) {
        found.extend(rules.custom.iter().filter_map(|custom| custom.at_stop(call.agent)));
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

/// The strongest of them; of equals the first. An explicit allow of the person's own rules is an [`Decision::Allow`] among them and changes nothing here. Notes are joined.
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

fn gather<'a>(call: &Call<'a>, world: &'a dyn World) -> Facts<'a> {
    let mut analysis = call.tool.and_then(|tool| analyse(tool, world));
    let mut facts = Facts {
        call: *call,
        world,
        analysis: None,
        touches: Vec::new(),
        project: files::real(&world.project(), world),
        home: files::real(&world.home(), world),
    };
    if let Some(analysis) = &mut analysis {
        facts.touches = files::of_commands(analysis, world);
        if facts.touches.len() > files::MAX_TOUCHES {
            analysis.unknown.push("the command names too many files to look at".to_owned());
        }
    }
    if let Some(tool) = call.tool {
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

/// What is to happen where the command was not understood, if any rule that could forbid it is on.
fn unknown(facts: &Facts<'_>, rules: &RuleSet) -> Option<Verdict> {
    let analysis = facts.analysis.as_ref()?;
    if !rules.forbids_commands() {
        return None;
    }
    let ran = analysis.ran.iter().filter(|ran| !ran.from_file).find_map(|ran| {
        Some(match &ran.origin {
            Origin::Download => format!("{} would run something that is downloaded", ran.by),
            Origin::Decoded => format!("{} would run a text that is decoded or put together first", ran.by),
            Origin::Variable(name) if secrets::is_secret_name(name) => {
                format!("{} would run a variable", ran.by)
            }
            Origin::Variable(name) => {
                format!("{} would run what is in ${name}, which is not set here", ran.by)
            }
            Origin::Output(name) if is_text_tool(name) => format!("{} would run what {name} prints", ran.by),
            Origin::Output(_) | Origin::Input => return None,
        })
    });
    let why = analysis.unknown.first().cloned().or(ran)?;
    let decision = match rules.unknown {
        Unknown::Ask => Decision::Ask,
        Unknown::Deny => Decision::Deny,
        Unknown::Allow => return None,
    };
    let reason = format!(
        "Not understood: {why}, so no rule can judge it. Write the command out plainly, in smaller steps."
    );
    Some(Verdict::new(decision, "unknown", reason))
}

/// Tools whose output is whatever they were told to print.
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
