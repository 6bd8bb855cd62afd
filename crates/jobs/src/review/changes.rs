//! What there is to review, by git and not by an agent's word.
//!
//! It runs nothing that the repository names: no external diff, no text conversion, no file system
//! monitor, and in a hook no filter either. New files that git does not track yet are read here;
//! what is not a plain file is named and not opened.

use baton_core::{Code, Error, frame};
use baton_machine::git::{Git, PLAIN_DIFF_OPTIONS};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest diff that goes into a prompt.
pub const DIFF_BYTES: usize = 128 << 10;
/// How long a look may take: git, and the new files.
const LOOK_LIMIT: Duration = Duration::from_secs(30);
/// The most new files that are read. More are only named.
const MAX_NEW_FILES: usize = 1000;
/// How much of a new file is read to tell whether it has changed.
const FILE_BYTES: u64 = 8 << 20;

/// One file of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Git's letter: A, M, D, T.
    pub status: String,
    /// Its path in the repository.
    pub path: String,
}

/// The change itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diff {
    /// All of it.
    Whole(String),
    /// More than a prompt may hold.
    TooLong,
}

/// What has changed since a commit, committed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    pub root: PathBuf,
    /// The commit that it is compared with.
    pub base: String,
    /// What the person calls that commit.
    pub base_name: String,
    pub files: Vec<File>,
    pub diff: Diff,
    /// The same for the same content.
    pub digest: String,
}

#[derive(Clone, Debug)]
pub struct Repository {
    root: PathBuf,
    git: Git,
}

impl Repository {
    /// The repository of a folder, for a hook: no code of the repository runs.
    pub fn in_hook(cwd: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let project = cwd.ancestors().find(has_git).unwrap_or(cwd);
        Self::of(cwd, Git::open(cwd, project, variable, Instant::now() + LOOK_LIMIT))
    }

    /// The same for a command: files are compared as the repository's filters store them.
    pub fn in_command(
        cwd: &Path,
        environment: &[(OsString, OsString)],
        limit: Option<Duration>,
    ) -> Result<Self, Error> {
        let limit = limit.map_or(LOOK_LIMIT, |limit| limit.min(LOOK_LIMIT));
        Self::of(cwd, Git::with_filters(cwd, environment.iter().cloned(), Instant::now() + limit))
    }

    fn of(cwd: &Path, git: Option<Git>) -> Result<Self, Error> {
        let git = git.ok_or_else(|| {
            Error::new(Code::BadFolder, "git is not on the PATH, or did not answer in time")
                .hint("a review needs git to know what has changed")
        })?;
        let root = git.tells(&["rev-parse", "--show-toplevel"]).map(PathBuf::from).map_err(|why| {
            if Instant::now() >= git.deadline() {
                return refused(why);
            }
            Error::new(Code::BadFolder, format!("{} is in no git repository", cwd.display()))
                .hint("a review needs git to know what has changed")
        })?;
        Ok(Self { git: git.in_folder(&root), root })
    }

    /// The commit that is checked out; the empty tree if there is none yet.
    pub fn head(&self) -> Result<String, Error> {
        let commit = self.git.tells(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        commit.or_else(|_| self.git.tells(&["hash-object", "-t", "tree", "/dev/null"])).map_err(refused)
    }

    pub fn has(&self, commit: &str) -> bool {
        let spelled = format!("{commit}^{{commit}}");
        self.git.tells(&["rev-parse", "--verify", "--quiet", "--end-of-options", &spelled]).is_ok()
    }

    /// What has changed since the last commit, or since the branch left `base`.
    pub fn since(&self, base: Option<&str>) -> Result<Changes, Error> {
        let (commit, name) = match base {
            None => (self.head()?, "the last commit".to_owned()),
            Some(name) => (self.branching(name)?, frame::shown(name, 100)),
        };
        self.since_commit(&commit, &name)
    }

    pub fn since_commit(&self, commit: &str, name: &str) -> Result<Changes, Error> {
        let mut digest = Sha256::new();
        let mut files = Vec::new();
        let names = plain_diff(&["--name-status", "-z", commit]);
        let tracked = self.git.tells(&names).map_err(refused)?;
        let mut words = tracked.split('\0').filter(|word| !word.is_empty());
        while let (Some(status), Some(path)) = (words.next(), words.next()) {
            files.push(File { status: status.to_owned(), path: path.to_owned() });
        }
        let mut diff = Text::default();
        if !files.is_empty() {
            self.tracked_diff(commit, &mut diff, &mut digest).map_err(refused)?;
        }
        let new = self.git.tells(&["ls-files", "--others", "--exclude-standard", "-z"]).map_err(refused)?;
        for (number, path) in new.split('\0').filter(|path| !path.is_empty()).enumerate() {
            files.push(File { status: "A".to_owned(), path: path.to_owned() });
            digest.update(path.as_bytes());
            digest.update([0]);
            if number >= MAX_NEW_FILES {
                diff.too_long = true;
            } else if Instant::now() < self.git.deadline() {
                new_file(&self.root.join(path), path, &mut diff, &mut digest);
            } else {
                return Err(refused("the new files are too large to be read in time".to_owned()));
            }
        }
        if files.is_empty() {
            return Err(Error::new(Code::NothingToReview, format!("nothing has changed since {name}"))
                .hint("`baton review --base REF` reviews a branch"));
        }
        let hash = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let diff = if diff.too_long { Diff::TooLong } else { Diff::Whole(diff.text) };
        Ok(Changes {
            root: self.root.clone(),
            base: commit.to_owned(),
            base_name: name.to_owned(),
            files,
            diff,
            digest: hash,
        })
    }

    /// The commit where the branch left one that the person has named.
    fn branching(&self, name: &str) -> Result<String, Error> {
        let unknown = |_| {
            Error::new(Code::UnknownBase, format!("no commit is called {}", frame::shown(name, 60)))
                .hint("name a branch, a tag or a commit, such as --base main")
        };
        let spelled = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &spelled];
        let commit = self.git.tells(&words).map_err(unknown)?;
        // Histories without a common commit are compared as they are.
        Ok(self.git.tells(&["merge-base", &commit, "HEAD"]).unwrap_or(commit))
    }

