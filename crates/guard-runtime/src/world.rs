//! The real machine, as the rules ask about it: its files, and git for what only git knows.
//!
//! No code of a repository runs here, and every wait has a limit: crate `machine` opens the files
//! and asks git.

mod changes;
mod host;
mod links;
mod listings;
mod repositories;

pub(crate) use links::Links;
pub(crate) use listings::Listings;
pub(crate) use repositories::Repositories;

use baton_agents::ALL;
use baton_core::guard::{HookSwitch, OwnLine};
use baton_core::limits;
use baton_guard::{ChangeScope, PullRequest, Repository, World};
use baton_machine::files;
use baton_machine::git::Git;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// Files in `.git` that show that a merge, a cherry-pick, a revert or a rebase is not finished.
const OPERATION_FILES: [&str; 4] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge"];

/// The machine, seen from where an agent works.
pub(crate) struct Machine<'a> {
    /// The folder that the agent works in. It decides which project the call belongs to.
    pub(crate) works_in: PathBuf,
    /// The folder that the call runs in, which may be another one.
    pub(crate) cwd: PathBuf,
    /// The folder that the hook itself runs in.
    pub(crate) hook_runs_in: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) env: fn(&str) -> Option<OsString>,
    pub(crate) own: &'a dyn Fn(&Path) -> Vec<PathBuf>,
    /// The symbolic links found so far.
    pub(crate) links: Links,
    /// The folders listed so far.
    pub(crate) listings: Listings,
    /// What git has answered so far.
    pub(crate) repositories: Repositories,
    /// How long the host of a repository may take to answer.
    pub(crate) patience: Duration,
    /// Reads a command line of baton.
    pub(crate) own_line: fn(&[&str]) -> OwnLine,
    /// When git must have answered all questions of this call.
    pub(crate) git_deadline: OnceCell<Instant>,
}

impl Machine<'_> {
    /// A git that can be asked about the repository that holds a folder.
    fn git(&self, folder: &Path) -> Option<Git> {
        let deadline = *self.git_deadline.get_or_init(|| Instant::now() + limits::GIT_BUDGET.to_std());
        Git::open(folder, &self.project_folder(), &self.env, deadline)
    }

    /// Asks git about a repository.
    fn asked_against(&self, folder: &str, remote: Option<&str>, base: Option<&str>) -> Repository {
        let folder = Path::new(folder);
        let Some(git) = git_folder(folder) else {
            // Without a repository there is nothing to lose.
            let (dirty, unpushed, stashes) = (Some(false), Some(false), Some(false));
            return Repository { dirty, unpushed, stashes, ..Repository::default() };
        };
        let branch = files::text(&git.join("HEAD"), limits::POINTER_BYTES)
            .ok()
            .and_then(|head| head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned));
        let unknown = Repository { branch: branch.clone(), ..Repository::default() };
        let Some(asked) = self.git(folder) else { return unknown };
        let git_says = |arguments: &[&str]| asked.says(arguments);
        // For a submodule, git starts another git, which does not get the settings that switch
        // programs off.
        let Some(status) = git_says(&[
            "status",
            "--porcelain=v2",
            "--branch",
            "--show-stash",
            "--no-ahead-behind",
            "--ignore-submodules=dirty",
        ]) else {
            return unknown;
        };
        let head = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(' '))
        };
        let refs =
            remote.map_or_else(|| "refs/remotes".to_owned(), |remote| format!("refs/remotes/{remote}/"));
        let remotes = git_says(&["for-each-ref", "--count=1", &refs]);
        let has_remote = remotes.as_ref().map(|remotes| !remotes.trim().is_empty());
        // Commits that no remote branch has.
        let remotes = remote.map_or_else(|| "--remotes".to_owned(), |remote| format!("--remotes={remote}"));
        let unpushed = git_says(&["rev-list", "--max-count=1", "HEAD", "--not", &remotes]);
        let ahead_of_base = base.and_then(|base| {
            let range = format!("refs/remotes/{}/{base}..HEAD", remote.unwrap_or("origin"));
            let ahead = git_says(&["rev-list", "--max-count=1", &range, "--"]);
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
                    || OPERATION_FILES.iter().any(|file| git.join(file).exists()),
            ),
            ahead_of_base,
            ..Repository::default()
        }
    }

    /// Asks git about commits that only one reference holds.
    fn asked_for_losses(&self, folder: &str, reference: &str, kept: Option<&str>) -> Option<bool> {
        if reference.starts_with('-') || kept.is_some_and(|kept| kept.starts_with('-')) {
            return None;
        }
        let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
        let git = self.git(Path::new(folder))?;
        if !git.succeeds(&["rev-parse", "--verify", "--quiet", reference])? {
            return Some(false);
        }
        let exclude = format!("--exclude={branch}");
        let mut words = vec!["rev-list", "--max-count=1", reference, "--not"];
        words.extend(kept);
        words.extend([exclude.as_str(), "--branches", "--remotes", "--"]);
        git.says(&words).map(|commits| !commits.trim().is_empty())
    }

    /// The project: the repository that holds the folder of the call; else what the agent says;
    /// else the folder of the hook; else the folder of the call. A system folder is never a
    /// project, so nothing in it counts as inside.
    fn project_folder(&self) -> PathBuf {
        let said = PROJECT_VARIABLES.iter().find_map(|name| (self.env)(name)).map(PathBuf::from);
        let said = said.filter(|said| said.is_absolute() && !is_of_system(said));
        let repository = |folder: &Path| {
            let holds_git = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
            folder.ancestors().find(holds_git).map(Path::to_owned).filter(|found| !is_of_system(found))
        };
        let found = repository(&self.works_in)
            .or_else(|| said.map(|said| repository(&said).unwrap_or(said)))
            .or_else(|| repository(&self.hook_runs_in).filter(|_| self.is_no_project()));
        match found {
            Some(found) => found,
            None if self.is_no_project() && self.works_in != self.home => self.works_in.join(NO_PROJECT),
            None => self.works_in.clone(),
        }
    }

    /// Whether the call's folder holds no work of the person.
    fn is_no_project(&self) -> bool {
        is_of_system(&flat(&self.works_in)) || self.home.starts_with(&self.works_in)
    }
}

