//! Which project a folder belongs to: a git repository with all its worktrees, else the folder
//! itself.
//!
//! It looks at `.git` and does not run git, because every session start does this.

use crate::files;
use baton_core::limits;
use std::path::{Path, PathBuf};

/// The project of a folder, as an absolute path.
pub fn of(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    folder
        .ancestors()
        .find_map(|dir| repository(&dir.join(".git"), dir))
        .unwrap_or(folder)
        .to_string_lossy()
        .into_owned()
}

/// The main work tree of the repository whose `.git` this is.
fn repository(git: &Path, dir: &Path) -> Option<PathBuf> {
    let metadata = std::fs::metadata(git).ok()?;
    if metadata.is_dir() {
        // As for git, an empty folder of that name is no repository. A sandbox can leave one
        // behind.
        return std::fs::symlink_metadata(git.join("HEAD")).is_ok().then(|| dir.to_owned());
    }
    // A linked worktree or a submodule: a file that says where the real one is.
    let pointer = files::text(git, limits::POINTER_BYTES).ok()?;
    let target = dir.join(pointer.strip_prefix("gitdir:")?.trim());
    let common = files::text(&target.join("commondir"), limits::POINTER_BYTES).ok();
    match common {
        Some(common) => target.join(common.trim()).canonicalize().ok()?.parent().map(Path::to_owned),
        // A submodule is a separate repository.
        None => Some(dir.to_owned()),
    }
}

/// The branch that is checked out in a folder, or the beginning of the commit. `None` outside of a
/// repository.
pub fn branch(folder: &Path) -> Option<String> {
    let head = folder.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        let place = match files::text(&git, limits::POINTER_BYTES) {
            Ok(pointer) => dir.join(pointer.strip_prefix("gitdir:")?.trim()),
            Err(_) => git,
        };
        files::text(&place.join("HEAD"), limits::POINTER_BYTES).ok()
    })?;
    let head = head.trim();
    let branch = head.strip_prefix("ref:").map(str::trim);
    Some(match branch {
        Some(branch) => branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned(),
        None => head.chars().take(COMMIT_CHARS).collect(),
    })
}

/// How much of a commit's id is shown.
const COMMIT_CHARS: usize = 8;

/// A folder as people read it beside its project: the name of the project, with the way down.
pub fn place(project: &str, folder: &str) -> String {
    let root = short(project);
    match elsewhere(project, folder) {
        None => root.to_owned(),
        Some(folder) => match Path::new(folder).strip_prefix(project) {
            Ok(below) => format!("{root}/{}", below.display()),
            // A worktree, or a folder that has moved.
            Err(_) => short(folder).to_owned(),
        },
    }
}

/// The folder that something runs in, if it is another one than its project's own.
pub fn elsewhere<'a>(project: &str, folder: &'a str) -> Option<&'a str> {
    let (project, path) = (Path::new(project), Path::new(folder));
    let is_same = || path.canonicalize().is_ok_and(|path| path == project);
    (!folder.is_empty() && path != project && !is_same()).then_some(folder)
}

/// A short name for people: the last part of the path.
pub fn short(project: &str) -> &str {
    project.rsplit('/').find(|part| !part.is_empty()).unwrap_or(project)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktrees_share_their_repository_and_other_folders_stand_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("main/.git/worktrees/feature")).unwrap();
        std::fs::write(root.join("main/.git/worktrees/feature/commondir"), "../..\n").unwrap();
        std::fs::write(root.join("main/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::create_dir_all(root.join("main/src/deep/.git")).unwrap();
        std::fs::create_dir_all(root.join("feature/src")).unwrap();
        std::fs::write(
            root.join("feature/.git"),
            format!("gitdir: {}\n", root.join("main/.git/worktrees/feature").display()),
        )
        .unwrap();
        std::fs::create_dir_all(root.join("plain")).unwrap();
        let main = root.join("main").display().to_string();
        assert_eq!(of(&root.join("main/src/deep")), main);
        assert_eq!(of(&root.join("feature/src")), main);
        assert_eq!(of(&root.join("plain")), root.join("plain").display().to_string());
        assert_eq!(short(&main), "main");
        assert_eq!(place(&main, &main), "main");
        assert_eq!(place(&main, &format!("{main}/src/deep")), "main/src/deep");
        assert_eq!(place(&main, &root.join("feature").display().to_string()), "feature");
        std::fs::write(root.join("main/.git/HEAD"), "ref: refs/heads/fix/one\n").unwrap();
        std::fs::write(root.join("main/.git/worktrees/feature/HEAD"), "0123456789abcdef\n").unwrap();
        assert_eq!(branch(&root.join("main/src/deep")).as_deref(), Some("fix/one"));
        assert_eq!(branch(&root.join("feature/src")).as_deref(), Some("01234567"));
        assert_eq!(branch(&root.join("plain")), None);
        assert_eq!(elsewhere(&main, &main), None);
        assert_eq!(elsewhere(&main, &format!("{main}/src/..")), None);
        for other in ["/etc".to_owned(), format!("{main}/src"), root.join("feature").display().to_string()] {
            assert_eq!(elsewhere(&main, &other), Some(other.as_str()));
        }
    }
}
