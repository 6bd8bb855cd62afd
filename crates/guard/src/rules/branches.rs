//! Branches that are protected: pushes to them, forced pushes, and work on them.

use super::git::GitCall;
use super::{Example, Finding, Params, Rule, operands};
use crate::judge::{Facts, Moment};
use crate::shell::value::pattern_matches;
use crate::shell::{Command, Origin, Value};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "block-push-master",
        on: true,
        event: Moment::Before,
        forbids_commands: true,
        parameters: &["protectedBranches"],
        about: "no push to a protected branch, in any form of a refspec",
        check: push,
        bad: &[
            Example::Shell("git push origin main"),
            Example::Shell("git push origin HEAD:refs/heads/master"),
            Example::Shell("git push origin :main"),
            Example::Shell("git push --all"),
            Example::Shell("b=main; git push origin \"$b\""),
            Example::Shell("git -c alias.p=push p origin +main"),
            Example::Shell("git push"),
        ],
        good: &[
            Example::Shell("git push origin feature/main"),
            Example::Shell("git push origin maintenance"),
            Example::Shell("git push origin main:refs/heads/backup"),
            Example::Shell("git commit -m 'git push origin main'"),
            Example::Shell("git push --tags origin v1"),
        ],
    },
    Rule {
        id: "block-force-push",
        on: false,
        event: Moment::Before,
        forbids_commands: true,
        parameters: &["protectedBranches"],
        about: "no forced push; with a lease it is a note",
        check: force,
        bad: &[
            Example::Shell("git push --force"),
            Example::Shell("git push -fu origin x"),
            Example::Shell("git push origin +feature"),
            Example::Shell("git push --mirror backup"),
            Example::Shell("git push --delete origin main"),
        ],
        good: &[
            Example::Shell("git push origin feature"),
            Example::Shell("git push origin :feature"),
            Example::Shell("git push origin no--force"),
        ],
    },
    Rule {
        id: "block-work-on-main",
        on: false,
        event: Moment::Before,
        forbids_commands: true,
        parameters: &["protectedBranches"],
        about: "no commits, merges or rebases while a protected branch is checked out",
        check: work,
        bad: &[
            Example::Shell("git commit -m x"),
            Example::Shell("git merge feature"),
            Example::Shell("git checkout -b a && git checkout main && git rebase a"),
        ],
        good: &[
            Example::Shell("git switch -c feature && git commit -m x"),
            Example::Shell("git log"),
            Example::Shell("git checkout feature; git merge main"),
        ],
    },
];

fn protected(params: &Params) -> Vec<String> {
    params.protected_branches.clone().unwrap_or_else(|| vec!["main".to_owned(), "master".to_owned()])
}

fn is_protected(branch: &str, protected: &[String]) -> bool {
    let branch = branch.strip_prefix("refs/heads/").or(branch.strip_prefix("heads/")).unwrap_or(branch);
    protected.iter().any(|name| {
        branch == name
            || pattern_matches(name, branch)
            || (branch.contains('*') && pattern_matches(branch, name))
    })
}

/// Where a push goes.
struct Push {
    /// Each refspec: whether it is forced, and what it is pushed to; `None` for the branch that is checked out.
    refs: Vec<(bool, Option<Value>, bool)>,
    everything: bool,
    forced: bool,
    leased: bool,
    deletes: bool,
}

fn pushes(facts: &Facts<'_>) -> Vec<Push> {
    let mut found = Vec::new();
    for command in facts.commands_anywhere() {
        found.extend(push_of(command));
    }
    found
}

fn push_of(command: &Command) -> Option<Push> {
    if command.name == "jj" {
        let words = operands(command.args(), &[]);
        let is_push = words.first().is_some_and(|word| word.text == "git")
            && words.get(1).is_some_and(|word| word.text == "push");
        let args = command.args();
        let refs = args
            .iter()
            .enumerate()
            .filter(|(_, arg)| matches!(arg.text.as_str(), "-b" | "--bookmark" | "--branch"))
            .filter_map(|(number, _)| args.get(number + 1))
            .map(|value| (false, Some(value.clone()), false))
            .collect();
        return is_push.then(|| Push {
            refs,
            everything: command.has("--all"),
            forced: false,
            leased: false,
            deletes: false,
        });
    }
    let call = GitCall::of(command)?;
    let is_subtree =
        call.verb == "subtree" && call.operands(&[]).first().is_some_and(|word| word.text == "push");
    if !matches!(call.verb.as_str(), "push" | "send-pack" | "p4-push") && !is_subtree {
        return None;
    }
    let words =
        call.operands(&["-o", "--push-option", "--repo", "--receive-pack", "--exec", "-P", "--prefix"]);
    let has_repo = call.args.iter().any(|arg| arg.text == "--repo" || arg.text.starts_with("--repo="));
    let skip = usize::from(!has_repo) + usize::from(is_subtree);
    let configured = call
        .settings
        .iter()
        .filter(|(key, _)| key.starts_with("remote.") && key.ends_with(".push"))
        .map(|(_, value)| value);
    let tags_only = call.has("--tags") && words.len() <= skip;
    let mut refs: Vec<(bool, Option<Value>, bool)> =
        words.iter().skip(skip).copied().chain(configured).map(refspec).collect();
    if refs.is_empty() && !tags_only {
        refs.push((false, None, false));
    }
    Some(Push {
        refs,
        everything: call.has("--all") || call.has("--mirror") || call.has("--branches"),
        forced: call.has_long("--force", 4) || call.has_short("f") || call.has("--mirror"),
        leased: call.has_long("--force-with-lease", 10) && !call.has("--force"),
        deletes: call.has_long("--delete", 5) || call.has_short("d"),
    })
}

