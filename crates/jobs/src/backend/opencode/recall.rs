//! What is left of a session without a worker.
//!
//! If the server lives, it is asked. It rarely does: it ends with the last job that needed it. Then
//! its database has what it had written: one SQLite file, which is only read here. Its messages and
//! parts are the same documents that the server shows.

use super::keeper;
use super::{PROMPT_FILE, read};
use crate::backend::{Task, opencode::api::Api};
use baton_core::job::Snapshot;
use baton_core::limits;
use baton_machine::own;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// No call to the server takes longer, nor does waiting for its database.
const CALL_LIMIT: Duration = Duration::from_millis(500);
/// How many of the last messages are read.
const LAST_MESSAGES: usize = 20;

/// What the server, or else its database, has of the turn that the task's prompt began.
pub(super) fn recall(task: &Task, session: &str) -> Option<Snapshot> {
    let prompt =
        String::from_utf8(own::read(&task.folder.join(PROMPT_FILE), limits::OWN_FILE_BYTES).ok()?).ok()?;
    // It was aborted by the process that ended the server without a worker. So the turn died in the
    // middle.
    let unwatched = |snapshot| Snapshot { aborted: false, ..snapshot };
    if let Some(snapshot) = ask(task, session, &prompt) {
        return Some(unwatched(snapshot));
    }
    let messages = stored(&store(task), session).ok()?;
    let has_prompt = messages.iter().any(|message| message["info"]["id"] == prompt.as_str());
    let mut snapshot = read::turn(&Value::from(messages), &prompt);
    // Nothing runs without a server, whatever the database says.
    snapshot.idle = Some(true);
    (has_prompt || snapshot.said.is_some()).then(|| unwatched(snapshot))
}

fn ask(task: &Task, session: &str, prompt: &str) -> Option<Snapshot> {
    let server = keeper::running(task, CALL_LIMIT)?;
    let api = Api::new(server.port, &server.password, task.cwd.to_str()?);
    let status = api.get("/session/status", CALL_LIMIT).ok()?;
    let messages = api.get(&format!("/session/{session}/message?limit={LAST_MESSAGES}"), CALL_LIMIT).ok()?;
    let mut snapshot = read::turn(&messages, prompt);
    snapshot.idle = Some(status[session].is_null() || status[session]["type"] == "idle");
    Some(snapshot)
}

fn store(task: &Task) -> PathBuf {
    let named = task.variable("OPENCODE_DB").filter(|name| !name.is_empty());
    // A name alone is in the data folder; a whole path stays one.
    keeper::data_folder(task).join(named.map_or_else(|| "opencode.db".into(), PathBuf::from))
}

/// The last messages as the server would show them, the oldest first.
fn stored(file: &std::path::Path, session: &str) -> rusqlite::Result<Vec<Value>> {
    let store = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    store.busy_timeout(CALL_LIMIT)?;
    let mut last =
        store.prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY id DESC LIMIT ?2")?;
    let mut rows = last.query((session, LAST_MESSAGES as i64))?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let mut parts = store.prepare("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id")?;
        let parts = parts
            .query_map([&id], |row| Ok(document(&row.get::<_, String>(0)?, &row.get::<_, String>(1)?)))?;
        let parts = parts.collect::<rusqlite::Result<Vec<Value>>>()?;
        messages.push(json!({"info": document(&id, &row.get::<_, String>(1)?), "parts": parts}));
    }
    messages.reverse();
    Ok(messages)
}

fn document(id: &str, data: &str) -> Value {
    let mut document: Value = serde_json::from_str(data).unwrap_or_else(|_| json!({}));
    if let Some(fields) = document.as_object_mut() {
        fields.insert("id".to_owned(), id.into());
    }
    document
}
