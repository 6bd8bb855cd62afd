//! Which git commands only read: the subcommands, and the options that would make them write a file
//! or run a program.

use super::{MaybeWord, all_known, has_option, operands};

/// Options of any subcommand that name a file to write or a program to run.
const ACTING_OPTIONS: &[&str] = &[
    "--exec",
    "--ext-diff",
    "--filters",
    "--open-files-in-pager",
    "--output",
    "--output-directory",
    "--receive-pack",
    "--show-signature",
    "--upload-pack",
];

/// Subcommands that read with any other option.
const READING_SUBCOMMANDS: &[&str] = &[
    "annotate",
    "blame",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "cherry",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "patch-id",
    "range-diff",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "version",
    "whatchanged",
];

/// Options with which `branch` and `tag` list.
const LISTING_OPTIONS: &[&str] = &[
    "-a",
    "-r",
    "-v",
    "-vv",
    "-av",
    "-avv",
    "-rv",
    "-l",
    "-n",
    "-i",
    "--all",
    "--remotes",
    "--verbose",
    "--list",
    "--show-current",
    "--merged",
    "--no-merged",
    "--contains",
    "--no-contains",
    "--points-at",
    "--sort",
    "--format",
    "--color",
    "--no-color",
    "--column",
    "--no-column",
    "--ignore-case",
    "--no-abbrev",
    "--abbrev",
];
/// Those of them that turn all other words into patterns of a list.
const PATTERN_OPTIONS: &[&str] =
    &["-l", "--list", "--merged", "--no-merged", "--contains", "--no-contains", "--points-at"];

