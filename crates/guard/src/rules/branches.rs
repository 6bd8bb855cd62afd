//! Protected branches: pushes to them, forced pushes, and work on them.

use super::git::GitCall;
use super::{Example, Finding, Params, Rule, operands};
use crate::judge::{Facts, GuardEvent};
use crate::shell::value::pattern_matches;
use crate::shell::{Command, Origin, Value};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "block-push-master",
        on: true,
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &["protectedBranches"],
        about: "blocks pushes to a protected branch, with any refspec",
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
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &["protectedBranches"],
        about: "blocks forced pushes; notes those with a lease",
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
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &["protectedBranches"],
        about: "blocks commits, merges and rebases while a protected branch is checked out",
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

/// Whether the unknown parts of a branch's name could make it a protected one.
fn may_be_protected(branch: &Value, protected: &[String]) -> bool {
    let short = ["refs/heads/", "heads/"].iter().find_map(|prefix| branch.after(prefix));
    let branch = short.as_ref().unwrap_or(branch);
    let begins = branch.text.get(..branch.holes.first().map_or(0, |(at, _)| *at)).unwrap_or("");
    protected.iter().any(|name| match name.split_once(['*', '?', '[']) {
        Some((stem, _)) => stem.starts_with(begins) || begins.starts_with(stem),
        None => branch.may_be(name),
    })
}

/// One refspec of a push.
struct Refspec {
    forced: bool,
    /// The branch that it updates; `None` for the branch that is checked out.
    target: Option<Value>,
    deletes: bool,
}

/// Where a push goes.
struct Push {
    refs: Vec<Refspec>,
    everything: bool,
    forced: bool,
    leased: bool,
    deletes: bool,
    /// What `-c` sets for it.
    settings: Vec<(String, Value)>,
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
            .map(|value| Refspec { forced: false, target: Some(value.clone()), deletes: false })
            .collect();
        return is_push.then(|| Push {
            refs,
            everything: command.has("--all"),
            forced: false,
            leased: false,
            deletes: false,
            settings: Vec::new(),
        });
    }
    let call = GitCall::of(command)?;
    let is_subtree =
        call.verb == "subtree" && call.operands(&[]).first().is_some_and(|word| word.text == "push");
    if !matches!(call.verb.as_str(), "push" | "send-pack" | "p4-push") && !is_subtree {
        return None;
    }
    if call.verb == "push" && only_tries(&call.args) {
        return None;
    }
    let words = call.operands(PUSH_VALUES);
    let has_repo = call.args.iter().any(|arg| arg.text == "--repo" || arg.text.starts_with("--repo="));
    let skip = usize::from(!has_repo) + usize::from(is_subtree);
    let configured = call
        .settings
        .iter()
        .filter(|(key, _)| key.starts_with("remote.") && key.ends_with(".push"))
        .map(|(_, value)| value);
    let tags_only = call.has("--tags") && words.len() <= skip;
    let mut refs: Vec<Refspec> = words.iter().skip(skip).copied().chain(configured).map(refspec).collect();
    if refs.is_empty() && !tags_only {
        refs.push(Refspec { forced: false, target: None, deletes: false });
    }
    Some(Push {
        refs,
        everything: words.iter().skip(skip).any(|word| matches!(word.text.as_str(), ":" | "+:"))
            || call.has("--all")
            || call.has("--mirror")
            || call.has("--branches"),
        forced: call.has_long("--force", 4) || call.has_short("f") || call.has("--mirror"),
        leased: call.has_long("--force-with-lease", 10) && !call.has("--force"),
        deletes: call.has_long("--delete", 5) || call.has_short("d"),
        settings: call.settings,
    })
}

/// Options of a push whose value is the next word.
const PUSH_VALUES: &[&str] = &["-o", "--push-option", "--repo", "--receive-pack", "--exec", "-P", "--prefix"];

/// Whether a push is a dry run. A value of another option does not count.
fn only_tries(args: &[Value]) -> bool {
    let options = args.iter().take_while(|arg| arg.text != "--");
    let takes_back = options.clone().any(|arg| arg.text.starts_with("--no-d"));
    let mut before = "";
    let tries = options.into_iter().any(|arg| {
        let is_free = !before.starts_with('-') || before == "--dry-run";
        before = arg.text.as_str();
        is_free && arg.is_known() && matches!(before, "-n" | "--dry-run")
    });
    tries && !takes_back
}

fn refspec(word: &Value) -> Refspec {
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
    Refspec { forced, target: (!is_current).then_some(target), deletes }
}

