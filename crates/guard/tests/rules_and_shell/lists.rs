//! Lists of other spellings of what is forbidden, and of what developers type all day.

use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::{Decision, FakeWorld, Params, Repository, Request, RuleSet, judge};

fn world() -> FakeWorld {
    let mut world = FakeWorld::new("/home/me/project", "/home/me");
    world.own = vec!["/home/me/.local/share/baton".to_owned(), "/home/me/.config/baton".to_owned()];
    world.repository.branch = Some("feature".to_owned());
    world
}

fn decide(command: &str, rules: &RuleSet, world: &FakeWorld) -> (Decision, String, String) {
    let mut tool = ToolUse::new(ToolKind::Shell, "Bash");
    tool.command = Some(command.to_owned());
    let judgement = judge(&Request::before("claude", &tool), rules, world);
    (judgement.verdict.decision, judgement.verdict.rule, judgement.verdict.reason)
}

#[test]
fn other_spellings_mean_the_same() {
    let world = world();
    let mut wrong = Vec::new();
    let mut rows = 0;
    for (number, line) in include_str!("../data/respellings.tsv").lines().enumerate().skip(1) {
        let [rule, expected, command] = &line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            panic!("respellings.tsv:{}: three fields", number + 1)
        };
        rows += 1;
        let command = command.replace('⏎', "\n");
        let rules = RuleSet::only(rule, Params::default()).expect("a rule");
        let (decision, _, reason) = decide(&command, &rules, &world);
        let fits = match *expected {
            "deny" => decision.holds(),
            "note" => decision == Decision::Note,
            "allow" => decision == Decision::Allow,
            other => panic!("respellings.tsv:{}: {other}", number + 1),
        };
        if !fits {
            wrong.push(format!(
                "respellings.tsv:{} {rule} expected {expected} got {} {command:?} {reason}",
                number + 1,
                decision.as_str()
            ));
        }
    }
    assert!(rows >= 300, "{rows} rows");
    assert!(wrong.is_empty(), "{} of {rows} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn ordinary_commands_are_left_alone() {
    let mut world = world();
    world.repository = Repository {
        branch: Some("feature".to_owned()),
        dirty: Some(false),
        unpushed: Some(false),
        stashes: Some(false),
        ..Repository::default()
    };
    let rules = RuleSet::standard();
    let commands: Vec<String> = include_str!("../data/ordinary.txt")
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.replace('⏎', "\n"))
        .collect();
    let held: Vec<String> = commands
        .iter()
        .filter_map(|command| {
            let (decision, rule, reason) = decide(command, &rules, &world);
            decision.holds().then(|| format!("{} {rule} {command:?} {reason}", decision.as_str()))
        })
        .collect();
    assert!(commands.len() >= 1000, "{} commands", commands.len());
    assert!(held.len() <= 5, "{} of {} held\n{}", held.len(), commands.len(), held.join("\n"));
}
