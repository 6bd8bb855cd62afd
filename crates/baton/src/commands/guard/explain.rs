//! `guard explain`: what a rule means, or what a command would do and what the rules say about it.

use super::{CommandContext, rule};
use crate::guard;
use crate::print::{Out, Text, Tone, done, text};
use baton_agents::{ALL, ToolCall};
use baton_core::error::Exit;
use baton_core::event::EventKind;
use baton_core::tool::{ToolKind, ToolUse};
use baton_core::{Code, Error};
use baton_guard::{Example, Judgement, Rule};
use clap::Args;
use serde_json::{Value, json};

// `baton guard explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// The rule
    #[arg(conflicts_with = "command")]
    rule: Option<String>,
    /// The command, as a shell gets it
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Explain {
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        match (&self.rule, self.command.as_slice()) {
            (Some(id), []) => explain_rule(rule(id)?, *out),
            (None, [_, ..]) => self.explain_command(context, *out),
            _ => Err(Error::new(Code::Usage, "name a rule, or a command after --")
                .hint("`baton guard explain block-sudo`, `baton guard explain -- 'sudo ls'`")),
        }
    }

    /// One word is a whole line for the shell; several are the words of a command.
    fn line(&self) -> String {
        let quoted = |word: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
            let is_plain = !word.is_empty() && word.chars().all(plain);
            if is_plain { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
        };
        match self.command.as_slice() {
            [line] => line.clone(),
            words => words.iter().map(quoted).collect::<Vec<_>>().join(" "),
        }
    }

    fn explain_command(&self, context: &CommandContext, out: Out) -> Result<Exit, Error> {
        let guard = guard::open(&context.home);
        let policy = guard.policy(&context.cwd)?;
        let mut tool = ToolUse::new(ToolKind::Shell, "shell");
        tool.command = Some(self.line());
        let mut call = ToolCall {
            kind: EventKind::BeforeTool,
            native: String::new(),
            session_id: None,
            cwd: Some(context.cwd.clone()),
            id: None,
            tool,
            input: Value::Null,
            output: None,
        };
        // Rules of one agent alone are not asked.
        let judgement = guard.judge(ALL[0], &mut call, &policy.rules);
        out.data(&document(&judgement), || in_words(&judgement, out))?;
        done()
    }
}

fn document(judgement: &Judgement) -> Value {
    let analysis = judgement.analysis.as_ref();
    let commands: Vec<Value> = analysis
        .map(|analysis| analysis.commands.as_slice())
        .unwrap_or_default()
        .iter()
        .map(|command| json!({"command": command.show(), "cwd": command.cwd, "place": format!("{:?}", command.location).to_lowercase()}))
        .collect();
    let files: Vec<Value> = judgement
        .touches
        .iter()
        .map(|touch| json!({"effect": touch.deed.as_str(), "path": touch.path, "known": !touch.is_unknown, "by": touch.by}))
        .collect();
    let found: Vec<Value> = judgement
        .found
        .iter()
        .map(|found| json!({"decision": found.decision.as_str(), "rule": found.rule, "reason": found.reason}))
        .collect();
    let rule = Some(&judgement.verdict.rule).filter(|rule| !rule.is_empty());
    json!({
        "decision": judgement.verdict.decision.as_str(), "rule": rule, "reason": judgement.verdict.reason,
        "commands": commands, "files": files, "unknown": analysis.map(|analysis| &analysis.unknown), "found": found,
    })
}

fn in_words(judgement: &Judgement, out: Out) -> Text {
    let document = document(judgement);
    let mut text = Text::default();
    let mut line = |head: &str, rest: &str| {
        text.push(text![out.tone(Tone::Dim, head), "  ", rest.to_owned(), "\n"]);
    };
    for command in document["commands"].as_array().into_iter().flatten() {
        line("runs    ", command["command"].as_str().unwrap_or_default());
    }
    for file in document["files"].as_array().into_iter().flatten() {
        let text = |key: &str| file[key].as_str().unwrap_or("something unknown");
        line(&format!("{:8}", text("effect")), text("path"));
    }
    for why in document["unknown"].as_array().into_iter().flatten() {
        line("unknown ", why.as_str().unwrap_or_default());
    }
    for found in &judgement.found {
        line(&format!("{:8}", found.decision.as_str()), &format!("{}: {}", found.rule, found.reason));
    }
    if judgement.found.is_empty() {
        line("allow   ", "no rule speaks against it");
    }
    text
}

fn explain_rule(rule: &Rule, out: Out) -> Result<Exit, Error> {
    let shown = |examples: &[Example]| -> Vec<String> { examples.iter().map(example).collect() };
    let (bad, good) = (shown(rule.bad), shown(rule.good));
    let document = json!({
        "rule": rule.id, "default": rule.on, "when": rule.event.as_str(), "parameters": rule.parameters,
        "about": rule.about, "bad": bad, "good": good,
    });
    out.data(&document, || {
        let default = if rule.on { "on" } else { "off" };
        let mut text = text![out.tone(Tone::Bold, rule.id), "  ", rule.about, "\n"];
        let parameters = match rule.parameters {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let when = rule.event.as_str();
        text.push(format_args!("{default} by default, looks {when} a tool; parameters: {parameters}"));
        text.push("\n");
        for (head, tone, examples) in [("speaks against", Tone::Bad, bad), ("leaves alone", Tone::Good, good)]
        {
            for example in examples {
                text.push(text![out.tone(tone, head), "  ", example, "\n"]);
            }
        }
        text
    })?;
    done()
}

fn example(example: &Example) -> String {
    match example {
        Example::Shell(command) => command.replace('\n', "\\n"),
        Example::Read(path) => format!("read {path}"),
        Example::Write(path, content) => format!("write {path}: {}", content.replace('\n', "\\n")),
        Example::Output(text) => format!("output: {}", text.replace('\n', "\\n")),
    }
}
