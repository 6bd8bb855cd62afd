//! Every rule's own examples: the bad ones are blocked, noted or redacted, the good ones are not.

use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::{Decision, Example, FakeWorld, Params, Request, RuleSet, judge, rules};

fn world() -> FakeWorld {
    let mut world = FakeWorld::new("/home/me/project", "/home/me");
    world.own = vec!["/home/me/.local/share/baton".to_owned(), "/home/me/.config/baton".to_owned()];
    world.repository.branch = Some("main".to_owned());
    world.repository.dirty = Some(true);
    world.repository.unpushed = Some(true);
    world
}

fn decide(id: &str, example: Example) -> Decision {
    let mut params = Params::default();
    if id == "prefer-package-manager" {
        params.allowed = vec!["pnpm".to_owned(), "uv".to_owned()];
    }
    let rules = RuleSet::only(id, params).expect("a rule of this id");
    let world = world();
    let mut tool = ToolUse::new(ToolKind::Shell, "Bash");
    let call = match example {
        Example::Shell(command) => {
            tool.command = Some(command.to_owned());
            Request::before("claude", &tool)
        }
        Example::Read(path) => {
            tool = ToolUse::new(ToolKind::Read, "Read");
            tool.paths.push(path.to_owned());
            Request::before("claude", &tool)
        }
        Example::Write(path, content) => {
            tool = ToolUse::new(ToolKind::Write, "Write");
            tool.paths.push(path.to_owned());
            tool.content = Some(content.to_owned());
            Request::before("claude", &tool)
        }
        Example::Output(text) => Request::after("claude", &tool, text),
    };
    judge(&call, &rules, &world).verdict.decision
}

#[test]
fn each_rule_does_what_its_examples_say() {
    let mut wrong = Vec::new();
    for rule in rules::all() {
        wrong.extend(
            rule.bad
                .iter()
                .filter(|example| decide(rule.id, **example) == Decision::Allow)
                .map(|example| format!("{}: allowed {example:?}", rule.id)),
        );
        wrong.extend(rule.good.iter().filter_map(|example| {
            let decision = decide(rule.id, *example);
            (decision != Decision::Allow).then(|| format!("{}: {} {example:?}", rule.id, decision.as_str()))
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_rule_has_an_id_of_its_own_and_says_what_it_is_for() {
    let mut ids: Vec<&str> = rules::all().map(|rule| rule.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for rule in rules::all() {
        assert!(!rule.about.is_empty() && !rule.about.ends_with('.'), "{}", rule.id);
    }
}
