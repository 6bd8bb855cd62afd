//! Tool calls in Gemini CLI's transcripts. They don't say where the session worked; a file beside
//! them does.

use crate::history::{Past, Told, moment, text};
use serde_json::Value;
use std::path::PathBuf;

/// The file in a project's folder that names the project.
pub(super) const ROOT_FILE: &str = ".project_root";

/// Reads a transcript from its beginning.
#[derive(Debug, Default)]
pub(super) struct Reader {
    told: Told,
}

impl Reader {
    pub(super) fn new(cwd: Option<PathBuf>) -> Self {
        Self { told: Told { cwd, ..Told::default() } }
    }

    /// The calls of one line, with their outputs.
    pub(super) fn calls(&mut self, line: &str) -> Vec<Past> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        if let Some(session) = text(&line, "/sessionId") {
            self.told.session = Some(session.to_owned());
        }
        let calls = line.get("toolCalls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut found = Vec::new();
        for call in calls {
            let told = Told { at: text(call, "/timestamp").and_then(moment), ..self.told.clone() };
            let (id, Some(name)) = (text(call, "/id"), text(call, "/name")) else { continue };
            let input = call.get("args").cloned().unwrap_or_default();
            found.push(told.made(&super::tools::TOOLS, name, id, input));
            if let Some(result) = call.get("result").filter(|result| !result.is_null()) {
                found.push(told.gave(id, result.clone()));
            }
        }
        found
    }
}
