//! Past conversations: where an agent keeps them, and their tool calls.
//!
//! They are read only when a person asks what the guard would have said about them. Unlike the
//! reading for proof, this looks at every call and at nothing else.

use crate::call::ToolCall;
use crate::tools::{self, Tools};
use baton_core::event::EventKind;
use baton_core::time::{Moment, Span};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const MAX_FOLDER_DEPTH: usize = 6;

/// Where an agent keeps its past conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum History {
    /// Files with one JSON document per line.
    Files(Vec<PathBuf>),
    /// An SQLite database, and the query for its calls: one JSON document per row, from a time in
    /// milliseconds on.
    Database {
        file: PathBuf,
        /// The query has one parameter, the time.
        query: &'static str,
    },
    /// They can't be read, for this reason.
    Unreadable(&'static str),
}

/// A past call: before it ran, or with its output.
#[derive(Clone, Debug)]
pub struct Past {
    /// When, if the transcript says so.
    pub at: Option<Moment>,
    /// The call. After it ran, only its id says which tool it was.
    pub call: ToolCall,
}

/// Turns the lines of one conversation, in order, into calls.
pub type HistoryReader = Box<dyn FnMut(&str) -> Vec<Past>>;

/// What lines say beside their calls. Later lines inherit it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) at: Option<Moment>,
    pub(crate) session: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
}

impl Told {
    /// A call before it ran.
    pub(crate) fn made(&self, tools: &Tools, name: &str, id: Option<&str>, input: Value) -> Past {
        let tool = tools::tool(tools, name, &input, &[crate::install::SERVER]);
        self.past(EventKind::BeforeTool, id, tool, input, None)
    }

    /// A call with its output.
    pub(crate) fn gave(&self, id: Option<&str>, output: Value) -> Past {
        let tool = baton_core::tool::ToolUse::new(baton_core::tool::ToolKind::Unknown, "");
        self.past(EventKind::AfterTool, id, tool, Value::Null, Some(output))
    }

    fn past(
        &self,
        kind: EventKind,
        id: Option<&str>,
        tool: baton_core::tool::ToolUse,
        input: Value,
        output: Option<Value>,
    ) -> Past {
        let call = ToolCall {
            kind,
            native: String::new(),
            session_id: self.session.clone(),
            cwd: self.cwd.clone(),
            id: id.map(str::to_owned),
            tool,
            input,
            output,
        };
        Past { at: self.at, call }
    }
}

pub(crate) fn text<'v>(value: &'v Value, way: &str) -> Option<&'v str> {
    value.pointer(way).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A time as transcripts write it, `2026-11-16T10:15:02.920Z`, in milliseconds.
pub(crate) fn moment(text: &str) -> Option<Moment> {
    let Some((whole, fraction)) = text.strip_suffix('Z')?.split_once('.') else { return Moment::parse(text) };
    let digits: String = fraction.chars().chain("00".chars()).take(3).collect();
    let more: u16 = digits.parse().ok()?;
    Moment::parse(&format!("{whole}Z")).map(|at| at.plus(Span(i64::from(more))))
}

/// A part of the input that is JSON inside a text.
pub(crate) fn parsed(input: &Value) -> Value {
    match input.as_str() {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| input.clone()),
        None => input.clone(),
    }
}

/// The files below a folder whose names have this ending and that were changed since a time.
pub(crate) fn files_below(folder: &Path, ending: &str, since: Option<SystemTime>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if kind.is_dir() && depth < MAX_FOLDER_DEPTH {
                folders.push((path, depth + 1));
            } else if kind.is_file() && path.to_string_lossy().ends_with(ending) {
                let is_new =
                    |since| entry.metadata().and_then(|file| file.modified()).is_ok_and(|at| at >= since);
                if since.is_none_or(is_new) {
                    found.push(path);
                }
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_what_was_written_since_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        for name in ["a/new.jsonl", "a/b/old.jsonl", "a/other.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let now = SystemTime::now();
        let old = std::fs::File::options().append(true).open(deep.join("old.jsonl")).unwrap();
        old.set_modified(now - Duration::from_secs(7200)).unwrap();
        let names = |since| -> Vec<String> {
            let files = files_below(folder.path(), ".jsonl", since);
            files.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(None), ["old.jsonl", "new.jsonl"]);
        assert_eq!(names(Some(now - Duration::from_secs(3600))), ["new.jsonl"]);
    }

    #[test]
    fn a_time_may_have_parts_of_a_second() {
        assert_eq!(moment("1970-01-01T00:01:00.355Z"), Some(Moment(60_355)));
        assert_eq!(moment("1970-01-01T00:01:00.3Z"), Some(Moment(60_300)));
        assert_eq!(moment("1970-01-01T00:01:00.999999999Z"), Some(Moment(60_999)));
        assert_eq!(moment("1970-01-01T00:01:00Z"), Some(Moment(60_000)));
        for bad in ["yesterday", "", ".Z", "1970-01-01T00:01:00.xZ", "1970-01-01T00:01:00.-10Z"] {
            assert_eq!(moment(bad), None, "{bad}");
        }
    }
}
