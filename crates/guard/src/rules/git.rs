//! Git commands: how they are parsed, and what they may lose.

mod losses;

use super::{Example, Finding, Params, Rule, operands};
use crate::files::{Deed, Touch};
use crate::judge::{Facts, GuardEvent};
use crate::path;
use crate::shell::{Command, Location, Origin, Value};
use losses::{Loss, MovedReferences, Paths};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "block-history-loss",
        on: true,
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &[],
        about: "asks before git discards work that is in no commit or on no remote",
        check: history_loss,
        bad: &[
            Example::Shell("git reset --hard HEAD~1"),
            Example::Shell("git clean -fdx"),
            Example::Shell("git checkout -- ."),
            Example::Shell("git restore src/a.rs"),
            Example::Shell("git stash clear"),
            Example::Shell("git branch -D old"),
            Example::Shell("git -c alias.x='reset --hard' x"),
            Example::Shell("git reflog expire --expire=now --all"),
        ],
        good: &[
            Example::Shell("git reset HEAD a.rs"),
            Example::Shell("git reset --soft HEAD~1"),
            Example::Shell("git clean -n"),
            Example::Shell("git checkout -b feature"),
            Example::Shell("git restore --staged a.rs"),
            Example::Shell("git branch -d merged"),
            Example::Shell("git stash pop"),
        ],
    },
    Rule {
        id: "warn-git-amend",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes that an amend replaces a commit that others may have",
        check: amend,
        bad: &[Example::Shell("git commit --amend --no-edit"), Example::Shell("git commit -am x --amend")],
        good: &[Example::Shell("git commit -m 'explain --amend'")],
    },
    Rule {
        id: "warn-git-stash-drop",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes that a dropped stash is gone",
        check: stash_drop,
        bad: &[Example::Shell("git stash drop stash@{2}"), Example::Shell("git stash clear")],
        good: &[Example::Shell("git stash pop"), Example::Shell("git stash list")],
    },
    Rule {
        id: "warn-all-files-staged",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes that everything is staged at once",
        check: all_staged,
        bad: &[
            Example::Shell("git add -A"),
            Example::Shell("git add ."),
            Example::Shell("git commit -am x"),
            Example::Shell("git add :/"),
        ],
        good: &[
            Example::Shell("git add src/a.rs"),
            Example::Shell("git add -p"),
            Example::Shell("git commit -m 'git add .'"),
        ],
    },
];

/// A call of git: its subcommand and what follows.
pub(super) struct GitCall {
    /// The subcommand, after aliases of the same line.
    pub(super) verb: String,
    /// What follows it.
    pub(super) args: Vec<Value>,
    /// `-C`, `--work-tree`.
    pub(super) folder: Option<Value>,
    /// `--git-dir`, `GIT_DIR`.
    git_dir: Option<Value>,
    /// `-c name=value`.
    pub(super) settings: Vec<(String, Value)>,
}

impl GitCall {
    /// Parses a command, if it is git.
    pub(super) fn of(command: &Command) -> Option<Self> {
        if !matches!(command.name.as_str(), "git" | "hub" | "git.exe") {
            return command.name.strip_prefix("git-").map(|verb| Self {
                verb: verb.to_owned(),
                args: command.args().to_vec(),
                folder: None,
                git_dir: None,
                settings: Vec::new(),
            });
        }
        let args = command.args();
        let mut at = 0;
        let set = |wanted: &str| {
            command.assignments.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
        };
        let mut folder = set("GIT_WORK_TREE");
        let mut git_dir = set("GIT_DIR");
        let mut settings = Vec::new();
        while let Some(arg) = args.get(at) {
            match arg.text.as_str() {
                "-C" | "--work-tree" => {
                    folder = args.get(at + 1).cloned();
                    at += 2;
                }
                "-c" | "--config-env" => {
                    if let Some((key, value)) = args.get(at + 1).and_then(|arg| arg.split_at_sign('=')) {
                        settings.push((key.text.to_ascii_lowercase(), value));
                    }
                    at += 2;
                }
                "--git-dir" => {
                    git_dir = args.get(at + 1).cloned();
                    at += 2;
                }
                "--namespace" | "--exec-path" => at += 2,
                text if text.starts_with("--git-dir=") => {
                    git_dir = arg.after("--git-dir=");
                    at += 1;
                }
                text if text.starts_with("--work-tree=") => {
                    folder = arg.after("--work-tree=");
                    at += 1;
                }
                text if text.starts_with('-') => at += 1,
                _ => break,
            }
        }
        let mut verb = args.get(at)?.text.clone();
        let mut rest = args.get(at + 1..).unwrap_or(&[]).to_vec();
        if let Some((_, alias)) = settings.iter().find(|(key, _)| *key == format!("alias.{verb}")) {
            let mut words = alias.text.split_whitespace();
            verb = words.next().unwrap_or("").to_owned();
            let mut whole: Vec<Value> = words.map(Value::known).collect();
            whole.append(&mut rest);
            rest = whole;
        }
        Some(Self { verb, args: rest, folder, git_dir, settings })
    }

