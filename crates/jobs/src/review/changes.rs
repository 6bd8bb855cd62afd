//! What there is to review: told by git, not by an agent.
//!
//! Nothing of the repository is run for it: no external diff, no text conversion, no file system monitor. New files that git does not know yet are read
//! here; what is no plain file is named and not opened.

use crate::worktree::git;
use baton_core::{Code, Error, frame};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The longest diff that goes into a prompt.
pub const DIFF_BYTES: usize = 128 << 10;
/// New files that are looked into; more are only named.
const NEW_FILES: usize = 1000;
/// How much of a new file counts for whether it has changed.
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
    /// The repository's folder.
    pub root: PathBuf,
    /// The commit that it is compared with.
    pub base: String,
    /// The same as the person would call it.
    pub base_name: String,
    /// The files.
    pub files: Vec<File>,
    /// What changed in them.
    pub diff: Diff,
    /// The same for the same content.
    pub digest: String,
}

/// The repository that a folder is in.
pub fn root(cwd: &Path) -> Result<PathBuf, Error> {
    git(cwd, &["rev-parse", "--show-toplevel"]).map(PathBuf::from).map_err(|_| {
        Error::new(Code::BadFolder, format!("{} is in no git repository", cwd.display()))
            .hint("a review is of what git says has changed")
    })
}

/// The commit that is checked out; the empty tree before the first one.
pub fn head(root: &Path) -> Result<String, Error> {
    let commit = git(root, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
    commit.or_else(|_| git(root, &["hash-object", "-t", "tree", "/dev/null"])).map_err(refused)
}

/// Whether a commit is there.
pub fn is_there(root: &Path, commit: &str) -> bool {
    let spelled = format!("{commit}^{{commit}}");
    git(root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &spelled]).is_ok()
}

/// What has changed: since the last commit, or since the branch left `base`.
pub fn since(cwd: &Path, base: Option<&str>) -> Result<Changes, Error> {
    let root = root(cwd)?;
    let (commit, name) = match base {
        None => (head(&root)?, "the last commit".to_owned()),
        Some(name) => (branching(&root, name)?, frame::shown(name, 100)),
    };
    since_commit(&root, &commit, &name)
}

/// What has changed since that commit.
pub fn since_commit(root: &Path, commit: &str, name: &str) -> Result<Changes, Error> {
    let mut digest = Sha256::new();
    let mut files = Vec::new();
    let tracked = git(root, &["diff", "--name-status", "-z", "--no-renames", commit]).map_err(refused)?;
    let mut words = tracked.split('\0').filter(|word| !word.is_empty());
    while let (Some(status), Some(path)) = (words.next(), words.next()) {
        files.push(File { status: status.to_owned(), path: path.to_owned() });
    }
    let mut diff = Text::default();
    if !files.is_empty() {
        tracked_diff(root, commit, &mut diff, &mut digest).map_err(|error| refused(error.to_string()))?;
    }
    let new = git(root, &["ls-files", "--others", "--exclude-standard", "-z"]).map_err(refused)?;
    for (number, path) in new.split('\0').filter(|path| !path.is_empty()).enumerate() {
        files.push(File { status: "A".to_owned(), path: path.to_owned() });
        digest.update(path.as_bytes());
        digest.update([0]);
        if number < NEW_FILES {
            new_file(&root.join(path), path, &mut diff, &mut digest);
        } else {
            diff.too_long = true;
        }
    }
    if files.is_empty() {
        return Err(Error::new(Code::NothingToReview, format!("nothing has changed since {name}"))
            .hint("`baton review --base REF` reviews a branch"));
    }
    let hash = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let diff = if diff.too_long { Diff::TooLong } else { Diff::Whole(diff.text) };
    Ok(Changes {
        root: root.to_owned(),
        base: commit.to_owned(),
        base_name: name.to_owned(),
        files,
        diff,
        digest: hash,
    })
}

/// Where the branch left a commit that a person has named.
fn branching(root: &Path, name: &str) -> Result<String, Error> {
    let unknown = |_| {
        Error::new(Code::UnknownBase, format!("no commit is called {}", frame::shown(name, 60)))
            .hint("name a branch, a tag or a commit, such as --base main")
    };
    let spelled = format!("{name}^{{commit}}");
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &spelled];
    let commit = git(root, &words).map_err(unknown)?;
    // Histories that have nothing in common are compared as they are.
    Ok(git(root, &["merge-base", &commit, "HEAD"]).unwrap_or(commit))
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

fn tracked_diff(root: &Path, commit: &str, diff: &mut Text, digest: &mut Sha256) -> io::Result<()> {
    let mut child = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["-c", "core.fsmonitor=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv"])
        .args(["--no-renames", commit, "--"])
        .env("LC_ALL", "C")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut beginning = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = out.read(&mut piece)?;
            if count == 0 {
                break;
            }
            digest.update(&piece[..count]);
            let room = (DIFF_BYTES + 1).saturating_sub(beginning.len());
            beginning.extend_from_slice(&piece[..count.min(room)]);
        }
    }
    let status = child.wait()?;
    diff.push(&String::from_utf8_lossy(&beginning));
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("git diff ended with {status}"))) }
}

fn new_file(file: &Path, path: &str, diff: &mut Text, digest: &mut Sha256) {
    let shown = frame::shown(path, 400);
    // Neither a link nor a pipe is opened.
    let length = match fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => found.len(),
        _ => return diff.push(&format!("new, and no plain file: {shown}\n")),
    };
    let mut bytes = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(FILE_BYTES).read_to_end(&mut bytes));
    digest.update(length.to_le_bytes());
    digest.update(&bytes);
    match String::from_utf8(bytes) {
        Ok(text) if read.is_ok() && !text.contains('\0') => {
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
        .hint("see what `git status` says there")
}

#[cfg(test)]
mod tests {
    use super::*;

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
