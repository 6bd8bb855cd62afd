//! `guard log`: what was refused, asked about or taken out.

use super::CommandContext;
use crate::print::{Out, Tone, done, table};
use baton_core::Error;
use baton_core::error::Exit;
use baton_core::frame::shown;
use clap::Args;
use serde_json::Value;

/// What is shown of a field.
const FIELD_CHARS: usize = 60;

// `baton guard log`
#[derive(Debug, Args)]
pub struct Log {
    /// Show this many of the last decisions
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

impl Log {
    /// Shows the last decisions, oldest first.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let entries = baton_guard_runtime::log::last(&context.home, self.limit);
        let fields = ["at", "agent", "session", "tool", "rule", "decision"];
        let field = |entry: &Value, name: &str| shown(entry[name].as_str().unwrap_or("–"), FIELD_CHARS);
        let rows: Vec<Vec<String>> =
            entries.iter().map(|entry| fields.map(|name| field(entry, name)).to_vec()).collect();
        out.data(&Value::Array(entries), || {
            let tones = [Some(Tone::Dim), None, Some(Tone::Dim), None, Some(Tone::Bold)];
            table(&["TIME", "AGENT", "SESSION", "TOOL", "RULE", "DECISION"], &rows, &tones)
        })?;
        done()
    }
}
