//! `guard log`: what was refused, asked about or taken out.

use super::CommandContext;
use crate::print::{Out, Text, Tone, done, table, when};
use baton_core::Error;
use baton_core::error::Exit;
use baton_core::frame::shown;
use baton_core::time::Moment;
use baton_store::{Participant, Store};
use clap::Args;
use serde_json::Value;

/// What is shown of a field.
const FIELD_CHARS: usize = 60;
/// What is shown of the id of a session that has no name any more.
const ID_CHARS: usize = 8;

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
        let known = if out.is_json() { Vec::new() } else { participants(context) };
        let rows: Vec<Vec<String>> = entries.iter().map(|entry| row(entry, &known)).collect();
        out.data(&Value::Array(entries), || {
            if rows.is_empty() {
                return Text::from("the guard has refused, asked about and taken out nothing yet");
            }
            let tones = [Some(Tone::Dim), None, Some(Tone::Dim), None, Some(Tone::Bold)];
            table(&["TIME", "AGENT", "SESSION", "TOOL", "RULE", "DECISION"], &rows, &tones)
        })?;
        done()
    }
}

/// Who is known, for their names. A store that is not there is not made.
fn participants(context: &CommandContext) -> Vec<Participant> {
    if !Store::path(&context.home).exists() {
        return Vec::new();
    }
    // Without the store, ids are shown.
    context.store().and_then(|store| store.everybody(None)).unwrap_or_default()
}

fn row(entry: &Value, known: &[Participant]) -> Vec<String> {
    let field =
        |name: &str| shown(entry[name].as_str().filter(|text| !text.is_empty()).unwrap_or("–"), FIELD_CHARS);
    let at = entry["at"].as_str().and_then(Moment::parse).map_or_else(|| field("at"), when);
    let session = entry["session"].as_str().map_or_else(|| "–".to_owned(), |id| session(id, known));
    vec![at, field("agent"), session, field("tool"), field("rule"), field("decision")]
}

/// The session's name, else the beginning of its id.
fn session(id: &str, known: &[Participant]) -> String {
    match known.iter().find(|one| one.native.as_deref() == Some(id)) {
        Some(one) => one.name.clone(),
        None => id.chars().take(ID_CHARS).collect(),
    }
}
