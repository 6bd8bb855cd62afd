//! A change by the agent's own command.
//!
//! An agent rewrites some files while it runs. Its own processes agree on who writes when, and
//! other programs can't take part in that: our change could be lost between their reading and
//! writing, or theirs in ours. So while a session runs, the agent's command changes such a file. We
//! read the file afterwards, because the command's success message proves nothing. While no session
//! runs, we write the file ourselves: the command would reformat it, and its start may change other
//! files.

use rustix::process::{Pid, test_kill_process};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A command of the agent's program, and what the JSON file contains afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnCommand {
    pub args: Vec<String>,
    /// Variables that keep the program from doing anything else.
    pub env: &'static [(&'static str, &'static str)],
    /// Variables that name the place of its files. They are passed on.
    pub keeps: &'static [&'static str],
    /// The folder where the agent records its running sessions, as `<pid>.json`.
    pub sessions: PathBuf,
    /// The keys that lead to our entry.
    pub at: &'static [&'static str],
    /// The entry; `None` if there should be none.
    pub entry: Option<Value>,
}

/// Runs a command of the agent for a limited time. Returns what went wrong.
pub type Run<'a> = &'a dyn Fn(&OwnCommand) -> Result<(), String>;

impl OwnCommand {
    /// Whether a session of the agent runs, which may write the file at any moment.
    pub fn is_needed(&self) -> bool {
        let Ok(files) = fs::read_dir(&self.sessions) else { return false };
        files.flatten().any(|file| {
            let name = file.file_name();
            let pid = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<u32>().ok());
            let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
            // A process of another user is alive too.
            pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
        })
    }

    /// Whether the file contains what it should.
    pub(super) fn is_done(&self, file: Option<&[u8]>) -> bool {
        let Some(bytes) = file else { return self.entry.is_none() };
        let Some(whole) = value_of(bytes) else { return false };
        let found = self.at.iter().try_fold(&whole, |value, key| value.get(key));
        found == self.entry.as_ref()
    }

    /// Whether nothing but our entry changed in the file, in whatever formatting.
    pub(super) fn is_all_that_changed(&self, before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
        let whole = |bytes: Option<&[u8]>| value_of(bytes.unwrap_or(b"{}"));
        let (Some(before), Some(mut after)) = (whole(before), whole(after)) else { return false };
        drop_entry(&mut after, &before, self.at);
        after == before
    }

    /// The command as people read it.
    pub fn shown(&self, program: &str) -> String {
        let words = self.args.iter().take_while(|word| !word.starts_with('{'));
        words.fold(program.to_owned(), |line, word| line + " " + word)
    }
}

fn value_of(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).ok()
}

/// Removes an entry, and the containers around it that were not there before.
fn drop_entry(value: &mut Value, before: &Value, way: &[&str]) {
    let (Some((key, rest)), Some(object)) = (way.split_first(), value.as_object_mut()) else { return };
    if let Some(inner) = object.get_mut(*key).filter(|_| !rest.is_empty()) {
        drop_entry(inner, &before[*key], rest);
    }
    let is_empty = object.get(*key).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    if rest.is_empty() || (is_empty && before.get(key).is_none()) {
        object.remove(*key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_exact_entry_counts() {
        let adds = OwnCommand {
            args: vec!["mcp".to_owned(), "add-json".to_owned(), "{}".to_owned()],
            env: &[],
            keeps: &[],
            sessions: PathBuf::new(),
            at: &["a", "b"],
            entry: Some(json!({"c": 1})),
        };
        assert!(adds.is_done(Some(b"\xef\xbb\xbf{\"a\": {\"b\": {\"c\": 1}}}")));
        for not_yet in ["", "{", "{}", "{\"a\": 1}", "{\"a\": {\"b\": {\"c\": 1, \"d\": 2}}}"] {
            assert!(!adds.is_done(Some(not_yet.as_bytes())), "{not_yet}");
        }
        assert!(!adds.is_done(None));
        let removes = OwnCommand { entry: None, ..adds.clone() };
        assert!(removes.is_done(None) && removes.is_done(Some(b"{\"a\": {}}")));
        assert!(!removes.is_done(Some(b"{\"a\": {\"b\": 1}}")) && !removes.is_done(Some(b"{")));
        assert_eq!(adds.shown("claude"), "claude mcp add-json");
        let only = |before: Option<&str>, after: &str| {
            adds.is_all_that_changed(before.map(str::as_bytes), Some(after.as_bytes()))
        };
        assert!(only(None, r#"{"a": {"b": {"c": 1}}}"#));
        assert!(only(Some(r#"{"x":1}"#), r#"{ "x": 1, "a": {"b": 7} }"#));
        assert!(only(Some(r#"{"a":{}}"#), r#"{"a":{"b":7}}"#));
        assert!(!only(Some(r#"{"x":1}"#), r#"{"x":2,"a":{"b":7}}"#));
        assert!(!only(None, r#"{"y":1,"a":{"b":7}}"#) && !only(Some("{"), "{"));
    }

    #[test]
    fn it_is_needed_while_a_session_runs() {
        let root = tempfile::tempdir().unwrap();
        let sessions = root.path().join("sessions");
        let command = OwnCommand {
            args: Vec::new(),
            env: &[],
            keeps: &[],
            sessions: sessions.clone(),
            at: &[],
            entry: None,
        };
        assert!(!command.is_needed(), "no session was ever noted");
        fs::create_dir(&sessions).unwrap();
        for name in ["notes.json", "0.json", "-1.json", "2147483647.json", "17"] {
            fs::write(sessions.join(name), "{}").unwrap();
        }
        assert!(!command.is_needed(), "no such process");
        fs::write(sessions.join(format!("{}.json", std::process::id())), "{}").unwrap();
        assert!(command.is_needed());
    }
}