/// Variables in which agents tell their hooks the project's folder, wherever a call runs.
const PROJECT_VARIABLES: [&str; 3] = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR"];
/// A folder that does not exist: the project of a call that has none.
const NO_PROJECT: &str = ".no-project-here";

/// Whether a folder belongs to the system and so holds no work.
fn is_of_system(folder: &Path) -> bool {
    const WHOLE: [&str; 17] = [
        "etc",
        "bin",
        "sbin",
        "lib",
        "lib32",
        "lib64",
        "boot",
        "dev",
        "proc",
        "sys",
        "run",
        "System",
        "Library",
        "Applications",
        "Windows",
        "Program Files",
        "private/etc",
    ];
    const ALONE: [&str; 13] = [
        "",
        "home",
        "Users",
        "opt",
        "srv",
        "mnt",
        "media",
        "tmp",
        "var",
        "usr",
        "private",
        "usr/local",
        "root",
    ];
    const BELOW: [&str; 10] = [
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/share",
        "usr/include",
        "usr/libexec",
        "var/log",
        "var/spool",
        "var/cache",
        "var/db",
    ];
    let Ok(folder) = folder.strip_prefix("/") else { return false };
    ALONE.iter().any(|alone| folder == Path::new(alone))
        || WHOLE.iter().chain(&BELOW).any(|whole| folder.starts_with(whole))
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
        let bytes = files::beginning(Path::new(path), u64::try_from(most).ok()?).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn exists(&self, path: &str) -> Option<bool> {
        Some(Path::new(path).symlink_metadata().is_ok())
    }

    fn names_in(&self, folder: &str, most: usize) -> Option<Vec<String>> {
        self.listings.names_in(Path::new(folder), most)
    }

    fn repository(&self, folder: &str) -> Repository {
        self.repository_against(folder, None, None)
    }

    fn pull_request(&self, folder: &str) -> PullRequest {
        host::pull_request(Path::new(folder), &self.project_folder(), self.env, self.patience)
    }

    fn repository_against(&self, folder: &str, remote: Option<&str>, base: Option<&str>) -> Repository {
        self.repositories.state([Some(folder), remote, base], || self.asked_against(folder, remote, base))
    }

    fn loses_commits(&self, folder: &str, reference: &str, kept: Option<&str>) -> Option<bool> {
        let ask = || self.asked_for_losses(folder, reference, kept);
        self.repositories.loses([Some(folder), Some(reference), kept], ask)
    }

    fn loses_changes(&self, folder: &str, paths: &[&str], scope: ChangeScope) -> Option<bool> {
        let asked = format!("{scope:?} {}", paths.join("\0"));
        self.repositories.loses([Some(folder), Some(&asked), Some("changes")], || {
            changes::loses(&self.git(Path::new(folder))?, paths, scope)
        })
    }

    fn own_paths(&self) -> Vec<String> {
        (self.own)(&self.project_folder()).iter().map(|path| text(path)).collect()
    }

    fn own_program(&self) -> Option<String> {
        baton_machine::process::own_program().ok().map(|program| text(&program))
    }

    fn is_own_program(&self, path: &str) -> bool {
        baton_machine::process::own_program()
            .is_ok_and(|own| own == Path::new(path) || is_copy(Path::new(path), &own))
    }

    fn own_line(&self, words: &[&str]) -> OwnLine {
        (self.own_line)(words)
    }

    fn is_same_file(&self, path: &str, others: &[String]) -> bool {
        let Ok(file) = std::fs::metadata(path) else { return false };
        if !file.is_file() || file.nlink() < 2 {
            return false;
        }
        let is_it = |other: &Path| {
            std::fs::metadata(other).is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
        };
        others.iter().map(Path::new).any(|other| {
            let inside = std::fs::read_dir(other).into_iter().flatten().take(MAX_COMPARED_FILES);
            is_it(other) || inside.flatten().any(|entry| is_it(&entry.path()))
        })
    }

    fn switches(&self) -> Vec<HookSwitch> {
        ALL.iter().map(|agent| agent.facts().switch).collect()
    }
}

