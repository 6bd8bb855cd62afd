//! Nothing may be changed: for jobs that only read.

use super::git::GitCall;
use super::{Example, Finding, Params, Rule};
use crate::files::is_harmless_device;
use crate::judge::{Facts, Moment};
use crate::shell::{Place, Value};

/// The rule that a job with `--read-only` has on, whatever the files say.
pub const ID: &str = "block-writes";

/// What git does without changing anything of the repository or its files.
const READING: &[&str] = &[
    "annotate",
    "blame",
    "cat-file",
    "check-ignore",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "format-patch",
    "fsck",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "name-rev",
    "range-diff",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "verify-commit",
    "version",
    "whatchanged",
];

/// What lists without an operand or with a flag that says so, and changes otherwise.
const LISTING: &[&str] = &["branch", "tag", "remote", "config", "stash", "worktree", "reflog", "notes"];
const LIST_WORDS: &[&str] = &[
    "-l",
    "--list",
    "-v",
    "-vv",
    "-a",
    "-r",
    "list",
    "show",
    "get",
    "--get",
    "--get-all",
    "get-url",
    "--show-current",
];

/// And what changes all the same.
const CHANGE_WORDS: &[&str] = &[
    "-d", "-D", "-m", "-M", "-c", "-C", "-f", "-e", "--delete", "--move", "--copy", "--force", "--edit",
    "--unset",
];

pub(super) const RULES: &[Rule] = &[Rule {
    id: ID,
    on: false,
    event: Moment::Before,
    forbids_commands: true,
    parameters: &[],
    about: "nothing may be changed: no file by tools, commands or redirections, nothing by git; on in jobs with --read-only",
    check,
    bad: &[
        Example::Write("src/a.rs", "x"),
        Example::Shell("echo x > a.txt"),
        Example::Shell("sed -i s/a/b/ src/main.rs"),
        Example::Shell("rm -rf target"),
        Example::Shell("git commit -am x"),
        Example::Shell("git branch -D old"),
        Example::Shell("git branch -a -D old"),
        Example::Shell("git stash"),
        Example::Shell("cat a | tee b"),
    ],
    good: &[
        Example::Read("src/main.rs"),
        Example::Shell("git log --oneline | head"),
        Example::Shell("git diff main...HEAD"),
        Example::Shell("git branch --list"),
        Example::Shell("grep -rn todo src 2> /dev/null"),
        Example::Shell("cat a b | sort | uniq -c"),
    ],
}];

fn check(facts: &Facts<'_>, _params: &Params) -> Option<Finding> {
    let deny = |what: String| {
        Finding::deny(format!("Blocked: {what}. This job may only read; say what you would change instead."))
    };
    let changes = facts.touches.iter().find(|touch| {
        let harmless = touch.real.as_deref().is_some_and(is_harmless_device);
        touch.deed.changes() && touch.place == Place::Here && !harmless
    });
    if let Some(touch) = changes {
        return deny(format!("{} of {}", touch.deed.as_str(), touch.show()));
    }
    let git = facts.commands_anywhere().filter_map(GitCall::of).find(|call| !is_reading(call))?;
    deny(format!("git {}", git.verb))
}

fn is_reading(call: &GitCall) -> bool {
    let verb = call.verb.as_str();
    if READING.contains(&verb) {
        return true;
    }
    let is = |word: &Value, words: &[&str]| word.is_known() && words.contains(&word.text.as_str());
    let lists = match call.args.first() {
        None => verb != "stash",
        Some(first) => is(first, LIST_WORDS) && !call.args.iter().any(|word| is(word, CHANGE_WORDS)),
    };
    LISTING.contains(&verb) && lists
}
