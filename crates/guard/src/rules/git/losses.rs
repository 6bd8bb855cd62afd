//! What a command of git may lose: changes of which paths, commits of which references, stashes.

use super::{Command, Facts, GitCall, Value, operands, path};
use crate::{ChangeScope, CleanOptions};

/// What would be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Changes,
    Commits,
    Stashes,
}

/// The paths that a command writes over; none means all of them.
pub(super) struct Paths<'c> {
    pub(super) paths: Vec<&'c str>,
    pub(super) scope: ChangeScope,
}

/// The references that a command deletes or moves; one that is not known is `None`.
pub(super) struct MovedReferences {
    pub(super) names: Vec<Option<String>>,
    /// What a reference is moved to; `None` where the command deletes it.
    pub(super) kept: Option<String>,
}

/// Most paths of one command that git is asked about.
const MAX_PATHS: usize = 64;

pub(super) fn of(call: &GitCall, command: &Command, facts: &Facts<'_>) -> Option<Vec<Loss>> {
    let has = |text: &str| call.has(text);
    let first = call.operands(&[]).first().map(|value| value.text.clone()).unwrap_or_default();
    Some(match call.verb.as_str() {
        "reset" if has("--keep") && !matches!(first.as_str(), "" | "HEAD" | "@") => vec![Loss::Commits],
        "checkout" | "switch" if call.has_short("BC") || has("--force-create") => vec![Loss::Commits],
        "apply" if (call.has_short("R") || has("--reverse")) && !has("--cached") && !has("--check") => {
            vec![Loss::Changes]
        }
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
            let takes = call.has_short("dDMC")
                || call.has_short("mcf")
                || ["--delete", "--force", "--move", "--copy"].into_iter().any(has);
            let forced = call.has_short("DMCf") || has("--force");
            if takes && forced { vec![Loss::Commits] } else { return None }
        }
        "fetch" | "pull" | "push" if !overwritten(call).is_empty() => vec![Loss::Commits],
        "tag" if call.has_short("d") || has("--delete") => vec![Loss::Commits],
        "reflog" if matches!(first.as_str(), "expire" | "delete" | "drop") => vec![Loss::Commits],
        "gc" if call
            .args
            .iter()
            .any(|arg| arg.text.starts_with("--prune=now") || arg.text == "--prune=all") =>
        {
            vec![Loss::Commits]
        }
        "prune" if !has("-n") => vec![Loss::Commits],
        "update-ref" if has("--stdin") => vec![Loss::Commits],
        "update-ref" if has("-d") || has("--delete") || first.starts_with("refs/heads/") => {
            vec![Loss::Commits]
        }
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

/// The paths that a command names, where it is one that writes over named paths; `None` where they
/// are not known.
pub(super) fn paths<'c>(call: &'c GitCall, command: &Command, facts: &Facts<'_>) -> Option<Paths<'c>> {
    let (words, scope) = match call.verb.as_str() {
        "restore" if !call.has_long("--pathspec-from-file", 10) => {
            let from_commit = call.has_short("s") || call.has_long("--source", 4);
            let scope = if from_commit { ChangeScope::All } else { ChangeScope::Tracked };
            (call.operands(&["-s", "--source"]), scope)
        }
        "checkout" if !call.has_short("fbB") && !call.has("--force") && !call.has("--orphan") => {
            checked_out(call, command, facts)?
        }
        "reset" => {
            let words = call.operands(&[]);
            let stays =
                words.iter().all(|word| matches!(word.text.as_str(), "HEAD" | "@") && word.is_known());
            (Vec::new(), if stays { ChangeScope::Tracked } else { ChangeScope::All })
        }
        "rm" => (call.operands(&[]), ChangeScope::Tracked),
        "clean" => {
            let options = CleanOptions {
                folders: call.has_short("d"),
                ignored: call.has_short("x"),
                only_ignored: call.has_short("X"),
            };
            (call.operands(&["-e", "--exclude"]), ChangeScope::Untracked(options))
        }
        _ => return None,
    };
    if words.len() > MAX_PATHS || words.iter().any(|word| !word.is_known()) {
        return None;
    }
    Some(Paths { paths: words.into_iter().map(|word| word.text.as_str()).collect(), scope })
}

/// The paths of `git checkout [COMMIT] [--] PATHS`.
fn checked_out<'c>(
    call: &'c GitCall,
    command: &Command,
    facts: &Facts<'_>,
) -> Option<(Vec<&'c Value>, ChangeScope)> {
    if let Some(at) = call.args.iter().position(|arg| arg.text == "--") {
        let before = operands(call.args.get(..at)?, &[]);
        let scope = if before.is_empty() { ChangeScope::Tracked } else { ChangeScope::All };
        return Some((call.args.get(at + 1..)?.iter().collect(), scope));
    }
    let words = call.operands(&[]);
    let first = words.first()?;
    if first.text == "." || names_file(first, command, facts) {
        return Some((words, ChangeScope::Tracked));
    }
    let paths = words.get(1..).filter(|paths| !paths.is_empty())?;
    Some((paths.to_vec(), ChangeScope::All))
}

/// The local references that a transfer overwrites by force: `git fetch . +main:old`.
fn overwritten(call: &GitCall) -> Vec<Option<String>> {
    let words = call.operands(&["-o", "--push-option", "--depth", "-j", "--upload-pack", "--receive-pack"]);
    let is_local = words.first().is_some_and(|word| word.text == ".");
    if call.verb == "push" && !is_local {
        return Vec::new();
    }
    let forced = call.has_short("f") || call.has("--force");
    let targets = words.iter().skip(1).filter(|word| forced || word.text.starts_with('+'));
    let local = targets.filter_map(|word| {
        let (_, target) = word.split_at_sign(':')?;
        let apart = ["refs/remotes/", "refs/pull/", "refs/tags/"];
        (!apart.iter().any(|start| target.text.starts_with(start)) && !target.text.is_empty())
            .then(|| target.literal().map(str::to_owned))
    });
    local.collect()
}

/// The references that a command deletes, moves or overwrites.
pub(super) fn moved(call: &GitCall) -> Option<MovedReferences> {
    let words = call.operands(&[]);
    let text = |word: &&Value| word.literal().map(str::to_owned);
    let texts = || words.iter().map(text);
    let second = || words.get(1).and_then(text);
    let head = || Some("HEAD".to_owned());
    let (names, kept) = match call.verb.as_str() {
        "branch" if call.has_short("MCmc") || call.has("--move") || call.has("--copy") => {
            match words.get(1) {
                Some(_) => (texts().skip(1).take(1).collect(), texts().next().flatten()),
                None => (texts().take(1).collect(), head()),
            }
        }
        "branch" if call.has_short("dD") || call.has("--delete") => (texts().collect(), None),
        "branch" => (texts().take(1).collect(), if words.len() > 1 { second() } else { head() }),
        "fetch" | "pull" | "push" => (overwritten(call), None),
        "tag" => (texts().map(|name| Some(format!("refs/tags/{}", name?))).collect(), None),
        "checkout" | "switch" => (texts().take(1).collect(), second().or_else(head)),
        "update-ref" if call.has("--stdin") => (vec![None], None),
        "update-ref" => (texts().take(1).collect(), second().filter(|_| !call.has("-d"))),
        "reset" if words.iter().all(|word| word.is_known()) => (vec![head()], texts().next().flatten()),
        _ => return None,
    };
    Some(MovedReferences { names, kept })
}
