//! Tool calls in Codex's transcripts.

use crate::history::{Past, Told, moment, parsed, text};
use serde_json::Value;
use std::path::PathBuf;

/// Reads a transcript from its beginning.
#[derive(Debug, Default)]
pub(super) struct Reader {
    told: Told,
}

impl Reader {
    /// The calls and outputs of one line. Other lines name the session and its folder.
    pub(super) fn calls(&mut self, line: &str) -> Vec<Past> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        self.told.at = text(&line, "/timestamp").and_then(moment);
        if let Some(cwd) = text(&line, "/payload/cwd") {
            self.told.cwd = Some(PathBuf::from(cwd));
        }
        match text(&line, "/type") {
            Some("session_meta") => {
                self.told.session = text(&line, "/payload/id").map(str::to_owned);
                Vec::new()
            }
            Some("response_item") => {
                line.get("payload").and_then(|item| self.call(item)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn call(&self, item: &Value) -> Option<Past> {
        let id = text(item, "/call_id");
        let made = |name: &str, input: Value| Some(self.told.made(&super::tools::TOOLS, name, id, input));
        match text(item, "/type")? {
            "function_call" => {
                let input = item.get("arguments").map(parsed).unwrap_or_default();
                match (text(item, "/namespace"), text(item, "/name")?) {
                    (Some(namespace), name) => made(&format!("{namespace}__{name}"), input),
                    (None, name) => made(name, input),
                }
            }
            "custom_tool_call" => made(text(item, "/name")?, item.get("input").cloned().unwrap_or_default()),
            "local_shell_call" => made("local_shell", item.get("action").cloned().unwrap_or_default()),
            "function_call_output" | "custom_tool_call_output" => {
                Some(self.told.gave(id, item.get("output").map(parsed)?))
            }
            _ => None,
        }
    }
}