/// Whether a refspec is forced, what it is pushed to, and whether it deletes.
fn refspec(word: &Value) -> (bool, Option<Value>, bool) {
    let forced = word.text.starts_with('+');
    let word = word.after("+").unwrap_or_else(|| word.clone());
    let (source, target) = match word.text.rfind(':') {
        Some(at) => (Some(word.slice(0, at)), word.slice(at + 1, word.text.len())),
        None => (None, word.clone()),
    };
    let deletes = source.as_ref().is_some_and(|source| source.text.is_empty() && source.is_known());
    let is_current = source.is_none()
        && (matches!(target.text.as_str(), "HEAD" | "@")
            || target
                .holes
                .iter()
                .any(|(_, origin)| matches!(origin, Origin::Output(name) if name.as_ref() == "git")));
    (forced, (!is_current).then_some(target), deletes)
}

fn push(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let protected = protected(params);
    let deny = |branch: &str| {
        Finding::deny(format!(
            "Blocked: this pushes to {branch}, which is protected. Push a branch of your own and open a pull request."
        ))
    };
    let mut unclear = None;
    for push in pushes(facts) {
        if push.everything {
            return deny("every branch");
        }
        for (_, target, _) in &push.refs {
            match target {
                None => {
                    let branch = current_branch(facts);
                    if let Some(branch) = branch.filter(|branch| is_protected(branch, &protected)) {
                        return deny(&branch);
                    }
                }
                Some(target) if target.is_known() => {
                    if is_protected(&target.text, &protected) {
                        return deny(&target.text);
                    }
                }
                Some(target) => unclear = Some(target.clone()),
            }
        }
    }
    if let Some(branch) = api_push(facts, &protected) {
        return deny(&branch);
    }
    let target = unclear?;
    Finding::ask(format!(
        "This pushes to {}, and which branch that is can't be known. Name the branch.",
        super::short(&target.show())
    ))
}

/// A branch that is moved through the API of the forge.
fn api_push(facts: &Facts<'_>, protected: &[String]) -> Option<String> {
    facts
        .commands_anywhere()
        .filter(|command| matches!(command.name.as_str(), "gh" | "curl" | "glab" | "hub"))
        .find_map(|command| {
            let writes = command.texts().any(|arg| {
                matches!(
                    arg.to_ascii_uppercase().trim_start_matches("-X"),
                    "PATCH" | "PUT" | "POST" | "DELETE"
                )
            }) || command
                .texts()
                .any(|arg| matches!(arg, "-f" | "-F" | "--field" | "--raw-field" | "--input"));
            let address = command.texts().find(|arg| arg.contains("git/refs/heads/"))?;
            let branch = address.split("git/refs/heads/").nth(1)?.trim_end_matches('/').to_owned();
            (writes && is_protected(&branch, protected)).then_some(branch)
        })
}

/// The branch that is checked out once all commands have run.
fn current_branch(facts: &Facts<'_>) -> Option<String> {
    let mut branch = facts.world.repository(&facts.project).branch;
    for command in facts.commands() {
        if let Some(call) = GitCall::of(command)
            && let Some(next) = switched(&call)
        {
            branch = Some(next);
        }
    }
    branch
}

/// The branch that a command checks out.
fn switched(call: &GitCall) -> Option<String> {
    if !matches!(call.verb.as_str(), "checkout" | "switch") || call.args.iter().any(|arg| arg.text == "--") {
        return None;
    }
    let words = call.operands(&[]);
    words.first().map(|word| word.text.clone()).filter(|name| name != ".")
}

fn force(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let protected = protected(params);
    let mut leased = false;
    for push in pushes(facts) {
        let deletes_protected = push.refs.iter().any(|(_, target, deletes)| {
            (push.deletes || *deletes)
                && target.as_ref().is_some_and(|target| is_protected(&target.text, &protected))
        });
        if push.forced || deletes_protected || push.refs.iter().any(|(forced, ..)| *forced) {
            return Finding::deny(
                "Blocked: a forced push may lose what others pushed. Push normally, or use --force-with-lease on a branch of your own.",
            );
        }
        leased |= push.leased;
    }
    if leased {
        return Finding::note(
            "A push with a lease still rewrites the branch on the remote. Make sure that nobody else works on it.",
        );
    }
    None
}

fn work(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let protected = protected(params);
    let mut branch: Option<String> = None;
    for command in facts.commands() {
        let Some(call) = GitCall::of(command) else { continue };
        if let Some(next) = switched(&call) {
            branch = Some(next);
            continue;
        }
        if !matches!(call.verb.as_str(), "commit" | "merge" | "rebase" | "cherry-pick" | "revert" | "am") {
            continue;
        }
        if call.has("--abort") || call.has("--quit") || call.has("--dry-run") {
            continue;
        }
        let on = branch.clone().or_else(|| {
            let folder = call.folder(command).unwrap_or_else(|| facts.project.clone());
            facts.world.repository(&folder).branch
        });
        if let Some(on) = on.filter(|on| is_protected(on, &protected)) {
            return Finding::deny(format!(
                "Blocked: `git {}` while {on} is checked out, which is protected. Make a branch first: git switch -c NAME.",
                call.verb
            ));
        }
    }
    None
}