/// How many files of one folder of baton are compared. Its folders hold far fewer.
const MAX_COMPARED_FILES: usize = 512;
/// Bytes of each part of two programs that are compared.
const SAMPLE_BYTES: u64 = 4096;

/// Whether a file is the same as baton's program, by its size and samples of its bytes.
fn is_copy(file: &Path, own: &Path) -> bool {
    let size =
        |path: &Path| std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len());
    let Some(length) = size(own).filter(|length| size(file) == Some(*length)) else { return false };
    let part = |path: &Path, at: u64| -> Option<Vec<u8>> {
        let mut opened = files::open(path).ok()?;
        opened.seek(SeekFrom::Start(at)).ok()?;
        let mut bytes = Vec::new();
        opened.take(SAMPLE_BYTES).read_to_end(&mut bytes).ok().map(|_| bytes)
    };
    [0, length / 2, length.saturating_sub(SAMPLE_BYTES)].into_iter().all(|at| part(file, at) == part(own, at))
}

/// Longest agent file that is searched for baton's name.
const ENTRY_FILE_BYTES: u64 = 1 << 20;

/// Whether a file holds entries of baton, or belongs to it.
pub(crate) fn names_us(file: &Path) -> bool {
    files::beginning(file, ENTRY_FILE_BYTES)
        .is_ok_and(|bytes| bytes.windows(OWN_MARK.len()).any(|part| part == OWN_MARK))
}

/// A text that every entry and every plugin of baton contains.
const OWN_MARK: &[u8] = b"baton";

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

/// The `.git` of the repository that holds a folder. For a worktree it is elsewhere.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let (dir, git) = folder.ancestors().map(|dir| (dir, dir.join(".git"))).find(|(_, git)| git.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    let pointer = files::text(&git, limits::POINTER_BYTES).ok()?;
    Some(dir.join(pointer.strip_prefix("gitdir:")?.trim()))
}
