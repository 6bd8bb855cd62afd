//! The end of a turn: work that is not committed, pushed, proposed or green.
//!
//! What is not known never blocks: a missing tool, no network, no repository. After
//! [`MAX_STOP_BLOCKS`] blocks the turn may end in any case.

use super::{Params, Rule, RuleSet, no_check};
use crate::judge::{GuardEvent, Request};
use crate::world::{Repository, World};
use baton_core::guard::{Decision, Verdict};

/// How often one turn may be kept from ending. A model that can't satisfy a rule must not run
/// forever.
pub const MAX_STOP_BLOCKS: u32 = 3;

const fn rule(id: &'static str, about: &'static str, parameters: &'static [&'static str]) -> Rule {
    Rule {
        id,
        on: false,
        event: GuardEvent::Stop,
        forbids_commands: false,
        parameters,
        about,
        check: no_check,
        bad: &[],
        good: &[],
    }
}

pub(crate) const RULES: &[Rule] = &[
    rule("require-commit-before-stop", "a turn ends only with everything committed", &[]),
    rule("require-push-before-stop", "a turn ends only with everything pushed", &["remote"]),
    rule(
        "require-pr-before-stop",
        "a turn ends only with a pull request for the branch",
        &["remote", "baseBranch"],
    ),
    rule("require-no-conflicts-before-stop", "a turn ends only without conflicts", &["baseBranch"]),
    rule("require-ci-green-before-stop", "a turn ends only with green checks", &["remote"]),
];

/// Checks all rules about the end of a turn.
pub(crate) fn check(request: &Request<'_>, rules: &RuleSet, world: &dyn World) -> Vec<Verdict> {
    // The agent says that the turn was blocked before, and no count exists. Once is enough.
    if request.stops_blocked.map_or(request.stop_active, |blocked| blocked >= MAX_STOP_BLOCKS) {
        return Vec::new();
    }
    let folder = world.project();
    let mut found = Vec::new();
    for active in rules.active(GuardEvent::Stop) {
        let params = &active.params;
        let (remote, base) = (params.remote.as_deref(), params.base_branch.as_deref());
        let mut facts = world.repository_against(&folder, remote, base);
        if asks_the_host(active.rule.id, params) {
            facts = facts.with(world.pull_request(&folder));
        }
        let base = params.base_branch.as_deref().unwrap_or("main");
        if let Some(reason) = missing(active.rule.id, &facts, base) {
            let reason = match params.hint.as_deref() {
                Some(hint) => format!("{reason} {hint}"),
                None => reason,
            };
            found.push(Verdict::new(Decision::Deny, active.rule.id, reason));
        }
    }
    found
}

/// Whether only the host of the repository knows what a rule asks about.
fn asks_the_host(rule: &str, params: &Params) -> bool {
    match rule {
        "require-pr-before-stop" | "require-ci-green-before-stop" => true,
        "require-no-conflicts-before-stop" => params.base_branch.is_some(),
        _ => false,
    }
}

fn missing(rule: &str, facts: &Repository, base: &str) -> Option<String> {
    let branch = facts.branch.as_deref().unwrap_or("this branch");
    match rule {
        "require-commit-before-stop" if facts.dirty == Some(true) => Some(
            "Not done yet: some changes are in no commit. Commit them, or undo what should not stay."
                .to_owned(),
        ),
        "require-push-before-stop" if facts.has_remote == Some(true) && facts.unpushed == Some(true) => {
            Some(format!("Not done yet: {branch} has commits that are not pushed. Push them."))
        }
        "require-pr-before-stop"
            if facts.has_remote == Some(true)
                && facts.pull_request == Some(false)
                && facts.ahead_of_base != Some(false)
                && facts.branch.as_deref().is_some_and(|branch| branch != base && branch != "master") =>
        {
            Some(format!("Not done yet: there is no pull request for {branch}. Open one against {base}."))
        }
        "require-no-conflicts-before-stop" if facts.conflicts == Some(true) => {
            Some(format!("Not done yet: {branch} has conflicts. Resolve them."))
        }
        "require-ci-green-before-stop" if facts.ci_green == Some(false) => {
            Some(format!("Not done yet: the checks of {branch} are red. Read them and fix what is broken."))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Active, by_id};
    use crate::world::{FakeWorld, PullRequest};

    fn all_on() -> RuleSet {
        let rules = RULES
            .iter()
            .filter_map(|rule| Some(Active { rule: by_id(rule.id)?, params: Params::default() }))
            .collect();
        RuleSet { rules, ..RuleSet::default() }
    }

    fn unfinished() -> FakeWorld {
        let mut world = FakeWorld::new("/p", "/home/me");
        world.repository = Repository {
            branch: Some("feature".to_owned()),
            dirty: Some(true),
            unpushed: Some(true),
            has_remote: Some(true),
            conflicts: Some(true),
            ..Repository::default()
        };
        world.pull_request = PullRequest { open: Some(false), green: Some(false), conflicts: None };
        world
    }

    #[test]
    fn each_rule_blocks_by_what_it_is_for() {
        let found = check(&Request::stop("claude"), &all_on(), &unfinished());
        let ids: Vec<&str> = found.iter().map(|verdict| verdict.rule.as_str()).collect();
        assert_eq!(ids, RULES.iter().map(|rule| rule.id).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_not_known_never_blocks() {
        let world = FakeWorld::new("/p", "/home/me");
        assert!(check(&Request::stop("claude"), &all_on(), &world).is_empty());
    }

    #[test]
    fn a_turn_is_held_three_times_at_most() {
        let world = unfinished();
        let request =
            |stops_blocked, stop_active| Request { stops_blocked, stop_active, ..Request::stop("claude") };
        assert!(!check(&request(Some(2), true), &all_on(), &world).is_empty());
        assert!(check(&request(Some(3), true), &all_on(), &world).is_empty());
        assert!(
            !check(&request(Some(0), true), &all_on(), &world).is_empty(),
            "somebody else held it, for mail"
        );
        assert!(check(&request(None, true), &all_on(), &world).is_empty(), "nobody counted");
    }
}
