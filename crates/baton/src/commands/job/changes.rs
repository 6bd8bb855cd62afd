//! What a job changed in its worktree, and the commands that go on from there.

use crate::print::{Out, Text, Tone, text};
use baton_core::words::{counted, for_a_shell};
use baton_store::JobRow;
use serde_json::Value;

/// The most files that are listed.
const MAX_FILES_SHOWN: usize = 50;

/// Says what an ended job changed, if it had a worktree.
pub fn say_changes(row: &JobRow, out: &Out) {
    if let Some(changes) = row.changes.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        out.say(in_words(row, &changes, out));
    }
}

fn in_words(row: &JobRow, changes: &Value, out: &Out) -> Text {
    let Some(path) = changes["path"].as_str() else {
        return text!["it changed nothing; its worktree was removed"];
    };
    let branch = changes["branch"].as_str().unwrap_or("?");
    let files = changes["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = text![format_args!("branch {branch} in {path}: {} changed", counted(files.len(), "file"))];
    for file in files.iter().take(MAX_FILES_SHOWN) {
        let (status, name) = (file["status"].as_str().unwrap_or("?"), file["path"].as_str().unwrap_or("?"));
        text.push(text!["\n", format_args!("  {status} {name}")]);
    }
    if let Some(more) = files.len().checked_sub(MAX_FILES_SHOWN).filter(|more| *more > 0) {
        text.push(text!["\n", format_args!("  and {more} more")]);
    }
    for (what, command) in next_steps(row, changes, path, branch) {
        text.push(text!["\n", out.tone(Tone::Dim, what), " ", Text::from(command)]);
    }
    text
}

/// What the person may do with the changes, each as one command that works from any folder.
fn next_steps(row: &JobRow, changes: &Value, path: &str, branch: &str) -> Vec<(&'static str, String)> {
    let (inside, outside) = (for_a_shell(path), for_a_shell(&row.cwd));
    let base = changes["base"].as_str().unwrap_or("HEAD");
    let mut steps = Vec::new();
    // The agent may have left the branch: then a merge of it would miss what is checked out.
    if changes["on_branch"] == true {
        let new = if changes["uncommitted"] == true {
            format!("git -C {inside} add -AN && ")
        } else {
            String::new()
        };
        steps.push(("see: ", format!("{new}git -C {inside} diff {base}")));
        let commit = match changes["uncommitted"] == true {
            true => format!(
                "git -C {inside} add -A && git -C {inside} commit -m {} && ",
                for_a_shell(&format!("Work of job {}", row.id))
            ),
            false => String::new(),
        };
        steps.push(("keep:", format!("{commit}git -C {outside} merge {branch}")));
    }
    let remove = format!("git -C {outside} worktree remove --force {inside}");
    steps.push(("drop:", format!("{remove} && git -C {outside} branch -D {branch}")));
    steps
}