    /// The folder that it works in; `None` if that is not known.
    pub(super) fn folder(&self, command: &Command) -> Option<String> {
        match &self.folder {
            Some(folder) if folder.is_known() => Some(if path::is_absolute(&folder.text) {
                path::join("/", &folder.text)
            } else {
                path::join(command.cwd.as_deref()?, &folder.text)
            }),
            Some(_) => None,
            None => command.cwd.clone(),
        }
    }

    /// The folder of the repository that `--git-dir` names, if it is not the repository of the
    /// files.
    fn other_repository(&self, command: &Command) -> Option<String> {
        let named = self.git_dir.as_ref()?;
        let files = self.folder(command)?;
        let git_dir = path::join(&files, if named.is_known() { &named.text } else { "" });
        let holder = git_dir.strip_suffix("/.git").unwrap_or(&git_dir);
        (holder != files || !named.is_known()).then(|| holder.to_owned())
    }

    pub(super) fn has(&self, text: &str) -> bool {
        self.args.iter().take_while(|arg| arg.text != "--").any(|arg| arg.text == text)
    }

    pub(super) fn has_short(&self, letters: &str) -> bool {
        self.args.iter().take_while(|arg| arg.text != "--").any(|arg| {
            arg.text
                .strip_prefix('-')
                .is_some_and(|rest| !rest.starts_with('-') && rest.chars().any(|sign| letters.contains(sign)))
        })
    }

    /// Whether a long option or a prefix of it is present.
    pub(super) fn has_long(&self, option: &str, shortest: usize) -> bool {
        self.args.iter().take_while(|arg| arg.text != "--").any(|arg| {
            let text = arg.text.split('=').next().unwrap_or("");
            text.len() >= shortest && option.starts_with(text) && text.starts_with("--")
        })
    }

    pub(super) fn operands(&self, valued: &[&str]) -> Vec<&Value> {
        operands(&self.args, valued)
    }
}

fn calls<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = (&'f Command, GitCall)> {
    facts.commands().filter_map(|command| Some((command, GitCall::of(command)?)))
}

fn history_loss(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    if let Some(touch) = facts.touches.iter().find(|touch| takes_reference(touch, facts)) {
        return Finding::ask(format!(
            "{} is where git keeps branches, and this may lose commits. Use git itself, or let the person confirm.",
            touch.show()
        ));
    }
    let mut stashed = false;
    for command in facts.commands() {
        if reverts_by_patch(command, facts) {
            return Finding::ask(
                "`patch -R` of git's own diff may throw away changes that are in no commit. Commit or stash first, or let the person confirm.",
            );
        }
        let Some(call) = GitCall::of(command) else { continue };
        let first = call.operands(&[]).first().map_or("", |word| word.text.as_str());
        if call.verb == "stash" && (matches!(first, "" | "push" | "save" | "-u") || first.starts_with('-')) {
            stashed = true;
            continue;
        }
        let Some(losses) = losses::of(&call, command, facts) else { continue };
        let mut folder = call.folder(command).unwrap_or_else(|| facts.project.clone());
        if call.verb == "worktree"
            && let Some(target) = call.operands(&[]).get(1)
        {
            folder = path::join(&folder, &target.text);
        }
        if was_just_cloned(&folder, command, facts) {
            continue;
        }
        let apart = call.other_repository(command);
        let is_apart = apart.is_some();
        let folder = apart.unwrap_or(folder);
        let mut repository = facts.world.repository(&folder);
        if is_apart {
            // It would overwrite files that git does not track.
            repository.dirty = None;
        }
        // In a script, only what is certain counts.
        let may = |answer: Option<bool>| {
            if command.from_file { answer == Some(true) } else { answer != Some(false) }
        };
        if let Some(Paths { paths, scope }) = losses::paths(&call, command, facts).filter(|_| !is_apart)
            && repository.dirty != Some(false)
        {
            repository.dirty = facts.world.loses_changes(&folder, &paths, scope).or(repository.dirty);
        }
        let commits = match losses::moved(&call) {
            Some(MovedReferences { names, kept }) => {
                let known: Vec<Option<bool>> = names
                    .iter()
                    .map(|name| match (name.as_deref(), &repository.branch) {
                        (Some("HEAD"), Some(branch)) => Some(branch.as_str()),
                        (name, _) => name,
                    })
                    .map(|name| facts.world.loses_commits(&folder, name?, kept.as_deref()))
                    .collect();
                if known.contains(&Some(true)) {
                    Some(true)
                } else if known.contains(&None) {
                    // Which branch is meant is not known, so what HEAD has says nothing.
                    repository.unpushed.filter(|_| names.iter().all(Option::is_some))
                } else {
                    Some(false)
                }
            }
            None => repository.unpushed,
        };
        let what = losses.iter().find_map(|loss| match loss {
            Loss::Changes if may(repository.dirty) => Some("changes that are in no commit"),
            Loss::Commits if may(commits) => Some("commits that are on no remote"),
            Loss::Stashes if stashed || may(repository.stashes) => Some("stashed changes"),
            _ => None,
        });
        if let Some(what) = what {
            return Finding::ask(format!(
                "`git {}` may throw away {what}. Commit or stash first, or let the person confirm.",
                call.verb
            ));
        }
    }
    None
}

