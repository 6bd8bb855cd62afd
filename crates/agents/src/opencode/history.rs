//! Tool calls in OpenCode's database: the parts of its messages that are tools.

use crate::history::{Past, Told, text};
use baton_core::time::Moment;
use serde_json::Value;
use std::path::PathBuf;

/// One document per tool part, oldest first.
pub(super) const QUERY: &str = "
    SELECT json_object('part', json(part.data), 'session', part.session_id, 'at', part.time_created, 'cwd', session.directory)
    FROM part JOIN session ON session.id = part.session_id
    WHERE part.time_created >= ?1 AND json_extract(part.data, '$.type') = 'tool'
    ORDER BY part.time_created";

/// The call of one row, with its output.
pub(super) fn calls(row: &str) -> Vec<Past> {
    let Ok(row) = serde_json::from_str::<Value>(row) else { return Vec::new() };
    let told = Told {
        at: row.get("at").and_then(Value::as_i64).map(Moment),
        session: text(&row, "/session").map(str::to_owned),
        cwd: text(&row, "/cwd").map(PathBuf::from),
    };
    let (id, Some(name)) = (text(&row, "/part/callID"), text(&row, "/part/tool")) else { return Vec::new() };
    let input = row.pointer("/part/state/input").cloned().unwrap_or_default();
    let mut found = vec![told.made(&super::tools::TOOLS, name, id, input)];
    if let Some(output) = row.pointer("/part/state/output").or_else(|| row.pointer("/part/state/error")) {
        found.push(told.gave(id, output.clone()));
    }
    found
}
