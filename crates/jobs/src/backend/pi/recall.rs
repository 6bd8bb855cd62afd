//! What Pi wrote down: its session files, one line per entry, append-only.
//!
//! Before the prompt goes out, the backend notes in the job's folder where the job's part of the
//! session file begins.

use super::agent_home;
use crate::backend::{Task, describe};
use baton_core::job::{Finish, Said, Snapshot};
use baton_core::limits;
use baton_machine::clock::now;
use baton_machine::{files, own};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The longest first line of a session's file.
const HEADER_BYTES: u64 = 64 << 10;
/// The most of a session's file that is read for one job.
const SESSION_BYTES: u64 = 256 << 20;

/// Where the session of a job is written.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    /// Where the job's own part begins.
    from: u64,
}

impl Place {
    /// Notes where the job's part of the file begins: at its present end. A new session has no file
    /// yet.
    pub(super) fn note(task: &Task, file: &str) -> io::Result<()> {
        let from = fs::metadata(file).map_or(0, |file| file.len());
        own::rewrite(&path(task))?.write_all(json!({"file": file, "from": from}).to_string().as_bytes())
    }

    /// Reads what was noted.
    pub(super) fn read(task: &Task) -> Option<Self> {
        let noted: Value =
            serde_json::from_slice(&own::read(&path(task), limits::OWN_FILE_BYTES).ok()?).ok()?;
        Some(Self { file: noted["file"].as_str()?.into(), from: noted["from"].as_u64()? })
    }
}

fn path(task: &Task) -> PathBuf {
    task.folder.join("pi-session.json")
}

/// How the job's part of the session ended. Pi also writes an aborted message when it loses its
/// worker, so that is no end here.
pub(super) fn look(place: &Place) -> Option<Snapshot> {
    let mut file = files::open(&place.file).ok()?;
    file.seek(SeekFrom::Start(place.from)).ok()?;
    let mut snapshot = Snapshot::default();
    let mut lines = BufReader::new(file.take(SESSION_BYTES));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        snapshot.version += line.len() as u64;
        if let Ok(entry) = serde_json::from_slice::<Value>(&line)
            && entry["type"] == "message"
        {
            take(&mut snapshot, &entry["message"]);
        }
        line.clear();
    }
    Some(snapshot)
}

/// The last message decides.
fn take(snapshot: &mut Snapshot, message: &Value) {
    (snapshot.idle, snapshot.said, snapshot.fault) = (None, None, None);
    if message["role"] != "assistant" {
        return;
    }
    match finish(message) {
        Some(finish @ (Finish::End | Finish::Length)) => {
            snapshot.idle = Some(true);
            snapshot.said = Some(Said { text: text(message), finish });
        }
        // An aborted tool ends the turn with an error that says so.
        _ if message["stopReason"] == "error" && !is_abort(message) => {
            snapshot.idle = Some(true);
            snapshot.fault = Some(fault(message));
        }
        _ => {}
    }
}

fn is_abort(message: &Value) -> bool {
    message["errorMessage"].as_str().is_some_and(|words| words.ends_with("was aborted"))
}

/// How a message of the model ended; `None` for an error and an abort.
pub(super) fn finish(message: &Value) -> Option<Finish> {
    match message["stopReason"].as_str() {
        Some("stop") => Some(Finish::End),
        Some("length") => Some(Finish::Length),
        Some("toolUse") => Some(Finish::ToolCalls),
        Some("error" | "aborted") => None,
        Some(_) => Some(Finish::Unknown),
        None => Some(Finish::Absent),
    }
}

/// The words of a message.
pub(super) fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let parts = content.as_array().into_iter().flatten().filter(|part| part["type"] == "text");
            parts.filter_map(|part| part["text"].as_str()).collect()
        }
    }
}

/// The fault of a message that ended with an error: `401: {…}`, or words alone.
pub(super) fn fault(message: &Value) -> baton_core::job::Fault {
    let said = message["errorMessage"].as_str().unwrap_or_default();
    let digits = said.bytes().take_while(u8::is_ascii_digit).count();
    let status =
        Some(&said[..digits]).filter(|status| status.len() == 3).and_then(|status| status.parse().ok());
    describe::fault("pi", status, said, now())
}

/// The file of a session, and the folder that it belongs to.
pub(super) fn find(task: &Task, session: &str) -> Option<(PathBuf, PathBuf)> {
    let is_id = session.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let end = format!("_{session}.jsonl");
    let ends = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&end));
    let roots = roots(task);
    // Either in the folder itself, or in one folder per project.
    let folders = roots.iter().flat_map(|root| children(root)).filter(|path| path.is_dir());
    let folders = roots.iter().cloned().chain(folders);
    let file = folders.flat_map(|folder| children(&folder)).find(|path| is_id && ends(path))?;
    let mut header = String::new();
    BufReader::new(files::open(&file).ok()?.take(HEADER_BYTES)).read_line(&mut header).ok()?;
    let header: Value = serde_json::from_str(&header).ok()?;
    Some((file, header["cwd"].as_str()?.into()))
}

/// Where sessions may be.
fn roots(task: &Task) -> Vec<PathBuf> {
    let home = agent_home(task);
    let settings = home
        .as_ref()
        .and_then(|home| files::text(&home.join("settings.json"), limits::AGENT_FILE_BYTES).ok());
    let settings: Value = settings.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let set = task.variable("PI_CODING_AGENT_SESSION_DIR").map(PathBuf::from);
    let set = set.or_else(|| Some(settings["sessionDir"].as_str()?.into()));
    let set = set.map(|folder| match (folder.strip_prefix("~"), task.user_home()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => task.cwd.join(folder),
    });
    set.into_iter().chain(home.map(|home| home.join("sessions"))).collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_after_the_prompt_decides() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("session.jsonl");
        let said = |reason: &str, text: &str| {
            let content = json!([{"type": "text", "text": text}]);
            json!({"type": "message", "message": {"role": "assistant", "stopReason": reason, "content": content,
                   "errorMessage": "429: slow down, retry after 7"}})
        };
        let user = json!({"type": "message", "message": {"role": "user", "content": "x"}});
        let look = |entries: &[Value], cut: &str| {
            let lines: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
            fs::write(&file, format!("{lines}{cut}")).unwrap();
            super::look(&Place { file: file.clone(), from: 0 }).unwrap()
        };
        let done = look(
            &[user.clone(), said("toolUse", "a"), said("stop", "b"), json!({"type": "session_info"})],
            "",
        );
        assert_eq!((done.idle, done.said.unwrap().text.as_str()), (Some(true), "b"));
        for unfinished in [said("toolUse", "a"), said("aborted", "a"), user.clone()] {
            let unfinished = look(&[said("stop", "of another job"), unfinished], "");
            assert_eq!((unfinished.idle, unfinished.said, unfinished.fault), (None, None, None));
        }
        let failed = look(&[user, said("error", "")], "{\"type\":\"mess").fault.unwrap();
        assert!(failed.error.code() == baton_core::Code::RateLimited && failed.again_at.is_some());
    }
}