    fn tracked_diff(&self, commit: &str, diff: &mut Text, digest: &mut Sha256) -> Result<(), String> {
        let mut beginning = Vec::new();
        self.git.passes_on(&plain_diff(&[commit, "--"]), &mut |piece| {
            digest.update(piece);
            let room = (DIFF_BYTES + 1).saturating_sub(beginning.len());
            beginning.extend_from_slice(&piece[..piece.len().min(room)]);
            true
        })?;
        diff.push(&String::from_utf8_lossy(&beginning));
        Ok(())
    }
}

/// The arguments of a diff. Uncommitted changes in a submodule are not examined: its own
/// configuration can start programs.
fn plain_diff<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&PLAIN_DIFF_OPTIONS[..], &["--ignore-submodules=dirty"], arguments].concat()
}

/// A text that stops growing at [`DIFF_BYTES`].
#[derive(Default)]
struct Text {
    text: String,
    too_long: bool,
}

impl Text {
    fn push(&mut self, piece: &str) {
        if self.text.len() + piece.len() > DIFF_BYTES {
            self.too_long = true;
        } else if !self.too_long {
            self.text.push_str(piece);
        }
    }
}

fn new_file(file: &Path, path: &str, diff: &mut Text, digest: &mut Sha256) {
    let shown = frame::shown(path, 400);
    // Neither a symbolic link nor a pipe is opened.
    let length = match fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => found.len(),
        _ => return diff.push(&format!("new, and no plain file: {shown}\n")),
    };
    let read = baton_machine::files::beginning(file, FILE_BYTES);
    let is_read = read.is_ok();
    let bytes = read.unwrap_or_default();
    digest.update(length.to_le_bytes());
    digest.update(&bytes);
    match String::from_utf8(bytes) {
        Ok(text) if is_read && !text.contains('\0') => {
            diff.push(&format!("--- /dev/null\n+++ b/{shown}\n"));
            for line in text.lines() {
                diff.push(&format!("+{line}\n"));
            }
        }
        _ => diff.push(&format!("new, and no text: {shown} ({length} bytes)\n")),
    }
}

