//! What was not held, and what was held for nothing, judged by all the rules that are on by
//! default, in one home with one project.
//!
//! A row is a command, or a call in an agent's own shape. Rows that are still wrong are in
//! `third-cases-open.txt`, each with its reason. A row that has become right must leave that list.

use crate::test_home::TestHome;
use baton_agents::agent;
use baton_core::guard::Verdict;
use baton_guard::RuleSet;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const CASES: &str = include_str!("../data/third-cases.tsv");
const OPEN: &str = include_str!("../data/third-cases-open.txt");
const SETUP: &str = include_str!("../data/third-cases-setup.sh");

/// The payload of a row: a command in the shell tool of Claude Code, or the call that the row
/// spells out.
fn payload(place: &TestHome, call: &str) -> (String, Value) {
    let program = std::env::current_exe().expect("a program").display().to_string();
    let call = call
        .replace("{{CWD}}", &place.project.display().to_string())
        .replace("{{HOME}}", &place.home.display().to_string())
        .replace("{{PROGRAM}}", &program)
        .replace('⏎', "\n");
    let mut spelled: Value = match call.starts_with("{\"event\"") {
        true => serde_json::from_str(&call).expect("a call"),
        false => json!({"event": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": call}}),
    };
    let event = spelled["event"].as_str().expect("an event").to_owned();
    spelled["session_id"] = json!("s");
    spelled["cwd"] = json!(place.project);
    spelled["hook_event_name"] = json!(event);
    (event, spelled)
}

fn verdict(place: &TestHome, cli: &str, call: &str) -> Verdict {
    let (event, payload) = payload(place, call);
    let agent = agent::by_name(cli).expect("an agent");
    let call = agent.call(payload.to_string().as_bytes(), Some(&event));
    let mut call = call.expect("a payload").expect("a call in the payload");
    place.guard().judge(agent, &mut call, &RuleSet::standard()).verdict
}

#[test]
fn third_cases() {
    let open: BTreeSet<&str> = OPEN
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once('\t').map_or(line, |(call, _)| call))
        .collect();
    let place = TestHome::made_by(SETUP);
    let (mut wrong, mut right_now) = (Vec::new(), Vec::new());
    let mut met = BTreeSet::new();
    for line in CASES.lines().skip(1) {
        let [cli, desired, rule, cause, call] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("five fields: {line}")
        };
        met.insert(call);
        let verdict = verdict(&place, cli, call);
        let fits = verdict.decision.holds() == (desired == "held");
        match (fits, open.contains(call)) {
            (true, true) => right_now.push(call),
            (false, false) => {
                wrong.push(format!("{desired} {rule} ({cause}) {call} {} {}", verdict.rule, verdict.reason));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(right_now.is_empty(), "right now, so take them off third-cases-open.txt: {right_now:#?}");
    let gone: Vec<_> = open.difference(&met).collect();
    assert!(gone.is_empty(), "no rows: {gone:#?}");
}
