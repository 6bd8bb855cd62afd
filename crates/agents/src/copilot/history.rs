//! Tool calls in Copilot's transcripts.

use crate::history::{Past, Told, moment, parsed, text};
use serde_json::Value;
use std::path::PathBuf;

/// Reads a transcript from its beginning.
#[derive(Debug, Default)]
pub(super) struct Reader {
    told: Told,
}

impl Reader {
    /// The calls and outputs of one line.
    pub(super) fn calls(&mut self, line: &str) -> Vec<Past> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        self.told.at = text(&line, "/timestamp").and_then(moment);
        let (Some(kind), Some(data)) = (text(&line, "/type"), line.get("data")) else { return Vec::new() };
        if let Some(cwd) = text(data, "/context/cwd").or_else(|| text(data, "/cwd")) {
            self.told.cwd = Some(PathBuf::from(cwd));
        }
        let id = text(data, "/toolCallId");
        let found = match kind {
            "session.start" | "session.resume" => {
                if let Some(session) = text(data, "/sessionId") {
                    self.told.session = Some(session.to_owned());
                }
                None
            }
            "tool.execution_start" => text(data, "/toolName").map(|name| {
                let input = data.get("arguments").map(parsed).unwrap_or_default();
                self.told.made(&super::tools::TOOLS, name, id, input)
            }),
            "tool.execution_complete" => {
                // The second is what the model reads about a call that did not run.
                let output = data.pointer("/result/content").or_else(|| data.pointer("/error/message"));
                output.map(|output| self.told.gave(id, output.clone()))
            }
            _ => None,
        };
        found.into_iter().collect()
    }
}
