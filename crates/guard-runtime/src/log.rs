//! The guard's log, `guard.log` in the home: what it refused, asked about or redacted, one JSON
//! line each.
//!
//! It names the tool and the rule, never the text of the call, which may hold the secret that the
//! rule protects.

use baton_core::limits;
use baton_core::time::Moment;
use baton_machine::own;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The decision of a call that ran although the guard never judged it.
pub const UNJUDGED: &str = "unjudged";

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub at: Moment,
    pub agent: String,
    /// The agent's own session id.
    pub session: Option<String>,
    /// The agent's own name for the event.
    pub event: String,
    /// The agent's own name for the tool.
    pub tool: String,
    /// The rule; empty if the guard itself failed.
    pub rule: String,
    /// The decision in one word.
    pub decision: String,
}

impl Entry {
    /// The entry as JSON.
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

/// Appends an entry. A log that has grown too long is moved aside first. A write that fails changes
/// no decision.
pub fn append(home: &Path, entry: &Entry) {
    let log = file(home);
    if log.symlink_metadata().is_ok_and(|log| log.len() > limits::LOG_BYTES) {
        // If two hooks do this at once, the second finds it moved already.
        std::fs::rename(&log, older(home)).ok();
    }
    let line = format!("{}\n", entry.document());
    if let Ok(mut log) = own::append(&log) {
        log.write_all(line.as_bytes()).ok();
    }
}

/// How long the log is, so that a reader sees whether it has grown.
pub fn length(home: &Path) -> u64 {
    file(home).symlink_metadata().map_or(0, |log| log.len())
}

/// The last entries, oldest first. A line that is not JSON is skipped.
pub fn last(home: &Path, count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    for log in [older(home), file(home)] {
        // Another program may have made the log longer than baton ever does.
        let text = own::end(&log, 2 * limits::LOG_BYTES).unwrap_or_default();
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
    fn entries_come_back_in_order_and_only_the_owner_reads_them() {
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
    fn the_log_does_not_grow_without_limit() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(file(home.path()), vec![b'\n'; usize::try_from(limits::LOG_BYTES).unwrap() + 1])
            .unwrap();
        append(home.path(), &entry("new"));
        assert!(std::fs::metadata(file(home.path())).unwrap().len() < 1000);
        assert_eq!(last(home.path(), 10).len(), 1);
    }
}
