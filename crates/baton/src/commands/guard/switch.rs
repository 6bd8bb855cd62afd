//! `guard enable` and `guard disable`: rules on and off, in the person's file or the project's.
//! Only the person may; the rest of the file stays as it is.

use super::{CommandContext, rule};
use crate::environment;
use crate::print::{Out, Text, Tone, done, text};
use crate::settings::edit;
use baton_core::error::Exit;
use baton_core::{Code, Error};
use baton_guard::Rule;
use baton_guard_runtime::PROJECT_FILE;
use baton_machine::project;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, Value};

// `baton guard enable`, `baton guard disable`
#[derive(Debug, Args)]
pub struct Switch {
    /// The rule
    rule: String,
    /// Write to this project's file, which may only tighten
    #[arg(long)]
    project: bool,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// On.
    On,
    /// Off.
    Off,
}

impl Switch {
    pub fn run(&self, to: To, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let rule = rule(&self.rule)?;
        let file = self.file(context)?;
        let (snapshot, before) = edit::read(&file)?;
        let after =
            if self.project { switched_in_project(&before, rule, to) } else { switched(&before, rule, to) }
                .map_err(|why| unusable(&file, &why))?;
        if after != before {
            edit::write(&snapshot, &after)?;
        }
        let state = if to == To::On { "on" } else { "off" };
        let document = json!({"rule": rule.id, "state": state, "file": file, "changed": after != before});
        out.data(&document, Text::default)?;
        let place = format_args!(" is {state} in {}", file.display());
        out.say(text![out.tone(Tone::Bold, rule.id), place]);
        done()
    }

    fn file(&self, context: &CommandContext) -> Result<PathBuf, Error> {
        if self.project {
            let here = context.cwd.ancestors().map(|dir| dir.join(PROJECT_FILE)).find(|file| file.is_file());
            return Ok(here.unwrap_or_else(|| Path::new(&project::of(&context.cwd)).join(PROJECT_FILE)));
        }
        let file = environment::own_config_file()?
            .ok_or_else(|| Error::new(Code::Usage, "HOME is not set").hint("set HOME to your home folder"))?;
        // Where it is a link, what it leads to is changed.
        Ok(file.canonicalize().unwrap_or(file))
    }
}

fn unusable(file: &Path, why: &str) -> Error {
    Error::new(Code::ConfigMalformed, format!("{}: {why}", file.display())).hint("nothing was changed")
}

/// The user's file with a rule on or off: in `enable` or `disable` of `[guard]`, and only where
/// that differs from the default.
fn switched(text: &str, rule: &Rule, to: To) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let (into, out_of) = if to == To::On { ("enable", "disable") } else { ("disable", "enable") };
    take_out(&mut document, out_of, rule.id)?;
    if rule.on != (to == To::On) {
        put_in(&mut document, into, rule.id)?;
    }
    Ok(document.to_string())
}

/// The project's file, which can switch rules on, and only its own off again.
fn switched_in_project(text: &str, rule: &Rule, to: To) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    match to {
        To::On => put_in(&mut document, "enable", rule.id)?,
        To::Off => {
            if !take_out(&mut document, "enable", rule.id)? {
                return Err(format!("it does not enable {}, and a project can't switch rules off", rule.id));
            }
        }
    }
    Ok(document.to_string())
}

/// A list of `[guard]`, if it is there.
fn list<'d>(document: &'d mut DocumentMut, name: &str) -> Result<Option<&'d mut Array>, String> {
    let Some(guard) = document.get_mut("guard") else { return Ok(None) };
    let guard = guard.as_table_like_mut().ok_or("guard is no section")?;
    match guard.get_mut(name) {
        None => Ok(None),
        Some(item) => item.as_array_mut().map(Some).ok_or_else(|| format!("guard.{name} is no list")),
    }
}

fn is(value: &Value, id: &str) -> bool {
    value.as_str() == Some(id)
}

fn take_out(document: &mut DocumentMut, name: &str, id: &str) -> Result<bool, String> {
    let Some(list) = list(document, name)? else { return Ok(false) };
    let before = list.len();
    list.retain(|value| !is(value, id));
    let taken = list.len() < before;
    if list.is_empty()
        && taken
        && let Some(guard) = document.get_mut("guard").and_then(Item::as_table_like_mut)
    {
        guard.remove(name);
    }
    Ok(taken)
}

fn put_in(document: &mut DocumentMut, name: &str, id: &str) -> Result<(), String> {
    if let Some(list) = list(document, name)? {
        if !list.iter().any(|value| is(value, id)) {
            list.push(id);
        }
        return Ok(());
    }
    let guard = document.entry("guard").or_insert_with(|| Item::Table(Table::new()));
    let guard = guard.as_table_like_mut().ok_or("guard is no section")?;
    guard.insert(name, toml_edit::value(Array::from_iter([id])));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_by_default(on: bool) -> &'static Rule {
        baton_guard::rules::all().find(|rule| rule.on == on).unwrap()
    }

    #[test]
    fn a_rule_goes_off_and_on_and_the_rest_of_the_file_stays() {
        let rule = on_by_default(true);
        let text = "# mine\n[limits]\nhops = 3 # few\n\n[guard]\nmode = \"on\"\n";
        let off = switched(text, rule, To::Off).unwrap();
        assert_eq!(off, format!("{text}disable = [\"{}\"]\n", rule.id));
        assert_eq!(switched(&off, rule, To::Off).unwrap(), off, "twice is once");
        assert_eq!(switched(&off, rule, To::On).unwrap(), text);
        let new = switched("", rule, To::Off).unwrap();
        assert_eq!(new, format!("[guard]\ndisable = [\"{}\"]\n", rule.id));
    }

    #[test]
    fn a_project_switches_on_and_takes_back_only_that() {
        let rule = on_by_default(true);
        let on = switched_in_project("", rule, To::On).unwrap();
        assert_eq!(on, format!("[guard]\nenable = [\"{}\"]\n", rule.id));
        assert!(!switched_in_project(&on, rule, To::Off).unwrap().contains(rule.id));
        assert!(switched_in_project("", rule, To::Off).unwrap_err().contains("can't switch rules off"));
    }

    #[test]
    fn what_is_no_list_is_left_alone() {
        let rule = on_by_default(true);
        for text in ["guard = 3\n", "[guard]\ndisable = \"x\"\n", "[guard"] {
            assert!(switched(text, rule, To::Off).is_err(), "{text}");
        }
    }
}
