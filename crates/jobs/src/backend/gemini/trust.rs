//! Which folders the user trusts, and a job's worktree among them.
//!
//! A worktree is a folder that nobody can have trusted before. It counts as trusted if the folder that it was made of does: for this job alone, by a
//! file of its own beside the user's, which is only read.

use super::super::Task;
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names the file with the folders that are trusted.
pub(super) const VARIABLE: &str = "GEMINI_CLI_TRUSTED_FOLDERS_PATH";
const FILE: &str = "trustedFolders.json";
const TRUSTED: &str = "TRUST_FOLDER";
/// The folder above that one.
const PARENT_TRUSTED: &str = "TRUST_PARENT";

/// The file that trusts the worktree of a task too, if it works in one of a folder that is trusted.
pub(super) fn for_worktree(task: &Task, home: Option<&Path>) -> io::Result<Option<PathBuf>> {
    let Some(origin) = &task.worktree_of else { return Ok(None) };
    let named = task.variable(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let Some(users) = named.or_else(|| Some(home?.join(".gemini").join(FILE))) else { return Ok(None) };
    // One that can't be read, or has comments, is left to Gemini CLI itself.
    let Some(mut folders) = fs::read(users).ok().and_then(|text| serde_json::from_slice(&text).ok()) else {
        return Ok(None);
    };
    if !is_trusted(&folders, &real(origin)) {
        return Ok(None);
    }
    folders.insert(real(&task.cwd).to_string_lossy().into_owned(), TRUSTED.into());
    let file = task.folder.join(FILE);
    fs::write(&file, Value::Object(folders).to_string())?;
    Ok(Some(file))
}

/// As Gemini CLI says it: the longest entry counts of those that the folder lies in.
fn is_trusted(folders: &Map<String, Value>, folder: &Path) -> bool {
    let holds = |path: &str, level: &Value| {
        let entry = Path::new(path);
        let top = if *level == PARENT_TRUSTED { entry.parent().unwrap_or(entry) } else { entry };
        folder.starts_with(real(top))
    };
    let nearest =
        folders.iter().filter(|(path, level)| holds(path, level)).max_by_key(|(path, _)| path.len());
    nearest.is_some_and(|(_, level)| *level == TRUSTED || *level == PARENT_TRUSTED)
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_nearest_entry_counts() {
        let folders = json!({
            "/a": "TRUST_FOLDER", "/a/not": "DO_NOT_TRUST", "/a/not/but": "TRUST_FOLDER", "/b/c": "TRUST_PARENT",
            "/d": "SOMETHING_ELSE",
        });
        let folders = folders.as_object().unwrap();
        for (folder, trusted) in [
            ("/a", true),
            ("/a/x/y", true),
            ("/ab", false),
            ("/a/not", false),
            ("/a/not/x", false),
            ("/a/not/but/x", true),
            ("/b/x", true),
            ("/d", false),
            ("/", false),
        ] {
            assert_eq!(is_trusted(folders, Path::new(folder)), trusted, "{folder}");
        }
    }
}