/// `rm .git/refs/heads/old`: a file in which git keeps its references or its objects, deleted or
/// written without git.
fn takes_reference(touch: &Touch, facts: &Facts<'_>) -> bool {
    let changes = matches!(touch.deed, Deed::Delete | Deed::Truncate | Deed::DeleteTree);
    let Some(real) = touch.real.as_deref().filter(|_| changes && touch.location == Location::Here) else {
        return false;
    };
    let Some((folder, inside)) = real.split_once("/.git/").filter(|_| touch.by != "git") else {
        return false;
    };
    if let Some(branch) = inside.strip_prefix("refs/heads/").filter(|_| !touch.is_pattern) {
        return facts.world.loses_commits(folder, branch, None) != Some(false);
    }
    ["refs", "objects", "packed-refs", "logs", "HEAD"].iter().any(|own| path::is_below(inside, own))
}

/// Whether the same text cloned this folder, so that it holds nothing to lose.
fn was_just_cloned(folder: &str, command: &Command, facts: &Facts<'_>) -> bool {
    const VALUED: &[&str] =
        &["-b", "--branch", "--depth", "-o", "--origin", "-c", "--config", "-j", "--jobs", "--filter"];
    let before = facts.commands().take_while(|other| !std::ptr::eq(*other, command));
    before.filter_map(|other| Some((other, GitCall::of(other)?))).any(|(other, call)| {
        let words = call.operands(VALUED);
        let Some(target) = words.get(1).or(words.first()).filter(|_| call.verb == "clone") else {
            return false;
        };
        let name = if words.len() > 1 {
            target.text.as_str()
        } else {
            path::file_name(&target.text).trim_end_matches(".git")
        };
        let made = call.folder(other).map(|cwd| path::join(&cwd, name)).filter(|_| target.is_known());
        made.is_some_and(|made| path::is_below(folder, &made) && facts.world.exists(&made) == Some(false))
    })
}

/// `git diff | patch -R`.
fn reverts_by_patch(command: &Command, facts: &Facts<'_>) -> bool {
    let from_git = command.stdin.as_deref().is_some_and(|stdin| {
        stdin.holes.iter().any(|(_, origin)| matches!(origin, Origin::Output(name) if name.as_ref() == "git"))
    });
    command.name == "patch"
        && (command.has_short("R") || command.has("--reverse"))
        && from_git
        && !command.has("--dry-run")
        && facts.world.repository(&facts.project).dirty != Some(false)
}

fn amend(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    calls(facts).find(|(_, call)| call.verb == "commit" && call.has_long("--amend", 4))?;
    Finding::note("An amend replaces a commit. If it was pushed, make a new commit instead.")
}

fn stash_drop(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    calls(facts).find(|(_, call)| {
        call.verb == "stash"
            && call.operands(&[]).first().is_some_and(|value| matches!(value.text.as_str(), "drop" | "clear"))
    })?;
    Finding::note("A dropped stash is gone. Look at it with `git stash show -p` first.")
}

fn all_staged(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    calls(facts).find(|(_, call)| match call.verb.as_str() {
        "add" | "stage" => {
            call.has_short("A")
                || call.has_long("--all", 4)
                || call.has("--no-ignore-removal")
                || call.operands(&[]).iter().any(|value| {
                    matches!(value.text.as_str(), "." | "*" | ":/" | "./" | ":" | ":(top)" | "./*" | "..")
                })
        }
        "commit" => {
            // `-a` in a cluster, but not in the value of an option (`-m all`, `-Cabc`).
            call.has("--all")
                || call.args.iter().enumerate().any(|(number, arg)| {
                    let after_value = number > 0
                        && call.args.get(number - 1).is_some_and(|before| {
                            matches!(before.text.as_str(), "-m" | "-F" | "-C" | "-c" | "-t")
                        });
                    let flags =
                        arg.text.strip_prefix('-').filter(|rest| !rest.starts_with('-') && !after_value);
                    flags.is_some_and(|flags| {
                        flags.chars().take_while(|sign| !"mFCct".contains(*sign)).any(|sign| sign == 'a')
                    })
                })
        }
        _ => false,
    })?;
    Finding::note("This stages everything. Name the files that belong to the change.")
}
