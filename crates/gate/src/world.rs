//! The machine as the guard asks about it: the real file system, and git where only git knows.
//!
//! Nothing of a repository runs here: git is told to start no helpers of its configuration.

mod host;
mod links;

pub(crate) use links::Links;

use baton_guard::{PullRequest, Repository, World};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Files in which git says what it is in the middle of.
const CONFLICTS: [&str; 4] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge"];

/// The machine, seen from where an agent works.
pub(crate) struct Machine<'a> {
    /// Where the agent works: what is its project follows from that.
    pub(crate) works_in: PathBuf,
    /// Where the call runs, which may be elsewhere.
    pub(crate) cwd: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) env: fn(&str) -> Option<OsString>,
    pub(crate) own: &'a dyn Fn(&Path) -> Vec<PathBuf>,
    /// The symbolic links that it has met.
    pub(crate) links: Links,
    /// How long the host of a repository may take to answer.
    pub(crate) patience: Duration,
}

impl Machine<'_> {
    fn project_folder(&self) -> PathBuf {
        let holds_git = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
        self.works_in.ancestors().find(holds_git).unwrap_or(&self.works_in).to_owned()
    }
}

impl World for Machine<'_> {
    fn cwd(&self) -> String {
        text(&flat(&self.cwd))
    }

    fn project(&self) -> String {
        text(&self.project_folder())
    }

    fn home(&self) -> String {
        text(&self.home)
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name)?.into_string().ok()
    }

    fn real_path(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        path.is_absolute().then(|| text(&self.links.resolved(path)))
    }

    fn read_file(&self, path: &str, most: usize) -> Option<String> {
        // A pipe would be waited for.
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(u64::try_from(most).ok()?).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn exists(&self, path: &str) -> Option<bool> {
        Some(Path::new(path).symlink_metadata().is_ok())
    }

    fn repository(&self, folder: &str) -> Repository {
        self.repository_against(folder, None, None)
    }

    fn pull_request(&self, folder: &str) -> PullRequest {
        host::pull_request(Path::new(folder), self.patience)
    }

    fn repository_against(&self, folder: &str, remote: Option<&str>, base: Option<&str>) -> Repository {
        let folder = Path::new(folder);
        let Some(git) = git_folder(folder) else {
            // Nothing can be lost where there is no repository.
            let (dirty, unpushed, stashes) = (Some(false), Some(false), Some(false));
            return Repository { dirty, unpushed, stashes, ..Repository::default() };
        };
        let status = git_says(folder, &["status", "--porcelain=v2", "--branch", "--show-stash"]);
        let branch = std::fs::read_to_string(git.join("HEAD"))
            .ok()
            .and_then(|head| head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned));
        let Some(status) = status else { return Repository { branch, ..Repository::default() } };
        let head = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(' '))
        };
        let refs =
            remote.map_or_else(|| "refs/remotes".to_owned(), |remote| format!("refs/remotes/{remote}/"));
        let remotes = git_says(folder, &["for-each-ref", "--count=1", &refs]);
        let has_remote = remotes.as_ref().map(|remotes| !remotes.trim().is_empty());
        // Commits that are on no remote branch at all.
        let remotes = remote.map_or_else(|| "--remotes".to_owned(), |remote| format!("--remotes={remote}"));
        let unpushed = git_says(folder, &["rev-list", "--max-count=1", "HEAD", "--not", &remotes]);
        let ahead_of_base = base.and_then(|base| {
            let range = format!("refs/remotes/{}/{base}..HEAD", remote.unwrap_or("origin"));
            let ahead = git_says(folder, &["rev-list", "--max-count=1", &range, "--"]);
            ahead.map(|commits| !commits.trim().is_empty())
        });
        Repository {
            branch,
            dirty: Some(status.lines().any(|line| !line.starts_with('#'))),
            unpushed: unpushed.map(|commits| !commits.trim().is_empty()),
            stashes: Some(head("stash").is_some_and(|count| count != "0")),
            has_remote,
            upstream: head("branch.upstream").map(str::to_owned),
            conflicts: Some(
                status.lines().any(|line| line.starts_with("u "))
                    || CONFLICTS.iter().any(|file| git.join(file).exists()),
            ),
            ahead_of_base,
            ..Repository::default()
        }
    }

    fn own_paths(&self) -> Vec<String> {
        (self.own)(&self.project_folder()).iter().map(|path| text(path)).collect()
    }
}

/// The most that is read of a file to see whether we are named in it.
const NAMES_US_BYTES: u64 = 1 << 20;

/// Whether a file holds entries of ours, or is ours.
pub(crate) fn names_us(file: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(NAMES_US_BYTES).read_to_end(&mut bytes));
    read.is_ok() && bytes.windows(OURS.len()).any(|part| part == OURS)
}

/// What stands in every entry and every plugin of ours.
const OURS: &[u8] = b"baton";

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = flat.pop(),
            Component::CurDir => {}
            other => flat.push(other),
        }
    }
    flat
}

/// The `.git` of the repository that holds a folder; that of a worktree is elsewhere.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let (dir, git) = folder.ancestors().map(|dir| (dir, dir.join(".git"))).find(|(_, git)| git.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    let pointer = std::fs::read_to_string(&git).ok()?;
    Some(dir.join(pointer.strip_prefix("gitdir:")?.trim()))
}

/// What git says; `None` where it can't be asked.
fn git_says(folder: &Path, arguments: &[&str]) -> Option<String> {
    let said = Command::new("git")
        .args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).into_owned())
}
