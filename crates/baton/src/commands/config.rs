//! `config`: every setting, its value, where it came from, what it means.

use super::CommandContext;
use crate::guard;
use crate::print::{Out, Tone, done, table};
use crate::settings::{Origin, Settings};
use baton_core::Error;
use baton_core::error::Exit;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Shows the settings in force in this folder.
pub fn run(context: &CommandContext, out: &Out) -> Result<Exit, Error> {
    let settings = Settings::load(&context.cwd)?;
    let place = |origin: &Origin| match origin {
        Origin::Default => "default".to_owned(),
        Origin::User(file) | Origin::Project(file) => file.display().to_string(),
    };
    let mut rows = vec![vec![
        "home".to_owned(),
        context.home.display().to_string(),
        "environment".to_owned(),
        "where the store is".to_owned(),
    ]];
    rows.extend(settings.shown().iter().map(|shown| {
        vec![shown.key.to_owned(), shown.value.clone(), place(&shown.origin), shown.meaning.to_owned()]
    }));
    let guard = guard::open(&context.home);
    let policy = guard.policy(&context.cwd)?.settings;
    let from = |file: &Option<PathBuf>| match file {
        None => "default".to_owned(),
        Some(file) => file.display().to_string(),
    };
    let values = [
        (policy.mode.value.as_str(), from(&policy.mode.file)),
        (policy.on_failure.value.as_str(), from(&policy.on_failure.file)),
    ];
    for ((key, _, meaning), (value, origin)) in baton_guard_runtime::policy::MEANINGS.into_iter().zip(values)
    {
        rows.push(vec![key.to_owned(), value.to_owned(), origin, meaning.to_owned()]);
    }
    let approvals = guard.approvals()?;
    for ((key, _, meaning), (_, value, file)) in
        baton_guard_runtime::approvals::MEANINGS.into_iter().zip(approvals.shown())
    {
        rows.push(vec![key.to_owned(), value, from(&file.map(Path::to_owned)), meaning.to_owned()]);
    }
    let document: Vec<Value> = rows
        .iter()
        .map(|row| json!({"key": row[0], "value": row[1], "origin": row[2], "meaning": row[3]}))
        .collect();
    out.data(&Value::Array(document), || {
        table(&["SETTING", "VALUE", "FROM", "MEANING"], &rows, &[Some(Tone::Bold)])
    })?;
    done()
}
