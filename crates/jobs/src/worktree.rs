//! A git worktree and a branch for one job.
//!
//! It is made from the commit that the repository has checked out. It is kept as long as it has
//! anything that is nowhere else. Git says what has changed in it, not the agent.

use baton_core::id::JobId;
use baton_core::job::Fault;
use baton_core::{Code, Error};
use baton_machine::git::{Git, PLAIN_DIFF_OPTIONS};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long one call of git may take. A working copy can be large, and its filters may fetch.
const GIT_LIMIT: Duration = Duration::from_secs(600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    pub path: PathBuf,
    /// The folder in it that the job works in.
    pub cwd: PathBuf,
    pub branch: String,
    /// The commit that it began with.
    base: String,
    repository: PathBuf,
}

/// Whether a folder is in a repository that worktrees can be made of.
pub fn check(cwd: &Path) -> Result<(), Error> {
    git(cwd, &["rev-parse", "--verify", "--quiet", "HEAD"]).map(drop).map_err(|_| {
        Error::new(Code::BadFolder, format!("{} is not in a git repository with a commit", cwd.display()))
            .hint("--worktree needs one: run it inside of a repository, or leave --worktree out")
    })
}

impl Worktree {
    pub fn add(home: &Path, id: &JobId, cwd: &Path) -> Result<Self, Fault> {
        let failed = |words: String| {
            Fault::new(Code::BadFolder, format!("git could not make a worktree: {words}"))
                .hint("the job was not started; `git worktree list` shows what is there")
        };
        let path = path(home, id);
        let branch = branch(id);
        let inside = git(cwd, &["rev-parse", "--show-prefix"]).map_err(failed)?;
        let base = git(cwd, &["rev-parse", "HEAD"]).map_err(failed)?;
        let repository = git(cwd, &["rev-parse", "--show-toplevel"]).map_err(failed)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
        }
        let place = path.to_string_lossy();
        git(cwd, &["worktree", "add", "--quiet", "-b", &branch, &place, &base]).map_err(failed)?;
        // A path joined with an empty one ends with a slash, which some agents pass on.
        let cwd = if inside.is_empty() { path.clone() } else { path.join(inside) };
        Ok(Self { cwd, path, branch, base, repository: repository.into() })
    }

    /// What changed in it, as JSON. A worktree without changes is removed with its branch.
    pub fn finish(self) -> Result<String, String> {
        let files = changed(&self.path, &self.base)?;
        let ignored = ignored(&self.path)?;
        let branch = format!("refs/heads/{}", self.branch);
        // The agent may have left its branch. What is on the branch counts too.
        let since = format!("^{}", self.base);
        let commits: usize = git(&self.path, &["rev-list", "--count", "HEAD", &branch, &since])
            .or_else(|_| git(&self.path, &["rev-list", "--count", "HEAD", &since]))?
            .parse()
            .unwrap_or(0);
        // What has to be committed before the branch can be merged, and what is checked out.
        let loose = git(&self.path, &["status", "--porcelain", "--untracked-files=all"])?;
        let head = git(&self.path, &["rev-parse", "--abbrev-ref", "HEAD"])?;
        let kept = !files.is_empty() || commits > 0 || !ignored.is_empty();
        if !kept {
            remove(&self.repository, &self.path, &self.branch)?;
        }
        let files: Vec<Value> =
            files.iter().map(|(status, path)| json!({"status": status, "path": path})).collect();
        let place = kept.then(|| self.path.to_string_lossy().into_owned());
        Ok(json!({
            "branch": self.branch, "path": place, "base": self.base, "commits": commits, "files": files, "ignored": ignored,
            "uncommitted": !loose.is_empty(), "on_branch": head == self.branch,
        })
        .to_string())
    }
}

/// The path of a job's worktree, if it has one.
pub fn path(home: &Path, id: &JobId) -> PathBuf {
    home.join("worktrees").join(id.as_str())
}

fn branch(id: &JobId) -> String {
    format!("baton/{id}")
}

