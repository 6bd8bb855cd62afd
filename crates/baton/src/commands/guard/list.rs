//! `guard list`: every rule, and whether it is on here.

use super::CommandContext;
use crate::guard;
use crate::print::{Out, Tone, done, table_of_sentences};
use baton_core::Error;
use baton_core::error::Exit;
use serde_json::{Value, json};

/// Shows the rules in the order in which they are asked.
pub fn run(context: &CommandContext, out: &Out) -> Result<Exit, Error> {
    let policy = guard::open(&context.home).policy(&context.cwd)?;
    let is_on = |id: &str| policy.rules.rules.iter().any(|active| active.rule.id == id);
    let mut documents = Vec::new();
    let mut rows = Vec::new();
    for rule in baton_guard::rules::all() {
        let on = is_on(rule.id);
        documents.push(json!({
            "rule": rule.id, "on": on, "default": rule.on, "when": rule.event.as_str(),
            "parameters": rule.parameters, "about": rule.about,
        }));
        let state = if on { "on" } else { "off" };
        let words = [rule.id, state, rule.event.as_str(), rule.about];
        rows.push(words.map(str::to_owned).to_vec());
    }
    for custom in &policy.rules.custom {
        let when = custom.event.as_str();
        documents
            .push(json!({"rule": custom.id, "on": true, "default": false, "custom": true, "when": when}));
        rows.push(["on", when, "your own"].iter().fold(vec![custom.id.clone()], |mut row, word| {
            row.push((*word).to_owned());
            row
        }));
    }
    out.data(&Value::Array(documents), || {
        table_of_sentences(&["RULE", "STATE", "WHEN", "ABOUT"], &rows, &[Some(Tone::Bold)])
    })?;
    done()
}
