//! `config`: every setting, its value, where it came from, what it means.

use super::Session;
use crate::gate;
use crate::print::{Out, Tone, done, table};
use crate::settings::{Origin, Settings};
use baton_core::Error;
use baton_core::error::Exit;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Shows the settings in force in this folder.
pub fn run(session: &Session, out: &Out) -> Result<Exit, Error> {
    let settings = Settings::load(&session.cwd)?;
    let place = |origin: &Origin| match origin {
        Origin::Default => "default".to_owned(),
        Origin::User(file) | Origin::Project(file) => file.display().to_string(),
    };
    let mut rows = vec![vec![
        "home".to_owned(),
        session.home.display().to_string(),
        "environment".to_owned(),
        "where the store lies".to_owned(),
    ]];
    rows.extend(settings.shown().iter().map(|shown| {
        vec![shown.key.to_owned(), shown.value.clone(), place(&shown.origin), shown.meaning.to_owned()]
    }));
    let gate = gate::open(&session.home);
    let guard = gate.policy(&session.cwd)?.settings;
    let from = |file: &Option<PathBuf>| match file {
        None => "default".to_owned(),
        Some(file) => file.display().to_string(),
    };
    let values = [
        (guard.mode.value.as_str(), from(&guard.mode.file)),
        (guard.on_failure.value.as_str(), from(&guard.on_failure.file)),
    ];
    for ((key, _, meaning), (value, origin)) in baton_gate::policy::MEANINGS.into_iter().zip(values) {
        rows.push(vec![key.to_owned(), value.to_owned(), origin, meaning.to_owned()]);
    }
    let approvals = gate.approvals()?;
    for ((key, _, meaning), (_, value, file)) in
        baton_gate::approvals::MEANINGS.into_iter().zip(approvals.shown())
    {
        rows.push(vec![key.to_owned(), value, from(&file.map(Path::to_owned)), meaning.to_owned()]);
    }
    let document: Vec<Value> = rows
        .iter()
        .map(|row| json!({"key": row[0], "value": row[1], "origin": row[2], "meaning": row[3]}))
        .collect();
    out.data(&Value::Array(document), || {
        table(*out, &["SETTING", "VALUE", "FROM", "MEANING"], &rows, &[Some(Tone::Bold)])
    })?;
    done()
}