fn refused(why: String) -> Error {
    Error::new(Code::BadFolder, format!("git says: {}", frame::shown(&why, 300)))
        .hint("`git status` there shows more")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::git;

    fn since(cwd: &Path, base: Option<&str>) -> Result<Changes, Error> {
        let environment: Vec<_> = std::env::vars_os().collect();
        Repository::in_command(cwd, &environment, None)?.since(base)
    }

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for arguments in [
            vec!["init", "--quiet", "--initial-branch=main"],
            vec!["config", "user.email", "x@example.invalid"],
            vec!["config", "user.name", "x"],
        ] {
            git(folder.path(), &arguments).unwrap();
        }
        folder
    }

    fn commit(folder: &Path, file: &str, text: &str) {
        fs::write(folder.join(file), text).unwrap();
        git(folder, &["add", "-A"]).unwrap();
        git(folder, &["commit", "--quiet", "-m", file]).unwrap();
    }

    #[test]
    fn what_changed_is_told_with_new_files_and_from_where_a_branch_left() {
        let repository = repository();
        let root = repository.path();
        let code = |base| since(root, base).unwrap_err().code();
        assert_eq!(code(None), Code::NothingToReview);
        fs::write(root.join("first.txt"), "one\n").unwrap();
        let unborn = since(root, None).unwrap();
        assert_eq!(unborn.diff, Diff::Whole("--- /dev/null\n+++ b/first.txt\n+one\n".to_owned()));
        commit(root, "first.txt", "one\n");
        assert_eq!(code(None), Code::NothingToReview);
        assert_eq!((code(Some("nowhere")), code(Some("--all"))), (Code::UnknownBase, Code::UnknownBase));
        git(root, &["switch", "--quiet", "-c", "work"]).unwrap();
        commit(root, "second.txt", "two\n");
        fs::write(root.join("first.txt"), "one!\n").unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/third.bin"), b"\xff\0").unwrap();
        let names = |changes: &Changes| {
            changes.files.iter().map(|file| format!("{} {}", file.status, file.path)).collect::<Vec<_>>()
        };
        let here = since(&root.join("sub"), None).unwrap();
        assert_eq!(names(&here), ["M first.txt", "A sub/third.bin"]);
        let branch = since(root, Some("main")).unwrap();
        assert_eq!(names(&branch), ["M first.txt", "A second.txt", "A sub/third.bin"]);
        let Diff::Whole(text) = &branch.diff else { panic!("it is short") };
        assert!(text.contains("+one!") && text.contains("+two") && text.contains("(2 bytes)"), "{text}");
        assert_ne!(here.digest, branch.digest);
        assert_eq!(since(root, None).unwrap().digest, here.digest);
        fs::write(root.join("sub/third.bin"), b"\xfe\0").unwrap();
        assert_ne!(since(root, None).unwrap().digest, here.digest);
    }

    /// A repository whose configuration names a program wherever git could start one, and the file
    /// that shows that it ran.
    fn trapped() -> (tempfile::TempDir, PathBuf) {
        let repository = repository();
        let root = repository.path();
        commit(root, "a", "1\n");
        let (script, ran) = (root.join(".git/script"), root.join(".git/ran"));
        fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexec cat\n", ran.display())).unwrap();
        let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&script, runs).unwrap();
        let keys = [
            "core.fsmonitor",
            "core.pager",
            "pager.diff",
            "diff.external",
            "diff.x.textconv",
            "diff.x.command",
        ];
        for key in keys.into_iter().chain(["filter.x.clean", "filter.x.smudge"]) {
            git(root, &["config", key, &script.to_string_lossy()]).unwrap();
        }
        git(root, &["config", "filter.x.required", "true"]).unwrap();
        for hook in ["post-index-change", "reference-transaction", "post-checkout"] {
            fs::create_dir_all(root.join(".git/hooks")).unwrap();
            fs::copy(&script, root.join(".git/hooks").join(hook)).unwrap();
        }
        fs::write(root.join(".gitattributes"), "* diff=x filter=x\n").unwrap();
        fs::write(root.join("a"), "2\n").unwrap();
        fs::remove_file(&ran).ok();
        (repository, ran)
    }

    #[test]
    fn s15_the_stop_gate_runs_nothing_that_a_repository_names_and_writes_nothing() {
        let (repository, ran) = trapped();
        let root = repository.path();
        let index = fs::read(root.join(".git/index")).unwrap();
        let looked = Repository::in_hook(root, &|name| std::env::var_os(name)).unwrap();
        let Diff::Whole(text) = looked.since(None).unwrap().diff else { panic!("it is short") };
        assert!(text.contains("+2"), "{text}");
        assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
        assert_eq!(fs::read(root.join(".git/index")).unwrap(), index);
    }

    #[test]
    fn s15_a_command_runs_the_filters_that_store_files_and_nothing_else() {
        let (repository, ran) = trapped();
        let root = repository.path();
        let index = fs::read(root.join(".git/index")).unwrap();
        since(root, None).unwrap();
        let told = fs::read_to_string(&ran).expect("the filter of this test works");
        assert!(told.lines().all(|line| line.trim_end().ends_with(".git/script")), "only the filter: {told}");
        git(root, &["config", "--remove-section", "filter.x"]).unwrap();
        fs::remove_file(&ran).unwrap();
        since(root, None).unwrap();
        assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
        assert_eq!(fs::read(root.join(".git/index")).unwrap(), index);
    }

    #[test]
    fn a_long_diff_is_not_held_and_no_repository_is_refused() {
        let repository = repository();
        let root = repository.path();
        commit(root, "a", "");
        fs::write(root.join("a"), "x\n".repeat(DIFF_BYTES)).unwrap();
        let long = since(root, None).unwrap();
        assert_eq!(long.diff, Diff::TooLong);
        fs::write(root.join("a"), "x\n".repeat(DIFF_BYTES + 1)).unwrap();
        assert_ne!(since(root, None).unwrap().digest, long.digest, "also past what is held");
        git(root, &["checkout", "--quiet", "a"]).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", root.join("link")).unwrap();
        let Diff::Whole(text) = since(root, None).unwrap().diff else { panic!("it is short") };
        assert!(text.contains("no plain file: link"), "{text}");
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(since(elsewhere.path(), None).unwrap_err().code(), Code::BadFolder);
    }
}
