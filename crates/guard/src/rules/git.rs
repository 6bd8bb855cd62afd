//! Git commands: how they are read, and what they may lose.

use super::{Example, Finding, Params, Rule, operands};
use crate::judge::{Facts, Moment};
use crate::path;
use crate::shell::{Command, Value};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "block-history-loss",
        on: true,
        event: Moment::Before,
        forbids_commands: true,
        parameters: &[],
        about: "asks before git throws away work that is in no commit or on no remote",
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
        event: Moment::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes that an amend changes a commit that others may have",
        check: amend,
        bad: &[Example::Shell("git commit --amend --no-edit"), Example::Shell("git commit -am x --amend")],
        good: &[Example::Shell("git commit -m 'explain --amend'")],
    },
    Rule {
        id: "warn-git-stash-drop",
        on: false,
        event: Moment::Before,
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
        event: Moment::Before,
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
    /// `-c name=value`.
    pub(super) settings: Vec<(String, Value)>,
}

impl GitCall {
    /// Reads a command, if it is one of git.
    pub(super) fn of(command: &Command) -> Option<Self> {
        if !matches!(command.name.as_str(), "git" | "hub" | "git.exe") {
            return command.name.strip_prefix("git-").map(|verb| Self {
                verb: verb.to_owned(),
                args: command.args().to_vec(),
                folder: None,
                settings: Vec::new(),
            });
        }
        let args = command.args();
        let mut at = 0;
        let mut folder = None;
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
                "--git-dir" | "--namespace" | "--exec-path" => at += 2,
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
        Some(Self { verb, args: rest, folder, settings })
    }

    /// The folder that it works in; `None` where that is not known.
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

    /// A long option, or the start of it.
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

/// What would be lost.
enum Loss {
    Changes,
    Commits,
    Stashes,
}

fn history_loss(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    for (command, call) in calls(facts) {
        let Some(losses) = losses(&call, command, facts) else { continue };
        let repository =
            facts.world.repository(&call.folder(command).unwrap_or_else(|| facts.project.clone()));
        let what = losses.iter().find_map(|loss| match loss {
            Loss::Changes if repository.dirty != Some(false) => Some("changes that are in no commit"),
            Loss::Commits if repository.unpushed != Some(false) => Some("commits that are on no remote"),
            Loss::Stashes if repository.stashes != Some(false) => Some("stashed changes"),
            _ => None,
        });
        if let Some(what) = what
            && !command.from_file
        {
            return Finding::ask(format!(
                "`git {}` may throw away {what}. Commit or stash first, or let the person confirm.",
                call.verb
            ));
        }
    }
    None
}

fn losses(call: &GitCall, command: &Command, facts: &Facts<'_>) -> Option<Vec<Loss>> {
    let has = |text: &str| call.has(text);
    let first = call.operands(&[]).first().map(|value| value.text.clone()).unwrap_or_default();
    Some(match call.verb.as_str() {
        "reset" if call.has_long("--hard", 5) || has("--merge") => {
            let stays = matches!(first.as_str(), "" | "HEAD" | "@");
            if stays { vec![Loss::Changes] } else { vec![Loss::Changes, Loss::Commits] }
        }
        "clean"
            if (call.has_short("f") || has("--force"))
                && !call.has_short("n")
                && !has("--dry-run")
                && !call.has_short("i") =>
        {
            vec![Loss::Changes]
        }
        "checkout" | "co" => {
            let forced = call.has_short("f") || has("--force");
            let paths =
                call.args.iter().any(|arg| {
                    arg.text == "--"
                        || arg.text == "."
                        || arg.text.starts_with(":/")
                        || arg.text.starts_with("./")
                }) || call.operands(&["-b", "-B"]).iter().skip(1).any(|arg| !arg.text.starts_with('-'))
                    && !call.has_short("bBt")
                    && !has("--track")
                    && !has("--orphan");
            let file = !call.has_short("bB")
                && call.operands(&["-b", "-B"]).iter().any(|value| names_file(value, command, facts));
            if forced || ((paths || file) && !call.has_short("p")) {
                vec![Loss::Changes]
            } else {
                return None;
            }
        }
        "restore" => {
            let staged_only =
                (has("--staged") || call.has_short("S")) && !has("--worktree") && !call.has_short("W");
            if staged_only || call.has_short("p") { return None } else { vec![Loss::Changes] }
        }
        "switch" if call.has_short("f") || has("--force") || has("--discard-changes") => vec![Loss::Changes],
        "stash" if matches!(first.as_str(), "drop" | "clear") => vec![Loss::Stashes],
        "branch" => {
            let deletes = call.has_short("dD") || has("--delete");
            let forced = call.has_short("D") || call.has_short("f") || has("--force");
            if deletes && forced { vec![Loss::Commits] } else { return None }
        }
        "reflog" if matches!(first.as_str(), "expire" | "delete" | "drop") => vec![Loss::Commits],
        "gc" if call
            .args
            .iter()
            .any(|arg| arg.text.starts_with("--prune=now") || arg.text == "--prune=all") =>
        {
            vec![Loss::Commits]
        }
        "prune" if !has("-n") => vec![Loss::Commits],
        "update-ref" if has("-d") || has("--delete") => vec![Loss::Commits],
        "worktree" if first == "remove" && (has("--force") || call.has_short("f")) => vec![Loss::Changes],
        "filter-branch" | "filter-repo" => vec![Loss::Commits],
        "read-tree" if has("--reset") && has("-u") => vec![Loss::Changes],
        "checkout-index" if call.has_short("f") => vec![Loss::Changes],
        "rm" if call.has_short("f") && !has("--cached") => vec![Loss::Changes],
        _ => return None,
    })
}

fn names_file(value: &Value, command: &Command, facts: &Facts<'_>) -> bool {
    let Some(cwd) = command.cwd.as_deref() else { return false };
    value.is_known() && facts.world.exists(&path::join(cwd, &value.text)) == Some(true)
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
            // `-a` among glued options, but not in the value of one (`-m all`, `-Cabc`).
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
