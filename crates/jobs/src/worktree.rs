//! A git worktree and a branch for one job.
//!
//! It is made from the commit that the repository has checked out, kept as long as it holds anything that is nowhere else, and what changed in it is
//! told by git, not by the agent.

use baton_core::id::JobId;
use baton_core::job::Fault;
use baton_core::{Code, Error};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A job's own worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// Where it lies.
    pub path: PathBuf,
    /// The folder in it that the job works in.
    pub cwd: PathBuf,
    /// Its branch.
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
    /// Makes it.
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
        // Joined with nothing, a path gets a slash at its end, which some agents pass on.
        let cwd = if inside.is_empty() { path.clone() } else { path.join(inside) };
        Ok(Self { cwd, path, branch, base, repository: repository.into() })
    }

    /// What changed in it, as JSON. One that holds nothing is removed with its branch.
    pub fn finish(self) -> Result<String, String> {
        let files = changed(&self.path, &self.base)?;
        let commits: usize =
            git(&self.path, &["rev-list", "--count", &format!("{}..HEAD", self.base)])?.parse().unwrap_or(0);
        let kept = !files.is_empty() || commits > 0;
        if !kept {
            remove(&self.repository, &self.path, &self.branch)?;
        }
        let files: Vec<Value> =
            files.iter().map(|(status, path)| json!({"status": status, "path": path})).collect();
        let place = kept.then(|| self.path.to_string_lossy().into_owned());
        Ok(json!({"branch": self.branch, "path": place, "base": self.base, "commits": commits, "files": files})
            .to_string())
    }
}

/// Where a job's worktree lies, if it has one.
pub fn path(home: &Path, id: &JobId) -> PathBuf {
    home.join("worktrees").join(id.as_str())
}

fn branch(id: &JobId) -> String {
    format!("baton/{id}")
}

/// Removes the worktree of a job, if it holds nothing that is nowhere else. Whether it did.
pub fn clean(home: &Path, id: &JobId) -> Result<bool, String> {
    let path = path(home, id);
    if !path.exists() {
        return Ok(false);
    }
    let loose = git(&path, &["status", "--porcelain", "--untracked-files=all"])?;
    let branch = branch(id);
    // Commits of its branch that no other branch, tag or remote has.
    let own = git(
        &path,
        &[
            "rev-list",
            "--count",
            "HEAD",
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
    // Without --force: git itself refuses to lose anything.
    git(repository, &["worktree", "remove", &path.to_string_lossy()])?;
    git(repository, &["branch", "--quiet", "-D", branch]).map(drop)
}

/// The files that differ from a commit, committed or not, with git's letter.
fn changed(path: &Path, base: &str) -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    let tracked = git(path, &["diff", "--name-status", "-z", "--no-renames", base])?;
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

/// Runs git in a folder; what it prints, without the last line end, or its words if it refuses.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).env("LC_ALL", "C");
    // Looking must not write, nor be in the way of whoever works there.
    command.env("GIT_OPTIONAL_LOCKS", "0");
    // Whoever started us inside of a git hook means another repository.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    let output = command.output().map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
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
