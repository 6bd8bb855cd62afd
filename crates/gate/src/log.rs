//! The guard's log: what it refused, asked about or took out, one JSON line each, in `guard.log` of the home.
//!
//! It says which tool and which rule, never what the call was: that may hold what the rule keeps back.

use baton_core::limits;
use baton_core::time::Moment;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The word for a call that has run without a decision.
pub const UNJUDGED: &str = "unjudged";

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Moment,
    /// Whose call it was.
    pub agent: String,
    /// The agent's own session id.
    pub session: Option<String>,
    /// The agent's own name for the event.
    pub event: String,
    /// The agent's own name for the tool.
    pub tool: String,
    /// The rule; empty where the guard itself failed.
    pub rule: String,
    /// What was decided, in a word.
    pub decision: String,
}

impl Entry {
    /// As it is written.
    pub fn document(&self) -> Value {
        json!({
            "at": self.at.to_rfc3339(), "agent": self.agent, "session": self.session, "event": self.event,
            "tool": self.tool, "rule": self.rule, "decision": self.decision,
        })
    }
}

fn file(home: &Path) -> PathBuf {
    home.join("guard.log")
}

fn older(home: &Path) -> PathBuf {
    home.join("guard.log.1")
}

/// Appends an entry; a log that has grown too long is started anew. That it can't be written changes no decision.
pub fn append(home: &Path, entry: &Entry) {
    let log = file(home);
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > limits::LOG_BYTES) {
        // Two hooks at once: the second finds it moved already.
        std::fs::rename(&log, older(home)).ok();
    }
    let line = format!("{}\n", entry.document());
    if let Ok(mut log) = OpenOptions::new().create(true).append(true).mode(0o600).open(&log) {
        log.write_all(line.as_bytes()).ok();
    }
}

/// The last entries, oldest first, as they were written. A line that is none is passed over.
pub fn last(home: &Path, count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    for log in [older(home), file(home)] {
        let text = std::fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        found.extend(text.lines().filter_map(|line| serde_json::from_str(line).ok()));
    }
    let skipped = found.len().saturating_sub(count);
    found.split_off(skipped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn entry(tool: &str) -> Entry {
        Entry {
            at: Moment(0),
            agent: "claude".into(),
            session: Some("s".into()),
            event: "PreToolUse".into(),
            tool: tool.into(),
            rule: "block-sudo".into(),
            decision: "deny".into(),
        }
    }

    #[test]
    fn entries_come_back_in_order_and_are_nobody_elses_business() {
        let home = tempfile::tempdir().unwrap();
        for tool in ["one", "two\n", "three"] {
            append(home.path(), &entry(tool));
        }
        let tools: Vec<_> = last(home.path(), 2).into_iter().map(|entry| entry["tool"].clone()).collect();
        assert_eq!(tools, ["two\n", "three"]);
        let mode = std::fs::metadata(file(home.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn it_does_not_grow_for_ever() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(file(home.path()), vec![b'\n'; usize::try_from(limits::LOG_BYTES).unwrap() + 1])
            .unwrap();
        append(home.path(), &entry("new"));
        assert!(std::fs::metadata(file(home.path())).unwrap().len() < 1000);
        assert_eq!(last(home.path(), 10).len(), 1);
    }
}