fn push(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let protected = protected(params);
    let deny = |branch: &str| {
        Finding::deny(format!(
            "Blocked: this pushes to {branch}, which is protected. Push your own branch and open a pull request."
        ))
    };
    let mut unclear = None;
    for push in pushes(facts) {
        if push.everything {
            return deny("every branch");
        }
        for Refspec { target, .. } in &push.refs {
            match target {
                None => {
                    let setting = |key: &str| {
                        let given = push.settings.iter().find(|(name, _)| name == key);
                        given
                            .map(|(_, value)| value.text.clone())
                            .or_else(|| said(facts, key))
                            .or_else(|| crate::shell::git_settings::setting(facts.world, &facts.project, key))
                    };
                    let configured = setting("remote.origin.push");
                    let named = configured.as_deref().map(|refs| refspec(&Value::known(refs)));
                    if let Some(Refspec { target: Some(target), .. }) = named
                        && is_protected(&target.text, &protected)
                    {
                        return deny(&target.text);
                    }
                    let branch = match setting("push.default").as_deref() {
                        Some("upstream" | "tracking") => {
                            let upstream = upstream_said(facts)
                                .or_else(|| facts.world.repository(&facts.project).upstream);
                            upstream.and_then(|name| Some(name.split_once('/')?.1.to_owned()))
                        }
                        Some("matching") => return deny("every branch"),
                        _ => current_branch(facts),
                    };
                    if let Some(branch) = branch.filter(|branch| is_protected(branch, &protected)) {
                        return deny(&branch);
                    }
                }
                Some(target) if target.is_known() => {
                    if is_protected(&target.text, &protected) {
                        return deny(&target.text);
                    }
                }
                Some(target) if !may_be_protected(target, &protected) => {}
                Some(target) => unclear = Some(target.clone()),
            }
        }
    }
    if let Some(branch) = api_push(facts, &protected).or_else(|| published(facts, &protected)) {
        return deny(&branch);
    }
    let target = unclear?;
    Finding::ask(format!(
        "This pushes to {}, and it is not known which branch that is. Name the branch.",
        super::short(&target.show())
    ))
}

/// The value that the same text gives to a setting of git: `git config remote.origin.push
/// HEAD:main`.
fn said(facts: &Facts<'_>, key: &str) -> Option<String> {
    facts.commands().filter_map(GitCall::of).filter(|call| call.verb == "config").find_map(|call| {
        let words = call.operands(&["-f", "--file"]);
        let mut words = words.iter().filter(|word| !matches!(word.text.as_str(), "set" | "add"));
        let is_it = words.next().is_some_and(|name| name.text.eq_ignore_ascii_case(key));
        words.next().filter(|_| is_it).map(|value| value.text.clone())
    })
}

/// The upstream that the same text gives to the branch.
fn upstream_said(facts: &Facts<'_>) -> Option<String> {
    facts.commands().filter_map(GitCall::of).filter(|call| call.verb == "branch").find_map(|call| {
        call.args.iter().enumerate().find_map(|(number, arg)| match arg.text.as_str() {
            "-u" | "--set-upstream-to" => call.args.get(number + 1).map(|value| value.text.clone()),
            text => text.strip_prefix("--set-upstream-to=").map(str::to_owned),
        })
    })
}

/// A branch that is moved through the host's API.
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
            let named = command
                .texts()
                .find_map(|arg| arg.strip_prefix("branch=").or(arg.strip_prefix("base=")))
                .filter(|_| {
                    command.texts().any(|arg| arg.contains("/contents/") || arg.ends_with("/merges"))
                });
            if let Some(branch) = named.filter(|branch| writes && is_protected(branch, protected)) {
                return Some(branch.to_owned());
            }
            let address = command.texts().find(|arg| arg.contains("git/refs/heads/"))?;
            let branch = address.split("git/refs/heads/").nth(1)?.trim_end_matches('/').to_owned();
            (writes && is_protected(&branch, protected)).then_some(branch)
        })
}

/// `gh-pages -b main`: a branch that a program pushes a folder to.
fn published(facts: &Facts<'_>, protected: &[String]) -> Option<String> {
    facts.commands().filter(|command| command.name == "gh-pages").find_map(|command| {
        let args = command.args();
        let at = args.iter().position(|arg| matches!(arg.text.as_str(), "-b" | "--branch"))?;
        let branch = args.get(at + 1)?.text.clone();
        is_protected(&branch, protected).then_some(branch)
    })
}

/// The branch that is checked out after all commands.
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
    if call.verb == "symbolic-ref" {
        let words = call.operands(&["-m"]);
        let [head, target] = &words[..] else { return None };
        return target.text.strip_prefix("refs/heads/").filter(|_| head.text == "HEAD").map(str::to_owned);
    }
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
        let deletes_protected = push.refs.iter().any(|Refspec { target, deletes, .. }| {
            (push.deletes || *deletes)
                && target.as_ref().is_some_and(|target| is_protected(&target.text, &protected))
        });
        if push.forced || deletes_protected || push.refs.iter().any(|refspec| refspec.forced) {
            return Finding::deny(
                "Blocked: a forced push can delete commits that others pushed. Push normally, or use --force-with-lease on your own branch.",
            );
        }
        leased |= push.leased;
    }
    if leased {
        return Finding::note(
            "A push with a lease still rewrites the branch on the remote. Make sure that no one else works on it.",
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
                "Blocked: `git {}` on {on}, which is protected. Create a branch first: git switch -c NAME.",
                call.verb
            ));
        }
    }
    None
}
