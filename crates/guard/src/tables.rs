//! Tables of what the guard knows about programs. A contributor adds one line, and the example on
//! that line is its test.
//!
//! `tests/tables.rs` judges every example by its rule. A table holds facts about programs; the
//! rules decide what is allowed.

pub(crate) mod calls;
pub(crate) mod credentials;
pub(crate) mod downloads;
pub(crate) mod environment;
pub(crate) mod options;
pub(crate) mod persistence;
pub(crate) mod runners;

use crate::shell::Value;

/// An example of a row, and whether its rule blocks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The rule that judges it.
    pub rule: &'static str,
    pub command: &'static str,
    /// Whether the rule blocks it.
    pub held: bool,
}

/// A command that a rule blocks.
const fn held(rule: &'static str, command: &'static str) -> Sample {
    Sample { rule, command, held: true }
}

/// A command that a rule leaves alone.
const fn free(rule: &'static str, command: &'static str) -> Sample {
    Sample { rule, command, held: false }
}

/// How many arguments the subcommand of a call such as `uv run` takes; `None` if the command is
/// another one. Options may come before the subcommand.
pub(crate) fn taken(call: &str, name: &str, args: &[Value]) -> Option<usize> {
    let rest = call.strip_prefix(name)?;
    let Some(verbs) = rest.strip_prefix(' ') else { return rest.is_empty().then_some(0) };
    let mut at = 0;
    for verb in verbs.split(' ') {
        if !verb.starts_with('-') {
            at += args.get(at..)?.iter().take_while(|arg| arg.text.starts_with('-')).count();
        }
        (args.get(at)?.text == verb).then_some(())?;
        at += 1;
    }
    Some(at)
}

/// The examples of every table, with the name of the table.
pub fn samples() -> impl Iterator<Item = (&'static str, Sample)> {
    let runners = runners::RUNNERS.iter().map(|row| ("runners", row.example));
    let options = options::OPTIONS.iter().map(|row| ("options", row.example));
    let shown = credentials::SECRET_COMMANDS.iter().map(|row| ("credentials", row.example));
    let calls = calls::CALLS.iter().map(|row| ("calls", row.example));
    let places = persistence::PERSISTENCE_PATHS.iter().map(|row| ("persistence", row.example));
    let dumps = environment::DUMPS.iter().map(|row| ("environment", row.example));
    let installers = persistence::INSTALLERS.iter().map(|row| ("installers", row.example));
    let fetches = downloads::FETCHES.iter().map(|row| ("downloads", row.example));
    let harmless = credentials::HARMLESS_SAMPLES
        .iter()
        .chain(persistence::HARMLESS_SAMPLES)
        .map(|row| ("harmless", *row));
    runners
        .chain(fetches)
        .chain(installers)
        .chain(dumps)
        .chain(options)
        .chain(shown)
        .chain(calls)
        .chain(places)
        .chain(harmless)
}

/// Every path below a home that holds credentials, for the test of that table.
pub fn credential_paths() -> impl Iterator<Item = &'static str> {
    credentials::HOME_PATHS.iter().copied()
}