/// Options with which `config` reads, and options that only say where and how.
const CONFIG_READ_OPTIONS: &[&str] =
    &["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "get", "list"];
const CONFIG_PLACE_OPTIONS: &[&str] = &[
    "--global",
    "--local",
    "--system",
    "--worktree",
    "--show-origin",
    "--show-scope",
    "--name-only",
    "--null",
    "-z",
    "--all",
    "--regexp",
    "--includes",
    "--type=bool",
    "--type=int",
    "--type=path",
    "--bool",
    "--int",
    "--path",
];

/// Whether the words behind `git` only read.
pub(super) fn reads(words: &[MaybeWord<'_>]) -> bool {
    let mut rest = words;
    loop {
        rest = match rest {
            [Some("--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs"), more @ ..] => more,
            [Some("-C"), Some(_), more @ ..] => more,
            [Some("--version")] => return true,
            _ => break,
        };
    }
    let Some((Some(verb), args)) = rest.split_first() else { return false };
    if !all_known(args) || has_option(args, "", ACTING_OPTIONS) {
        return false;
    }
    match *verb {
        "grep" => !args.iter().flatten().take_while(|arg| **arg != "--").any(|arg| opens_pager(arg)),
        "cat-file" => !has_option(args, "", &["--textconv", "--batch-command"]),
        verb if READING_SUBCOMMANDS.contains(&verb) => true,
        "branch" | "tag" => lists(args),
        "config" => reads_config(args),
        "remote" => matches!(args, [] | [Some("-v" | "--verbose")] | [Some("get-url"), ..]),
        "stash" => matches!(args, [Some("list" | "show"), ..]),
        "worktree" | "sparse-checkout" => matches!(args, [Some("list"), ..]),
        "notes" => matches!(args, [] | [Some("list" | "show"), ..]),
        "submodule" => matches!(args, [Some("status"), ..]),
        "bundle" => matches!(args, [Some("verify" | "list-heads"), ..]),
        "reflog" => match args {
            [] | [Some("show" | "list" | "exists"), ..] => true,
            [Some(first), ..] => first.starts_with('-') || first.contains(['@', '/']) || *first == "HEAD",
            [None, ..] => false,
        },
        _ => false,
    }
}

/// Whether a cluster of short options holds `-O`, before an option that takes the rest as its
/// value.
fn opens_pager(arg: &str) -> bool {
    let Some(letters) = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { return false };
    letters.chars().take_while(|letter| !"efABCm".contains(*letter)).any(|letter| letter == 'O')
}

fn lists(args: &[MaybeWord<'_>]) -> bool {
    let name = |arg: &str| arg.split('=').next().unwrap_or(arg).to_owned();
    let options: Vec<String> =
        args.iter().flatten().filter(|arg| arg.starts_with('-')).map(|arg| name(arg)).collect();
    let follow = options.iter().any(|option| PATTERN_OPTIONS.contains(&option.as_str()));
    options.iter().all(|option| LISTING_OPTIONS.contains(&option.as_str()))
        && (follow || operands(args).count() == 0)
}

fn reads_config(args: &[MaybeWord<'_>]) -> bool {
    let is_place = |arg: &str| CONFIG_PLACE_OPTIONS.contains(&arg);
    let mut rest = args.iter().flatten().copied().skip_while(|arg| is_place(arg));
    let reads = rest.next().is_some_and(|arg| CONFIG_READ_OPTIONS.contains(&arg));
    reads && rest.all(|arg| !arg.starts_with('-') || is_place(arg))
}

#[cfg(test)]
pub(super) const EXAMPLES: (&[&str], &[&str]) = (
    &[
        "git diff main...HEAD -- src/lib.rs",
        "git --no-pager log --oneline -5",
        "git -C src log -SFOO --stat",
        "git grep -n -e OUT src",
        "git status --short",
        "git branch",
        "git branch -a",
        "git branch --list 'a*'",
        "git branch --contains HEAD",
        "git tag -l",
        "git tag",
        "git remote -v",
        "git remote get-url origin",
        "git config --get user.name",
        "git config --global --list",
        "git config list",
        "git stash list",
        "git stash show -p",
        "git worktree list",
        "git reflog -5",
        "git show HEAD:src/a.rs",
        "git rev-parse --abbrev-ref HEAD",
        "git blame -L 1,5 a",
        "git diff --no-ext-diff",
        "git --version",
    ],
    &[
        "git",
        "git grep --open-files-in-pager=./evil.sh x",
        "git grep --open-files-in-page=./evil.sh x",
        "git grep --open x",
        "git grep -O./evil.sh x",
        "git grep -nO x",
        "git log --output=a",
        "git log --outp=a",
        "git log --output a",
        "git diff --output a",
        "git diff --ext-diff",
        "git log --ext",
        "git show --output-directory=a",
        "git log --show-signature",
        "git format-patch -1",
        "git ls-remote --upload-pack=./x .",
        "git ls-remote 'ext::sh -c x'",
        "git archive -o a HEAD",
        "git archive HEAD",
        "git bundle create a HEAD",
        "git -c core.pager=./x log",
        "git -c core.fsmonitor=./x status",
        "git -c diff.external=./x diff",
        "git -c alias.x='!rm a' x",
        "git --config-env=core.pager=X log",
        "git --exec-path=. log",
        "git --git-dir=x log",
        "git -p log",
        "git --paginate log",
        "git cat-file --filters HEAD:a",
        "git cat-file --textconv HEAD:a",
        "git branch new",
        "git branch -D old",
        "git branch -a -D old",
        "git branch -m a b",
        "git branch --edit-description",
        "git branch -f a b",
        "git branch --set-upstream-to=o/a",
        "git tag v1",
        "git tag -d v1",
        "git tag -a v1 -m x",
        "git tag --sort=x v1",
        "git config user.name x",
        "git config --unset user.name",
        "git config --global --edit",
        "git config --get a --unset",
        "git config set a b",
        "git remote add a b",
        "git remote set-url a b",
        "git remote update",
        "git remote show origin",
        "git stash",
        "git stash pop",
        "git stash push",
        "git worktree add a",
        "git reflog expire --all",
        "git reflog delete HEAD@{1}",
        "git notes add",
        "git fsck --lost-found",
        "git commit -am x",
        "git checkout a",
        "git fetch",
        "git pull",
        "git push",
        "git gc",
        "git clean -n",
        "git add a",
        "git apply a",
        "git am a",
        "git hash-object -w a",
        "git update-index --refresh",
        "git difftool",
        "git mergetool",
        "git help log",
        "git instaweb",
        "git submodule foreach ls",
        "git rebase --exec x",
        "git bisect run x",
        "git clone a",
        "git init",
        "git daemon",
        "git shell",
        "git filter-branch",
        "git x",
    ],
);
