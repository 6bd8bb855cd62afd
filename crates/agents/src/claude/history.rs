//! Tool calls in Claude Code's transcripts.

use crate::history::{Past, Told, moment, text};
use serde_json::Value;
use std::path::PathBuf;

/// The calls and outputs of one line. A response is written in several lines, each with a part of
/// it.
pub(super) fn calls(line: &str) -> Vec<Past> {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
    let told = Told {
        at: text(&line, "/timestamp").and_then(moment),
        session: text(&line, "/sessionId").map(str::to_owned),
        cwd: text(&line, "/cwd").map(PathBuf::from),
    };
    let parts = line.pointer("/message/content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    parts
        .iter()
        .filter_map(|part| match text(part, "/type")? {
            "tool_use" => {
                let input = part.get("input").cloned().unwrap_or_default();
                Some(told.made(&super::tools::TOOLS, text(part, "/name")?, text(part, "/id"), input))
            }
            "tool_result" => Some(told.gave(text(part, "/tool_use_id"), part.get("content")?.clone())),
            _ => None,
        })
        .collect()
}
