//! Cases on a real disk: the setup of each row makes its own home, project and repository.
//!
//! Rows that are still wrong are in `second-cases-open.txt`. A row that has become right must leave
//! that list.

use crate::test_home::TestHome;
use baton_agents::agent;
use baton_core::guard::{Decision, Verdict};
use baton_guard::{Params, RuleSet, config};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const CASES: &str = include_str!("../data/second-cases.tsv");
const OPEN: &str = include_str!("../data/second-cases-open.txt");

fn params(json: &str) -> Params {
    config::params_of(&serde_json::from_str::<Value>(json).expect("parameters"))
}

fn verdict(home: &TestHome, cli: &str, event: &str, payload: &str, rules: &RuleSet) -> Verdict {
    let payload = payload
        .replace("{{CWD}}", &home.project.display().to_string())
        .replace("{{HOME}}", &home.home.display().to_string());
    let agent = agent::by_name(cli).expect("an agent");
    let mut call =
        agent.call(payload.as_bytes(), Some(event)).expect("a payload").expect("a call in the payload");
    home.guard().judge(agent, &mut call, rules).verdict
}

#[test]
fn second_cases() {
    let open: BTreeSet<usize> = OPEN
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().next().unwrap_or("").parse().expect("a line's number"))
        .collect();
    let mut homes: BTreeMap<&str, TestHome> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut right_now = Vec::new();
    for (number, line) in CASES.lines().enumerate().skip(1).map(|(at, line)| (at + 1, line)) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [cli, event, payload, policy, parameters, expected, _, label, setup] = fields[..] else {
            panic!("line {number}: nine fields")
        };
        let home = homes.entry(setup).or_insert_with(|| {
            let script = if setup.is_empty() { String::new() } else { serde_json::from_str(setup).unwrap() };
            TestHome::made_by(&script)
        });
        let rules = match policy {
            "*" => RuleSet::standard(),
            policy => RuleSet::only(policy, params(parameters)).expect("a rule"),
        };
        let Verdict { decision, reason, .. } = verdict(home, cli, event, payload, &rules);
        let fits = match expected {
            "allow" => matches!(decision, Decision::Allow | Decision::Note),
            "deny" => decision.holds(),
            "instruct" => decision == Decision::Note,
            "sanitize" => matches!(decision, Decision::Redact(_)),
            other => panic!("line {number}: {other}"),
        };
        match (fits, open.contains(&number)) {
            (true, true) => right_now.push(number),
            (false, false) => wrong.push(format!(
                "{number} {policy} expected {expected} got {} ({label}) {} {reason}",
                decision.as_str(),
                payload.chars().take(300).collect::<String>()
            )),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(right_now.is_empty(), "right now, so take them off second-cases-open.txt: {right_now:?}");
}
