//! `config`: every setting, its value, where it came from, what it means; and one of them read, set
//! or taken out.
//!
//! A mistake in a file stops no one from looking: it is shown first, then what is in force.

mod change;

use super::CommandContext;
use crate::environment;
use crate::guard;
use crate::print::{Out, Tone, done, table_of_sentences};
use crate::settings::{Origin, Settings, edit};
use baton_core::error::Exit;
use baton_core::{Code, Error};
use baton_guard_runtime::approvals::{self, ApprovalSettings};
use baton_guard_runtime::policy;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

// `baton config`
#[derive(Debug, Args)]
pub struct Config {
    /// Show only this setting
    key: Option<String>,
    /// Set it to this value (several for a list); only the person may
    #[arg(requires = "key")]
    value: Vec<String>,
    /// Take a setting out of your file, so that its default counts
    #[arg(long, value_name = "KEY", conflicts_with = "key")]
    unset: Option<String>,
    /// Open your file in $VISUAL or $EDITOR, and check it before it counts
    #[arg(long, conflicts_with_all = ["key", "unset"])]
    edit: bool,
    /// Print where your file is
    #[arg(long, conflicts_with_all = ["key", "unset", "edit"])]
    path: bool,
}

/// A setting as it is shown.
struct Row {
    key: &'static str,
    value: String,
    from: String,
    meaning: &'static str,
}

impl Config {
    /// Shows settings, or changes one.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        match (&self.key, &self.unset) {
            (_, Some(key)) => change::unset(context, out, key),
            (Some(key), None) if !self.value.is_empty() => change::set(context, out, key, &self.value),
            (Some(key), None) => show_one(context, out, key),
            (None, None) if self.edit => change::by_hand(out),
            (None, None) if self.path => show_path(out),
            (None, None) => show_all(context, out),
        }
    }
}

/// The person's file.
fn own_file() -> Result<PathBuf, Error> {
    environment::own_config_file()?
        .ok_or_else(|| Error::new(Code::Usage, "HOME is not set").hint("set HOME to your home folder"))
}

fn show_path(out: &Out) -> Result<Exit, Error> {
    let file = own_file()?;
    out.data(&json!({"path": file, "exists": file.exists()}), || file.display().to_string())?;
    done()
}

fn show_one(context: &CommandContext, out: &Out, key: &str) -> Result<Exit, Error> {
    let key = if key == HOME { HOME } else { edit::known(key)? };
    let (rows, mistakes) = rows(context);
    mistakes.iter().for_each(|mistake| out.warn(mistake));
    let row = rows.into_iter().find(|row| row.key == key);
    let row = row.ok_or_else(|| Error::new(Code::Internal, format!("{key} is not among the settings")))?;
    out.data(&row.document(), || row.value.clone())?;
    done()
}

fn show_all(context: &CommandContext, out: &Out) -> Result<Exit, Error> {
    let (rows, mistakes) = rows(context);
    mistakes.iter().for_each(|mistake| out.warn(mistake));
    if !mistakes.is_empty() {
        out.say(
            "until it is mended, this is in force, and tool calls that the rules can't judge are asked about",
        );
    }
    let document = Value::from_iter(rows.iter().map(Row::document));
    out.data(&document, || {
        let cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| vec![row.key.to_owned(), row.value.clone(), row.from.clone(), row.meaning.to_owned()])
            .collect();
        table_of_sentences(&["SETTING", "VALUE", "FROM", "MEANING"], &cells, &[Some(Tone::Bold)])
    })?;
    done()
}

/// The key of baton's home, which no file sets.
const HOME: &str = "home";

impl Row {
    fn document(&self) -> Value {
        json!({"key": self.key, "value": self.value, "origin": self.from, "meaning": self.meaning})
    }
}

/// Every setting that is in force, and the mistakes because of which some of them are defaults.
fn rows(context: &CommandContext) -> (Vec<Row>, Vec<Error>) {
    let mut mistakes = Vec::new();
    let settings = kept(Settings::load(&context.cwd), &mut mistakes).unwrap_or_else(Settings::defaults);
    let place = |origin: &Origin| match origin {
        Origin::Default => "default".to_owned(),
        Origin::User(file) | Origin::Project(file) => file.display().to_string(),
    };
    let mut rows = vec![Row {
        key: HOME,
        value: context.home.display().to_string(),
        from: context.home_from.to_owned(),
        meaning: "where the store is",
    }];
    rows.extend(settings.shown().into_iter().map(|shown| Row {
        key: shown.key,
        from: place(&shown.origin),
        value: shown.value,
        meaning: shown.meaning,
    }));
    let guard = guard::open(&context.home);
    let from =
        |file: Option<&Path>| file.map_or_else(|| "default".to_owned(), |file| file.display().to_string());
    let judged =
        kept(guard.policy(&context.cwd), &mut mistakes).map(|policy| policy.settings).unwrap_or_default();
    let values = [
        (judged.mode.value.as_str(), from(judged.mode.file.as_deref())),
        (judged.on_failure.value.as_str(), from(judged.on_failure.file.as_deref())),
    ];
    for ((key, _, meaning), (value, from)) in policy::MEANINGS.into_iter().zip(values) {
        rows.push(Row { key, value: value.to_owned(), from, meaning });
    }
    let answered = kept(guard.approvals(), &mut mistakes).unwrap_or_else(ApprovalSettings::default);
    for ((key, _, meaning), (_, value, file)) in approvals::MEANINGS.into_iter().zip(answered.shown()) {
        rows.push(Row { key, value, from: from(file), meaning });
    }
    (rows, mistakes)
}

/// What could be read; else the mistake is kept, once.
fn kept<T>(read: Result<T, Error>, mistakes: &mut Vec<Error>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            // The same line is read for several settings.
            if !mistakes.iter().any(|known| known.message() == error.message()) {
                mistakes.push(error);
            }
            None
        }
    }
}
