//! Every row of the guard's tables does what the example on it says.

use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::{FakeWorld, Params, Request, RuleSet, judge, tables};

fn is_held(rule: &str, command: &str) -> bool {
    let mut world = FakeWorld::new("/home/me/project", "/home/me");
    world.repository.branch = Some("feature".to_owned());
    let mut tool = ToolUse::new(ToolKind::Shell, "Bash");
    tool.command = Some(command.to_owned());
    let rules = RuleSet::only(rule, Params::default()).expect("a rule of this id");
    judge(&Request::before("claude", &tool), &rules, &world)
        .found
        .iter()
        .any(|verdict| verdict.rule == rule && verdict.decision.holds())
}

#[test]
fn each_row_does_what_its_example_says() {
    let wrong: Vec<String> = tables::samples()
        .filter(|(_, sample)| is_held(sample.rule, sample.command) != sample.held)
        .map(|(table, sample)| format!("{table}: {} held={} {}", sample.rule, sample.held, sample.command))
        .collect();
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_credential_file_is_a_secret() {
    let free: Vec<&str> = tables::credential_paths()
        .filter(|path| !is_held("block-secrets-read", &format!("cat \"$HOME/{path}\"")))
        .collect();
    assert!(free.is_empty(), "{free:?}");
}
