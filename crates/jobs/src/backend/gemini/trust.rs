//! Which folders the user trusts, and a job's worktree among them.
//!
//! A worktree is a new folder, which the user can't have trusted before. It counts as trusted if
//! the folder that it was made of is. That holds for this job alone, by a file of its own; the
//! user's file is only read.

use super::super::Task;
use baton_core::limits;
use baton_machine::{files, own};
use serde_json::{Map, Value};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Names the file with the folders that are trusted.
pub(super) const TRUST_FILE_VARIABLE: &str = "GEMINI_CLI_TRUSTED_FOLDERS_PATH";
const TRUST_FILE: &str = "trustedFolders.json";
const TRUST_FOLDER_VALUE: &str = "TRUST_FOLDER";
/// The folder above that one.
const TRUST_PARENT_VALUE: &str = "TRUST_PARENT";

/// The file that also trusts the worktree of a task, if it was made of a trusted folder.
pub(super) fn for_worktree(task: &Task, home: Option<&Path>) -> io::Result<Option<PathBuf>> {
    let Some(origin) = &task.worktree_of else { return Ok(None) };
    let named = task.variable(TRUST_FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let Some(users) = named.or_else(|| Some(home?.join(".gemini").join(TRUST_FILE))) else { return Ok(None) };
    // If the file can't be read or has comments, Gemini CLI handles it itself.
    let Some(mut folders) = files::read(&users, limits::AGENT_FILE_BYTES)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
    else {
        return Ok(None);
    };
    if !is_trusted(&folders, &real(origin)) {
        return Ok(None);
    }
    folders.insert(real(&task.cwd).to_string_lossy().into_owned(), TRUST_FOLDER_VALUE.into());
    let file = task.folder.join(TRUST_FILE);
    own::rewrite(&file)?.write_all(Value::Object(folders).to_string().as_bytes())?;
    Ok(Some(file))
}

/// By Gemini CLI's own rule: of the entries that contain the folder, the longest counts.
fn is_trusted(folders: &Map<String, Value>, folder: &Path) -> bool {
    let holds = |path: &str, level: &Value| {
        let entry = Path::new(path);
        let top = if *level == TRUST_PARENT_VALUE { entry.parent().unwrap_or(entry) } else { entry };
        folder.starts_with(real(top))
    };
    let nearest =
        folders.iter().filter(|(path, level)| holds(path, level)).max_by_key(|(path, _)| path.len());
    nearest.is_some_and(|(_, level)| *level == TRUST_FOLDER_VALUE || *level == TRUST_PARENT_VALUE)
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
