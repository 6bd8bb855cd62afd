//! Tool calls in Pi's session files.

use crate::history::{Past, Told, moment, parsed, text};
use serde_json::Value;
use std::path::PathBuf;

/// Reads a session file from its beginning.
#[derive(Debug, Default)]
pub(super) struct Reader {
    told: Told,
}

impl Reader {
    /// The calls and outputs of one line.
    pub(super) fn calls(&mut self, line: &str) -> Vec<Past> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        self.told.at = text(&line, "/timestamp").and_then(moment);
        match text(&line, "/type") {
            Some("session") => {
                self.told.session = text(&line, "/id").map(str::to_owned);
                self.told.cwd = text(&line, "/cwd").map(PathBuf::from);
                Vec::new()
            }
            Some("message") => line.get("message").map(|message| self.message(message)).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn message(&self, message: &Value) -> Vec<Past> {
        let parts = message.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        match text(message, "/role") {
            Some("assistant") => parts
                .iter()
                .filter(|part| text(part, "/type") == Some("toolCall"))
                .filter_map(|part| {
                    let input = part.get("arguments").map(parsed).unwrap_or_default();
                    Some(self.told.made(&super::tools::TOOLS, text(part, "/name")?, text(part, "/id"), input))
                })
                .collect(),
            Some("toolResult") => {
                vec![
                    self.told.gave(
                        text(message, "/toolCallId"),
                        message.get("content").cloned().unwrap_or_default(),
                    ),
                ]
            }
            _ => Vec::new(),
        }
    }
}
