//! The cases that the project is measured by, in the agents' own shapes.

use baton_agents::agent;
use baton_agents::tools;
use baton_core::tool::ToolUse;
use baton_guard::{Decision, FakeWorld, Params, Request, RuleSet, config, judge};
use serde_json::Value;

const CWD: &str = "/home/me/project";
const HOME: &str = "/home/me";

/// Rows that are wrong: where they are, and why the guard decides otherwise.
const KNOWN_DIFFERENCES: &[(&str, &str, &str)] = &[];

fn world() -> FakeWorld {
    let mut world = FakeWorld::new(CWD, HOME);
    world.repository.branch = Some("feature".to_owned());
    world.own = vec![format!("{HOME}/.local/share/baton"), format!("{HOME}/.config/baton")];
    world
}

/// The tool and, after it ran, its output.
fn tool_of(cli: &str, payload: &Value) -> (ToolUse, Option<String>) {
    let name =
        ["tool_name", "toolName", "tool"].iter().find_map(|key| payload.get(*key)?.as_str()).unwrap_or("");
    let empty = Value::Null;
    let input = ["tool_input", "toolArgs", "args", "input"]
        .iter()
        .find_map(|key| payload.get(*key))
        .unwrap_or(&empty);
    let agent = agent::by_name(cli).expect("an agent");
    let tool = tools::tool(agent.tools(), name, input, &["fs", "srv"]);
    let output = ["tool_response", "toolResult", "output", "content"]
        .iter()
        .find_map(|key| payload.get(*key))
        .map(texts);
    (tool, output)
}

fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => fields.values().map(texts).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn is_after(event: &str) -> bool {
    let lower = event.to_ascii_lowercase();
    lower.contains("post") || lower.contains("after") || lower.contains("result")
}

fn params(json: &str) -> Params {
    let value: Value = serde_json::from_str(json).expect("parameters");
    config::params_of(&value)
}

fn check(file: &str, text: &str) {
    let world = world();
    let mut wrong = Vec::new();
    let mut rows = 0;
    for (number, line) in text.lines().enumerate().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [cli, event, payload, policy, parameters, expected, label @ ..] = &fields[..] else {
            panic!("{file}:{}: too few fields", number + 1)
        };
        rows += 1;
        let payload = payload.replace("{{CWD}}", CWD).replace("{{HOME}}", HOME);
        let payload: Value = serde_json::from_str(&payload).expect("a payload");
        let (tool, output) = tool_of(cli, &payload);
        let Some(rules) = RuleSet::only(policy, params(parameters)) else {
            wrong.push(format!("{file}:{}: no rule {policy}", number + 1));
            continue;
        };
        let call = if is_after(event) {
            Request::after(cli, &tool, output.as_deref().unwrap_or(""))
        } else {
            Request::before(cli, &tool)
        };
        let decision = judge(&call, &rules, &world).verdict.decision;
        let fits = match *expected {
            "allow" => decision == Decision::Allow,
            "deny" => decision.holds(),
            "instruct" => decision == Decision::Note,
            "sanitize" => matches!(decision, Decision::Redact(_)),
            other => panic!("{file}:{}: {other}", number + 1),
        };
        let known = KNOWN_DIFFERENCES.iter().any(|(rule, command, _)| {
            rule == policy && (tool.command.as_deref() == Some(command) || tool.path() == Some(command))
        });
        if !fits && !known {
            let what = tool.command.as_deref().or(tool.path()).unwrap_or("");
            let what: String = what.chars().take(120).collect();
            wrong.push(format!(
                "{file}:{} {policy} expected {expected} got {} {what:?} {label:?}",
                number + 1,
                decision.as_str()
            ));
        }
    }
    assert!(rows > 100, "{file} is there");
    assert!(wrong.is_empty(), "{} of {rows} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn everyday_cases() {
    check("cases.tsv", include_str!("../data/cases.tsv"));
}

#[test]
fn hard_cases() {
    check("hard-cases.tsv", include_str!("../data/hard-cases.tsv"));
}