/// Removes the worktree of a job, if all of its content is elsewhere too. Returns whether it did.
pub fn clean(home: &Path, id: &JobId) -> Result<bool, String> {
    let path = path(home, id);
    if !path.exists() {
        return Ok(false);
    }
    let loose = git(
        &path,
        &["status", "--porcelain", "--untracked-files=all", "--ignored", "--ignore-submodules=none"],
    )?;
    let branch = branch(id);
    // Commits of its branch that no other branch, tag or remote has.
    let own = git(
        &path,
        &[
            "rev-list",
            "--count",
            "HEAD",
            &format!("refs/heads/{branch}"),
            "--not",
            &format!("--exclude={branch}"),
            "--branches",
            "--tags",
            "--remotes",
        ],
    )?;
    if !loose.is_empty() || own != "0" {
        return Ok(false);
    }
    let repository = git(&path, &["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    remove(Path::new(&repository), &path, &branch)?;
    Ok(true)
}

fn remove(repository: &Path, path: &Path, branch: &str) -> Result<(), String> {
    // Without --force, so git itself refuses to lose anything but ignored files.
    git(repository, &["worktree", "remove", &path.to_string_lossy()])?;
    git(repository, &["branch", "--quiet", "-D", branch]).map(drop)
}

/// What git ignores in a folder, with whole folders by their names. Git removes ignored files with
/// a worktree, so a worktree that has some is kept.
fn ignored(path: &Path) -> Result<Vec<String>, String> {
    let found = git(path, &["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"])?;
    Ok(found.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// The files that differ from a commit, committed or not, each with git's letter.
fn changed(path: &Path, base: &str) -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    let names =
        [&PLAIN_DIFF_OPTIONS[..], &["--name-status", "-z", "--ignore-submodules=none", base]].concat();
    let tracked = git(path, &names)?;
    let mut words = tracked.split('\0').filter(|word| !word.is_empty());
    while let (Some(status), Some(name)) = (words.next(), words.next()) {
        files.push((status.to_owned(), name.to_owned()));
    }
    let new = git(path, &["ls-files", "--others", "--exclude-standard", "-z"])?;
    files.extend(
        new.split('\0').filter(|name| !name.is_empty()).map(|name| ("A".to_owned(), name.to_owned())),
    );
    Ok(files)
}

/// Runs git in a folder. Returns its output without the last line end, or its error text. The
/// repository's filters run, because a working copy needs them; its hooks don't.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let git = Git::with_filters(folder, std::env::vars_os(), Instant::now() + GIT_LIMIT);
    git.ok_or("git is not on the PATH")?.tells(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for arguments in [
            vec!["init", "--quiet"],
            vec!["config", "user.email", "x@example.invalid"],
            vec!["config", "user.name", "x"],
            vec!["commit", "--quiet", "--allow-empty", "-m", "first"],
        ] {
            git(folder.path(), &arguments).unwrap();
        }
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("sub/old.txt"), "old\n").unwrap();
        git(folder.path(), &["add", "."]).unwrap();
        git(folder.path(), &["commit", "--quiet", "-m", "second"]).unwrap();
        folder
    }

    #[test]
    fn what_changed_is_told_by_git_and_kept_until_it_is_elsewhere() {
        let (home, repository) = (tempfile::tempdir().unwrap(), repository());
        let id = JobId::from_random([9; 8]);
        let made = Worktree::add(home.path(), &id, &repository.path().join("sub")).unwrap();
        assert!(made.cwd.ends_with("sub") && made.cwd.join("old.txt").exists());
        std::fs::write(made.cwd.join("old.txt"), "new\n").unwrap();
        std::fs::write(made.path.join("a \"new\" file"), "x").unwrap();
        let told: Value = serde_json::from_str(&made.finish().unwrap()).unwrap();
        assert_eq!(told["branch"], "baton/jj99999999999".replace("jj99999999999", id.as_str()));
        assert_eq!(
            told["files"],
            json!([{"status": "M", "path": "sub/old.txt"}, {"status": "A", "path": "a \"new\" file"}])
        );
        assert!(!clean(home.path(), &id).unwrap(), "it holds something");
        let path = path(home.path(), &id);
        git(&path, &["add", "-A"]).unwrap();
        git(&path, &["commit", "--quiet", "-m", "work"]).unwrap();
        assert!(!clean(home.path(), &id).unwrap(), "the commit is nowhere else");
        git(repository.path(), &["merge", "--quiet", &branch(&id)]).unwrap();
        assert!(clean(home.path(), &id).unwrap());
        assert!(!path.exists());
        assert_eq!(git(repository.path(), &["branch", "--list", "baton/*"]).unwrap(), "");
    }

    #[test]
    fn s19_a_worktree_that_holds_only_ignored_files_or_a_left_branch_is_kept() {
        let (home, repository) = (tempfile::tempdir().unwrap(), repository());
        std::fs::write(repository.path().join(".gitignore"), "*.db\nout/\n").unwrap();
        git(repository.path(), &["add", "."]).unwrap();
        git(repository.path(), &["commit", "--quiet", "-m", "ignore"]).unwrap();
        let id = JobId::from_random([7; 8]);
        let made = Worktree::add(home.path(), &id, repository.path()).unwrap();
        std::fs::write(made.path.join("data.db"), "x").unwrap();
        std::fs::create_dir(made.path.join("out")).unwrap();
        std::fs::write(made.path.join("out/result"), "x").unwrap();
        let place = made.path.clone();
        let told: Value = serde_json::from_str(&made.finish().unwrap()).unwrap();
        assert_eq!(told["ignored"], json!(["data.db", "out/"]));
        assert_eq!(told["path"], json!(place.to_string_lossy()));
        assert!(!clean(home.path(), &id).unwrap(), "the files are nowhere else");
        assert!(place.join("data.db").exists() && place.join("out/result").exists());

        let id = JobId::from_random([6; 8]);
        let made = Worktree::add(home.path(), &id, repository.path()).unwrap();
        git(&made.path, &["commit", "--quiet", "--allow-empty", "-m", "work"]).unwrap();
        git(&made.path, &["checkout", "--quiet", "--detach", "HEAD~1"]).unwrap();
        let told: Value = serde_json::from_str(&made.finish().unwrap()).unwrap();
        assert_eq!(told["commits"], 1);
        assert!(!clean(home.path(), &id).unwrap(), "the branch has a commit of its own");
    }

    #[test]
    fn one_without_changes_goes_at_once_and_one_without_a_repository_is_refused() {
        let (home, repository) = (tempfile::tempdir().unwrap(), repository());
        let id = JobId::from_random([8; 8]);
        let made = Worktree::add(home.path(), &id, repository.path()).unwrap();
        let told: Value = serde_json::from_str(&made.finish().unwrap()).unwrap();
        assert_eq!((&told["path"], &told["files"]), (&Value::Null, &json!([])));
        assert!(!path(home.path(), &id).exists());
        assert_eq!(check(home.path()).unwrap_err().code(), Code::BadFolder);
        check(repository.path()).unwrap();
    }
}
