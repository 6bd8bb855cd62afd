//! `guard explain`: what a rule means, or what a command would do and what the rules say about it.

use super::{Session, rule};
use crate::gate;
use crate::print::{Out, Tone, done};
use baton_agents::{ALL, Call};
use baton_core::error::Exit;
use baton_core::event::EventKind;
use baton_core::tool::{ToolKind, ToolUse};
use baton_core::{Code, Error};
use baton_guard::{Example, Judgement, Rule};
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;

// `baton guard explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// The rule
    #[arg(conflicts_with = "command")]
    rule: Option<String>,
    /// The command, as a shell would get it
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Explain {
    /// Shows the rule, or the command.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        match (&self.rule, self.command.as_slice()) {
            (Some(id), []) => explain_rule(rule(id)?, *out),
            (None, [_, ..]) => self.explain_command(session, *out),
            _ => Err(Error::new(Code::Usage, "name a rule, or a command behind --")
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

    fn explain_command(&self, session: &Session, out: Out) -> Result<Exit, Error> {
        let gate = gate::open(&session.home);
        let policy = gate.policy(&session.cwd)?;
        let mut tool = ToolUse::new(ToolKind::Shell, "shell");
        tool.command = Some(self.line());
        let mut call = Call {
            kind: EventKind::BeforeTool,
            native: String::new(),
            session_id: None,
            cwd: Some(session.cwd.clone()),
            id: None,
            tool,
            input: Value::Null,
            output: None,
        };
        // Rules of one agent alone are not asked.
        let judgement = gate.judge(ALL[0], &mut call, &policy.rules);
        out.data(&document(&judgement), || text(&judgement, out))?;
        done()
    }
}

fn document(judgement: &Judgement) -> Value {
    let analysis = judgement.analysis.as_ref();
    let commands: Vec<Value> = analysis
        .map(|analysis| analysis.commands.as_slice())
        .unwrap_or_default()
        .iter()
        .map(|command| json!({"command": command.show(), "cwd": command.cwd, "place": format!("{:?}", command.place).to_lowercase()}))
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

fn text(judgement: &Judgement, out: Out) -> String {
    let document = document(judgement);
    let mut text = String::new();
    // Writing to a text does not fail.
    let mut line = |head: &str, rest: &str| _ = writeln!(text, "{}  {rest}", out.tone(Tone::Dim, head));
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
        let mut text = format!("{}  {}\n", out.tone(Tone::Bold, rule.id), rule.about);
        let parameters = match rule.parameters {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        // Writing to a text does not fail.
        writeln!(
            text,
            "{default} by default, looks {} a tool; parameters: {parameters}",
            rule.event.as_str()
        )
        .ok();
        for (head, tone, examples) in [("speaks against", Tone::Bad, bad), ("leaves alone", Tone::Good, good)]
        {
            for example in examples {
                writeln!(text, "{}  {example}", out.tone(tone, head)).ok();
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
