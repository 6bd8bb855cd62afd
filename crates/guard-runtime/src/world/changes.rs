//! Whether a command of git would lose changes of the paths that it names: git is asked about those
//! paths alone.

use baton_guard::{ChangeScope, CleanOptions};
use baton_machine::git::Git;

/// Folders and endings of what is made from other files, and can be made again.
const GENERATED_NAMES: &[&str] = &[
    "node_modules",
    "dist",
    "build",
    "target",
    "out",
    "coverage",
    "htmlcov",
    ".cache",
    ".parcel-cache",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".turbo",
    ".vite",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".venv",
    "venv",
    ".eggs",
    "bin",
    "obj",
    ".gradle",
    ".dart_tool",
    "_build",
    "DerivedData",
    "Pods",
    "logs",
    "log",
    "tmp",
];
const GENERATED_ENDINGS: &[&str] =
    &[".pyc", ".o", ".obj", ".a", ".so", ".class", ".log", ".tsbuildinfo", ".egg-info", ".profraw", ".gcda"];

/// Whether something of these paths is in no commit and would go; `None` where git does not say.
pub(super) fn loses(git: &Git, paths: &[&str], scope: ChangeScope) -> Option<bool> {
    let says = |words: &[&str]| {
        let mut all = words.to_vec();
        all.push("--");
        all.extend(paths);
        git.says(&all)
    };
    let has_lines = |said: String| said.lines().any(|line| !line.trim().is_empty());
    let status = ["status", "--porcelain", "--ignore-submodules=dirty"];
    match scope {
        ChangeScope::Tracked => says(&[&status[..], &["--untracked-files=no"]].concat()).map(has_lines),
        ChangeScope::All => says(&[&status[..], &["--untracked-files=normal"]].concat()).map(has_lines),
        ChangeScope::Untracked(CleanOptions { folders, ignored, only_ignored }) => {
            let clean = if folders { ["clean", "-nd"] } else { ["clean", "-n"] };
            if !only_ignored && says(&clean).map(has_lines)? {
                return Some(true);
            }
            if !only_ignored && !ignored {
                return Some(false);
            }
            let said = says(&[&clean[..], &["-X"]].concat())?;
            Some(
                said.lines()
                    .filter_map(|line| line.strip_prefix("Would remove "))
                    .any(|path| !is_generated(path)),
            )
        }
    }
}

/// Whether a path is that of something which a build makes.
fn is_generated(path: &str) -> bool {
    let path = path.trim_matches('"').trim_end_matches('/');
    path.split('/').any(|part| GENERATED_NAMES.contains(&part))
        || GENERATED_ENDINGS.iter().any(|ending| path.ends_with(ending))
}
